"""A dump of a site with vectors, by pg_dump and pg_restore: into a database with pgvector, and into one without."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain_connection
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.meaning.job import create_index
from plone.pgcatalog.meaning.table import vectors_of
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.worker import Worker
from tests.acceptance.cli import answer
from tests.integration import site as sites
from tests.integration.embedders import Answers
from tests.integration.embedders import NOT_OF_PAGES
from tests.integration.meanings import embedder
from tests.integration.meanings import fill
from tests.integration.meanings import page
from tests.integration.meanings import setting
from tests.integration.storage import assert_sound
from tests.integration.vectors import chunks
from tests.integration.vectors import current_vectors
from tests.integration.vectors import work
from typing import Any
from zope.component import getUtility

import pytest
import re
import subprocess
import transaction


PAGES = {"leave": ("Annual leave", "Leave of the staff"), "dogs": ("Dogs at work", "A dog may come along")}
#: Make the installation of pgvector in a database fail, and the reverse.
REFUSE = """
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'permission denied to create extension'; END$$;
CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION refuse();
"""
ALLOW = "DROP EVENT TRIGGER refuse"
DURATION = re.compile(r"\d+:\d\d:\d\d")


@pytest.fixture
def dumped(site_template: str, postgres: Any, tmp_path: Path) -> Iterator[tuple[Answers, Path, str]]:
    """(the embedder, which continues; the dump of a site with vectors and HNSW; its database)."""
    dsn = sites.clone(postgres, site_template)
    dump = tmp_path / "site.dump"
    with ExitStack() as stack:
        with sites.opened(dsn) as db, sites.inside(db) as portal:
            answers = stack.enter_context(embedder())
            for id, (title, text) in PAGES.items():
                page(portal, id, title, text)
            transaction.commit()
            work((portal, Worker(db, dsn), dsn))
            vectors = current_vectors(portal)
        # The index build waits for earlier snapshots.
        with plain_connection(dsn, "test") as connection:
            create_index(connection, vectors)
        with dump.open("wb") as output:
            subprocess.run([postgres._binaries / "pg_dump", "-Fc", "-d", direct_dsn(dsn)], stdout=output, check=True)
        answers.requests.clear()
        yield answers, dump, dsn
    getUtility(IJobKind, name="embed")._paused_until = 0.0


def restore(postgres: Any, dump: Path, dsn: str) -> str:
    """Restore *dump* into the database *dsn*; return the errors of pg_restore."""
    with dump.open("rb") as stream:
        command = [postgres._binaries / "pg_restore", "-d", direct_dsn(dsn)]
        return subprocess.run(command, stdin=stream, stderr=subprocess.PIPE, text=True, check=False).stderr


def found(portal: Any, text: str) -> list[str]:
    transaction.begin()
    return [brain.getId for brain in portal.portal_catalog(SearchableText=text, rank="hybrid")]


def passages(answers: Answers) -> list[str]:
    """Return the first lines of the texts of pages sent to the embedder."""
    sent = [text for request in answers.requests if "passage" in request["model"] for text in request["input"]]
    return [text.partition("\n")[0] for text in sent if text not in NOT_OF_PAGES]


def attention(dsn: str) -> list[str]:
    """Return the attention list of ``pgcatalog status``; check that ``pgcatalog check`` agrees."""
    sentences: list[str] = answer("status", "--dsn", dsn)[1]["attention"]
    checked = [f["text"] for f in answer("check", "--dsn", dsn)[1]["findings"] if f["subject"] == "catalog"]
    # The second command runs later, so durations of waiting are not compared.
    said = [sentence.rpartition("; ")[0] or sentence for sentence in sentences]
    assert [DURATION.sub("", text) for text in checked] == [DURATION.sub("", text) for text in said]
    return sentences


def test_vectors_go_with_a_dump_and_nothing_is_embedded_again(dumped: Any, postgres: Any) -> None:
    answers, dump, _ = dumped
    dsn = postgres.createdb("restored_with_pgvector")
    assert restore(postgres, dump, dsn) == ""
    assert attention(dsn) == []
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        assert found(portal, "vacation") == ["leave"]
        assert current_vectors(portal).has_hnsw
        assert current_vectors(portal).is_complete
        fill(portal)
        assert passages(answers) == []
        portal.dogs.title = "Hounds"
        portal.dogs.reindexObject()
        fill(portal)
        assert passages(answers) == ["Hounds"]
        assert found(portal, "puppy") == ["dogs"]
        portal.manage_delObjects(["leave"])
        transaction.commit()
        assert found(portal, "vacation") == []
        assert_sound(portal)


def test_without_pgvector_words_answer_and_vectors_come_with_it(dumped: Any, postgres: Any) -> None:
    _, dump, _ = dumped
    dsn = postgres.createdb("restored_without_pgvector")
    with connect(dsn, "test") as connection:
        connection.execute(REFUSE)
    assert "halfvec" in restore(postgres, dump, dsn)
    [lost] = attention(dsn)
    assert "3 pages have neither vectors" in lost
    assert "pgcatalog meaning" in lost
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        place = portal, Worker(db, dsn), dsn
        work(place)
        # A waiting job gets its reason after a while.
        assert attention(dsn) == []
        with connect(dsn, "test") as connection:
            connection.execute("UPDATE pgcatalog_queue SET put_at = put_at - interval '1 hour'")
        [waits] = attention(dsn)
        assert "pgvector is missing: install it on the server" in waits
        # Words answer, and pages are saved.
        assert vectors_of(portal.portal_catalog._core) is None
        assert found(portal, "vacation") == []
        assert found(portal, "leave") == ["leave"]
        page(portal, "cars", "Pool cars", "Borrow a car")
        portal.manage_delObjects(["dogs"])
        transaction.commit()
        assert found(portal, "borrow") == ["cars"]
        assert_sound(portal)
        with connect(dsn, "test") as connection:
            connection.execute(ALLOW)
        work(place)
        assert found(portal, "vacation") == ["leave"]
        assert found(portal, "automobile") == ["cars"]
        assert {row[0] for row in chunks(place)} == {
            zoid for (zoid,) in portal.portal_catalog._core.view().select("DISTINCT zoid").value()
        }
        assert attention(dsn) == []
        assert_sound(portal)


def test_site_without_its_former_embedder_needs_no_attention(dumped: Any) -> None:
    answers, _, dsn = dumped
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        place = portal, Worker(db, dsn), dsn
        for url, is_there in (("", False), (answers.url, True)):
            setting(embedder_url=url)
            work(place)
            answer("vacuum", "--dsn", dsn)
            assert attention(dsn) == []
            transaction.begin()
            assert (vectors_of(portal.portal_catalog._core) is not None) == is_there
        assert found(portal, "vacation") == ["leave"]
        portal.manage_delObjects(["leave"])
        transaction.commit()
        # The chunks are dropped with it once more.
        assert found(portal, "vacation") == []
        assert not [row for row in chunks(place) if row[0] not in zoids(portal)]


def zoids(portal: Any) -> set[int]:
    return {zoid for (zoid,) in portal.portal_catalog._core.view().select("DISTINCT zoid").value()}
