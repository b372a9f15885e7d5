"""A search omits the test for a value in a column in which every row has one; and includes it as soon as a row has none."""

from collections.abc import Callable
from collections.abc import Collection
from plone.pgcatalog.results.cache import result_cache
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.pages import second_connection
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from typing import Any

import pytest
import transaction


CONTENT = populate
ROOT = {"path": "/plone"}
QUERIES: list[dict[str, Any]] = [
    ROOT,
    {"path": {"query": "/"}},
    {"path": {"query": ["/plone", "/plone/my_folder"], "operator": "and"}},
    {"path": {"query": ["/plone", "/elsewhere"]}},
    {"path": "/plone", "SearchableText": "page"},
    {"portal_type": ["Document", "Folder"], "sort_on": "modified"},
    {"portal_type": ["Document", "Folder"], "sort_on": "path"},
    {"portal_type": ["Document", "Folder"], "sort_on": ["sortable_title", "getId"], "sort_limit": 5},
    {"path": "/plone", "sort_on": "getId"},
    {"effective": {"query": "2001/01/01", "range": "whatever"}},
]


def known(dsn: str) -> set[str]:
    """Return the columns marked complete in the catalog; check that they are."""
    [(names,)] = sql(dsn, "SELECT complete FROM pgcatalog_state")
    for name in names:
        assert sql(dsn, f'SELECT path FROM {{}} WHERE "{name}" IS NULL') == [], name
    return set(names)


def assumed(site: Any) -> Collection[str]:
    """Return the columns that a search assumes to be complete; ``tests/unit/test_bind.py`` tests the effect."""
    return site.portal_catalog._core.view().snapshot().stored.complete  # type: ignore[no-any-return]


def answers(catalog: Any) -> dict[str, list[str]]:
    """Return the sorted paths found by each query: ties come in another order from ZCatalog."""
    result_cache().clear()
    found = {str(query): answer(catalog, query) for query in QUERIES}
    # ZCatalog cannot sort by a path index that has been cleared.
    return {query: sorted(answered[0]) for query, answered in found.items() if answered is not AttributeError}


def new_row_of_few_columns(site: Any) -> None:
    site.portal_catalog.uncatalog_object("/plone/my_folder/page")
    site.portal_catalog.catalog_object(site.my_folder.page, idxs=["getId", "portal_type"])


def foreign_path_of_few_columns(site: Any) -> None:
    site.portal_catalog.catalog_object(site.my_folder.page, "/elsewhere/page", idxs=["getId", "portal_type"])


def cleared_index(site: Any) -> None:
    for name in ("path", "modified"):
        site.portal_catalog.clearIndex(name)
    site.portal_catalog.catalog_object(site.my_folder.page)


def unindexed_row(site: Any) -> None:
    for name in ("path", "modified"):
        site.portal_catalog.Indexes[name].unindex_object(site.portal_catalog.getrid("/plone/my_folder/page"))


def index_of_another_attribute(site: Any) -> None:
    """Replace an index by one of the same name and another attribute, for existing rows."""
    catalog = site.portal_catalog
    catalog.delIndex("modified")
    catalog.addIndex("modified", FieldIndex("modified", extra={"indexed_attrs": "getId"}))
    catalog.reindexObject(site.my_folder.page)


CHANGES = [new_row_of_few_columns, foreign_path_of_few_columns, cleared_index, unindexed_row]


@pytest.mark.parametrize("change", [*CHANGES, index_of_another_attribute])
def test_rows_without_a_value_are_left_out_at_once(filled: Any, dsn: str, change: Callable[[Any], None]) -> None:
    """Before the commit, after it, and not at all after an abort."""
    catalog = filled.portal_catalog
    before = answers(catalog)
    complete = known(dsn)
    change(filled)
    during = answers(catalog)
    # No query finds the additional path without a path value.
    assert (during == before) is (change is foreign_path_of_few_columns)
    transaction.abort()
    transaction.begin()
    assert (answers(catalog), known(dsn)) == (before, complete)
    change(filled)
    transaction.commit()
    transaction.begin()
    assert answers(catalog) == during
    assert known(dsn) < complete


@pytest.mark.parametrize("change", CHANGES)
def test_rows_without_a_value_are_left_out_as_by_zcatalog(filled: Any, change: Callable[[Any], None]) -> None:
    oracle = make_oracle(filled)

    class Site:
        my_folder = filled.my_folder
        portal_catalog = oracle

    for site in (filled, Site):
        change(site)
    transaction.commit()
    transaction.begin()
    ours, theirs = answers(filled.portal_catalog), answers(oracle)
    assert len(ours) == len(QUERIES)
    assert {query: ours[query] for query in theirs} == theirs


def test_another_connection_leaves_them_out_from_its_next_snapshot_on(filled: Any, db: Any) -> None:
    catalog = filled.portal_catalog
    before = answers(catalog)
    with second_connection(db) as (manager, other):
        assert answers(other.portal_catalog) == before
        new_row_of_few_columns(filled)
        transaction.commit()
        assert answers(other.portal_catalog) == before
        manager.begin()
        # The first statement of the snapshot is built before the new state is read.
        assert sorted(answer(other.portal_catalog, ROOT)[0]) == sorted({*before[str(ROOT)]} - {"/plone/my_folder/page"})


def test_rolled_back_savepoint_restores_completeness(filled: Any, dsn: str) -> None:
    before, complete = answers(filled.portal_catalog), known(dsn)
    savepoint = transaction.savepoint()
    new_row_of_few_columns(filled)
    assert answers(filled.portal_catalog) != before
    savepoint.rollback()
    assert answers(filled.portal_catalog) == before
    create(filled, "Document", "new")
    transaction.commit()
    assert known(dsn) == complete


@pytest.mark.parametrize("healed", ["clear", "rebuild"])
def test_recreated_table_is_complete_again(filled: Any, db: Any, dsn: str, healed: str) -> None:
    before, complete = answers(filled.portal_catalog), known(dsn)
    new_row_of_few_columns(filled)
    transaction.commit()
    filled.my_folder.page.reindexObject()
    transaction.commit()
    transaction.begin()
    assert answers(filled.portal_catalog) == before
    assert known(dsn) < complete
    assert "path_value" not in assumed(filled)
    if healed == "rebuild":
        transaction.abort()
        rebuild(db)
    else:
        filled.portal_catalog.clearFindAndRebuild()
        transaction.commit()
    transaction.begin()
    assert answers(filled.portal_catalog) == before
    assert known(dsn) >= complete - {"effective"}
    assert "path_value" in assumed(filled)


def test_columns_of_every_row_are_complete_and_a_new_column_is_not(filled: Any, dsn: str) -> None:
    before, complete = answers(filled.portal_catalog), known(dsn)
    assert {"path_value", "parent_path", "depth", "modified", "created", "get_id"} <= complete
    assert not {"start", "subject", "expires_first"} & complete
    filled.portal_catalog.addIndex("another", FieldIndex("another", extra={"indexed_attrs": "getId"}))
    transaction.commit()
    transaction.begin()
    assert answers(filled.portal_catalog) == before
    assert known(dsn) == complete
    assert "another" not in assumed(filled)
