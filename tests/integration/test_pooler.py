"""A pooler that assigns a session of the server to another client after each transaction: PgBouncer, with our ini."""

from click.testing import CliRunner
from collections.abc import Callable
from collections.abc import Iterator
from plone.pgcatalog.advice.advice import advise
from plone.pgcatalog.advice.builder import do
from plone.pgcatalog.advice.builder import IndexTarget
from plone.pgcatalog.advice.builder import register
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.replay import explain
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.database import connections
from plone.pgcatalog.database import pool
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.direct import is_pooled
from plone.pgcatalog.database.direct import SharedSession
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.metrics import prometheus
from plone.pgcatalog.observe import log
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.queue import long
from plone.pgcatalog.queue.progress import long_jobs
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.integration import site as sites
from tests.integration.bouncer import PgBouncer
from tests.integration.content import create
from tests.integration.jobs import kind as kind
from tests.integration.jobs import put
from tests.integration.jobs import Recorded
from tests.integration.pooled import clean
from tests.integration.pooled import left
from tests.integration.pooled import past
from tests.integration.pooled import sessions
from tests.integration.waiting import background_ended
from tests.integration.waiting import until
from transaction import TransactionManager
from typing import Any

import json
import operator
import psycopg
import pytest
import threading
import transaction


#: Number of server sessions of the pooler per database.
SESSIONS = 4

Work = Callable[[Any, str], Any]


@pytest.fixture(scope="module")
def pooler(postgres: EmbeddedPostgres, pgbouncer: str) -> Iterator[PgBouncer]:
    """Leftovers on a session stay: the documented ini would reset it."""
    settings = {
        "server_reset_query_always": "0",
        "server_reset_query": "",
        "default_pool_size": str(SESSIONS),
        "min_pool_size": str(SESSIONS),
    }
    with PgBouncer(postgres, pgbouncer, settings) as pooler:
        yield pooler


@pytest.fixture(autouse=True)
def direct(postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCATALOG_DIRECT_DSN", past(postgres))


def dbname(dsn: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


@pytest.fixture
def pooled_dsn(dsn: str, pooler: PgBouncer) -> Iterator[str]:
    """DSN of a fresh copy of the site with our catalog, through the pooler."""
    yield pooler.dsn(dbname(dsn))
    pool.close_pools()


@pytest.fixture
def side_db(dsn: str, pooled_dsn: str) -> Iterator[Any]:
    """The site's database; its objects are read past the pooler, everything else goes through it."""
    with sites.opened(dsn) as database:
        with sites.inside(database):
            pass  # the storage checks its schema
        database.storage._dsn = pooled_dsn
        yield database


# -- no leftovers


def read_by_the_pool(portal: Any, dsn: str) -> None:
    connection = pool.get_request_connection(dsn=dsn)
    assert connection.execute("SHOW transaction_read_only").fetchone() == {"transaction_read_only": "on"}
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("CREATE TEMP TABLE mine ()")
    pool.release_request_connection()


def scrape(portal: Any, dsn: str) -> None:
    assert "pgcatalog_up 1.0" in prometheus.text(dsn, check=True)


def run_commands(portal: Any, dsn: str) -> None:
    for command in (["status"], ["slow"], ["check"], ["export"], ["metrics"], ["vacuum"]):
        result = CliRunner().invoke(main, [*command, "--dsn", dsn])
        assert result.exit_code in (0, 1), result.output


def record_slow_queries(portal: Any, dsn: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        for _ in range(3):
            len(portal.portal_catalog.searchResults(portal_type="Document"))
    assert recorder.flush(10)
    assert recorder.recorders[dsn].recorded
    assert not recorder.recorders[dsn].failed
    log.clear(dsn, portal.portal_catalog._core.zoid)


def count_searches(portal: Any, dsn: str) -> None:
    searches.record(dsn, portal.portal_catalog._core.zoid, "word", True)
    assert searches.flush(10)


def count_words(portal: Any, dsn: str) -> None:
    assert Worker(portal._p_jar.db(), dsn, is_long=True).run_until_empty() == 1
    assert counted(dsn) == [(zoid_of(portal),)]


def rebuild(portal: Any, dsn: str) -> None:
    runner = Rebuild(portal.portal_catalog)
    assert [target.phase for target in runner.steps()][-1] == "done"
    runner.close()


def vacuum_as_a_job(portal: Any, dsn: str) -> None:
    long.start_for(portal.portal_catalog, "vacuum")
    assert background_ended()
    with connections.connect(dsn, "test") as connection:

        def state() -> str:
            execute = lambda query, values: connection.execute(query, values).fetchall()  # noqa: E731
            return long_jobs(execute, zoid_of(portal))["vacuum"].state

        assert state() == "done"


def stop_a_job(portal: Any, dsn: str) -> None:
    long.stop(dsn, "vacuum", zoid_of(portal), zoid_of(portal))


def advise_an_index(portal: Any, dsn: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        len(portal.portal_catalog.searchResults(Creator="admin", sort_on="modified"))
    assert recorder.flush(10)
    transaction.begin()
    assert advise(portal.portal_catalog._core).rows


def explain_a_statement(portal: Any, dsn: str) -> None:
    assert "Result" in explain(dsn, Statement("SELECT 1", ())).text


def clear(portal: Any, dsn: str) -> None:
    """A worker drops the relations retired by a clear."""
    portal.portal_catalog.manage_catalogClear()
    transaction.commit()
    assert Worker(portal._p_jar.db(), dsn).run_until_empty() >= 1


def counted(dsn: str) -> list[tuple[int]]:
    """Return the catalogs whose words have been counted."""
    with connections.connect(dsn, "test") as connection:
        return connection.execute("SELECT DISTINCT catalog FROM pgcatalog_texts").fetchall()


def zoid_of(portal: Any) -> int:
    zoid: int = portal.portal_catalog._core.zoid
    return zoid


@pytest.mark.parametrize(
    "work",
    [
        *(read_by_the_pool, scrape, run_commands, record_slow_queries, count_searches, count_words, rebuild),
        *(vacuum_as_a_job, stop_a_job, advise_an_index, explain_a_statement, clear),
    ],
    ids=lambda work: work.__name__,
)
def test_nothing_is_left_on_any_session(work: Work, side_db: Any, pooled_dsn: str) -> None:
    with sites.inside(side_db) as portal:
        create(portal, "Document", "page", title="A word")
        transaction.commit()
        clean(pooled_dsn, SESSIONS)
        assert left(pooled_dsn, SESSIONS) == []
        work(portal, pooled_dsn)
    assert left(pooled_dsn, SESSIONS) == []


def test_index_that_is_built_and_dropped_leaves_nothing_on_any_session(side_db: Any, pooled_dsn: str) -> None:
    with sites.inside(side_db) as portal:
        target = IndexTarget.of(portal.portal_catalog._core)
    clean(pooled_dsn, SESSIONS)
    candidate = Candidate("btree", ("creator",))
    register(target, candidate, "test")
    do(target, candidate.name)
    do(target, candidate.name, is_dropped=True)
    assert left(pooled_dsn, SESSIONS) == []


# -- two clients


@pytest.fixture
def narrow(dsn: str, postgres: EmbeddedPostgres, pgbouncer: str) -> Iterator[str]:
    """DSN of the site through a pooler with one server session for all clients."""
    settings = {"default_pool_size": "1", "server_reset_query_always": "0"}
    with PgBouncer(postgres, pgbouncer, settings) as pooler:
        yield pooler.dsn(dbname(dsn))


def test_two_clients_on_one_session_do_not_affect_each_other(narrow: str) -> None:
    lazy = {"seconds": 7, "read_only": True, "durable": False}
    with connections.connect(narrow, "one", **lazy) as one, psycopg.connect(narrow, autocommit=True) as other:  # type: ignore[arg-type]
        other.prepare_threshold = None
        pid = one.execute("SELECT pg_backend_pid()").fetchall()
        for name, inside in (
            ("statement_timeout", "7s"),
            ("lock_timeout", "7s"),
            ("synchronous_commit", "off"),
            ("transaction_read_only", "on"),
        ):
            outside = other.execute(f"SHOW {name}").fetchall()
            assert one.execute(f"SHOW {name}").fetchall() == [(inside,)]
            assert other.execute(f"SHOW {name}").fetchall() == outside
            assert name == "synchronous_commit" or outside != [(inside,)]
        other.execute("UPDATE pgcatalog_state SET version = version")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            one.execute("UPDATE pgcatalog_state SET version = version")
        assert other.execute("SELECT pg_backend_pid()").fetchall() == pid


def test_transaction_has_its_settings_once_and_across_a_savepoint(dsn: str) -> None:
    with connections.connect(dsn, "test", 7) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL statement_timeout = '3s'")
            with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
                connection.execute("SELECT 1 / 0")
            with connection.transaction():
                assert connection.execute("SHOW statement_timeout").fetchall() == [("3s",)]
        assert connection.execute("SHOW statement_timeout").fetchall() == [("7s",)]


def test_many_values_a_stream_and_a_copy_have_the_settings_too(dsn: str) -> None:
    with connections.connect(dsn, "test", 7) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE told (name text, value text DEFAULT current_setting('statement_timeout'))")
        cursor.executemany("INSERT INTO told (name) VALUES (%s)", [("many",), ("more",)])
        with cursor.copy("COPY told (name) FROM STDIN") as copy:
            copy.write_row(("copied",))
        found = list(cursor.stream("SELECT name, value, current_setting('statement_timeout') FROM told"))
    assert found == [(name, "7s", "7s") for name in ("many", "more", "copied")]


def test_work_that_needs_a_session_fails_without_a_direct_dsn(
    side_db: Any, pooled_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGCATALOG_DIRECT_DSN")
    clean(pooled_dsn, SESSIONS)
    with sites.inside(side_db) as portal:
        tool = portal.portal_catalog
        with pytest.raises(SharedSession, match="PGCATALOG_DIRECT_DSN"):
            Rebuild(tool)
        with pytest.raises(long.JobError, match="PGCATALOG_DIRECT_DSN"):
            long.start_for(tool, "vacuum")
    with pytest.raises(SharedSession):
        Worker(side_db, pooled_dsn, is_long=True).run_until_empty()
    assert counted(pooled_dsn) == []
    assert left(pooled_dsn, SESSIONS) == []


def test_rebuilds_exclude_each_other_past_the_pooler(side_db: Any) -> None:
    with sites.inside(side_db) as portal:
        first, second = Rebuild(portal.portal_catalog), Rebuild(portal.portal_catalog)
        steps = first.steps()
        next(steps)
        with pytest.raises(RebuildRunning):
            next(second.steps())
        steps.close()
        assert [target.phase for target in second.steps()][-1] == "done"
        first.close()
        second.close()


@pytest.mark.parametrize("other", ["dbname=postgres", ""])
def test_direct_dsn_of_another_database_is_refused(
    other: str, postgres: EmbeddedPostgres, dsn: str, pooled_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCATALOG_DIRECT_DSN", f"{past(postgres)} {other}")
    if other:
        with pytest.raises(SharedSession):
            connect_directly(pooled_dsn, "test")
        connect_directly(dsn, "test").close()
    else:
        with connect_directly(pooled_dsn, "test") as connection:
            assert connection.info.dbname == dbname(dsn)
            assert not is_pooled(connection)


def test_pooler_with_fixed_sessions_needs_no_direct_dsn(
    dsn: str, postgres: EmbeddedPostgres, pgbouncer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGCATALOG_DIRECT_DSN")
    with PgBouncer(postgres, pgbouncer, {"pool_mode": "session"}) as pooler:
        target = pooler.dsn(dbname(dsn))
        with connect_directly(target, "test") as connection:
            assert is_pooled(connection)
            connection.execute("SELECT pg_advisory_lock(1)")
            with connect_directly(target, "other") as other:
                assert other.execute("SELECT pg_try_advisory_lock(1)").fetchall() == [(False,)]
        assert findings(target) == []


def test_each_zodb_connection_prepares_if_the_pooler_tracks_statements(pooled_dsn: str, pooler: PgBouncer) -> None:
    """Even a connection that was opened before the pooler was detected."""
    if not pooler.follows_statements:
        pytest.skip("this PgBouncer follows no prepared statements")
    prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1::int + 4711'"
    with sites.opened(pooled_dsn) as db:
        jars = [db.open(TransactionManager()) for _ in range(2)]
        for jar in jars:
            session = Session.of(jar)
            assert [session.execute("SELECT %s::int + 4711", (n,)) for n in range(3)] == [
                [(4711,)],
                [(4712,)],
                [(4713,)],
            ]
            assert session.execute(prepared) == [(1,)]
        for jar in jars:
            jar.transaction_manager.abort()
            jar.close()


def test_pack_bypasses_the_pooler(pooled_dsn: str, pooler: PgBouncer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list of reachable objects must not be one left on a session by an earlier pack."""
    if not pooler.follows_statements:
        pytest.skip("this PgBouncer follows no prepared statements: the storage needs its patch")
    with sites.opened(pooled_dsn) as db:
        with sessions(pooled_dsn, SESSIONS - 1) as others:
            for other in others:
                other.execute("CREATE TEMP TABLE reachable_oids AS SELECT 0::bigint AS zoid")
                other.commit()
        with sites.inside(db) as portal:
            for name in ("kept", "removed"):
                create(portal, "Document", name)
            transaction.commit()
            portal.manage_delObjects(["removed"])
            transaction.commit()
        with psycopg.connect(pooled_dsn, prepare_threshold=None) as connection:
            count = "SELECT count(*) FROM object_state"
            [(before,)] = connection.execute(count).fetchall()
            connection.commit()
            db.pack()
            [(after,)] = connection.execute(count).fetchall()
        assert before / 2 < after < before
        with sites.inside(db) as portal:
            assert portal.kept.getId() == "kept"
        monkeypatch.delenv("PGCATALOG_DIRECT_DSN")
        with pytest.raises(SharedSession):
            db.pack()


def findings(dsn: str) -> list[str]:
    result = CliRunner().invoke(main, ["check", "--dsn", dsn, "--json"])
    return [found["text"] for found in json.loads(result.stdout)["findings"] if found["subject"] == "pooler"]


def test_check_names_missing_settings_of_a_pooler(
    pooled_dsn: str, dsn: str, pooler: PgBouncer, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = [] if pooler.follows_statements else ["prepared statements"]

    def said(*sentences: str) -> bool:
        found = findings(pooled_dsn)
        return len(found) == len(sentences) and all(map(operator.contains, found, sentences))

    assert findings(dsn) == []
    assert said(*statements)
    monkeypatch.setenv("PGCATALOG_DIRECT_DSN", "dbname=postgres")
    assert said(*statements, "connects to another database")
    monkeypatch.setenv("PGCATALOG_DIRECT_DSN", "application_name=same")
    assert said(*statements, "connects to a pooler, too")
    monkeypatch.delenv("PGCATALOG_DIRECT_DSN")
    assert said(*statements, "need sessions of their own")


def test_worker_past_a_pooler_polls_for_jobs(
    kind: Recorded, pooled_dsn: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGCATALOG_DIRECT_DSN")
    worker = Worker(None, pooled_dsn)
    thread = threading.Thread(target=worker.run)
    thread.start()
    with connect(dsn, "test") as queue:
        for zoid in (1, 2):
            put(queue, zoid)
            until(lambda zoid=zoid: zoid in kind.subjects)
        assert until(lambda: queue.execute("SELECT FROM pgcatalog_queue WHERE kind = 'test'").fetchall() == [])
        listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        assert queue.execute(listening).fetchall() == [(0,)]
    worker.stop()
    until(lambda: not thread.is_alive())
