"""Compiled queries are cached, and dropped when any of their dependencies changes."""

from Acquisition import aq_base
from Acquisition import aq_parent
from DateTime import DateTime
from plone.pgcatalog.core.configuration import Configuration
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from unittest.mock import patch
from zope.component.hooks import setSite

import plone.pgcatalog.query.compiler as compiler
import transaction


def fill(portal: Any) -> None:
    create(portal, "Document", "page", title="Green apples", subject=("apple", "pear"))


CONTENT = fill


def compilations(portal: Any, *queries: dict[str, Any]) -> int:
    """Return how often a query is compiled during searches for *queries*."""
    with patch.object(compiler, "compile_query", wraps=compiler.compile_query) as compiled:
        for query in queries:
            len(portal.portal_catalog.unrestrictedSearchResults(**query))
    return int(compiled.call_count)


QUERIES: list[dict[str, Any]] = [
    {"portal_type": "Document"},
    {"portal_type": ["Document", "Folder"], "sort_on": "modified", "sort_order": "reverse", "sort_limit": 5},
    {"Subject": {"query": ["apple", "pear"], "operator": "and"}},
    {"created": {"query": (DateTime("2020/01/01 UTC"), DateTime("2040/01/01 UTC")), "range": "min:max"}},
    {"path": {"query": "/plone", "depth": 1}, "sort_on": "getObjPositionInParent"},
    {"SearchableText": "green AND apples"},
    {"effectiveRange": DateTime("2026/01/01 10:00:05 UTC")},
]


def test_repeated_query_is_compiled_once(portal: Any) -> None:
    for query in QUERIES:
        assert compilations(portal, query, dict(query), {**query}) == 1, query
    transaction.begin()
    assert compilations(portal, *QUERIES) == 0


DIFFERENT: list[dict[str, Any]] = [
    *({"portal_type": "Document"}, {"portal_type": "Folder"}, {"Type": "Document"}),
    *({"is_default_page": 1}, {"is_default_page": True}),
    *({"portal_type": "Document", "b_size": size} for size in (5, 6)),
    *({"portal_type": "Document", "sort_on": "id", "sort_order": order} for order in ("", "reverse")),
    *({"created": DateTime(f"2020/01/01 {zone}")} for zone in ("UTC", "GMT+1")),
    *({"effectiveRange": DateTime(f"2026/01/01 {minute} UTC")} for minute in ("10:00:05", "10:01:05")),
]


def test_different_queries_are_compiled(portal: Any) -> None:
    assert compilations(portal, *DIFFERENT, *DIFFERENT) == len(DIFFERENT)


class Odd(str):
    """A value whose meaning may change."""

    __slots__ = ()


def test_opaque_value_is_compiled_each_time(portal: Any) -> None:
    assert compilations(portal, *[{"portal_type": Odd("Document")}] * 3) == 3


def test_changed_settings_are_applied(portal: Any) -> None:
    catalog = portal.portal_catalog
    before = {"created": DateTime("2020/01/01")}
    assert compilations(portal, before, before) == 1
    index = catalog._catalog.indexes["created"]
    catalog._indexes["created"].index_naive_time_as_local = not index.index_naive_time_as_local
    # Unsaved: not cached.
    assert compilations(portal, before, before) == 2
    transaction.commit()
    assert compilations(portal, before, before) == 1
    catalog._settings = {**getattr(catalog, "_settings", {}), "weight_title": 9.0}
    assert compilations(portal, before) == 1
    transaction.commit()
    assert compilations(portal, before, before) == 1


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


def test_changed_lexicon_is_applied(portal: Any) -> None:
    catalog = portal.portal_catalog
    lexicon = catalog[catalog._indexes["SearchableText"].lexicon_id]
    text = {"SearchableText": "apples"}
    assert compilations(portal, text, text) == 1
    lexicon._pipeline = lexicon._pipeline[:-1]
    transaction.commit()
    assert compilations(portal, text, text) == 1


def test_a_saved_state_has_one_configuration_also_while_other_objects_change(portal: Any) -> None:
    catalog = portal.portal_catalog
    for change in (lambda: None, lambda: catalog.addColumn("aColumn")):
        change()
        transaction.commit()
        saved = Configuration.of(catalog)
        create(portal, "Document", f"another{len(saved.columns)}")
        for end in (lambda: None, transaction.commit, transaction.begin):
            end()
            assert Configuration.of(catalog) is saved


def test_changed_settings_are_another_configuration_until_undone(portal: Any) -> None:
    catalog = portal.portal_catalog
    before = Configuration.of(catalog)
    catalog.addColumn("aColumn")
    changed = Configuration.of(catalog)
    assert changed.columns == (*before.columns, "aColumn")
    assert Configuration.of(catalog) is changed
    transaction.abort()
    assert Configuration.of(catalog).columns == before.columns


def test_connections_share_no_object_and_apply_changes_of_each_other(db: Any, portal: Any) -> None:
    mine = Configuration.of(portal.portal_catalog)
    manager = transaction.TransactionManager()
    with sites.application(db, manager) as other:
        theirs = Configuration.of(other.plone.portal_catalog)
        assert theirs.state == mine.state
        for configuration, site in ((mine, portal), (theirs, other.plone)):
            tool = aq_base(site.portal_catalog)
            assert all(aq_parent(t.index) is tool for t in configuration.translators.values())
            assert vars(configuration.translators["Title"].index)["_v_lexicon"]._p_jar is tool._p_jar
        other.plone.portal_catalog._indexes["created"].precision = 60
        manager.commit()
    setSite(portal)
    transaction.begin()
    after = Configuration.of(portal.portal_catalog)
    assert after is not mine
    assert after.translators["created"].index.precision == 60


def test_an_index_behind_a_savepoint_has_its_column_with_the_commit(portal: Any) -> None:
    catalog = portal.portal_catalog
    catalog.addIndex("an_index", FieldIndex("an_index", extra={"indexed_attrs": "Title"}))
    transaction.savepoint()
    transaction.commit()
    catalog.reindexIndex("an_index", None)
    transaction.commit()
    assert [b.getId for b in catalog.unrestrictedSearchResults(an_index="Green apples")] == ["page"]
