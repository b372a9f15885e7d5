"""Words with wildcards inside have the hits of ZCatalog, whether words were counted now, long ago, or never."""

from plone.pgcatalog.fulltext import term_statistics
from plone.pgcatalog.fulltext import word_lookup
from plone.pgcatalog.fulltext.tsquery import MAX_PATTERNS
from plone.pgcatalog.observe.plan import explain_rows
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Text
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.registry.interfaces import IRegistry
from Products.CMFCore.indexing import processQueue
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.traffic import traced
from typing import Any
from zope.component import getUtility

import psycopg
import pytest
import transaction


TITLES = ("Water", "Waiter and winter", "Wafer", "100%water", "wasser\\er", "Überwasser", "数据库目录", "w" * 1500)
TEXTS = (
    *("w*ter", "wa?er", "wa??er", "w*t*r", "w**r*", "*w?ter", "w*r?", "xyz*y", "über*er", "ü?er*ser", "数*库", "wa_e?"),
    *("w%t*r", "w*ter OR wafer", "w*ter AND winter", "w*ter -wa?ter", "w*ter AND NOT w?ter", "wa?er wi*r"),
    *('"waiter and" w?nter', f"{'w' * 1490}*w", f"{'w' * 600}*{'w' * 500}"),
)
QUERIES = [{name: text} for text in TEXTS for name in ("SearchableText", "Title")]


def fill(portal: Any) -> None:
    for number, title in enumerate(TITLES):
        create(portal, "Document", f"p{number}", title=title)
    transaction.commit()


CONTENT = fill


def check(portal: Any) -> None:
    """Check that all QUERIES have the answers of ZCatalog."""
    processQueue()
    oracle = make_oracle(portal)
    for query in QUERIES:
        assert answer(portal.portal_catalog, query) == answer(oracle, query), query


def ids(results: Any) -> set[str]:
    return {brain.getId for brain in results}


def words_like(portal: Any, text: str) -> dict[str, tuple[str, ...] | None]:
    """Return pattern -> counted words that match, of *text*; None for a pattern that must be compared with all texts.

    ``tests/unit/test_tsquery.py`` has the SQL of both.
    """
    catalog = portal.portal_catalog._core
    return dict(word_lookup.find_globs(catalog, [("SearchableText", text)]).get("SearchableText", {}))


def change(portal: Any, dsn: str, db: Any) -> None:
    create(portal, "Document", "new", title="Wanter wuter")
    portal["p0"].title = "Wetter"
    portal["p0"].reindexObject()
    portal["p2"].description = "walter"
    portal["p2"].reindexObject(idxs=["SearchableText"])
    portal.manage_delObjects(["p1"])


def change_and_commit(portal: Any, dsn: str, db: Any) -> None:
    change(portal, dsn, db)
    transaction.commit()


def change_and_rebuild(portal: Any, dsn: str, db: Any) -> None:
    """The counted words are still those of the former table, and the new one has rows already."""
    change_and_commit(portal, dsn, db)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plone.pgcatalog.indexing.rebuild.count_words", lambda *args: False)
        rebuild(db)
    sql(dsn, "UPDATE pgcatalog_texts SET counted_from = '999999999', counted_by = pg_current_xact_id()")
    transaction.begin()


def clear(portal: Any, dsn: str, db: Any) -> None:
    portal.portal_catalog.clearFindAndRebuild()
    change_and_commit(portal, dsn, db)


def copy(portal: Any, dsn: str, db: Any) -> None:
    """As in a dump restored by another server: transactions there have other numbers."""
    change_and_commit(portal, dsn, db)
    sql(dsn, "UPDATE pgcatalog_texts SET counted_from = '999999999'")
    transaction.begin()


@pytest.mark.parametrize(
    "since", [None, lambda *args: None, change, change_and_commit, change_and_rebuild, clear, copy]
)
def test_answers_are_zcatalogs(portal: Any, dsn: str, db: Any, since: Any) -> None:
    """... after a change *since* the words were counted; None: they were not."""
    if since is not None:
        counted(dsn, portal.portal_catalog)
        since(portal, dsn, db)
    check(portal)


def test_page_saved_during_a_count_is_found(portal: Any, dsn: str, monkeypatch: Any) -> None:
    count = term_statistics._count_portions

    def interrupted(*args: Any) -> Any:
        found = count(*args)
        create(portal, "Document", f"late-{args[2]}", title=f"wa{args[2]}er")
        transaction.commit()
        return found

    monkeypatch.setattr(term_statistics, "_count_portions", interrupted)
    counted(dsn, portal.portal_catalog)
    assert words_like(portal, "wa*er")["wa*er"]
    check(portal)


def test_patterns_and_no_other_words_are_looked_up_in_one_statement(portal: Any, dsn: str, monkeypatch: Any) -> None:
    text = " OR ".join(f"w{'?' * n}*er" for n in range(MAX_PATTERNS))
    counted(dsn, portal.portal_catalog)
    words_like(portal, "w?ter")
    with traced(portal) as traffic:
        assert None not in words_like(portal, text).values()
    assert traffic[0].round_trips == 1
    with traced(portal) as traffic:
        assert [words_like(portal, text) for text in ("water", "wat*", "wat* OR w*", "*water", "wat**")] == [{}] * 5
    assert traffic[0].messages == []
    # With many matching words, or without a count, patterns are compared with texts.
    monkeypatch.setattr(word_lookup, "MAX_FOUND", 2)
    assert words_like(portal, "w*er") == {"w*er": None}
    check(portal)
    sql(dsn, "DELETE FROM pgcatalog_texts")
    transaction.begin()
    assert list(words_like(portal, text).values()) == [None] * MAX_PATTERNS


def test_only_rows_written_since_the_count_are_read(portal: Any, dsn: str) -> None:
    """The counted words are read by their primary key, texts by their SQL index; only those of later rows are parsed."""
    for number in range(30):
        create(portal, "Document", f"more{number}", title=f"wa{number}er " * 9)
    transaction.commit()
    counted(dsn, portal.portal_catalog)
    change_and_commit(portal, dsn, None)
    catalog = portal.portal_catalog._core
    translator = catalog.translator("SearchableText")
    relation = catalog.view().read_state().relation
    asked = word_lookup._statement(catalog.zoid, relation, translator.column, ["wa*er"])
    with psycopg.connect(dsn) as connection:
        plan = "\n".join(line for (line,) in explain_rows(connection, asked, "ANALYZE"))
    assert "pgcatalog_spellings_pkey" in plan, plan
    assert f"Bitmap Index Scan on {relation}_searchable_text" in plan, plan
    [taken] = [line for line in plan.splitlines() if "Function Scan on unnest lexeme" in line]
    assert "loops=3" in taken or "loops=2" in taken, plan


def test_earlier_search_is_not_answered_from_the_cache_after_a_count(portal: Any, dsn: str) -> None:
    assert words_like(portal, "w*ter") == {"w*ter": None}
    counted(dsn, portal.portal_catalog)
    assert words_like(portal, "w*ter") == {"w*ter": ("waiter", "water", "winter")}
    create(portal, "Document", "new", title="wuter")
    transaction.commit()
    assert "new" in ids(portal.portal_catalog.unrestrictedSearchResults(SearchableText="w*ter"))


def test_query_objects_snippets_and_all_users_have_the_matching_words(portal: Any, dsn: str) -> None:
    portal.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
    create(portal, "Document", "secret", title="waxter")
    publish(create(portal, "Document", "open", title="wazter"))
    transaction.commit()
    counted(dsn, portal.portal_catalog)
    catalog = portal.portal_catalog
    assert ids(catalog.unrestrictedSearchResults(where=Text("w?ter"))) == {"p0", "p3"}
    left = ids(catalog.unrestrictedSearchResults(where=Not(Text("w?ter"))))
    assert {"p0", "p3"}.isdisjoint(left)
    assert {"p1", "p2"} <= left
    found = catalog.unrestrictedSearchResults(SearchableText="w*i*er")
    assert found.highlighter().mark("Waiter water") == "<mark>Waiter</mark> water"
    with acting_as(portal, None):
        assert ids(catalog(SearchableText="wa*ter", getId=["secret", "open"])) == {"open"}
        assert len(catalog(SearchableText="wax*er")) == 0


SETTING = "plone.pgcatalog.parts_of_words"
PARTS = {
    "tree": "Das Baumhaus",
    "house": "Haus am See",
    "boat": "Hausboot auf dem See",
    "percent": "100%haus_x",
    "cat": "Katze",
    "chinese": "数据库目录",
}
HOUSES = {"tree", "house", "boat", "percent", "secret"}


def fill_with_parts(portal: Any) -> None:
    add_users(portal)
    for name, title in PARTS.items():
        publish(create(portal, "Document", name, title=title))
    create(portal, "Document", "secret", title="Geheimhaus")
    getUtility(IRegistry)[SETTING] = True
    transaction.commit()
    counted(portal._p_jar.db().storage._dsn, portal.portal_catalog)


SHARED = fill_with_parts


@pytest.mark.parametrize(
    ("search", "found"),
    [
        *(("haus", HOUSES), ("HAUS", HOUSES), ("haus*", HOUSES), ("haus AND see", {"house", "boat"})),
        *(
            ("haus OR katze", HOUSES | {"cat"}),
            ("baum", {"tree"}),
            ('"haus"', {"house", "percent"}),
            ('"haus am"', {"house"}),
        ),
        *(("see AND NOT haus", {"boat"}), ("au", set()), ("%", set()), ("s_x", {"percent"}), ("数据", {"chinese"})),
        ("nothing", set()),
    ],
)
def test_part_finds_words_that_contain_it(shared_filled: Any, search: str, found: set[str]) -> None:
    results = shared_filled.portal_catalog(SearchableText=search)
    assert ids(results) == found
    assert len(results) == results.actual_result_count


def test_query_objects_facets_and_all_users_find_parts(shared_filled: Any) -> None:
    catalog = shared_filled.portal_catalog
    assert ids(catalog(where=And(Text("haus"), Eq("getId", "tree")))) == {"tree"}
    assert "tree" in ids(catalog(where=Not(Text("haus"))))
    results = catalog(SearchableText="haus", getId=["tree", "house"])
    assert results.facets(["portal_type"])["portal_type"] == {"Document": 2}
    assert "<mark>Baumhaus</mark>" in results.highlighter().mark("Das Baumhaus")
    with acting_as(shared_filled, None):
        assert ids(catalog(SearchableText="haus")) == HOUSES - {"secret"}
        assert ids(catalog(SearchableText="geheim")) == set()


def test_any_text_is_a_legal_search_for_parts_in_a_site_that_enables_it(shared_filled: Any) -> None:
    catalog = shared_filled.portal_catalog
    getUtility(IRegistry)[SETTING] = False
    assert ids(catalog(SearchableText="haus")) == {"house", "percent"}
    transaction.abort()
    assert "tree" in ids(catalog(SearchableText="haus"))
    for text in ("\x00haus", "\ud800", "x" * 10_000, "haus " * 1000, "((", "'", "\\\\", "a\\%b"):
        assert ids(catalog(SearchableText=text)) <= {*PARTS, "secret"}, text


def test_parts_are_found_as_soon_as_words_are_counted(portal: Any, catalog: Any, dsn: str) -> None:
    """An earlier search is not answered from the cache."""
    getUtility(IRegistry)[SETTING] = True
    create(portal, "Document", "tree", title="Baumhaus")
    transaction.commit()
    inside = portal.portal_catalog._catalog
    assert ids(catalog(SearchableText="haus")) == ids(inside.searchResults(SearchableText="haus")) == set()
    assert ids(catalog(where=Text("haus"))) == set()
    counted(dsn, catalog)
    assert ids(catalog(SearchableText="haus")) == ids(inside.searchResults(SearchableText="haus")) == {"tree"}
    assert ids(catalog(where=Text("haus"))) == {"tree"}


def test_parts_take_one_statement_more_and_none_without_words(shared_filled: Any) -> None:
    catalog = shared_filled.portal_catalog
    for search, statements in (({"SearchableText": "haus"}, 2), ({"portal_type": "Document"}, 1)):
        transaction.begin()
        result_cache().clear(HITS)
        len(catalog(getId="tree"))
        with traced(shared_filled) as traffic:
            assert ids(catalog(**search))
        assert traffic[0].round_trips == statements, traffic[0].statements
