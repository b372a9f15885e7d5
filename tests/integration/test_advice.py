"""Index advice: found by trials, built and dropped in the running site, without partial results."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.advice import builder
from plone.pgcatalog.advice.advice import AdviceError
from plone.pgcatalog.advice.advice import advise
from plone.pgcatalog.advice.advice import find_candidate
from plone.pgcatalog.advice.builder import BuildError
from plone.pgcatalog.advice.builder import IndexTarget
from plone.pgcatalog.advice.builder import Registered
from plone.pgcatalog.advice.builder import registered
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import column_statistics
from plone.pgcatalog.advice.candidates import index_statistics
from plone.pgcatalog.i18n import english
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.queue.long import JobError
from plone.pgcatalog.queue.worker import Worker
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import ROWS
from tests.integration.slow_queries import search
from tests.integration.slow_queries import slow_listing
from tests.integration.waiting import background_ended
from tests.integration.waiting import until
from typing import Any

import dataclasses
import psycopg
import pytest
import transaction


@pytest.fixture(scope="module")
def template(site_template: str, postgres: Any) -> str:
    """A site whose catalog has generated rows, and a role that may only read."""
    dsn = postgres.createdb("advice_template", template=site_template)
    generate_rows(dsn)
    return "advice_template"


@pytest.fixture
def dsn(template: str, postgres: Any) -> str:
    return sites.clone(postgres, template)


@pytest.fixture
def db(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The site's database; every search is slow."""
    with sites.opened(dsn) as database:
        monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        yield database
        monkeypatch.undo()
        assert recorder.flush(10)
        assert background_ended()


@contextmanager
def inside(db: Any) -> Iterator[Any]:
    """Yield the site.  Its snapshot ends here, as with a request; a build waits for that."""
    with sites.inside(db) as portal:
        yield portal


@pytest.fixture
def site(db: Any) -> Iterator[Any]:
    with inside(db) as portal:
        yield portal


def indexes(dsn: str, relation: str) -> dict[str, bool]:
    """Return the names of the indexes of *relation*, and whether they are valid."""
    with psycopg.connect(dsn) as connection:
        found = index_statistics(lambda query, values: connection.execute(query, values).fetchall(), relation)
    return {index.name: index.is_valid for index in found}


def entries(dsn: str, target: IndexTarget) -> list[Registered]:
    with psycopg.connect(dsn) as connection:
        return registered(
            lambda query, values: connection.execute(query, values).fetchall(), target.zoid, target.relation
        )


# -- advice


def test_an_index_is_found_that_helps(site: Any, dsn: str) -> None:
    slow_listing(site)
    catalog = site.portal_catalog._core
    before = indexes(dsn, IndexTarget.of(catalog).relation)
    advice = advise(catalog)
    assert advice.rows >= ROWS
    assert "copy of 4,0" in english(advice.method)
    [suggestion] = advice.suggestions
    assert suggestion.candidate.keys[0] == "creator"
    assert suggestion.after.cost < suggestion.before.cost * 0.8
    assert suggestion.group.shape == "Creator =; portal_type =; sort modified desc; limit"
    assert suggestion.ddl.startswith(
        f'CREATE INDEX CONCURRENTLY "{IndexTarget.of(catalog).index(suggestion.candidate.name)}"'
    )
    assert suggestion.bytes > 0
    assert "bytes for each written row" in suggestion.write_cost
    # Nothing has been changed.
    assert indexes(dsn, IndexTarget.of(catalog).relation) == before
    assert find_candidate(catalog, suggestion.candidate.name) == (
        suggestion.candidate,
        "Creator =; portal_type =; sort modified desc; limit (page)",
    )


def test_partial_index_needs_a_value_that_all_queries_share(site: Any) -> None:
    catalog = site.portal_catalog._core
    for kind in ("Document", "Event", "File"):
        search(site, portal_type=kind, review_state="published", Subject="tag3", sort_on="modified", sort_limit=5)
    found = {c.where for c in all_candidates(catalog)}
    # Same number of queries as for the state, but with different types.
    assert ("review_state", "published") in found
    assert not [where for where in found if where and where[0] == "portal_type"]


def test_fast_query_gets_no_index(site: Any) -> None:
    search(site, getId="x17")
    search(site, sort_on="modified", portal_type="Document", sort_limit=1)
    advice = advise(site.portal_catalog._core)
    assert [s for s in advice.suggestions if s.group.shape == "getId ="] == []
    assert any(reason.startswith("no further index") for group, reason in advice.without if group.shape == "getId =")


def test_shapes_that_cannot_be_run_again_are_named(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sites.override_settings(monkeypatch, slow_query_mask=("Creator",))
    slow_listing(site)
    advice = advise(site.portal_catalog._core)
    assert advice.suggestions == []
    assert "values of Creator were not recorded (masked, too long or of an unknown type)" in [
        english(reason) for _, reason in advice.without
    ]


def test_without_a_log_there_is_no_advice(site: Any) -> None:
    with pytest.raises(AdviceError, match="no slow query"):
        advise(site.portal_catalog._core)
    with pytest.raises(AdviceError, match="no suggestion 'advice_1' any more"):
        find_candidate(site.portal_catalog._core, "advice_1")


def test_without_rows_there_is_no_advice(site: Any, dsn: str) -> None:
    slow_listing(site)
    with psycopg.connect(dsn) as connection:
        connection.execute(f'DELETE FROM "{IndexTarget.of(site.portal_catalog._core).relation}"')
    transaction.begin()
    with pytest.raises(AdviceError, match="the catalog is empty"):
        advise(site.portal_catalog._core)


def test_advice_needs_a_copyable_table(site: Any, dsn: str) -> None:
    slow_listing(site)
    with psycopg.connect(dsn) as connection:
        name = connection.info.dbname
        connection.execute("CREATE ROLE reader LOGIN") if not role_exists(connection, "reader") else None
        connection.execute(f'REVOKE TEMPORARY ON DATABASE "{name}" FROM PUBLIC')
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    catalog = site.portal_catalog._core
    with as_role(catalog, "reader"), pytest.raises(AdviceError, match="permission denied to create temporary tables"):
        advise(catalog)


def role_exists(connection: Any, name: str) -> bool:
    return bool(connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchall())


@contextmanager
def as_role(catalog: Any, role: str) -> Iterator[None]:
    """Use *role* for new connections to the catalog's database."""
    storage = catalog.jar.db().storage
    before = storage._dsn
    storage._dsn = before.replace("user=postgres", f"user={role}")
    try:
        yield
    finally:
        storage._dsn = before


def test_a_database_that_fails_is_named(site: Any) -> None:
    slow_listing(site)
    catalog = site.portal_catalog._core
    with as_role(catalog, "nobody_knows_this_role"), pytest.raises(AdviceError, match="PostgreSQL: "):
        advise(catalog)


# -- building


CANDIDATE = Candidate("composite", ("creator", "modified", "rid"))


@pytest.fixture
def target(db: Any) -> IndexTarget:
    with inside(db) as portal:
        return IndexTarget.of(portal.portal_catalog._core)


def test_an_index_is_built_used_and_dropped(db: Any, dsn: str, target: IndexTarget) -> None:
    with inside(db) as portal:
        slow_listing(portal)
        [suggestion] = advise(portal.portal_catalog._core).suggestions
    before = indexes(dsn, target.relation)
    builder.apply(target, suggestion.candidate, "for a test")
    assert background_ended()
    name = target.index(suggestion.candidate.name)
    assert indexes(dsn, target.relation) == before | {name: True}
    [entry] = entries(dsn, target)
    assert (entry.state, entry.index, entry.reason, entry.message) == ("ready", name, "for a test", "")
    with inside(db) as portal:
        assert [s.candidate for s in advise(portal.portal_catalog._core).suggestions] == []
    builder.start(target, suggestion.candidate.name, is_dropped=True)
    assert background_ended()
    assert indexes(dsn, target.relation) == before
    assert entries(dsn, target) == []


def test_building_waits_for_older_snapshots_and_not_the_other_way_round(db: Any, dsn: str, target: IndexTarget) -> None:
    with psycopg.connect(dsn) as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute(f'SELECT count(*) FROM "{target.relation}"')
        builder.apply(target, CANDIDATE, "")
        [entry] = until(lambda: [e for e in entries(dsn, target) if e.phase.startswith("waiting")])
        assert entry.state == "working"
        with inside(db) as portal:
            create(portal, "Document", "saved-meanwhile", title="Saved")
            transaction.commit()
    assert background_ended()
    assert [e.state for e in entries(dsn, target)] == ["ready"]


@contextmanager
def stuck_build(dsn: str, target: IndexTarget) -> Iterator[Registered]:
    """Yield the entry of a build that waits for a snapshot."""
    with psycopg.connect(dsn) as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute(f'SELECT count(*) FROM "{target.relation}"')
        builder.apply(target, CANDIDATE, "")
        yield until(lambda: [e for e in entries(dsn, target) if e.phase.startswith("waiting")])[0]


def test_a_cancelled_build_leaves_no_index(db: Any, dsn: str, target: IndexTarget) -> None:
    before = indexes(dsn, target.relation)
    with stuck_build(dsn, target):
        assert not indexes(dsn, target.relation)[target.index(CANDIDATE.name)]
        builder.cancel(target, CANDIDATE.name)
        # The unfinished index is dropped when no transaction can use it.
        until(lambda: [e for e in entries(dsn, target) if e.state == "stopping"])
    assert background_ended()
    assert indexes(dsn, target.relation) == before
    [entry] = entries(dsn, target)
    assert (entry.state, entry.message) == ("failed", "Stopped.")
    with pytest.raises(BuildError, match="is not being built"):
        builder.cancel(target, CANDIDATE.name)
    builder.start(target, CANDIDATE.name)
    assert background_ended()
    assert [(e.state, e.message) for e in entries(dsn, target)] == [("ready", "")]


def test_a_lost_connection_is_seen_and_repaired(db: Any, dsn: str, target: IndexTarget) -> None:
    with stuck_build(dsn, target) as entry, psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", (entry.pid,))
        until(lambda: [e for e in entries(dsn, target) if e.state == "interrupted"])
    assert background_ended()
    # A worker continues it.
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE kind = 'index'")
    Worker(db, dsn, is_long=True).run_once()
    assert [e.state for e in entries(dsn, target)] == ["ready"]


def test_an_invalid_leftover_is_repaired(db: Any, dsn: str, target: IndexTarget) -> None:
    """A killed server leaves an invalid index without cleanup."""
    builder.apply(target, CANDIDATE, "")
    assert background_ended()
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", (target.index(CANDIDATE.name),)
        )
    assert [e.state for e in entries(dsn, target)] == ["interrupted"]
    builder.start(target, CANDIDATE.name)
    assert background_ended()
    assert [e.state for e in entries(dsn, target)] == ["ready"]


def test_only_one_builds_at_a_time(db: Any, dsn: str, target: IndexTarget) -> None:
    with stuck_build(dsn, target):
        for is_dropped in (False, True):
            for begin in (builder.start, builder.do):
                with pytest.raises(JobError, match="the job is running already"):
                    begin(target, CANDIDATE.name, is_dropped)
        assert [e.message for e in entries(dsn, target)] == [""]
    assert background_ended()
    assert [e.state for e in entries(dsn, target)] == ["ready"]


def test_build_without_permission_leaves_nothing(db: Any, dsn: str, target: IndexTarget) -> None:
    with psycopg.connect(dsn) as connection:
        if not role_exists(connection, "writer"):
            connection.execute("CREATE ROLE writer LOGIN")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer")
    before = indexes(dsn, target.relation)
    limited = dataclasses.replace(target, dsn=target.dsn.replace("user=postgres", "user=writer"))
    builder.register(target, CANDIDATE, "")
    with pytest.raises(JobError, match="must be owner of table"):
        builder.do(limited, CANDIDATE.name)
    assert indexes(dsn, target.relation) == before
    [entry] = entries(dsn, target)
    assert (entry.state, english(entry.message)) == ("failed", f"PostgreSQL: must be owner of table {target.relation}")


def test_only_our_own_indexes_are_dropped(db: Any, dsn: str, target: IndexTarget) -> None:
    before = indexes(dsn, target.relation)
    for name in ("modified", "path", "advice_", "advice_unknown", '"; DROP TABLE object_state; --', ""):
        with pytest.raises(BuildError, match="not an index created from advice"):
            builder.start(target, name, is_dropped=True)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO pgcatalog_indexes (catalog, name, definition, columns, reason)"
            " VALUES (%s, 'modified', '', '{}', '')",
            (target.zoid,),
        )
    with pytest.raises(BuildError, match="not an index created from advice"):
        builder.start(target, "modified", is_dropped=True)
    assert indexes(dsn, target.relation) == before


def test_a_new_table_has_the_advised_indexes(db: Any, dsn: str, target: IndexTarget) -> None:
    builder.apply(target, CANDIDATE, "")
    assert background_ended()
    with inside(db) as portal:
        portal.portal_catalog.manage_catalogClear()
        create(portal, "Document", "page", title="Page")
        transaction.commit()
        after = IndexTarget.of(portal.portal_catalog._core)
    assert after.relation != target.relation
    assert indexes(dsn, after.relation)[after.index(CANDIDATE.name)]
    assert [e.state for e in entries(dsn, after)] == ["ready"]
    # Except if a column was deleted: its index was deleted with it.
    with inside(db) as portal:
        portal.portal_catalog.delIndex("Creator")
        portal.portal_catalog.manage_catalogClear()
        transaction.commit()
        third = IndexTarget.of(portal.portal_catalog._core)
    assert third.index(CANDIDATE.name) not in indexes(dsn, third.relation)
    assert [e.state for e in entries(dsn, third)] == ["missing"]


def test_saves_survive_the_longest_values(db: Any, dsn: str, target: IndexTarget) -> None:
    """No proposed index rejects a row."""
    with inside(db) as portal:
        listing = {"Creator": "c", "path": {"query": "/plone", "depth": 1}, "b_size": 5}
        search(portal, Creator="c", portal_type="File", getId="x", review_state="private", sort_on="sortable_title")
        search(portal, sort_on="modified", **listing)
        search(portal, sort_on="sortable_title", is_folderish=True, **listing)
        candidates = all_candidates(portal.portal_catalog._core)
    assert len(candidates) >= 8
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number, candidate in enumerate(candidates):
            connection.execute(f'CREATE INDEX long_{number} ON "{target.relation}" {candidate.definition}')
        connection.execute(
            f'INSERT INTO "{target.relation}" (rid, path, creator, portal_type, get_id, review_state, sortable_title,'
            " parent_path, path_value, modified, is_folderish)"
            " SELECT 77, '/', s, s, s, s, s, p, p, now(), true"
            " FROM (SELECT left(string_agg(md5(random()::text), ''), 900) AS s,"
            "   left(string_agg(md5(random()::text), ''), 2600) AS p FROM generate_series(1, 100)) AS v"
        )


def all_candidates(catalog: Any) -> list[Candidate]:
    from plone.pgcatalog.advice.advice import adviser_of
    from plone.pgcatalog.observe.log import log_of

    log = log_of(catalog)
    with adviser_of(catalog) as adviser:
        questions = [adviser.sample(log, group) for group in log.groups() if group.operation == "page"]
        found = [c for q in questions for c in adviser.candidates.propose(q.filters, q.sort)]
    return list(dict.fromkeys(found))


def test_a_value_of_a_unique_column_is_in_one_row(postgres: Any) -> None:
    with psycopg.connect(postgres.dsn()) as connection:
        connection.execute(
            "CREATE TEMP TABLE many AS SELECT n::text AS id, n % 4 AS few FROM generate_series(1, 1000) AS n"
        )
        connection.execute("ANALYZE many")
        columns = column_statistics(lambda statement, params: connection.execute(statement, params).fetchall(), "many")
        connection.rollback()
    assert columns["id"].fraction("7") == pytest.approx(1 / 1000)
    assert columns["few"].fraction(3) == pytest.approx(1 / 4)
