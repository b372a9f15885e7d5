"""Compiled queries are cached, and dropped when any of their dependencies changes."""

from Acquisition import aq_base
from Acquisition import aq_parent
from DateTime import DateTime
from plone.pgcatalog.core.configuration import Configuration
from plone.pgcatalog.query.compiler import MOST_COMPILED
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from unittest.mock import patch
from zope.component.hooks import setSite

import plone.pgcatalog.query.compiler as compiler
import pytest
import transaction


class Compiler:
    """Counts how often a query is compiled."""

    def __init__(self) -> None:
        self.count = 0
        self._compile = compiler.compile_query

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return self._compile(*args)


def fill(portal: Any) -> None:
    create(portal, "Document", "page", title="Green apples", subject=("apple", "pear"))


CONTENT = fill


@pytest.fixture
def compiled(portal: Any) -> Any:
    """Return a function that counts the compilations during some searches."""

    def count(*queries: dict[str, Any]) -> int:
        counter = Compiler()
        with patch.object(compiler, "compile_query", counter):
            for query in queries:
                len(portal.portal_catalog.unrestrictedSearchResults(**query))
        return counter.count

    return count


QUERIES: list[dict[str, Any]] = [
    {"portal_type": "Document"},
    {"portal_type": ["Document", "Folder"], "sort_on": "modified", "sort_order": "reverse", "sort_limit": 5},
    {"Subject": {"query": ["apple", "pear"], "operator": "and"}},
    {"created": {"query": (DateTime("2020/01/01 UTC"), DateTime("2040/01/01 UTC")), "range": "min:max"}},
    {"path": {"query": "/plone", "depth": 1}, "sort_on": "getObjPositionInParent"},
    {"SearchableText": "green AND apples"},
    {"effectiveRange": DateTime("2026/01/01 10:00:05 UTC")},
]


@pytest.mark.parametrize("query", QUERIES, ids=[next(iter(query)) for query in QUERIES])
def test_repeated_query_is_compiled_once(compiled: Any, query: dict[str, Any]) -> None:
    assert compiled(query, dict(query), {**query}) == 1
    transaction.begin()
    assert compiled(query) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"portal_type": "Document"}, {"portal_type": "Folder"}),
        ({"portal_type": "Document"}, {"Type": "Document"}),
        ({"is_default_page": 1}, {"is_default_page": True}),
        ({"portal_type": "Document", "b_size": 5}, {"portal_type": "Document", "b_size": 6}),
        (
            {"portal_type": "Document", "sort_on": "id"},
            {"portal_type": "Document", "sort_on": "id", "sort_order": "reverse"},
        ),
        ({"created": DateTime("2020/01/01 UTC")}, {"created": DateTime("2020/01/01 GMT+1")}),
        (
            {"effectiveRange": DateTime("2026/01/01 10:00:05 UTC")},
            {"effectiveRange": DateTime("2026/01/01 10:01:05 UTC")},
        ),
    ],
)
def test_different_queries_are_compiled(compiled: Any, one: dict[str, Any], other: dict[str, Any]) -> None:
    assert compiled(one, other, one) == 2


class Odd(str):
    """A value whose meaning may change."""

    __slots__ = ()


def test_opaque_value_is_compiled_each_time(compiled: Any) -> None:
    assert compiled(*[{"portal_type": Odd("Document")}] * 3) == 3


def test_changed_settings_are_applied(portal: Any, compiled: Any) -> None:
    catalog = portal.portal_catalog
    before = {"created": DateTime("2020/01/01")}
    assert compiled(before, before) == 1
    index = catalog._catalog.indexes["created"]
    catalog._indexes["created"].index_naive_time_as_local = not index.index_naive_time_as_local
    # Unsaved: not cached.
    assert compiled(before, before) == 2
    transaction.commit()
    assert compiled(before, before) == 1
    catalog._settings = {**getattr(catalog, "_settings", {}), "weight_title": 9.0}
    assert compiled(before) == 1
    transaction.commit()
    assert compiled(before, before) == 1


def test_settings_stored_by_a_savepoint_are_applied(portal: Any) -> None:
    """They differ from the last commit's, whose serial the index still has."""
    catalog = portal.portal_catalog
    query = {"created": DateTime("2020/01/01 12:34 GMT+3")}

    def asked() -> Any:
        return catalog.unrestrictedSearchResults(**query).condition

    before = asked()
    assert asked() == before
    catalog._indexes["created"].precision = 60
    savepoint = transaction.savepoint()
    changed = asked()
    catalog._indexes["created"].precision = 0
    transaction.savepoint()
    assert asked() == before
    savepoint.rollback()
    assert asked() == changed
    transaction.abort()
    assert asked() == before


def test_changed_lexicon_is_applied(portal: Any, compiled: Any) -> None:
    catalog = portal.portal_catalog
    lexicon = catalog[catalog._indexes["SearchableText"].lexicon_id]
    text = {"SearchableText": "apples"}
    assert compiled(text, text) == 1
    lexicon._pipeline = lexicon._pipeline[:-1]
    transaction.commit()
    assert compiled(text, text) == 1


def test_an_error_is_raised_each_time(portal: Any, compiled: Any) -> None:
    for _ in range(3):
        with pytest.raises(ValueError):
            compiled({"Subject": {"query": "apple", "nonsense": 1}})


def test_cache_of_compiled_queries_is_bounded(compiled: Any) -> None:
    assert compiled(*({"getId": f"id{number}"} for number in range(MOST_COMPILED + 1))) == MOST_COMPILED + 1
    assert compiled({"getId": f"id{MOST_COMPILED}"}) == 0
    assert compiled({"getId": "id0"}) == 1


def test_a_saved_state_has_one_configuration(portal: Any) -> None:
    catalog = portal.portal_catalog
    before = Configuration.of(catalog)
    assert before.is_saved
    assert Configuration.of(catalog) is before
    transaction.begin()
    assert Configuration.of(catalog) is before
    create(portal, "Document", "another")
    assert Configuration.of(catalog) is before
    transaction.commit()
    assert Configuration.of(catalog) is before


def test_changed_settings_are_another_configuration_until_undone(portal: Any) -> None:
    catalog = portal.portal_catalog
    before = Configuration.of(catalog)
    catalog.addColumn("aColumn")
    changed = Configuration.of(catalog)
    assert changed.columns == (*before.columns, "aColumn")
    assert not changed.is_saved
    assert Configuration.of(catalog) is changed
    assert before.columns == tuple(name for name in changed.columns if name != "aColumn")
    transaction.abort()
    assert Configuration.of(catalog).columns == before.columns
    assert Configuration.of(catalog).is_saved


def test_committed_settings_are_saved_also_while_other_objects_change(portal: Any) -> None:
    catalog = portal.portal_catalog
    catalog.addColumn("aColumn")
    transaction.commit()
    saved = Configuration.of(catalog)
    create(portal, "Document", "another")
    assert saved.is_saved
    assert Configuration.of(catalog) is saved


def test_change_of_another_connection_is_applied(db: Any, portal: Any) -> None:
    before = Configuration.of(portal.portal_catalog)
    manager = transaction.TransactionManager()
    with sites.application(db, manager) as other:
        other.plone.portal_catalog._indexes["created"].precision = 60
        manager.commit()
    setSite(portal)
    transaction.begin()
    after = Configuration.of(portal.portal_catalog)
    assert after is not before
    assert after.translators["created"].index.precision == 60


def test_connections_share_no_object(db: Any, portal: Any) -> None:
    mine = Configuration.of(portal.portal_catalog)
    with sites.application(db, transaction.TransactionManager()) as other:
        theirs = Configuration.of(other.plone.portal_catalog)
        assert theirs.state == mine.state
        for configuration, site in ((mine, portal), (theirs, other.plone)):
            tool = aq_base(site.portal_catalog)
            assert all(aq_parent(t.index) is tool for t in configuration.translators.values())
            assert vars(configuration.translators["Title"].index)["_v_lexicon"]._p_jar is tool._p_jar


def test_an_index_behind_a_savepoint_has_its_column_with_the_commit(portal: Any) -> None:
    catalog = portal.portal_catalog
    catalog.addIndex("an_index", FieldIndex("an_index", extra={"indexed_attrs": "Title"}))
    transaction.savepoint()
    transaction.commit()
    catalog.reindexIndex("an_index", None)
    transaction.commit()
    assert [b.getId for b in catalog.unrestrictedSearchResults(an_index="Green apples")] == ["page"]
