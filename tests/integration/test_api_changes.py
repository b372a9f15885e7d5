"""Changing the catalog through its API: as in ZCatalog, within the transaction."""

from Acquisition import aq_base
from BTrees.IIBTree import IISet
from collections.abc import Callable
from collections.abc import Iterator
from operator import attrgetter
from plone.pgcatalog.core.catalog import QUERY_WORDS
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.oids import OID
from plone.pgcatalog.query.oids import ZOID
from Products.CMFCore.indexing import processQueue
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.ZCatalog.Catalog import CatalogError
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.oracle import make_oracle
from typing import Any

import Missing
import pytest
import transaction


CONTENT = SHARED = populate


def before_and_after_commit() -> Iterator[None]:
    yield
    transaction.commit()
    yield


def error_of(call: Callable[[], Any]) -> tuple[type, str] | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001  whatever it is, both must raise it
        return type(error), str(error)
    return None


REFUSED: list[tuple[str, tuple[Any, ...]]] = [
    *(("addIndex", (name, "FieldIndex")) for name in ("getId", "_private", "")),
    ("addIndex", ("new", "NobodysIndex")),
    *(("addColumn", (name,)) for name in ("Title", " Title ", "_private", "")),
    *((name, ("nobody",)) for name in ("delIndex", "clearIndex", "delColumn", "manage_clearIndex")),
    ("reindexIndex", ("nobody", None)),
    ("manage_addIndex", ("getId", "FieldIndex")),
    ("manage_addColumn", ("Title",)),
    *((name, (["nobody"],)) for name in ("manage_delIndex", "manage_delColumn")),
    *((name, ()) for name in ("manage_delIndex", "manage_clearIndex", "manage_reindexIndex")),
    *(("catalog_object", (object(), *uid)) for uid in ((), (17,))),
]


def test_refused_changes_are_those_of_zcatalog(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "page")
    oracle = make_oracle(portal)
    for name, arguments in REFUSED:
        ours, theirs = (error_of(lambda: getattr(c, name)(*arguments)) for c in (catalog, oracle))  # noqa: B023
        assert ours is not None
        assert (name, arguments, ours) == (name, arguments, theirs)
    assert error_of(lambda: catalog._catalog.addIndex("new", "FieldIndex")) is not None


IDS: list[Any] = ["getId", ("getId", "Subject"), ["getId", "Subject"]]


@pytest.mark.parametrize("ids", IDS, ids=repr)
def test_indexes_are_cleared_and_reindexed(catalog: Any, ids: Any) -> None:
    catalog.manage_clearIndex(ids)
    transaction.abort()
    assert len(catalog(getId="page")) == 1
    catalog.manage_clearIndex(ids)
    for _ in before_and_after_commit():
        assert len(catalog(getId="page")) == 0
        assert catalog.Indexes["getId"].numObjects() == 0
        assert list(catalog.Indexes["getId"].uniqueValues()) == []
        assert (len(catalog(Subject="Rot")) == 0) is (ids != "getId")
        assert len(catalog(portal_type="Folder")) == 5
    catalog.manage_reindexIndex(ids)
    for _ in before_and_after_commit():
        assert len(catalog(getId="page")) == 1
        assert len(catalog(Subject="Rot")) == 2


@pytest.mark.parametrize(
    ("name", "ids"), [*(("manage_delIndex", ids) for ids in IDS), ("Indexes.manage_delObjects", ["getId"])], ids=repr
)
def test_indexes_are_deleted(catalog: Any, name: str, ids: Any) -> None:
    attrgetter(name)(catalog)(ids)
    for _ in before_and_after_commit():
        assert "getId" not in catalog.indexes()
        assert ("Subject" in catalog.indexes()) is ("Subject" not in ids)
        assert len(catalog.unrestrictedSearchResults(getId="page")) == 0
        assert len(catalog.unrestrictedSearchResults(getId="page", portal_type="Document")) == 6
    with pytest.raises(KeyError):
        del catalog._catalog.indexes["nobody"]


@pytest.mark.parametrize("before", [True, False])
def test_deleted_index_can_be_added_with_another_type(catalog: Any, before: bool) -> None:
    catalog.delIndex("Subject")
    if before:
        transaction.commit()
    catalog.addIndex("Subject", "FieldIndex")
    catalog.manage_reindexIndex(["Subject"])
    for _ in before_and_after_commit():
        assert [b.getId for b in catalog(Subject=("Rot", "x y"))] == []
        assert ("Rot", "x y") in catalog.uniqueValuesFor("Subject")
    catalog.delIndex("Subject")
    catalog.addIndex("Subject", "KeywordIndex")
    transaction.commit()
    assert len(catalog(Subject="Rot")) == 0
    catalog.reindexIndex("Subject", None)
    assert len(catalog(Subject="Rot")) == 2


def test_an_index_may_have_any_name(catalog: Any) -> None:
    names = ["depth", "parent_path", "rid", "zoid", "path_value", "effective_range_since", "odd-name"]
    for name in names:
        catalog.addIndex(name, FieldIndex(name, extra={"indexed_attrs": "getId"}))
        catalog.reindexIndex(name, None)
    for _ in before_and_after_commit():
        assert [[b.getId for b in catalog(**{name: "page"})] for name in names] == [["page"]] * len(names)
        assert len(catalog(path={"query": "/plone/my_folder", "depth": 1})) == 9


def test_an_index_of_one_name_is_stripped(catalog: Any) -> None:
    catalog.addIndex(" mine ", KeywordIndex("mine", extra={"indexed_attrs": "Subject"}))
    assert "mine" in catalog.indexes()
    refused = {" mine": "already exists", " _mine": "beginning with", "  ": "empty", " b_size": "b_size"}
    for name, message in refused.items():
        with pytest.raises(CatalogError, match=message):
            catalog.addIndex(name, KeywordIndex("mine", extra={"indexed_attrs": "Subject"}))


class Asked(dict[str, Any]):
    """A query dict that records the keys looked up in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)


def test_no_index_has_the_name_of_a_query_keyword(portal: Any, catalog: Any) -> None:
    """Each key that ZCatalog, Plone and our compiler look up in a query by name is an index, or refused as the name of one.

    Except "oids": an index of that name disables the lookup.
    """
    asked = Asked()
    CatalogTool.searchResults(catalog, asked)
    oracle = make_oracle(portal)._catalog
    for word in ("on", "order", "limit"):
        oracle._get_sort_attr(word, asked)
    oracle._sort_limit_arguments(asked, None, False, None)
    compile_query(asked, catalog._core.context, [])
    asked["b_size"] = 1
    compile_query(asked, catalog._core.context, [])
    assert asked.names - set(catalog.indexes()) == QUERY_WORDS | {OID, ZOID}


@pytest.mark.parametrize("name", [*sorted(QUERY_WORDS), "effectiveRange_mine", "allowedRolesAndUsers_not"])
def test_an_index_with_a_word_of_queries_as_its_name_is_refused(shared_filled: Any, name: str) -> None:
    catalog = shared_filled.portal_catalog
    before = sorted(catalog.indexes())
    with pytest.raises(CatalogError, match=f"An index cannot have the name '{name}': "):
        catalog.addIndex(name, FieldIndex(name, extra={"indexed_attrs": "getId"}))
    assert sorted(catalog.indexes()) == before


def test_columns_come_and_go(catalog: Any) -> None:
    catalog.addColumn("getLayout")
    assert "getLayout" in catalog.schema()
    assert catalog(getId="page")[0].getLayout is Missing.Value
    catalog.catalog_object(catalog.resolve_path("/plone/my_folder/page"))
    assert catalog(getId="page")[0].getLayout == "document_view"
    catalog.manage_delColumn("getLayout")
    assert not hasattr(aq_base(catalog(getId="page")[0]), "getLayout")
    catalog.manage_delColumn(["Title", "Creator"])
    transaction.commit()
    assert not {"Title", "Creator", "getLayout"} & set(catalog.schema())
    assert catalog(getId="page")[0].Description == "A quick brown fox"


@pytest.mark.parametrize("clear", [0, 1])
def test_the_catalog_is_refreshed(catalog: Any, portal: Any, clear: int) -> None:
    before = sorted(catalog._catalog.uids)
    portal.my_folder.page.title = "Changed"
    catalog.refreshCatalog(clear=clear)
    for _ in before_and_after_commit():
        assert sorted(catalog._catalog.uids) == before
        assert [b.getPath() for b in catalog(Title="changed")] == ["/plone/my_folder/page"]


def test_clearFindAndRebuild_stays_in_the_transaction(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(catalog._catalog.uids)
    catalog.uncatalog_object("/plone/my_folder/page")
    catalog.catalog_object(catalog.aq_parent.portal_workflow, "/plone/portal_workflow")
    transaction.commit()
    ended: list[str] = []
    monkeypatch.setattr(transaction.Transaction, "commit", lambda self: ended.append("commit"))
    monkeypatch.setattr(transaction.Transaction, "abort", lambda self: ended.append("abort"))
    catalog.clearFindAndRebuild()
    processQueue()
    assert ended == []
    assert sorted(catalog._catalog.uids) == before
    monkeypatch.undo()
    transaction.abort()
    assert "/plone/portal_workflow" in catalog._catalog.uids
    assert "/plone/my_folder/page" not in catalog._catalog.uids


def test_metadata_can_be_updated_alone(catalog: Any, portal: Any) -> None:
    page = portal.my_folder.page
    page.title = "Changed"
    rid = catalog.getrid("/plone/my_folder/page")
    assert catalog._catalog.updateMetadata(page, "/plone/my_folder/page", rid) == rid
    for _ in before_and_after_commit():
        assert catalog(getId="page")[0].Title == "Changed"
        assert len(catalog(Title="changed")) == 0


def test_rids_are_sorted_by_position(catalog: Any, portal: Any) -> None:
    def ids(catalog: Any) -> list[str]:
        inside = catalog._catalog
        query = {"path": {"query": "/plone/my_folder", "depth": 1}}
        rids = IISet(b.getRID() for b in catalog.unrestrictedSearchResults(query))
        return [b.getId for b in inside.sortResults(rids, inside.getIndex("getObjPositionInParent"))]

    assert ids(catalog) == ids(make_oracle(portal)) == portal.my_folder.objectIds()


def test_slow_searches_are_reported(catalog: Any, portal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCATALOG_SLOW_QUERY_MS")
    oracle = make_oracle(portal)
    for tool in (catalog, oracle):
        tool.manage_resetCatalogReport()
        tool.manage_editCatalogReport(long_query_time="5")
        len(tool.unrestrictedSearchResults(getId="page"))
        assert tool.getCatalogReport() == []
        tool.manage_editCatalogReport(long_query_time=0.0)
        for name in ("page", "news"):
            # Our catalog searches only when the result is read.
            len(tool.unrestrictedSearchResults(getId=name, path="/plone", sort_on="getId"))
        reports = tool.getCatalogReport()
        # ZCatalog's key also has the values of indexes with few values.
        keys = [{key if isinstance(key, str) else key[0] for key in report["query"]} for report in reports]
        assert keys == [{"getId", "path", "sort_on"}] * len(keys)
        assert sum(report["counter"] for report in reports) == 2
        assert all(report["duration"] > 0 and report["last"]["duration"] > 0 for report in reports)
        tool.manage_resetCatalogReport()
        assert tool.getCatalogReport() == []
