"""After new rows, or lost texts and vectors, workers find the missing jobs of objects, and status names them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from demo import documents as files
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.restored import TABLES
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.metrics.database import database_metrics
from plone.pgcatalog.migration.tools import filling_later
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from psycopg.rows import dict_row
from tests.acceptance.cli import answer
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.fixtures import SiteWith
from tests.integration.meanings import embedder
from tests.integration.meanings import page
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.uploads import Recogniser
from tests.integration.uploads import recogniser as recogniser
from tests.integration.uploads import upload
from tests.integration.vectors import work
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any
from unittest.mock import ANY

import pytest
import transaction


def with_texts_and_vectors(portal: Any) -> None:
    """Fill *portal* with pages and a file, and compute their vectors and texts."""
    with embedder():
        page(portal, "leave", "Annual leave", "Leave of the staff")
        page(portal, "dogs", "Dogs at work", "A dog may come along")
        upload(portal, "minutes", files.pdf("quokka"))
        transaction.commit()
        work(place_of(portal))


def place_of(portal: Any) -> Any:
    dsn = database_dsn(portal._p_jar.db())
    assert dsn is not None
    return portal, Worker(portal._p_jar.db(), dsn), dsn


def chunks_of(dsn: str) -> str:
    [(name,)] = sql(dsn, "SELECT relation FROM pgcatalog_vectors")
    return str(name)


#: Lost data -> statement that deletes it; {} is the relation of the catalog, CHUNKS its table of chunks.
LOSSES = {
    "nothing": "SELECT 1",
    "all tables": f"DROP TABLE {{}}, CHUNKS, {', '.join(TABLES)} CASCADE",
    "all tables but those of chunks": f"DROP TABLE {{}}, {', '.join(set(TABLES) - {'pgcatalog_vectors'})} CASCADE",
    "tables of texts": "DROP TABLE pgcatalog_file_texts, pgcatalog_file_blobs",
    "rows of texts": "TRUNCATE pgcatalog_file_texts CASCADE",
    "which file has which text": "TRUNCATE pgcatalog_file_blobs",
    "chunks": "DROP TABLE CHUNKS",
    "settings of chunks": "DROP TABLE pgcatalog_vectors",
    "most chunks": "DELETE FROM CHUNKS WHERE zoid <> (SELECT min(zoid) FROM CHUNKS)",
    "lists and chunks": "TRUNCATE pgcatalog_sets; DROP TABLE CHUNKS",
}
#: Losses that leave the rows as they are.
OF_WORK = (
    "tables of texts",
    "rows of texts",
    "which file has which text",
    "chunks",
    "settings of chunks",
    "most chunks",
)


def install_anew(db: Any) -> None:
    """Uninstall the catalog, and install it by the command."""
    with sites.inside(db) as portal:
        for profile in ("uninstall", "default"):
            with filling_later():
                portal.portal_setup.runAllImportStepsFromProfile(f"profile-plone.pgcatalog:{profile}")
            transaction.commit()
        runner = Rebuild(portal.portal_catalog)
        list(runner.steps())
        runner.close()
        transaction.abort()


def clear(db: Any) -> None:
    with sites.inside(db) as portal:
        portal.portal_catalog.clearFindAndRebuild()
        transaction.commit()


WAYS: dict[str, Callable[[Any], None]] = {
    "rebuild": rebuild,
    "clear": clear,
    "install": install_anew,
    "start of a worker": lambda db: None,
}
CASES = [("rebuild", loss) for loss in LOSSES] + [("start of a worker", loss) for loss in OF_WORK]
CASES += [(way, loss) for way in ("clear", "install") for loss in ("nothing", "all tables", "most chunks")]
#: The cases that ``make test`` runs.
FIRST = (("rebuild", "all tables"), ("start of a worker", "most chunks"))


@pytest.mark.parametrize(
    ("way", "loss"), [case if case in FIRST else pytest.param(*case, marks=pytest.mark.slow) for case in CASES]
)
def test_lost_data_is_recomputed(site_with: SiteWith, way: str, loss: str) -> None:
    dsn = site_with(with_texts_and_vectors)
    statement = LOSSES[loss].replace("CHUNKS", chunks_of(dsn))
    sql(dsn, statement)
    with sites.opened(dsn) as db:
        WAYS[way](db)
        if way != "start of a worker":
            # The missing data waits for a worker.
            [catalog] = answer("status", "--dsn", dsn)[1]["catalogs"]
            assert catalog["needed"] == {"text": 0, "embed": 0} or (
                catalog["needed_later"]["embed"] and "embed" in catalog["queue"]
            )
        with sites.inside(db) as portal, embedder():
            place = place_of(portal)
            work(place)
            found = portal.portal_catalog.searchResults
            assert [brain.getPath() for brain in found(SearchableText="quokka")] == ["/plone/minutes"]
            assert [brain.getId for brain in found(SearchableText="puppy", rank="hybrid")] == ["dogs"]
            zoids = portal.portal_catalog._core.view().select("DISTINCT zoid").value()
            assert set(sql(dsn, f"SELECT DISTINCT zoid FROM {chunks_of(dsn)}")) == set(zoids)
            assert answer("status", "--check", "--dsn", dsn)[1]["attention"] == []


def test_missing_texts_and_vectors_are_named_everywhere(site_with: SiteWith) -> None:
    dsn = site_with(with_texts_and_vectors)
    with sites.opened(dsn) as db, sites.inside(db) as portal, embedder():
        # The settings of the embedder have changed.
        work(place_of(portal))
        assert answer("status", "--dsn", dsn) == (0, ANY)
        are_named(dsn, db)


def are_named(dsn: str, db: Any) -> None:
    for loss in ("rows of texts", "most chunks"):
        sql(dsn, LOSSES[loss].replace("CHUNKS", chunks_of(dsn)))
    said = [
        "/plone: 1 files have neither a text nor a queued job; run pgcatalog files ZOPE_CONF --site /plone --backfill",
        "/plone: 3 pages have neither vectors nor a queued job;"
        " run pgcatalog meaning ZOPE_CONF --site /plone --backfill",
    ]
    code, status = answer("status", "--dsn", dsn)
    assert (code, status["attention"]) == (1, said)
    found = [f for f in answer("check", "--dsn", dsn)[1]["findings"] if f["subject"] == "catalog"]
    assert [f"{f['text']}; {f['remedy']}".lower() for f in found] == [f"{sentence}.".lower() for sentence in said]
    figures = generated(dsn)
    assert figures["pgcatalog_files_needed"] == 1
    assert figures["pgcatalog_vectors_needed"] == 3
    assert figures["pgcatalog_attention"] == 2
    shown = Site(db).page("/plone/portal_catalog/manage_catalogOverview")
    assert text(shown.get_element_by_id("health")) == f"Needs attention: {'; '.join(said)}"
    assert text(shown.get_element_by_id("files")).startswith("1 without a text so far")
    assert "3 pages without vectors so far" in text(shown.get_element_by_id("meaning"))


def generated(dsn: str) -> dict[str, float]:
    """Return metric -> value of the database *dsn*; for metrics with labels, the sum."""
    with connect(dsn, "test", row_factory=dict_row) as connection:
        found: dict[str, float] = {}
        for metric in database_metrics(connection):
            found[metric.name] = found.get(metric.name, 0) + metric.value
        return found


def test_further_files_of_an_object_are_not_missing(dsn: str) -> None:
    """Only the primary file of an object has a text."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        obj = upload(portal, "minutes", files.pdf("quokka"))
        obj.attachment = files.blob(files.pdf("wombat"), files.PDF)
        create(portal, "Document", "page").attachment = files.blob(files.pdf("wombat"), files.PDF)
        transaction.commit()
        jobs = NeededJobs(portal.portal_catalog._core.session.execute, portal.portal_catalog._core.zoid)
        assert len(jobs.files()) == 1
        work(place_of(portal))
        jobs = NeededJobs(portal.portal_catalog._core.session.execute, portal.portal_catalog._core.zoid)
        assert jobs.files() == []
        for word, paths in (("quokka", ["/plone/minutes"]), ("wombat", [])):
            assert [b.getPath() for b in portal.portal_catalog.searchResults(SearchableText=word)] == paths


@pytest.mark.parametrize("setting", ["text_of_scans", "text_of_files"])
def test_saving_a_setting_queues_the_files_that_wait_for_it(
    portal: Any, recogniser: Callable[..., Recogniser], setting: str
) -> None:
    place = place_of(portal)
    recogniser("A quokka")
    tune(**{"text_of_scans": True, "text_of_files": True, setting: False})
    upload(portal, "scan", files.scan("Wombats"))
    transaction.commit()
    work(place)
    tune(**{setting: True})
    transaction.commit()
    with ThreadPoolExecutor(1) as pool:
        # Unlike a worker that starts, this does queued jobs only.
        pool.submit(place[1].run_once).result()
    transaction.begin()
    assert [brain.getId for brain in portal.portal_catalog(SearchableText="quokka")] == ["scan"]
    assert sql(place[2], "SELECT kind FROM pgcatalog_queue WHERE kind <> 'retired'") == []
