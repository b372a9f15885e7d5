"""Lists of keywords that rows store by number: readers, interfaces, and columns for which a rebuild finds few lists."""

from plone.pgcatalog.database import sets
from plone.pgcatalog.indexing import rebuild_relation
from plone.pgcatalog.results.cache import result_cache
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.pages import second_connection
from tests.integration.people import share
from tests.integration.plans import count_statement
from tests.integration.plans import plan_of
from tests.integration.rebuilding import differences
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.relation import filled as relation_filled
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


ANONYMOUS = {"allowedRolesAndUsers": ["Anonymous"]}
QUERIES: list[dict[str, Any]] = [
    ANONYMOUS,
    {"allowedRolesAndUsers": {"query": ["Manager", "Editor"], "operator": "or"}},
    {"allowedRolesAndUsers": {"query": ["Manager", "Anonymous"], "operator": "and"}},
    {"allowedRolesAndUsers": {"not": ["Anonymous"]}},
    {"allowedRolesAndUsers": {"query": "Manager", "not": "Anonymous"}},
    {"allowedRolesAndUsers": {"query": ["E", "N"], "range": "min:max"}},
    {"allowedRolesAndUsers": "Nobody"},
    {"object_provides": "plone.app.contenttypes.interfaces.IDocument"},
    {"object_provides": "plone.app.contenttypes.interfaces.IDocument", "portal_type": "Document"} | ANONYMOUS,
    {"Subject": ["red", "blue"]},
    {"Subject": {"query": ["red", "blue"], "operator": "and"}},
    {"Subject": {"not": "red"}},
    {"Subject": {"query": "blue", "range": "max"}},
]
#: Here ZCatalog returns a row once for each of its keywords.
SORTED: list[dict[str, Any]] = [
    {"portal_type": ["Document", "Folder"], "sort_on": "Subject"},
    {"portal_type": ["Document", "Folder"], "sort_on": "Subject", "sort_order": "reverse", "sort_limit": 4},
]
TAGS = [("red",), ("red", "blue"), ("green",), ()]


def fill(portal: Any) -> None:
    populate(portal)
    for number in range(12):
        create(portal, "Document", f"tagged{number}", subject=TAGS[number % len(TAGS)])
    portal.portal_workflow.doActionFor(portal["tagged0"], "publish")


CONTENT = fill


@pytest.fixture
def few_lists_are_enough(monkeypatch: Any) -> None:
    monkeypatch.setattr(rebuild_relation, "MOST_LISTS_PER_ROW", 1)


@pytest.fixture(params=[sets.MANY_LISTS, 1], ids=["few lists", "many lists"])
def many(monkeypatch: Any, request: Any) -> None:
    """The process caches the lists, or PostgreSQL looks them up."""
    monkeypatch.setattr(sets, "MANY_LISTS", request.param)


def interned(dsn: str) -> set[str]:
    [(names,)] = sql(dsn, "SELECT interned FROM pgcatalog_state")
    return set(names)


def answers(catalog: Any) -> list[Any]:
    result_cache().clear()
    return [answer(catalog, query) for query in QUERIES]


def intern_all(portal: Any, dsn: str) -> None:
    sql(dsn, "ANALYZE {}")
    rebuild(portal._p_jar.db())
    transaction.begin()
    assert interned(dsn) >= {"allowed_roles", "object_provides", "subject"}


@pytest.fixture(params=["new", "rebuilt"])
def form(few_lists_are_enough: None, portal: Any, dsn: str, request: Any) -> None:
    """The lists of keywords are those of a new catalog, or of a rebuilt one, whose tags are numbered as well."""
    if request.param == "rebuilt":
        intern_all(portal, dsn)


# -- answers


@pytest.mark.usefixtures("many", "form")
def test_answers_are_zcatalogs(portal: Any) -> None:
    catalog = portal.portal_catalog
    oracle = make_oracle(portal)
    assert answers(catalog) == answers(oracle)
    for name in ("Subject", "object_provides", "allowedRolesAndUsers"):
        ours, theirs = catalog.Indexes[name], oracle._catalog.getIndex(name)
        assert list(ours.uniqueValues(withLengths=True)) == sorted(theirs.uniqueValues(withLengths=True))
        for path in ("/plone/tagged1", "/plone/tagged2"):
            entry = theirs.getEntryForObject(oracle.getrid(path))
            assert sorted(ours.getEntryForObject(catalog.getrid(path))) == sorted(entry)
        assert {k: len(v) for k, v in ours._index.items()} == dict(theirs.uniqueValues(withLengths=True))
    facets = catalog.unrestrictedSearchResults(portal_type="Document").facets(["Subject", "portal_type"])
    assert facets["Subject"]["red"] == 6
    assert facets["Subject"]["green"] == 3
    for query in SORTED:
        brains = catalog.unrestrictedSearchResults(**query)
        tags = [sorted(brain.Subject) for brain in brains]
        assert tags == sorted(tags, reverse="sort_order" in query)
    streamed = [brain.getPath() for brain in catalog.iterate(**SORTED[0], batch=3)]
    assert streamed == [brain.getPath() for brain in catalog.searchResults(**SORTED[0])]


@pytest.mark.usefixtures("many", "form")
def test_lists_that_are_not_committed_are_found_by_their_transaction_alone(portal: Any, dsn: str) -> None:
    catalog = portal.portal_catalog
    new = {"allowedRolesAndUsers": "user:somebody"}, {"Subject": "never seen"}
    before = sql(dsn, "SELECT number FROM pgcatalog_sets")
    share(portal["tagged3"], "somebody", "Reader")
    assert answer(catalog, new[0])[1] == 1
    transaction.abort()
    assert sql(dsn, "SELECT number FROM pgcatalog_sets") == before
    page = portal["tagged3"]
    share(page, "somebody", "Reader")
    page.subject = ("never seen",)
    page.reindexObject(idxs=["Subject"])
    for query in new:
        assert answer(catalog, query) == (["/plone/tagged3"], 1)
    assert answers(catalog) == answers(make_oracle(portal))
    data = catalog.getIndexDataForRID(catalog.getrid("/plone/tagged3"))
    assert "user:somebody" in data["allowedRolesAndUsers"]
    assert data["Subject"] == ["never seen"]
    assert "never seen" in catalog.uniqueValuesFor("Subject")
    assert catalog.unrestrictedSearchResults(Subject="never seen").facets(["Subject"])["Subject"] == {"never seen": 1}
    with second_connection(portal._p_jar.db()) as (manager, other):
        for query in new:
            assert answer(other.portal_catalog, query) == ([], 0)
        transaction.commit()
        for query in new:
            assert answer(other.portal_catalog, query) == ([], 0)
        manager.begin()
        for query in new:
            assert answer(other.portal_catalog, query) == (["/plone/tagged3"], 1)
    assert len(sql(dsn, "SELECT number FROM pgcatalog_sets")) > len(before)


def test_a_transaction_may_have_very_many_lists(portal: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sets, "MANY_LISTS", 3)
    pages = [portal[f"tagged{number}"] for number in range(1, 12)]
    for number, page in enumerate(pages):
        share(page, f"user{number}", "Reader")
    for _ in range(2):
        for number, page in enumerate(pages):
            found = answer(portal.portal_catalog, {"allowedRolesAndUsers": f"user:user{number}"})
            assert found == (["/".join(page.getPhysicalPath())], 1)
        transaction.commit()


# -- storage


def test_each_list_is_stored_once_and_shown_by_the_view(portal: Any, dsn: str) -> None:
    assert interned(dsn) == {"allowed_roles", "object_provides"}
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    rows = sql(dsn, f'SELECT path, allowed_roles, object_provides, subject, idx FROM "{relation}_rows"')
    catalog = portal.portal_catalog
    assert {row[0] for row in rows} == set(catalog._catalog.uids)
    for path, roles, interfaces, tags, idx in rows:
        data = catalog.getIndexDataForRID(catalog.getrid(path))
        assert (roles, interfaces) == (data["allowedRolesAndUsers"], data["object_provides"])
        assert (tags or []) == (data["Subject"] or [])
        assert idx["id"] == path.rpartition("/")[2]
    lists = sql(dsn, "SELECT name, vals FROM pgcatalog_sets")
    assert len(lists) == len({(name, *values) for name, values in lists}) < len(rows)


@pytest.mark.usefixtures("few_lists_are_enough")
def test_rebuild_drops_unused_lists_and_counts_the_others(portal: Any, dsn: str) -> None:
    page = portal["tagged3"]
    for name in ("one", "two"):
        share(page, name, "Reader")
        transaction.commit()
    intern_all(portal, dsn)
    users = {v for (values,) in sql(dsn, "SELECT vals FROM pgcatalog_sets") for v in values if v.startswith("user:")}
    assert users >= {"user:one", "user:two"}
    unused = (
        "SELECT count(*) FROM pgcatalog_sets s WHERE name = 'allowed_roles' AND NOT EXISTS ("
        "SELECT FROM {} c WHERE c.allowed_roles = s.number)"
    )
    assert sql(dsn, unused) == [(0,)]
    # PostgreSQL planned joins with tens of thousands of lists as with ten, until autovacuum ran.
    counts = "SELECT reltuples, (SELECT count(*) FROM pgcatalog_sets) FROM pg_class WHERE relname = 'pgcatalog_sets'"
    [(estimated, lists)] = sql(dsn, counts)
    assert estimated >= lists > 0
    assert differences(portal) == []
    page.manage_delLocalRoles(["one", "two"])
    page.reindexObjectSecurity()
    transaction.commit()
    assert answers(portal.portal_catalog) == answers(make_oracle(portal))


def test_rebuild_drops_the_lists_of_a_column_that_stores_them_itself_again(
    portal: Any, dsn: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(rebuild_relation, "MOST_LISTS_PER_ROW", 1)
    intern_all(portal, dsn)
    assert (["blue", "red"],) in sql(dsn, "SELECT vals FROM pgcatalog_sets WHERE name = 'subject'")
    transaction.abort()
    monkeypatch.setattr(rebuild_relation, "MOST_LISTS_PER_ROW", 0)
    rebuild(portal._p_jar.db())
    transaction.begin()
    assert interned(dsn) == {"allowed_roles", "object_provides"}
    # Its single keywords stay: test_collected_keywords.
    assert sql(dsn, "SELECT vals FROM pgcatalog_sets WHERE name = 'subject' AND cardinality(vals) > 1") == []
    assert answers(portal.portal_catalog) == answers(make_oracle(portal))


# -- cost


def test_cached_lists_cost_no_message(portal: Any) -> None:
    catalog = portal.portal_catalog
    len(catalog.unrestrictedSearchResults(**ANONYMOUS))
    create(portal, "Document", "another")
    transaction.commit()
    transaction.begin()
    result_cache().clear()
    with traced(portal) as traffic:
        assert len(catalog.unrestrictedSearchResults(portal_type="Document", **ANONYMOUS)) == 4
    assert not any("vals" in text for text in traffic[0].statements)


def test_lists_of_the_current_user_are_read_once_among_many(portal: Any, monkeypatch: Any) -> None:
    """Any number of users may have lists of their own; visitors and each user still query by numbers."""
    monkeypatch.setattr(sets, "MANY_LISTS", 2)
    share(portal["tagged5"], "ole", "Reader")
    transaction.commit()
    catalog = portal.portal_catalog
    generations = catalog._core.session.generations
    generations.sets = sets.CachedSets()
    asked = {"allowedRolesAndUsers": ["Anonymous", "user:mara"], "portal_type": "Document"}

    def counted() -> tuple[int, bool, bool]:
        """Return the number of rows, whether the query has numbers, and whether lists were read for it."""
        result_cache().clear()
        transaction.begin()
        with traced(portal) as traffic:
            found = catalog.unrestrictedSearchResults(**asked).actual_result_count
        *_, statement = traffic[0].matching("SELECT count(*)")
        by_number = '"allowed_roles" = ANY(' in statement and "SELECT number" not in statement
        return found, by_number, bool(traffic[0].matching("AS requested (element)"))

    found, *how = counted()
    assert "allowed_roles" in generations.sets.partly_cached
    assert how == [True, True]
    assert counted() == (found, True, False)
    share(portal["tagged3"], "mara", "Reader")
    transaction.commit()
    assert counted() == (found + 1, True, False)


MANY_ROWS = """
INSERT INTO "{0}" (rid, zoid, path, portal_type, review_state, allowed_roles, object_provides, effective_range_since,
    effective_range_until, searchable_text, searchable_text_words)
SELECT 1000000 + n, NULL, '/plone/n' || n, CASE n % 5 WHEN 0 THEN 'Event' ELSE 'Document' END, 'published', allowed_roles,
    object_provides, 0, 2147483647, (SELECT string_agg(concat('w', i * n % 997, ':', i), ' ') FROM generate_series(1, 60) i)::tsvector, 60
FROM generate_series(1, 20000) n, (SELECT * FROM "{0}" WHERE path = '/plone/tagged0') page
"""
COUNTS: list[dict[str, Any]] = [
    {"portal_type": "Event"},
    {"review_state": "published"},
    {"review_state": {"not": "private"}},
    {"object_provides": "plone.app.contenttypes.interfaces.IDocument"},
]


def test_visitors_counts_read_an_index_and_no_row(portal: Any) -> None:
    catalog = portal.portal_catalog
    relation = relation_filled(catalog, MANY_ROWS)
    transaction.begin()
    relation_filled(catalog)  # again: a row invisible to an open snapshot is not all-visible
    view = catalog._core.view()
    for query in COUNTS:
        results = catalog.unrestrictedSearchResults(**query, **ANONYMOUS, effectiveRange=portal.ZopeTime())
        plan = plan_of(view.session, count_statement(view, results.compiled))
        assert f"Index Only Scan using {relation}_seen_by_" in plan, query
        assert len(results) >= 4000
