"""Jobs are done after the commit that makes them necessary, by any worker, even if some are killed."""

from App.config import getConfiguration
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.queue import long
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue import worker as worker_module
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.progress import STOPPED
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.worker import Worker
from tests.integration.jobs import kind as kind
from tests.integration.jobs import put
from tests.integration.jobs import queue as queue
from tests.integration.jobs import Recorded
from tests.integration.jobs import registered
from tests.integration.waiting import background_ended
from tests.integration.waiting import PATIENCE
from tests.integration.waiting import until
from typing import Any
from ZODB.POSException import ConflictError

import psycopg
import pytest
import threading


def run(dsn: str) -> int:
    return Worker(None, dsn).run_until_empty()


def test_a_job_is_done_once_and_gone(kind: Recorded, queue: Any, dsn: str) -> None:
    put(queue, 5, 3, 5)
    assert run(dsn) == 2
    assert sorted(kind.subjects) == [3, 5]
    assert table.figures(queue) == []


def test_aborted_commit_adds_no_job(kind: Recorded, queue: Any, dsn: str) -> None:
    with queue.transaction(force_rollback=True), queue.cursor() as cursor:
        table.put(cursor, "test", 1, [1])
    assert run(dsn) == 0


def test_job_added_again_during_its_work_is_done_again(kind: Recorded, queue: Any, dsn: str) -> None:
    kind.does = lambda job, progress: put(queue, 1) if len(kind.subjects) == 1 else None
    put(queue, 1)
    assert run(dsn) == 2
    assert table.figures(queue) == []


def test_job_of_a_dead_worker_is_due_again(kind: Recorded, queue: Any, dsn: str) -> None:
    put(queue, 1)
    assert table.claim(queue, ["test"]) is not None
    assert run(dsn) == 0
    assert 0 < (table.seconds_to_next(queue, ["test"]) or 0) <= table.BACK_OFF[0]
    queue.execute("UPDATE pgcatalog_queue SET due = now()")
    assert run(dsn) == 1


def test_failed_jobs_are_retried_ever_later_and_then_stored_with_their_reason(
    kind: Recorded, queue: Any, dsn: str
) -> None:
    def fail(job: Job, progress: Progress) -> None:
        raise ValueError("a\0\ud800b" + "c" * 600)

    kind.does = fail
    put(queue, 1)
    waits = []
    for _ in range(table.MOST_ATTEMPTS):
        assert run(dsn) == 1
        seconds = table.seconds_to_next(queue, ["test"])
        waits.append(seconds and round(seconds, -1))
        queue.execute("UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity'")
    assert waits[-1] is None
    assert waits[:-1] == sorted(waits[:-1])
    assert max(waits[:-1]) <= 86400
    [figures] = table.figures(queue)
    assert (figures.waiting, figures.failed) == (0, 1)
    [(zoid, reason, attempts, _)] = table.failures(queue, 1, "test")
    assert (zoid, attempts) == (1, table.MOST_ATTEMPTS)
    assert reason.startswith("ValueError: a\ufffd\ufffdbc")
    assert len(reason) == table.LONGEST_REASON
    kind.does = lambda job, progress: None
    assert table.repeat(queue, 1, "test") == 1
    assert run(dsn) == 1


def test_a_failure_for_good_is_tried_once(kind: Recorded, queue: Any, dsn: str) -> None:
    def fail(job: Job, progress: Progress) -> None:
        raise JobFailed("broken")

    kind.does = fail
    put(queue, 1)
    assert run(dsn) == 1
    queue.execute("UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity'")
    assert run(dsn) == 0
    # A new version of the object is another case.
    put(queue, 1)
    assert run(dsn) == 1


def test_number_of_stored_failures_is_limited(
    kind: Recorded, queue: Any, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(job: Job, progress: Progress) -> None:
        raise JobFailed("broken")

    monkeypatch.setattr(table, "MOST_FAILURES", 3)
    kind.does = fail
    put(queue, *range(7))
    with queue.transaction(), queue.cursor() as cursor:
        table.put(cursor, "test", 2, [1])
    run(dsn)
    assert len(table.failures(queue, 1, "test")) == 3
    assert len(table.failures(queue, 2, "test")) == 1


def test_workers_side_by_side_share_the_jobs(kind: Recorded, queue: Any, dsn: str) -> None:
    put(queue, *range(50))
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(run, [dsn] * 4))
    assert sum(counts) == 50
    assert sorted(kind.subjects) == list(range(50))


@pytest.mark.parametrize("seen", [0, 1, 2, 10, 1000])
def test_each_take_claims_one_job_with_any_statistics(queue: Any, seen: int) -> None:
    """Statistics collected while few jobs wait, as when a queue runs empty, lead to another plan."""
    put(queue, *range(seen))
    queue.execute("ANALYZE pgcatalog_queue")
    queue.execute("DELETE FROM pgcatalog_queue")
    put(queue, *range(2000, 2010))
    for left in range(9, -1, -1):
        assert table.claim(queue, ["test"]) is not None
        [(due,)] = queue.execute("SELECT count(*) FROM pgcatalog_queue WHERE due <= now()").fetchall()
        assert due == left


def test_postponed_job_is_logged_with_reason_and_time(
    kind: Recorded, queue: Any, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    def conflict(job: Job, progress: Progress) -> None:
        raise ConflictError("somebody else")

    kind.does = conflict
    put(queue, 7)
    with caplog.at_level("INFO", "plone.pgcatalog.queue.worker"):
        assert run(dsn) == 1
    [record] = caplog.records
    assert record.getMessage() == "job test 0x7 is retried after 60 seconds: ConflictError: somebody else"


def test_short_jobs_do_not_wait_for_a_long_one(kind: Recorded, queue: Any, dsn: str) -> None:
    go_on = threading.Event()
    slow = Recorded(is_long=True)
    slow.does = lambda job, progress: go_on.wait(PATIENCE)
    with registered(slow, "slow"), ThreadPoolExecutor(2) as pool:
        table.put_long(queue, "slow", 1, 1)
        workers = [Worker(None, dsn, is_long) for is_long in (True, False)]
        working = [pool.submit(worker.run) for worker in workers]
        until(lambda: slow.subjects)
        put(queue, 2)
        until(lambda: kind.subjects == [2])
        for worker in workers:
            worker.stop()
        go_on.set()
        for ended in working:
            ended.result()


def test_long_job_of_a_worker_that_has_to_end_is_continued_by_another(queue: Any, dsn: str) -> None:
    begun = threading.Event()

    def endless(job: Job, progress: Progress) -> None:
        begun.set()
        while True:
            progress.report(1, 2, "working")
            threading.Event().wait(0.02)

    slow = Recorded(is_long=True)
    slow.does = endless
    with registered(slow, "slow"), ThreadPoolExecutor(1) as pool:
        assert table.put_long(queue, "slow", 1, 1)
        worker = Worker(None, dsn, is_long=True)
        working = pool.submit(worker.run)
        assert begun.wait(PATIENCE)
        # Being done: neither put again nor claimed, however long it takes.
        assert not table.put_long(queue, "slow", 1, 1)
        queue.execute("UPDATE pgcatalog_queue SET due = now()")
        assert table.claim_long(queue, ["slow"]) is None
        worker.stop()
        working.result()
        slow.does = lambda job, progress: progress.lines.append("all of it")
        assert Worker(None, dsn, is_long=True).run_until_empty() >= 1
    assert slow.subjects == [1, 1]
    [(message, reason, has_ended)] = queue.execute(
        "SELECT message, reason, due = 'infinity' FROM pgcatalog_queue WHERE kind = 'slow'"
    ).fetchall()
    assert (message, reason, has_ended) == ("all of it", "", True)


@pytest.mark.parametrize(
    ("is_long", "due", "is_notified", "seconds"),
    [
        (False, None, True, worker_module.LONGEST_SLEEP),
        (False, None, False, worker_module.POLL),
        (False, 5.0, True, 5.0),
        (False, -100.0, True, 0.0),
        (False, 10**6, True, worker_module.LONGEST_SLEEP),
        (True, -100.0, True, worker_module.POLL),  # another worker does it
    ],
)
def test_worker_sleeps_until_a_job_is_due(is_long: bool, due: float | None, is_notified: bool, seconds: float) -> None:
    assert Worker(None, "", is_long).pause(due, is_notified) == seconds


def test_stop_ends_a_long_job_that_is_one_statement(queue: Any, dsn: str) -> None:
    slow = Recorded(is_long=True)
    slow.is_one_statement = True
    slow.does = lambda job, progress: progress.connection.execute("SELECT pg_sleep(%s)", (PATIENCE,))
    with registered(slow, "slow"), ThreadPoolExecutor(1) as pool:
        assert table.put_long(queue, "slow", 1, 1)
        working = pool.submit(Worker(None, dsn, is_long=True).run_once)
        until(lambda: queue.execute("SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'").fetchall())
        long.stop(dsn, "slow", 1, 1)
        working.result()
    [(reason, has_ended)] = queue.execute(
        "SELECT reason, due = 'infinity' FROM pgcatalog_queue WHERE kind = 'slow'"
    ).fetchall()
    assert (restored(reason), has_ended) == (STOPPED, True)


@pytest.mark.parametrize(
    ("error", "is_retried"), [(psycopg.OperationalError("lost"), True), (ValueError("wrong"), False)]
)
def test_long_job_is_tried_again_after_errors_of_the_database_only(
    queue: Any, dsn: str, error: Exception, is_retried: bool
) -> None:
    def fail(job: Job, progress: Progress) -> None:
        raise error

    slow = Recorded(is_long=True)
    slow.does = fail
    with registered(slow, "slow"):
        assert table.put_long(queue, "slow", 1, 1)
        Worker(None, dsn, is_long=True).run_once()
    assert queue.execute("SELECT due < 'infinity' FROM pgcatalog_queue WHERE kind = 'slow'").fetchall() == [
        (is_retried,)
    ]


def test_jobs_of_unsupported_kinds_wait(kind: Recorded, queue: Any, dsn: str) -> None:
    kind.is_ready = False
    put(queue, 1)
    assert run(dsn) == 0
    kind.is_ready = True
    assert run(dsn) == 1


def test_sleeping_worker_is_woken_by_a_commit_and_ends_on_request(kind: Recorded, queue: Any, dsn: str) -> None:
    worker = Worker(None, dsn)
    thread = threading.Thread(target=worker.run)
    thread.start()
    for zoid in (1, 2):
        put(queue, zoid)
        until(lambda zoid=zoid: zoid in kind.subjects)
    worker.stop()
    put(queue, 3)
    until(lambda: not thread.is_alive())


def test_a_worker_waits_for_a_database_that_was_out_of_reach(kind: Recorded, queue: Any, dsn: str) -> None:
    worker = Worker(None, dsn)
    thread = threading.Thread(target=worker.run)
    thread.start()
    put(queue, 1)
    until(lambda: 1 in kind.subjects)
    queue.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND datname = current_database() AND application_name LIKE '%queue%'"
    )
    put(queue, 2)
    until(lambda: 2 in kind.subjects)
    worker.stop()
    put(queue, 3)
    until(lambda: not thread.is_alive())


def test_zope_has_a_worker_for_short_jobs_and_one_for_long_jobs_per_database(
    kind: Recorded, queue: Any, db: Any
) -> None:
    workers = worker_module.start_threads(db)
    assert sorted(worker.is_long for worker in workers) == [False, True]
    put(queue, 1)
    until(lambda: 1 in kind.subjects)
    for worker in workers:
        worker.stop()
    assert background_ended()


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("1", 1), ("2", 2), ("", 1), (None, 1), ("many", 1), ("-1", 1), ("1.5", 1), ("nan", 1), ("99999", 64)],
)
def test_zope_conf_sets_the_number_of_workers(
    kind: Recorded, queue: Any, db: Any, monkeypatch: pytest.MonkeyPatch, text: str | None, count: int
) -> None:
    said = {worker_module.SECTION: {} if text is None else {"workers": text}}
    monkeypatch.setattr(getConfiguration(), "product_config", said, raising=False)
    assert worker_module.threads_of_a_database() == count
    if count <= 2:
        workers = worker_module.start_threads(db)
        assert len(workers) == (count and count + 1)
        for worker in workers:
            worker.stop()
        assert background_ended()
