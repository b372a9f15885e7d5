"""The display of vectors for managers: stored, waiting, and failed with the reason; by tab, command and metric."""

from collections.abc import Iterator
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.files.scans import installed
from plone.pgcatalog.meaning.job import Embedding
from plone.pgcatalog.metrics.database import database_metrics
from plone.pgcatalog.metrics.observability import process_metrics
from plone.pgcatalog.queue import table as queue
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from psycopg.rows import dict_row
from tests.acceptance.cli import answer
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.embedders import Answers
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import serving
from tests.integration.embedders import vectors
from tests.integration.vectors import chunks
from tests.integration.vectors import current_vectors
from tests.integration.vectors import set_embedder
from tests.integration.vectors import work
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any
from zope.component import getUtility

import psycopg
import pytest
import transaction


OVERVIEW = "/plone/portal_catalog/manage_catalogOverview"
LABEL = "Vectors of pages"


@pytest.fixture
def kind() -> Iterator[Embedding]:
    """The kind of jobs, whose pause is reset at the end."""
    kind = getUtility(IJobKind, name="embed")
    yield kind
    kind._paused_until = 0.0


@pytest.fixture
def db(site_template: str, postgres: Any) -> Iterator[Any]:
    with sites.opened(sites.clone(postgres, site_template)) as db:
        yield db
    clear_embedder_state()


@pytest.fixture
def site(db: Any, kind: Embedding) -> Iterator[Any]:
    """(portal, worker, dsn) of a site with a page."""
    with sites.inside(db) as portal:
        create(portal, "Document", "page", title="Annual leave")
        transaction.commit()
        yield portal, Worker(db, str(database_dsn(db))), str(database_dsn(db))


@pytest.fixture
def embedder(site: Any) -> Iterator[Answers]:
    with serving() as answers:
        set_embedder(site[0], answers.url)
        yield answers


def shown(db: Any) -> str:
    """Return the Overview's text about vectors, "" if there is none."""
    parts = [text(part) for part in Site(db).page(OVERVIEW).xpath("//dl[@id='figures']/*")]
    return dict(zip(parts[::2], parts[1::2], strict=True)).get(LABEL, "")


def figures(dsn: str) -> dict[str, float]:
    """Return the metrics about vectors."""
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        all_of_them = {metric.name: metric.value for metric in database_metrics(connection, False)}
    return {name.removeprefix("pgcatalog_vectors_"): n for name, n in all_of_them.items() if "_vectors_" in name}


def of_catalog(dsn: str) -> dict[str, Any]:
    """Return the data of ``pgcatalog status`` about the site's catalog."""
    _, told = answer("status", "--dsn", dsn)
    [catalog] = told["catalogs"]
    return dict(catalog)


def findings(dsn: str) -> list[str]:
    """Return the attention list of ``pgcatalog status``; the command calls no embedder."""
    sentences: list[str] = answer("status", "--dsn", dsn)[1]["attention"]
    return sentences


def grow_old(dsn: str) -> None:
    """Make the waiting jobs an hour older."""
    with connect(dsn, "test") as connection:
        connection.execute("UPDATE pgcatalog_queue SET put_at = put_at - interval '1 hour'")


def test_site_without_an_embedder_shows_nothing_about_vectors(db: Any, site: Any) -> None:
    assert shown(db) == ""
    assert figures(site[2]) == {}
    assert (of_catalog(site[2])["vectors"], of_catalog(site[2])["queue"]) == ([], {})
    assert findings(site[2]) == []


@pytest.mark.parametrize("schema", ["public", "vectors"])
def test_stored_vectors_are_shown(db: Any, site: Any, embedder: Answers, schema: str) -> None:
    portal, _, dsn = site
    with connect(dsn, "test") as connection:
        connection.execute(f"DROP EXTENSION IF EXISTS vector; CREATE SCHEMA IF NOT EXISTS {schema}")
        connection.execute(f"CREATE EXTENSION vector SCHEMA {schema}")
    assert shown(db) == "2 pages without vectors so far, 0 failed"  # the job that creates all of them waits itself
    work(site)
    with connect(dsn, "test") as connection:
        connection.execute(f"ANALYZE {current_vectors(portal).name}")
    count = len(chunks(site))
    assert shown(db).startswith(f"test (4 dimensions, {count} chunks, ")
    assert shown(db).endswith("0 pages without vectors so far, 0 failed")
    assert current_vectors(portal).schema == schema
    assert found(portal) == ["page"]
    [told] = of_catalog(dsn)["vectors"]
    assert (told["dimension"], told["chunks"]) == (4, count)
    assert told["bytes"] > 8192
    metrics = figures(dsn)
    assert metrics == {
        "needed": 0,
        "waiting": 0,
        "failed": 0,
        "oldest_seconds": 0,
        "chunks": count,
        "bytes": told["bytes"],
    }
    assert findings(dsn) == []


def test_pages_waiting_for_an_embedder_that_is_down_are_shown(db: Any, site: Any, kind: Embedding) -> None:
    portal, _, dsn = site
    with serving() as answers:
        set_embedder(portal, answers.url)
        work(site)
    clear_embedder_state()
    portal.page.title = "Leave"
    portal.page.reindexObject()
    transaction.commit()
    work(site)
    assert "1 pages without vectors so far, 0 failed ConnectError" in shown(db)
    grow_old(dsn)
    assert figures(dsn)["waiting"] == 1
    assert figures(dsn)["oldest_seconds"] >= 3600
    [finding] = findings(dsn)
    assert "1 pages wait for vectors, the oldest for 1:00:0" in finding
    assert "ConnectError" in finding
    assert of_catalog(dsn)["queue"]["embed"]["last_reason"].startswith("ConnectError")
    code, told = answer("status", "--dsn", dsn)
    assert code == 1
    assert any("ConnectError" in sentence for sentence in told["attention"])


def test_missing_worker_is_named_after_half_a_minute(site: Any, embedder: Answers) -> None:
    dsn = site[2]
    assert findings(dsn) == []
    with connect(dsn, "test") as connection:
        connection.execute("UPDATE pgcatalog_queue SET put_at = put_at - interval '31 seconds'")
    [named] = findings(dsn)
    assert "no worker processes them; start pgcatalog work" in named
    with connect(direct_dsn(dsn), "queue of text"):
        [still] = findings(dsn)  # the embedding kind of jobs is missing
        assert still.split("and no worker")[1] == named.split("and no worker")[1]
    with connect(direct_dsn(dsn), "queue of embed text"):
        assert findings(dsn) == []


def test_pages_waiting_behind_texts_need_no_attention(site: Any, embedder: Answers) -> None:
    portal, _, dsn = site
    grow_old(dsn)
    with connect(direct_dsn(dsn), "queue of embed text") as connection:
        [named] = findings(dsn)
        assert "pages wait for vectors" in named
        with connection.transaction(), connection.cursor() as cursor:
            queue.put(cursor, "text", portal.portal_catalog._core.zoid, [1])
        assert queue.claim(connection, ["text"]) is not None
        assert findings(dsn) == []


def test_session_of_a_worker_names_its_kinds_of_jobs(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, worker, dsn = site
    names = []

    def note(self: Worker, connection: Any) -> bool:
        names.append(connection.execute("SHOW application_name").fetchone()[0])
        self.stop()
        return False

    monkeypatch.setattr(Worker, "run_one", note)
    Worker(worker.database, dsn).run()
    # Scans need Tesseract.
    assert names == [f"pgcatalog: queue of embed retired {'scan ' if installed() else ''}text undo"]


def test_pages_waiting_behind_others_need_no_attention(site: Any, embedder: Answers) -> None:
    dsn, found = site[2], []

    def answer(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        grow_old(dsn)
        found.append(findings(dsn))
        return vectors(request)

    grow_old(dsn)
    [before] = findings(dsn)
    assert "no worker processes them" in before
    embedder.answer = answer
    work(site)
    assert len(found) > 1
    assert not any(found)


def test_refused_page_is_shown(db: Any, site: Any, embedder: Answers) -> None:
    dsn = site[2]
    embedder.answer = lambda request: (
        (413, {}, b"too long") if "Annual leave" in str(request["input"]) else vectors(request)
    )
    work(site)
    assert shown(db).endswith("0 pages without vectors so far, 1 failed the embedder returns 413: too long")
    assert (figures(dsn)["waiting"], figures(dsn)["failed"]) == (0, 1)


#: Missing part of the database -> how to cause it, how to end it, and the message shown.
LACKS = {
    "missing": (
        (
            # As for a user who may not install it.
            "DROP EXTENSION IF EXISTS vector CASCADE",
            "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'permission denied to create extension'; END$$",
            "CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION refuse()",
        ),
        "DROP EVENT TRIGGER refuse",
        "pgvector is missing: install it on the server",
    ),
    "too old": (
        (
            "CREATE EXTENSION IF NOT EXISTS vector",
            "CREATE TABLE was AS SELECT extversion FROM pg_extension WHERE extname = 'vector'",
            "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
        ),
        "UPDATE pg_extension SET extversion = (SELECT extversion FROM was) WHERE extname = 'vector'",
        "pgvector 0.7.4 is too old: 0.8 or newer is needed",
    ),
}


@pytest.mark.parametrize("lack", ["missing", pytest.param("too old", marks=pytest.mark.slow)])
def test_database_without_vectors_is_reported(db: Any, site: Any, embedder: Answers, lack: str) -> None:
    """Words answer, the reason is shown, and nothing is lost: the vectors are created once pgvector is there."""
    portal, _, dsn = site
    begin, end, reason = LACKS[lack]
    with connect(dsn, "test") as connection:
        for statement in begin:
            connection.execute(statement)
    work(site)
    assert reason in shown(db)
    transaction.begin()
    assert found(portal) == ["page"]
    grow_old(dsn)
    assert any(reason in finding for finding in findings(dsn))
    assert any(reason in sentence for sentence in answer("status", "--dsn", dsn)[1]["attention"])
    with connect(dsn, "test") as connection:
        connection.execute(end)
    work(site)
    assert shown(db).endswith("0 pages without vectors so far, 0 failed")
    assert chunks(site, portal.page)
    assert findings(dsn) == []


def found(portal: Any) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog.searchResults(SearchableText="leave", rank="hybrid")]


def test_questions_are_counted_by_the_kind_of_answer(db: Any, site: Any, embedder: Answers) -> None:
    portal = site[0]
    work(site)

    def counted() -> dict[str, float]:
        name = "pgcatalog_questions_total"
        return {m.labels["outcome"]: m.value for m in process_metrics(db) if m.name == name}

    before = counted()
    len(portal.portal_catalog.searchResults(SearchableText="one question", rank="hybrid"))
    embedder.answer = lambda request: (503, {}, b"")
    len(portal.portal_catalog.searchResults(SearchableText="another question", rank="hybrid"))
    len(portal.portal_catalog.searchResults(SearchableText="another question"))
    assert counted() == {"answered": before["answered"] + 1, "failed": before["failed"] + 1}
