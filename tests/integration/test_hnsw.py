"""HNSW instead of comparing all chunks: selective filters still fill a page, with the nearest rows."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from demo import documents as files
from plone.pgcatalog.database import background
from plone.pgcatalog.database import layout
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain_connection
from plone.pgcatalog.meaning import job
from plone.pgcatalog.observe import health
from plone.pgcatalog.query import bind
from plone.pgcatalog.query import nearest
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import database_dsn
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.embedders import serving
from tests.integration.vectors import current_vectors
from tests.integration.vectors import set_embedder
from tests.integration.vectors import work
from tests.integration.waiting import background_ended
from tests.integration.waiting import until
from typing import Any
from zope.component import getUtility

import json
import numpy
import psycopg
import pytest
import transaction


PAGES, DIMENSION = 1000, 16
#: Percentage of the pages that pass a filter.
SHARES = {100: 1, 10: 10, 1: 100}

pytestmark = pytest.mark.slow


def embed(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Answer with vectors that are equal for the same text, and somewhat similar for all."""
    vectors = [numpy.random.default_rng(list(text.encode())).normal(1, 1, DIMENSION) for text in request["input"]]
    data = [{"index": number, "embedding": vector.tolist()} for number, vector in enumerate(vectors)]
    return 200, {}, json.dumps({"model": "chance", "data": data}).encode()


@pytest.fixture(scope="module")
def place(site_template: str, postgres: Any) -> Iterator[Any]:
    """(portal, worker, dsn) of a site whose chunks have an HNSW index, used if more than a few rows pass a filter."""
    with pytest.MonkeyPatch.context() as patch, serving(embed) as answers:
        patch.setattr(layout, "HNSW_FROM", PAGES // 2)
        patch.setattr(nearest, "FEW", 20)
        # All hits count, however far away.
        patch.setattr(nearest, "IS_NEAR", "similarity >= %s::float8")
        with sites.opened(sites.clone(postgres, site_template)) as db, sites.inside(db) as portal:
            dsn = database_dsn(db)
            assert dsn is not None
            for number in range(PAGES):
                tags = [f"{share} percent" for share, every in SHARES.items() if number % every == 0]
                create(portal, "Document", f"page-{number}", title=f"Page {number}", subject=tags)
                if number % 50 == 0:
                    transaction.commit()
            set_embedder(portal, answers.url, meaning_threshold=1e-6)
            place = portal, Worker(db, dsn), dsn
            work(place)
            yield place


@pytest.fixture
def portal(place: Any) -> Any:
    return place[0]


def nearest_rids(results: Any, is_indexed: bool) -> list[int]:
    """Return the record ids nearest to the question of *results*, found by the index or by comparing all."""
    near = nearest.near_in(results.condition)
    assert near is not None
    asked = replace(near.question, is_indexed=is_indexed)

    def statement(stored: Any) -> Statement:
        rows = asked.nearest_rows(stored.source, bind.condition(near.among, stored))
        return Statement(f"SELECT rid FROM ({rows.sql}) AS near ORDER BY place", rows.params, is_costly=True)

    view = results.catalog.view()
    return [rid for (rid,) in view.fetch(statement, near.among).value()]


@pytest.mark.parametrize("is_calibrated", [False, True])
@pytest.mark.parametrize("share", SHARES)
def test_a_filter_fills_a_page_with_the_nearest_rows(portal: Any, share: int, is_calibrated: bool) -> None:
    """Without a threshold of the site's own the vector of a question is calibrated, and not of length 1."""
    vectors = current_vectors(portal)
    assert vectors.has_hnsw
    assert not vectors.wants_hnsw
    assert vectors.calibration is not None
    if is_calibrated:
        getUtility(IRegistry)["plone.pgcatalog.meaning_threshold"] = 0.0
    same = 0
    for question in range(10):
        results = portal.portal_catalog(
            SearchableText=f"question {question}", rank="hybrid", Subject=f"{share} percent", b_size=10
        )
        if not is_calibrated:
            assert len([brain.getId for brain in results[:10]]) == 10
            assert results.actual_result_count >= 10
        found, exact = (nearest_rids(results, is_indexed)[:10] for is_indexed in (True, False))
        assert len(exact) == 10
        same += len(set(found) & set(exact))
    transaction.abort()
    assert same >= 95


def test_a_worker_does_not_wait_for_the_index_that_another_one_makes(place: Any) -> None:
    portal, worker, dsn = place
    vectors = current_vectors(portal)
    with (
        ThreadPoolExecutor(2) as pool,
        connect(dsn, "test") as connection,
        plain_connection(dsn, "somebody", autocommit=False) as somebody,
        plain_connection(dsn, "maker") as maker,
    ):
        connection.execute(f"DROP INDEX {vectors.name}_hnsw")
        # A concurrent index build waits for writing transactions.
        somebody.execute(f"UPDATE {vectors.name} SET start = start WHERE chunk = 0")
        making = pool.submit(job.create_index, maker, vectors)
        until(lambda: connection.execute(job.IS_CREATING_INDEX, (vectors.name,)).fetchone() is not None)
        job.put_table_job(connection, portal.portal_catalog._core.zoid)
        looking = pool.submit(worker.run_until_empty)
        until(looking.done)
        assert connection.execute("SELECT reason FROM pgcatalog_queue").fetchall() == [("",)]
        assert not making.done()
        somebody.rollback()
        making.result()
    work(place)
    assert current_vectors(portal).has_hnsw


def test_a_worker_reads_files_while_it_makes_the_index(place: Any) -> None:
    portal, _, dsn = place
    vectors = current_vectors(portal)
    workers = [Worker(portal._p_jar.db(), dsn, is_long) for is_long in (True, False)]

    def found() -> bool:
        transaction.begin()
        return bool(len(portal.portal_catalog(SearchableText="quokka")))

    with (
        connect(dsn, "test") as connection,
        plain_connection(dsn, "somebody", autocommit=False) as somebody,
    ):
        connection.execute(f"DROP INDEX {vectors.name}_hnsw")
        somebody.execute(f"UPDATE {vectors.name} SET start = start WHERE chunk = 0")
        job.put_table_job(connection, portal.portal_catalog._core.zoid)
        for worker in workers:
            background.start("queue", worker.run)
        until(lambda: connection.execute(job.IS_CREATING_INDEX, (vectors.name,)).fetchone() is not None)
        create(portal, "File", "minutes", title="minutes", file=files.blob(files.pdf("quokka"), files.PDF))
        transaction.commit()
        until(found)
        assert not current_vectors(portal).has_hnsw
        somebody.rollback()
        until(lambda: current_vectors(portal).has_hnsw)
        for worker in workers:
            worker.stop()
        until(background_ended)


def attention(connection: Any) -> list[str]:
    sentences: list[str] = health.collect(connection, check=True)["attention"]
    return sentences


def test_lost_parts_of_the_chunks_are_named_and_restored(place: Any) -> None:
    portal, _, dsn = place
    name = current_vectors(portal).name
    transaction.abort()
    by_statement = {
        f"ALTER TABLE {name} DROP CONSTRAINT {name}_pkey": (
            f"{name}_pkey",
            f"ALTER TABLE {name} ADD PRIMARY KEY (zoid, chunk)",
        ),
        f"ALTER TABLE {name} DROP COLUMN start": (f"{name}.start", f"DROP TABLE {name}"),
    }
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        assert attention(connection) == []
        for statement, (part, line) in by_statement.items():
            connection.execute(statement)
            [sentence] = attention(connection)
            assert sentence == f"/plone: {part} is missing or disabled; run {line}"
            connection.execute(line)
            # Without the table, the pages need vectors.
            assert [s for s in attention(connection) if "pages have neither vectors" not in s] == []
            connection.rollback()


def test_lost_hnsw_index_is_named_and_restored(place: Any) -> None:
    portal, _, dsn = place
    work(place)
    name = current_vectors(portal).name
    transaction.abort()
    with psycopg.connect(dsn, autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute(f"DROP INDEX {name}_hnsw")
        [sentence] = attention(connection)
        assert sentence == f"/plone: {name}_hnsw is missing or disabled; run pgcatalog meaning ZOPE_CONF --backfill"
        with connect(dsn, "test") as other:
            job.put_all(other, portal.portal_catalog._core.zoid)  # as the statement does
        transaction.abort()
        assert attention(connection) == []  # a worker is going to build it
        work(place)
        assert current_vectors(portal).has_hnsw
        assert attention(connection) == []
