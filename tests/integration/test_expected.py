"""Completeness of the schema: each missing, disabled or invalid part is named, with the statement that restores it."""

from collections.abc import Iterator
from plone.pgcatalog.cli.reports import catalog_findings
from plone.pgcatalog.database import counts
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.database.expected import COLUMN
from plone.pgcatalog.database.expected import FUNCTION
from plone.pgcatalog.database.expected import INDEX
from plone.pgcatalog.database.expected import KEY
from plone.pgcatalog.database.expected import SCHEMA_PARTS
from plone.pgcatalog.database.expected import SchemaPart
from plone.pgcatalog.database.expected import SEQUENCE
from plone.pgcatalog.database.expected import TABLE
from plone.pgcatalog.database.expected import TRIGGER
from plone.pgcatalog.database.expected import TRIGRAMS
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.schema import index_names
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.metrics.database import database_metrics
from plone.pgcatalog.migration import tools
from plone.pgcatalog.observe import health
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.worker import Worker
from tests.acceptance.cli import answer
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.meanings import embedder
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.vectors import work
from tests.integration.waiting import until
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any

import psycopg
import pytest
import re
import threading
import transaction


@pytest.fixture(scope="module")
def connection(shared_site: Site) -> Iterator[Any]:
    """A connection whose transactions the tests roll back."""
    with psycopg.connect(shared_site.dsn, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


@pytest.fixture
def open_connection(connection: Any) -> Iterator[Any]:
    connection.rollback()
    assert health.collect(connection, check=True)["attention"] == []
    yield connection
    connection.rollback()


def attention(connection: Any) -> list[str]:
    sentences: list[str] = health.collect(connection)["attention"]
    return sentences


def said(connection: Any) -> list[str]:
    """Return the sentences that need attention; check that ``status``, ``check`` and the metrics agree."""
    sentences: list[str] = health.collect(connection, check=True)["attention"]
    found = [f"{finding.text}; {finding.remedy}".lower() for finding in catalog_findings(connection)]
    assert found == [f"{sentence}.".lower() for sentence in sentences]
    metrics = {metric.name: metric.value for metric in database_metrics(connection)}
    assert metrics["pgcatalog_attention"] == len(sentences)
    return sentences


def dropping(thing: SchemaPart, connection: Any) -> str:
    """Return the statement that drops *thing*."""
    match thing.kind:
        case "column":
            return f"ALTER TABLE {thing.of} DROP COLUMN {thing.name} CASCADE"
        case "trigger":
            return f"DROP TRIGGER {thing.name} ON {thing.of}"
        case "key":
            query = "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = %s"
            [row] = connection.execute(query, [thing.of, thing.name]).fetchall()
            return f"ALTER TABLE {thing.of} DROP CONSTRAINT {row['conname']} CASCADE"
    return f"DROP {thing.kind} {thing.name} CASCADE"


def recreate(connection: Any, sentence: str, relation: str) -> None:
    """Apply the remedy in *sentence*."""
    remedy = sentence.rpartition("; ")[2].removeprefix("run ")
    for end in (" and restart Zope, which recreates the table, empty", " to create it"):
        remedy = remedy.removesuffix(end)
    if remedy.startswith(("CREATE", "ALTER", "DROP", "REINDEX")):
        connection.execute(remedy.replace("CONCURRENTLY ", ""))
    if remedy == "pgcatalog vacuum ZOPE_CONF":
        counts.repair(connection, relation)
    if "restart" in sentence:
        connection.execute(load_sql("base"))


#: The parts created by base.sql; for an extension's part see test_suggest.
IN_BASE = [thing for thing in SCHEMA_PARTS if thing.kind != TRIGRAMS]
#: A part of each kind, for ``make test``, and all parts.
OF_EACH_KIND = {
    kind: next(thing for thing in SCHEMA_PARTS if thing.kind == kind)
    for kind in (TABLE, COLUMN, KEY, INDEX, TRIGGER, FUNCTION, SEQUENCE)
}
WHICH = ["one of each kind", pytest.param("all", marks=pytest.mark.slow)]


@pytest.mark.parametrize("which", WHICH)
def test_each_missing_part_of_the_shared_schema_is_named_and_restored(open_connection: Any, which: str) -> None:
    names = {thing.shown for thing in SCHEMA_PARTS}
    assert {"pgcatalog_queue", "pgcatalog_queue.due", "pgcatalog_queue_due", "pgcatalog_deletions()"} <= names
    for thing in IN_BASE if which == "all" else OF_EACH_KIND.values():
        open_connection.execute(dropping(thing, open_connection))
        sentences = attention(open_connection) if which == "all" else said(open_connection)
        assert any(thing.shown in sentence for sentence in sentences), (thing, sentences)
        # Without a table that has references, these are named next.
        for _ in range(2):
            for sentence in attention(open_connection):
                recreate(open_connection, sentence, "")
        # Rows lost with a table are restored by a rebuild.
        assert [s for s in attention(open_connection) if "pgcatalog rebuild" not in s] == [], thing
        open_connection.rollback()


def test_shared_schema_is_that_of_the_database(open_connection: Any) -> None:
    """The parts read from base.sql are all that it creates."""
    of = "table_schema = current_schema() AND starts_with(table_name, 'pgcatalog_') AND table_name !~ '^pgcatalog_[0-9a-f]+(_|$)'"
    columns = open_connection.execute(
        f"SELECT table_name || '.' || column_name AS n FROM information_schema.columns WHERE {of}"
    )
    found = {row["n"] for row in columns.fetchall()}
    assert found == {thing.shown for thing in SCHEMA_PARTS if thing.kind == COLUMN} - {"object_state.idx"}
    kinds = {thing.kind for thing in IN_BASE}
    assert kinds == {TABLE, COLUMN, KEY, INDEX, TRIGGER, FUNCTION, SEQUENCE}


def parts_of(portal: Any) -> tuple[str, list[tuple[str, str]]]:
    """Return the relation of the catalog of *portal*, and (name, statement that drops it) of all its parts."""
    core = portal.portal_catalog._core
    state = core.session.read_states()[core.zoid]
    layout = core.layout().with_interned(state.interned)
    relation = state.relation
    parts = [(name, f"DROP INDEX {name}") for name in index_names(relation, layout)]
    parts += [(c.name, f"ALTER TABLE {relation} DROP COLUMN {c.quoted} CASCADE") for c in layout.columns]
    parts += [(name, f"ALTER TABLE {relation} DROP COLUMN {name} CASCADE") for name in ("rid", "path", "zoid", "idx")]
    parts += [
        (f"{relation}_{key}", f"ALTER TABLE {relation} DROP CONSTRAINT {relation}_{key}")
        for key in ("pkey", "path", "zoid_fk")
    ]
    for event in counts.EVENTS:
        name = f"pgcatalog_count_{event}"
        parts += [
            (name, f"DROP TRIGGER {name} ON {relation}"),
            (name, f"ALTER TABLE {relation} DISABLE TRIGGER {name}"),
        ]
    parts += [
        ("pgcatalog_count_insert", f"DROP FUNCTION {relation}_count() CASCADE"),
        (f"{relation}_rows", f"DROP VIEW {relation}_rows"),
    ]
    return relation, parts


@pytest.mark.parametrize("which", WHICH)
def test_each_missing_part_of_a_table_is_named_and_restored(
    open_connection: Any, shared_filled: Any, which: str
) -> None:
    relation, parts = parts_of(shared_filled)
    transaction.abort()
    names = {name for name, _ in parts}
    assert {f"{relation}_searchable_text", f"{relation}_seen_by_type", "portal_type"} <= names
    kinds = {re.sub(r"[^A-Z ]", "", statement): (name, statement) for name, statement in parts}
    for name, statement in parts if which == "all" else kinds.values():
        open_connection.execute(statement)
        sentences = attention(open_connection) if which == "all" else said(open_connection)
        assert any(name in sentence for sentence in sentences), (statement, sentences)
        for sentence in sentences:
            recreate(open_connection, sentence, relation)
        left = attention(open_connection)
        assert [s for s in left if not s.endswith("pgcatalog rebuild ZOPE_CONF")] == [], statement
        assert ("DROP COLUMN" in statement or "DROP VIEW" in statement) == bool(left)
        open_connection.rollback()


def test_disabled_triggers_and_invalid_indexes_are_named(open_connection: Any) -> None:
    statements = {
        "pgcatalog_counted": "ALTER TABLE pgcatalog_counts DISABLE TRIGGER pgcatalog_counted",
        "pgcatalog_queue_due": "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'pgcatalog_queue_due'::regclass",
    }
    for name, statement in statements.items():
        open_connection.execute(statement)
        [sentence] = said(open_connection)
        assert name in sentence
        recreate(open_connection, sentence, "")
        assert said(open_connection) == []


def test_lost_advised_index_is_named_and_restored(open_connection: Any, shared_filled: Any) -> None:
    """Not while a job builds it, nor when its build has failed."""
    relation, _ = parts_of(shared_filled)
    zoid = shared_filled.portal_catalog._core.zoid
    transaction.abort()
    insert = "INSERT INTO pgcatalog_indexes (catalog, name, definition, columns, reason) VALUES (%s, %s, %s, %s, '')"
    for name, columns in (("adv_lost", ["path"]), ("adv_building", ["path"]), ("adv_of_no_column", ["gone"])):
        open_connection.execute(insert, [zoid, name, "USING btree (path)", columns])
    assert table.put_long(open_connection, "index", zoid, 1, {"name": "adv_building"})
    line = f"CREATE INDEX CONCURRENTLY {relation}_adv_lost ON {relation} USING btree (path)"
    assert said(open_connection) == [f"/plone: {relation}_adv_lost is missing or disabled; run {line}"]
    recreate(open_connection, line, relation)
    assert said(open_connection) == []
    open_connection.execute("DELETE FROM pgcatalog_queue")
    assert len(said(open_connection)) == 1


def test_lost_statistics_are_named(open_connection: Any, shared_filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    relation, _ = parts_of(shared_filled)
    transaction.abort()
    monkeypatch.setattr(health, "SMALL_TABLE", 0)
    open_connection.execute("DELETE FROM pg_statistic WHERE starelid = %s::regclass", [relation])
    assert said(open_connection) == [
        f"/plone: the planner has no statistics for {relation}; run pgcatalog vacuum ZOPE_CONF to create them"
    ]
    open_connection.execute(f"ANALYZE {relation}")
    assert said(open_connection) == []


#: Statement -> the part reported as missing; {} is the relation.
SEEN = {
    "DROP INDEX {}_seen_by_type": "_seen_by_type is missing or disabled; run CREATE INDEX CONCURRENTLY",
    "DROP TABLE pgcatalog_history": "missing or disabled in the database: pgcatalog_history",
    "ALTER TABLE pgcatalog_queue DROP COLUMN due": "pgcatalog_queue.due is missing; run DROP TABLE pgcatalog_queue CASCADE",
    "DROP TABLE pgcatalog_state": "missing or disabled in the database: pgcatalog_state",
}


def test_overview_names_missing_parts(dsn: str) -> None:
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    with sites.opened(dsn) as db:
        for statement, name in SEEN.items():
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(statement.replace("{}", relation))
            shown = text(Site(db).page("/plone/portal_catalog/manage_catalogOverview").get_element_by_id("health"))
            assert name in shown
            assert any(name in sentence for sentence in answer("status", "--check", "--dsn", dsn)[1]["attention"])


def test_rebuild_restores_columns_and_the_view(dsn: str) -> None:
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            create(portal, "Document", "page", title="Page")
            transaction.commit()
        sql(dsn, "ALTER TABLE {} DROP COLUMN portal_type CASCADE")
        assert answer("status", "--dsn", dsn)[0] == 1
        rebuild(db)
        with sites.inside(db) as portal:
            assert list(Verifier(portal.portal_catalog).differences()) == []
    assert answer("status", "--check", "--dsn", dsn)[1]["attention"] == []


def test_session_that_blocks_a_save_is_named(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plone.pgcatalog.database.statistics.BLOCKING_SECONDS", 0.0)
    with sites.opened(dsn) as db, psycopg.connect(direct_dsn(dsn), application_name="report") as blocker:
        blocker.execute("LOCK TABLE pgcatalog_state IN SHARE MODE")
        pid = blocker.info.backend_pid

        def save() -> None:
            with sites.inside(db) as portal:
                create(portal, "Document", "page", title="Page")
                transaction.commit()

        saving = threading.Thread(target=save)
        saving.start()
        until(lambda: answer("status", "--dsn", dsn)[1]["blockers"])
        [sentence] = answer("status", "--dsn", dsn)[1]["attention"]
        assert sentence.startswith(
            f"the session {pid} ({blocker.info.user}, report, idle in transaction) has blocked 1 other"
        )
        assert "LOCK TABLE pgcatalog_state IN SHARE MODE" in sentence
        statement = sentence.rpartition("; ")[2].removeprefix("run ").removesuffix(" to end it")
        with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
            [finding] = catalog_findings(connection)
            assert str(pid) in finding.text
            assert {m.name: m.value for m in database_metrics(connection)}["pgcatalog_database_blockers"] == 1
            assert connection.execute(statement).fetchall()
        saving.join()
        assert answer("status", "--dsn", dsn)[1]["attention"] == []
        blocker.close()


def lose(dsn: str, path: str) -> int:
    """Delete the object at *path* by SQL; return its oid."""
    [(zoid,)] = sql(dsn, f"SELECT zoid FROM {{}} WHERE path = '{path}'")
    with psycopg.connect(direct_dsn(dsn), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM object_state WHERE zoid = %s", [zoid])
    return int(zoid)


def test_lost_objects_are_named_and_left_out_by_the_way_back(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for name in ("gone", "there"):
            create(portal, "Document", name, title=name)
        transaction.commit()
    zoid = lose(dsn, "/plone/gone")
    found = [s for s in answer("status", "--check", "--dsn", dsn)[1]["attention"] if "references point" in s]
    assert len(found) == 1
    assert f"0x{zoid:x}" in found[0]
    assert answer("status", "--dsn", dsn)[1]["attention"] == []
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        tool = portal.portal_catalog
        list(tools.fill_in_batches(tool, tools.begin(tool)))
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
        transaction.commit()
        uids = portal.portal_catalog._catalog.uids
        assert "/plone/there" in uids
        assert "/plone/gone" not in uids
    assert any(
        "/plone/gone: the object, or a part of it, is missing in the database" in message for message in caplog.messages
    )


def test_embedder_that_is_down_is_named_everywhere(dsn: str) -> None:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        with embedder() as answers:
            work((portal, Worker(db, dsn), dsn))
            assert answer("status", "--check", "--dsn", dsn)[1]["attention"] == []
        assert answer("status", "--dsn", dsn)[1]["attention"] == []
        begin = f"/plone: the embedder at {answers.url} returns no vectors, so searches use words only: ConnectError"
        [sentence] = answer("status", "--check", "--dsn", dsn)[1]["attention"]
        assert sentence.startswith(begin)
        assert [f["text"] for f in answer("check", "--dsn", dsn)[1]["findings"] if f["text"].startswith(begin)]
        shown = text(Site(db).page("/plone/portal_catalog/manage_catalogOverview").get_element_by_id("health"))
        assert shown.startswith(f"Needs attention: {begin}")
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        metrics = {metric.name: metric.value for metric in database_metrics(connection)}
    assert (metrics["pgcatalog_embedder_up"], metrics["pgcatalog_attention"]) == (0, 1)
