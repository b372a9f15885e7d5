"""The catalog follows an undo, even if the process of the undo dies."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.indexing import processor
from plone.pgcatalog.queue.worker import Worker
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.rebuilding import sql
from typing import Any

import pytest
import transaction


@pytest.fixture
def portal(site_template: str, postgres: Any) -> Iterator[Any]:
    """A site whose storage preserves history, and whose page was renamed from *wombat* to *numbat*."""
    with (
        sites.opened(sites.clone(postgres, site_template), history_preserving=True) as db,
        sites.inside(db) as portal,
    ):
        create(portal, "Document", "thing", title="wombat")
        transaction.commit()
        portal.thing.title = "numbat"
        portal.thing.reindexObject()
        transaction.commit()
        yield portal


def undo(portal: Any) -> None:
    database = portal._p_jar.db()
    database.undo(database.undoInfo(0, 1)[0]["id"])
    transaction.commit()
    transaction.begin()


def titles(portal: Any) -> list[str]:
    return [name for name in ("wombat", "numbat") if len(portal.portal_catalog(Title=name))]


def test_page_after_an_undo_is_right(portal: Any) -> None:
    undo(portal)
    assert titles(portal) == ["wombat"]


def test_worker_follows_an_undo_whose_process_died(portal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The process ends between the commit and the job.
    monkeypatch.setattr(processor, "do_now", lambda *job: None)
    undo(portal)
    assert titles(portal) == ["numbat"]
    dsn = portal._p_jar.db().storage._dsn
    sql(dsn, "UPDATE pgcatalog_queue SET due = now() WHERE kind = 'undo'")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(Worker(portal._p_jar.db(), dsn).run_until_empty).result() >= 1
    transaction.begin()
    assert titles(portal) == ["wombat"]
