"""Prepared statements in one message: the same answers as psycopg's cursors, an error stays local, and the plans."""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from datetime import UTC
from functools import partial
from plone.pgcatalog.database import prepared
from plone.pgcatalog.database.prepared import FEW_ROWS
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.statistics import Selectivity
from plone.pgcatalog.query.statements import first_ids
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.shares import UNKNOWN
from tests.integration import plans
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.fixtures import no_content
from tests.integration.fixtures import SiteWith
from tests.integration.relation import filled
from tests.integration.traffic import traced
from tests.integration.waiting import PATIENCE
from tests.integration.waiting import until
from tests.integration.web import Site
from typing import Any

import psycopg
import pytest
import re
import transaction


#: Every 100th row is visible to anonymous users, every 150th is an event.
ROWS = """
INSERT INTO "{0}" (rid, zoid, path, portal_type, allowed_roles, searchable_text, searchable_text_words)
SELECT n, (SELECT min(zoid) FROM object_state), '/plone/text' || n,
    CASE WHEN n % 150 = 0 THEN 'Event' ELSE 'Document' END,
    pg_temp.number_of('allowed_roles', CASE WHEN n % 100 = 0 THEN '{{Anonymous,Manager}}'::text[] ELSE '{{Manager}}' END),
    'every:1 other:2', 2
FROM generate_series(1000001, 1003000) AS n
"""


def fill(portal: Any) -> None:
    filled(portal.portal_catalog, ROWS)
    create(portal, "Document", "page")


SHARED = fill


@pytest.fixture
def connection(shared_site: Site) -> Any:
    with psycopg.connect(shared_site.dsn, autocommit=True) as connection:
        yield connection


#: Prepared statements of the server; test_pooler has the tests for a pooler.
on_the_server = pytest.mark.direct("a pooler renames prepared statements, and caches them")


def run(connection: Any, query: str, *params: Any) -> Any:
    return PreparedStatements.of(connection).run([Statement(query, params)])[0]


def names(connection: Any) -> list[str]:
    rows = connection.execute("SELECT name FROM pg_prepared_statements WHERE name LIKE 'pgcatalog%'", prepare=False)
    return [name for (name,) in rows]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("text", "a%b's \\ ü"), ("integer", 7), ("bigint", 2**40), ("numeric", 2**70), ("text", None)),
        *(("float8", 1.5), ("boolean", True), ("text[]", ["a", "b", None]), ("bigint[]", [1, 2**40])),
        ("timestamptz", datetime(2026, 2, 3, tzinfo=UTC)),
        ("bytea", b"\0\xff"),
    ],
)
def test_values_arrive_as_by_a_cursor(connection: Any, kind: str, value: Any) -> None:
    query = f"SELECT %s::{kind}, '50%%', ARRAY['a', NULL], 1.50, NULL WHERE %s::{kind} IS NOT DISTINCT FROM %s"
    expected = connection.execute(query, (value, value, value)).fetchall()
    for _ in range(3):
        assert run(connection, query, value, value, value) == expected


@on_the_server
def test_repeated_statement_is_prepared_and_the_oldest_are_dropped(connection: Any, monkeypatch: Any) -> None:
    query = "SELECT %s::int + 4711"
    assert [run(connection, query, 1), names(connection)] == [[(4712,)], []]
    assert [run(connection, query, n) for n in range(3)] == [[(4711,)], [(4712,)], [(4713,)]]
    assert len(names(connection)) == 1
    monkeypatch.setattr(prepared, "MOST_PREPARED", 3)
    for _ in range(3):
        for number in range(5):
            for _ in range(2):
                assert run(connection, f"SELECT %s::int + {number} - 815", 815) == [(number,)]
            assert len(names(connection)) <= 3
    assert len(names(connection)) == 3


def rolled_back(connection: Any) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("SELECT 1")


#: Actions after which psycopg removes all prepared statements.
REMOVING: dict[str, Callable[[Any], Any]] = {
    "ROLLBACK": lambda connection: connection.execute("BEGIN") and connection.execute("ROLLBACK"),
    "rollback()": lambda connection: connection.execute("BEGIN") and connection.rollback(),
    "transaction()": rolled_back,
    "DROP": lambda connection: connection.execute("CREATE TEMP TABLE t ()") and connection.execute("DROP TABLE t"),
}


@on_the_server
def test_statements_that_psycopg_removes_are_not_sent_again(connection: Any) -> None:
    """``run`` itself repeats nothing: PostgreSQL would have refused, and logged, the statement."""
    for name, remove in REMOVING.items():
        for _ in range(3):
            for _ in range(2):
                assert run(connection, "SELECT %s::text || 'again'", "") == [("again",)]
            connection.execute("SELECT 1", prepare=True)
            assert len(names(connection)) == 1, name
            remove(connection)
            assert names(connection) == [], name


@pytest.mark.direct("a pooler passes DEALLOCATE ALL on, and closes who uses what it has removed")
def test_statements_removed_by_other_code_are_prepared_again(shared_filled: Any) -> None:
    session = Session.of(shared_filled._p_jar)
    for _ in range(2):
        for _ in range(3):
            assert session.execute("SELECT %s::text || 'again'", ("",)) == [("again",)]
        session.connection.execute("DEALLOCATE ALL")


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT 1 / %s::int", (0,)),
        ("SELECT nothing FROM pgcatalog_state", ()),
        # A search for words has settings of its own.
        ("SELECT 'a'::tsvector @@ %s::tsquery", ("&",)),
    ],
)
def test_an_error_leaves_the_transaction_usable_and_no_setting(shared_filled: Any, query: str, params: Any) -> None:
    session = Session.of(shared_filled._p_jar)
    for number in range(3):
        with pytest.raises(psycopg.Error):
            session.execute(query, params)
        assert session.execute("SELECT %s::int - 1", (number,)) == [(number - 1,)]
        assert session.execute("SHOW enable_seqscan") == [("on",)]
    if params == (0,):
        assert session.execute(query, (1,)) == [(1,)]


def test_other_threads_run_while_one_waits(shared_filled: Any, connection: Any) -> None:
    """One of them releases the lock for which the statement waits."""
    session, holder = Session.of(shared_filled._p_jar), connection
    with ThreadPoolExecutor(1) as others:
        holder.execute("SELECT pg_advisory_lock(1, 1)")

        def give() -> None:
            until(lambda: holder.execute("SELECT FROM pg_locks WHERE NOT granted AND classid = 1").fetchall())
            holder.execute("SELECT pg_advisory_unlock(1, 1)")

        given = others.submit(give)
        session.execute("SELECT pg_advisory_xact_lock_shared(1, 1)")
        given.result()


def test_another_thread_that_uses_the_connection_waits_for_the_end_of_a_message(connection: Any) -> None:
    """Plone's portlet of events caches objects of one thread's connection, and other threads load them through it."""
    query = "SELECT %s::int FROM pg_sleep(0.01)"
    with ThreadPoolExecutor(1) as pool:
        for number in range(20):
            asked = pool.submit(run, connection, query, number)
            loaded = [connection.execute("SELECT %s::text", (n,)).fetchall() for n in range(5)]
            assert loaded == [[(str(n),)] for n in range(5)]
            assert asked.result(PATIENCE) == [(number,)]


@on_the_server
def test_error_leaves_statements_prepared_in_the_same_message(connection: Any) -> None:
    statements = PreparedStatements.of(connection)
    good, bad = "SELECT %s::int * 11", "SELECT 5 / %s::int"
    for divisor in (1, 1, 0, 1, 0):
        batch = [Statement(good, (2,)), Statement(bad, (divisor,))]
        if divisor:
            assert statements.run(batch) == [[(22,)], [(5,)]]
        else:
            with pytest.raises(psycopg.errors.DivisionByZero):
                statements.run(batch)
    assert len(names(connection)) == 2


def test_connection_without_prepared_statements_is_respected(connection: Any) -> None:
    connection.prepare_threshold = None
    for number in range(3):
        assert run(connection, "SELECT %s::int", number) == [(number,)]
    assert names(connection) == []


def test_search_is_one_message_with_its_preliminaries(portal: Any) -> None:
    connection = portal._p_jar._normal_storage.pg_connection
    if connection.prepare_threshold is None and not getattr(connection, "prepares_ours", False):
        pytest.skip("nothing is prepared through a pooler that cannot follow it")
    for number in range(3):
        create(portal, "Document", f"page{number}", title=f"Page {number}")
    transaction.commit()
    catalog = portal.portal_catalog

    def found() -> list[str]:
        return [b.Title for b in catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId", b_size=10)]

    for _ in range(3):
        portal.page1.title = "Changed"
        portal.page1.reindexObject()
        transaction.commit()
        transaction.begin()
        found()
    portal.page0.reindexObject()
    transaction.commit()
    transaction.begin()
    with traced(portal, prepares=True) as found_traffic:
        assert found() == ["Page 0", "Changed", "Page 2"]
    [traffic] = found_traffic
    assert traffic.round_trips == 1
    # The page and its time limit are prepared; planner settings and the savepoint need no plan.
    [message] = traffic.statements
    assert [text.split('"')[3][:9] for text in message.split("; ")] == ["SET LOCAL", "SAVEPOINT"]
    assert [kind for kind, _ in traffic.messages].count("Execute") == 5


def test_large_catalogs_are_planned_for_each_value(portal: Any, dsn: str) -> None:
    session, zoid = Session.of(portal._p_jar), portal.portal_catalog._core.zoid
    for rows, mode in ((FEW_ROWS - 1, "generic"), (FEW_ROWS, "custom"), (-1, "custom")):
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute("UPDATE pg_class SET reltuples = %s WHERE relname = %s", (rows, f"pgcatalog_{zoid:x}"))
        create(portal, "Document", f"page{rows}")
        transaction.commit()
        transaction.begin()
        assert session.read_states()[zoid].rows == rows
        transaction.begin()
        assert session.execute("SHOW plan_cache_mode") == [(f"force_{mode}_plan",)], rows


def test_the_first_searches_of_a_process_are_planned_for_each_value(dsn: str) -> None:
    """The first statement reads the sizes of the catalogs; its transaction plans with the former setting."""
    with sites.opened(dsn) as db, sites.application(db) as app:
        session = Session.of(app._p_jar)
        assert not session.generations.newest
        assert session.read_states()
        assert session.execute("SHOW plan_cache_mode") == [("force_custom_plan",)]


def test_few_visible_rows_are_found_by_the_index_of_the_roles(shared_filled: Any) -> None:
    """If nearly everything is hidden, a word of all texts is compared in the visible rows, not looked up."""
    catalog = shared_filled.portal_catalog
    view = catalog._core.view()
    session, relation = view.session, view.read_state().relation
    assert session.read_states()[catalog._core.zoid].rows >= FEW_ROWS
    for role, index in (("Anonymous", "seen_by"), ("Manager", "searchable_text")):
        compiled = catalog._catalog.search({"SearchableText": "every", "allowedRolesAndUsers": [role]}).compiled
        plan = plans.plan_of(session, plans.count_statement(view, compiled))
        assert f" {relation}_{index}" in plan
    with traced(shared_filled) as traffic:
        plans.count_statement(view, compiled)
    assert traffic[0].round_trips == 0
    shares = session.generations.selectivity
    roles = catalog._core.translator("allowedRolesAndUsers").column
    assert shares.shares(session.query, relation).with_any(roles, [0]) == 0
    unknown = "pgcatalog_never_analyzed"
    assert Selectivity().shares(session.query, unknown) is UNKNOWN


@pytest.mark.parametrize(
    ("types", "index"),
    [(["Document", "Folder"], "searchable_text"), ("Document", "searchable_text"), ("Event", "portal_type")],
)
def test_types_that_most_pages_have_are_compared_row_by_row(shared_filled: Any, types: Any, index: str) -> None:
    """Plone's search page always has a criterion of types: by their index all texts would be read and compared."""
    catalog = shared_filled.portal_catalog
    view = catalog._core.view()
    relation = view.read_state().relation
    results = catalog.unrestrictedSearchResults(SearchableText="every", portal_type=types)
    for statement in (
        plans.count_statement(view, results.compiled),
        plans.page_statement(view, results.compiled, 0, 10),
    ):
        plan = plans.plan_of(view.session, statement)
        used = set(re.findall(rf"(?:on|using) {relation}_(\w+) ", plan))
        # By the other indexes, candidates for a rank are looked up, and fetched.
        assert used - {"title", "description", "pkey"} == {index}, plan
    assert len(results) == (20 if types == "Event" else 2980)


def test_waiting_for_the_server_does_not_count_as_decoding(shared_filled: Any) -> None:
    session = Session.of(shared_filled._p_jar)
    session.execute("SELECT 1")
    before = session.messages.fetching
    session.execute("SELECT pg_sleep(0.2)")
    assert before < session.messages.fetching < before + 0.2


#: Inserted directly: texts of 112 words, frequent and rare ones.
LONG_TEXTS = """
INSERT INTO "{0}" (rid, path, path_value, parent_path, depth, portal_type, review_state, get_id, uid, created, modified,
        effective, allowed_roles, object_provides, sortable_title, searchable_text, searchable_text_words,
        effective_range_since, effective_range_until)
    SELECT i + 1000000, p, p, '/plone/f' || i % 200, 3, (ARRAY['Document', 'News Item', 'Event', 'File'])[1 + i % 4],
        (ARRAY['published', 'private'])[1 + i % 2], 'd' || i, md5(i::text), at, at, at,
        pg_temp.number_of('allowed_roles', ARRAY['Anonymous', 'Manager']), pg_temp.number_of('object_provides',
        (SELECT array_agg('some.long.name.of.an.interface.I' || n) FROM generate_series(1, 20) AS n)), 'title ' || i,
        (SELECT string_agg('w' || (power((i::bigint * n * 7919) % 4001 / 4001.0, 3) * 3000)::int || ':' || n, ' ')
            FROM generate_series(1, 112) AS n)::tsvector
            || CASE WHEN i % 3 = 0 THEN 'third:113' ELSE '' END::tsvector
            || CASE WHEN i % 20 = 0 THEN 'twentieth:114' ELSE '' END::tsvector,
        112, -1440, 2147483647
    FROM generate_series(1, {{rows}}) i, LATERAL (
        SELECT '/plone/f' || i % 200 || '/d' || i, timestamptz '2020-01-01' + i * interval '1 hour') AS v(p, at)
"""
SAVED = 16
SAVES = 10
#: The parameter with which the plan reads the candidates has a name in PostgreSQL 15 and 16.
CANDIDATES = re.compile(r"Index Scan using \S+_pkey on .*\n +Index Cond: \(rid = ANY \((?:\(InitPlan|\$\d)")
#: Pages of the pending list with which PostgreSQL was observed to use other indexes.
PAGES = 40


@pytest.fixture(scope="module", params=[6000, FEW_ROWS - 100])
def saved(request: pytest.FixtureRequest, site_with: SiteWith) -> Iterator[Any]:
    """A site in which many saves have filled the pending list of the text index since the last vacuum.

    PostgreSQL then overestimates the cost of the index and prefers any other index that seems to answer the query.  An
    index that finds every row makes it detoast and compare every text.
    """
    dsn = site_with(no_content)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        pages = [create(portal, "Document", f"page{number:02}", title=f"Page {number}") for number in range(SAVED)]
        transaction.commit()
        relation = filled(portal.portal_catalog, LONG_TEXTS.replace("{{rows}}", str(request.param)))
        for number in range(SAVES):
            for page in pages:
                page.description = " ".join(f"w{word * number % 2999}" for word in range(112))
                page.reindexObject()
            transaction.commit()
        transaction.begin()
        yield portal
        transaction.abort()
    with psycopg.connect(dsn, autocommit=True) as connection:
        query = "SELECT gin_clean_pending_list(%s::regclass)"
        [[cleaned]] = connection.execute(query, [f"{relation}_searchable_text"]).fetchall()
        assert cleaned >= PAGES


def plans_of(saved: Any, query: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, PostgreSQL's plan) of the statements for all rows of *query*: their number, and the best or all."""
    catalog = saved.portal_catalog
    compiled, view, session = catalog.searchResults(**query).compiled, catalog._core.view(), catalog._core.session
    found = {"count": plans.count_statement(view, compiled)}
    if compiled.score is None:
        found["rids"] = plans.rids_statement(view, compiled)
    else:
        found["page"] = plans.page_statement(view, compiled, 0, 25)
    is_small = session.generations.is_small()
    for name, statement in found.items():
        if not is_small:
            yield name, plans.plan_of(session, statement)
        if statement.plans_once or is_small:
            yield f"{name}, any values", plans.plan_for_any_values(session, statement)


ALL_ROWS = [
    *({"path": "/plone"}, {"path": {"query": "/plone"}}, {"path": {"query": ["/plone", "/plone/f1"]}}),
    *({"sort_on": "modified", "sort_order": "descending"}, {"sort_on": "sortable_title"}, {"sort_on": "path"}),
    *({"sort_on": ["sortable_title", "modified"]}, {"path": {"query": "/plone"}, "sort_on": "created"}),
    {"effective": {"query": "2021-01-01", "range": "whatever"}},
    {"modified": {"query": "2020-03-01", "range": "min"}},
    {"created": {"query": ("2020-03-01", "2020-08-01"), "range": "min:max"}},
    {"portal_type": ["Document", "News Item", "Event", "File"], "path": "/plone"},
]


OTHERS = ("path_value", "modified", "created", "sortable_title", "portal_type", "allowed_roles", "pkey on")


@pytest.mark.parametrize("word", ["third", "twentieth", "w1", "w1*"])
@pytest.mark.parametrize("more", ALL_ROWS, ids=str)
def test_words_are_looked_for_by_the_text_index_alone(saved: Any, word: str, more: dict[str, Any]) -> None:
    relation = saved.portal_catalog._core.view().read_state().relation
    for operation, plan in plans_of(saved, {"SearchableText": word, **more}):
        assert "_searchable_text" in plan, (operation, plan)
        # Candidates for a rank are fetched by their ids, which is no way to find words.
        others = CANDIDATES.sub("", plan)
        assert [index for index in OTHERS if f"{relation}_{index}" in others] == [], (operation, plan)


@pytest.mark.parametrize(
    ("more", "index"),
    [
        ({"path": "/plone/f1"}, "path_value"),
        ({"modified": {"query": "2020-09-07", "range": "min"}}, "modified"),
        ({"created": {"query": ("2020-03-01", "2020-03-02"), "range": "min:max"}}, "created"),
    ],
)
def test_selective_other_index_is_still_used(saved: Any, more: dict[str, Any], index: str) -> None:
    (_, plan), *_ = plans_of(saved, {"SearchableText": "third", **more})
    assert f"_{index}" in plan


@pytest.mark.parametrize(("word", "index"), [("w2500 w2400", "searchable_text"), ("third", "modified")])
def test_first_rows_of_an_order_are_read_by_the_order_only_if_many_match(saved: Any, word: str, index: str) -> None:
    """Comparing the texts in the order of dates until ten matched took 10 to 40 ms for words of 1 % of 6,000 real pages."""
    query = {"SearchableText": word, "sort_on": "modified"}
    compiled, view = saved.portal_catalog.searchResults(**query).compiled, saved.portal_catalog._core.view()
    first = [
        plans.page_statement(view, compiled, 0, 10),
        view.statement(partial(first_ids, compiled, size=10), compiled.where),
    ]
    for statement in first:
        if view.session.generations.is_small():  # the plan does not know the word
            assert "_searchable_text" in plans.plan_for_any_values(view.session, statement)
        else:
            assert f"_{index}" in plans.plan_of(view.session, statement)
