"""The order of jobs: saves before backfills, texts before vectors, and each job is claimed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from demo import documents as files
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.files import job as files_job
from plone.pgcatalog.meaning import job as meaning_job
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.table import FAIR_SHARE
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.table import MOST_SAVED
from plone.pgcatalog.queue.table import Priority
from tests.integration.content import create
from tests.integration.jobs import queue as queue
from tests.integration.uploads import site as site
from tests.integration.uploads import upload
from typing import Any

import pytest
import transaction


TEXT, VECTORS = "text", "embed"
KINDS = (TEXT, VECTORS)


def put(queue: Any, kind: str, *zoids: int, is_backfill: bool = False) -> None:
    with queue.transaction(), queue.cursor() as cursor:
        table.put(cursor, kind, 1, zoids, is_backfill)


def claim(queue: Any, number: int = 1) -> Job:
    """Claim a job as the *number*-th of a worker, and do it."""
    job = table.claim(queue, KINDS, number)
    assert job is not None
    table.done(queue, job)
    return job


def claimed(queue: Any) -> list[tuple[str, int]]:
    """Return kind and subject of all due jobs, in the order of their priorities."""
    return [(job.kind, job.subject) for job in iter(lambda: table.claim(queue, KINDS), None)]


def priorities(queue: Any) -> dict[tuple[str, int], Priority]:
    rows = queue.execute("SELECT kind, subject, priority FROM pgcatalog_queue").fetchall()
    return {(kind, subject): Priority(priority) for kind, subject, priority in rows}


def test_jobs_of_saves_are_claimed_first_and_texts_before_vectors(queue: Any) -> None:
    put(queue, VECTORS, 1, is_backfill=True)
    put(queue, TEXT, 2, is_backfill=True)
    put(queue, VECTORS, 3)
    put(queue, TEXT, 4)
    assert claimed(queue) == [(TEXT, 4), (VECTORS, 3), (TEXT, 2), (VECTORS, 1)]


def test_saved_job_is_claimed_before_a_backfill_but_its_fair_share(queue: Any) -> None:
    put(queue, VECTORS, *range(100, 200), is_backfill=True)
    for number in range(1, 3 * FAIR_SHARE):
        put(queue, TEXT, number)
        assert claim(queue, number).is_backfill == (number % FAIR_SHARE == 0)


@pytest.mark.parametrize("older", [0, 1, 3])
def test_each_job_is_claimed_however_many_are_put_after_it(queue: Any, older: int) -> None:
    """At the latest with the fair share of the jobs before it."""
    put(queue, VECTORS, *range(1, 1 + older), is_backfill=True)
    put(queue, VECTORS, 1000, is_backfill=True)
    number = 0
    while (VECTORS, 1000) in priorities(queue):
        number += 1
        put(queue, TEXT, 2000 + 2 * number, 2001 + 2 * number)
        claim(queue, number)
    assert number <= FAIR_SHARE * (older + 1)


def test_object_that_is_saved_again_and_again_keeps_its_turn(queue: Any) -> None:
    put(queue, TEXT, 1)
    for number in range(2, 5):
        put(queue, TEXT, number)
        put(queue, TEXT, 1)
    assert claimed(queue) == [(TEXT, 1), (TEXT, 2), (TEXT, 3), (TEXT, 4)]


def test_save_raises_a_job_of_a_backfill_and_a_backfill_lowers_none(queue: Any) -> None:
    put(queue, TEXT, 1, 2, is_backfill=True)
    put(queue, TEXT, 1)
    assert priorities(queue) == {(TEXT, 1): Priority.SAVED_TEXT, (TEXT, 2): Priority.BACKFILL_TEXT}
    put(queue, TEXT, 1, 2, is_backfill=True)
    assert priorities(queue) == {(TEXT, 1): Priority.SAVED_TEXT, (TEXT, 2): Priority.BACKFILL_TEXT}


def test_large_commit_counts_as_a_backfill(queue: Any) -> None:
    put(queue, VECTORS, *range(1, 1 + MOST_SAVED))
    assert set(priorities(queue).values()) == {Priority.SAVED}
    put(queue, VECTORS, *range(1000, 1001 + MOST_SAVED))
    assert priorities(queue)[VECTORS, 1000] == Priority.BACKFILL
    [figures] = table.figures(queue)
    assert (figures.waiting, figures.saved) == (2 * MOST_SAVED + 1, MOST_SAVED)


def test_retried_job_comes_after_its_equals(queue: Any) -> None:
    put(queue, TEXT, 1)
    failing = table.claim(queue, KINDS)
    assert failing is not None
    put(queue, TEXT, 2)
    put(queue, VECTORS, 3)
    table.failed(queue, failing, "busy", False, pause=0)
    assert claimed(queue) == [(TEXT, 2), (TEXT, 1), (VECTORS, 3)]


def test_job_that_has_failed_for_good_is_repeated_as_a_backfill(queue: Any) -> None:
    put(queue, TEXT, 1)
    failing = table.claim(queue, KINDS)
    assert failing is not None
    table.failed(queue, failing, "broken", True)
    table.repeat(queue, 1, TEXT)
    put(queue, VECTORS, 2)
    assert claimed(queue) == [(VECTORS, 2), (TEXT, 1)]


@dataclass
class Waiting:
    """A job of the model: the lowest priority with which it was put, and the number of its first put."""

    priority: int
    turn: int


#: A put (kind, zoid, is_backfill), or None: a job is claimed.
STEPS = st.lists(st.none() | st.tuples(st.sampled_from(KINDS), st.integers(1, 4), st.booleans()), max_size=40)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_each_sequence_of_puts_and_claims_has_the_order_of_the_model(queue: Any, steps: list[Any]) -> None:
    queue.execute("DELETE FROM pgcatalog_queue")
    model: dict[tuple[str, int], Waiting] = {}
    number = 0
    for turn, step in enumerate([*steps, *[None] * len(steps)]):
        if step is not None:
            kind, zoid, is_backfill = step
            put(queue, kind, zoid, is_backfill=is_backfill)
            job = model.setdefault((kind, zoid), Waiting(Priority.BACKFILL, turn))
            job.priority = min(job.priority, (2 if is_backfill else 0) + (kind == VECTORS))
        elif model:
            number += 1
            first = min(model, key=lambda key: (model[key].priority * bool(number % FAIR_SHARE), model[key].turn))
            job = claim(queue, number)
            assert (job.kind, job.subject) == first
            del model[first]
    assert table.claim(queue, KINDS) is None


@pytest.mark.parametrize(
    ("statement", "index"),
    [(table.CLAIM_FIRST, "pgcatalog_queue_priority"), (table.CLAIM_OLDEST, "pgcatalog_queue_due")],
)
def test_claim_reads_an_index_in_its_order(queue: Any, statement: str, index: str) -> None:
    put(queue, VECTORS, *range(20_000))
    queue.execute("ANALYZE pgcatalog_queue")
    values = {"kinds": list(KINDS), "back_off": list(table.BACK_OFF)}
    plan = "\n".join(line for (line,) in queue.execute(f"EXPLAIN {statement}", values).fetchall())
    assert f"Index Scan using {index}" in plan
    assert "Sort" not in plan


# -- in a site


@pytest.fixture
def portal(site: Any) -> Any:
    """A site whose pages need vectors; the embedder is never sent a text."""
    portal, _ = site
    portal.portal_catalog._settings = {"embedder_url": "http://127.0.0.1:9/v1"}
    return portal


def run_one(site: Any) -> None:
    """Have the worker do one job, in a thread of its own."""
    _, worker = site
    with ThreadPoolExecutor(1) as pool, connect(worker.dsn, "test") as connection:
        assert pool.submit(worker.run_one, connection).result()
    transaction.begin()


def test_words_of_an_upload_are_found_while_pages_wait_for_vectors(site: Any, portal: Any) -> None:
    for number in range(5):
        create(portal, "Document", f"page{number}", title=f"Page {number}")
    transaction.commit()
    with connect(site[1].dsn, "test") as connection:
        meaning_job.put_all(connection, portal.portal_catalog._core.zoid)
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    run_one(site)
    assert [brain.getId for brain in portal.portal_catalog(SearchableText="quokka")] == ["minutes"]


@pytest.mark.parametrize(("is_backfill", "priority"), [(False, Priority.SAVED), (True, Priority.BACKFILL)])
def test_vectors_of_a_text_are_saved_or_backfilled_as_its_job(
    site: Any, portal: Any, is_backfill: bool, priority: Priority
) -> None:
    minutes = upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    with connect(site[1].dsn, "test") as connection:
        connection.execute("DELETE FROM pgcatalog_queue WHERE kind = 'embed'")
        if is_backfill:
            connection.execute("DELETE FROM pgcatalog_queue")
            files_job.put_all(connection, portal.portal_catalog._core.zoid)
        run_one(site)
        assert priorities(connection) == {(VECTORS, int.from_bytes(minutes._p_oid)): priority}
