"""Indexes of add-ons: every type that can be added, next to the real one; unknown types; new translators."""

from collections.abc import Iterator
from DateTime import DateTime
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.indexes import base
from plone.pgcatalog.indexes.unindex import MISSING
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.interfaces import IPGIndexTranslator
from plone.pgcatalog.setuphandlers import UnsupportedIndexes
from plone.pgcatalog.setuphandlers import UnsupportedNames
from Products.DateRangeInRangeIndex.index import DateRangeInRangeIndex
from Products.PluginIndexes.CompositeIndex.CompositeIndex import CompositeIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from Products.PluginIndexes.TopicIndex.TopicIndex import TopicIndex
from Products.ZCatalog.Catalog import CatalogError
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.custom import LengthIndex
from tests.integration.custom import make_index
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from types import SimpleNamespace
from typing import Any
from zope.component import getGlobalSiteManager

import pytest
import transaction


def topics(catalog: Any) -> TopicIndex:
    index = make_index(TopicIndex, catalog)
    index.addFilteredSet("pages", "PythonFilteredSet", "o.portal_type == 'Document'")
    index.addFilteredSet("long", "PythonFilteredSet", "len(o.Title()) > 8")
    index.addFilteredSet("nothing", "PythonFilteredSet", "False")
    return index


def add_all(catalog: Any) -> None:
    """Add one index of each kind, as an add-on's profile does."""
    fields = SimpleNamespace(since_field="created", until_field="expires", precision_value=60)
    for index in (
        FieldIndex("aFieldIndex", extra={"indexed_attrs": "Title"}),
        KeywordIndex("aKeywordIndex", extra={"indexed_attrs": "Subject"}),
        FieldIndex("several", extra={"indexed_attrs": "getId, Title"}),
        DateRangeIndex("aDateRangeIndex", extra=fields),
        PathIndex("getPhysicalPath"),
        PathIndex("aPathIndex"),
        make_index(CompositeIndex, catalog),
        make_index(DateRangeInRangeIndex, catalog),
        topics(catalog),
    ):
        catalog.addIndex(index.getId(), index)


QUERIES: list[dict[str, Any]] = [
    {"aFieldIndex": "Page one"},
    {"aFieldIndex": {"query": "M", "range": "min"}, "sort_on": "aFieldIndex"},
    {"aKeywordIndex": ["Rot", "rot"]},
    {"aKeywordIndex": {"query": ["Rot", "x y"], "operator": "and"}},
    {"several": "Page one"},
    {"aDateRangeIndex": DateTime("2001/01/01 12:00 UTC")},
    {"aDateRangeIndex": DateTime("2050/01/01 UTC")},
    {"effectiveRange": DateTime("2050/01/01 UTC"), "aDateRangeIndex": DateTime("2050/01/01 UTC")},
    {"aPathIndex": "/plone/my_folder"},
    {"aPathIndex": {"query": "a/b", "level": -1}},
    {"aPathIndex": {"query": "my_folder", "level": 1}, "sort_on": "aPathIndex"},
    {"aTopicIndex": "pages"},
    {"aTopicIndex": ["pages", "long"]},
    {"aTopicIndex": {"query": ["pages", "long"], "operator": "and"}},
    {"aTopicIndex": {"query": ["pages", "nobody"], "operator": "and"}},
    *({"aTopicIndex": ["nothing", "nobody"]}, {"aTopicIndex": "nobody"}, {"aTopicIndex": []}),
    *({"aTopicIndex": {"query": "pages", "not": "long"}}, {"aTopicIndex": "pages", "sort_on": "aTopicIndex"}),
    *({"aTopicIndex": "long", "Subject": "Rot"}, {"portal_type": "Document", "Subject": "Rot"}),
    {"portal_type": ["Document", "Folder"], "Subject": ["Rot", "rot"], "is_folderish": True},
    {"portal_type": "Document", "is_folderish": False, "sort_on": "getId"},
    {"portal_type": {"query": ["Document", "Folder"], "not": "Folder"}, "Subject": "Rot"},
    {"portal_type": {"query": "F", "range": "min"}, "Subject": "Rot"},
    {"portal_type": "Document", "Subject": {"query": ["Rot", "x y"], "operator": "and"}},
    {"portal_type": {"not": "Document"}, "is_folderish": True},
    {"portal_type": "Document", "Subject": "nobody"},
    {"aDateRangeInRangeIndex": {"start": DateTime("2000/01/01 UTC"), "end": DateTime("2001/06/01 UTC")}},
    {"aDateRangeInRangeIndex": {"start": DateTime("2020/01/01 UTC"), "end": DateTime("2098/01/01 UTC")}},
    {"aDateRangeInRangeIndex": {"start": "2020-01-01 00:00", "end": "2500-01-01 00:00"}, "portal_type": "Document"},
    {"aDateRangeInRangeIndex": {"start": DateTime("2600/01/01 UTC"), "end": DateTime("2700/01/01 UTC")}},
    {"aDateRangeInRangeIndex": {"start": DateTime("2600/01/01 UTC"), "end": DateTime("1999/01/01 UTC")}},
    {"aDateRangeInRangeIndex": {"query": "x", "start": DateTime("2020/01/01 UTC"), "end": DateTime("2098/01/01 UTC")}},
]


def fill(portal: Any) -> None:
    """Content, and an index of every kind."""
    add_all(portal.portal_catalog)
    populate(portal)


SHARED = fill


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_custom_indexes_answer(both: Any, query: dict[str, Any]) -> None:
    ours, theirs = (answer(catalog, query) for catalog in both)
    assert ours == theirs


def test_custom_indexes_have_values(both: Any) -> None:
    def look(catalog: Any, name: str) -> Any:
        index = catalog.Indexes[name]
        return (
            *(list(index.uniqueValues()), list(index.uniqueValues(None, 1)), catalog.uniqueValuesFor(name)),
            *(index.numObjects(), index.indexSize(), index.meta_type, index.getEntryForObject(-1, "default")),
            sorted(index.getEntryForObject(catalog.getrid("/plone/my_folder/page"), ())),
        )

    for name in ("aFieldIndex", "aKeywordIndex", "several", "aTopicIndex"):
        ours, theirs = (look(catalog, name) for catalog in both)
        assert ours == theirs, name


def test_date_ranges_and_topics_have_values_of_their_own_settings(both: Any) -> None:
    for field in ("created", "expires"):
        ours, theirs = (list(c.Indexes["aDateRangeIndex"].uniqueValues(field, 1)) for c in both)
        assert ours == theirs != []
    ours, theirs = (
        [(s.getId(), s.getType(), s.getExpression()) for s in c.Indexes["aTopicIndex"].filteredSets.values()]
        for c in both
    )
    assert ours == theirs
    assert len(ours) == 3


def test_a_topic_with_another_expression_is_empty_until_reindexed(portal: Any, catalog: Any) -> None:
    catalog.addIndex("aTopicIndex", topics(catalog))
    create(portal, "Document", "page")
    transaction.commit()
    assert len(catalog(aTopicIndex="pages")) == 1
    index = catalog.Indexes["aTopicIndex"]
    index.manage_saveFilteredSet("pages", "o.portal_type == 'Folder'")
    index.addFilteredSet("broken", "PythonFilteredSet", "o.nobody.knows")
    transaction.commit()
    assert len(catalog(aTopicIndex="pages")) == 0
    create(portal, "Folder", "folder")
    catalog.reindexIndex("aTopicIndex", None)
    transaction.commit()
    assert sorted(b.getId for b in catalog(aTopicIndex="pages")) == ["folder"]
    assert len(catalog(aTopicIndex="broken")) == 0
    index.delFilteredSet("pages")
    assert len(catalog(aTopicIndex="pages")) == 0
    with pytest.raises(KeyError):
        index.delFilteredSet("pages")


def test_composite_indexes_have_their_components(catalog: Any) -> None:
    catalog.addIndex("aCompositeIndex", make_index(CompositeIndex, catalog))
    transaction.commit()
    index = catalog.Indexes["aCompositeIndex"]
    assert index.getComponentIndexNames() == ("portal_type", "Subject", "is_folderish")
    index.manage_delComponents(["Subject"])
    index.manage_addComponent("review_state", "FieldIndex", "review_state", "")
    transaction.commit()
    names = catalog.Indexes["aCompositeIndex"].getComponentIndexNames()
    assert names == ("portal_type", "is_folderish", "review_state")
    assert (len(index), list(index.uniqueValues()), index.getEntryForObject(1, "default")) == (0, [], "default")


def test_range_in_range_queries_its_two_indexes(both: Any) -> None:
    ours, _oracle = both
    for value in ("", "x", {"start": DateTime()}, {"end": DateTime()}, {"query": []}):
        assert list(ours.unrestrictedSearchResults(aDateRangeInRangeIndex=value)) == []
    index = ours.Indexes["aDateRangeInRangeIndex"]
    assert (index.getStartIndexField(), index.getEndIndexField()) == ("effective", "expires")
    index.startindex = "nobody"
    with pytest.raises(KeyError, match="nobody"):
        ours.unrestrictedSearchResults(aDateRangeInRangeIndex={"start": DateTime(), "end": DateTime()})
    transaction.abort()


@pytest.fixture
def stock(stock_dsn: str) -> Iterator[Any]:
    """A stock site."""
    with sites.opened(stock_dsn) as db, sites.inside(db) as portal:
        yield portal


def test_custom_indexes_survive_install_and_uninstall(stock: Any) -> None:
    add_all(stock.portal_catalog)
    populate(stock)
    transaction.commit()
    before = [answer(stock.portal_catalog, query) for query in QUERIES]
    stock.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
    transaction.commit()
    assert [answer(stock.portal_catalog, query) for query in QUERIES] == before
    stock.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
    transaction.commit()
    assert not isinstance(stock.portal_catalog, PlonePGCatalogTool)
    assert [answer(stock.portal_catalog, query) for query in QUERIES] == before


# -- unknown types, and translators for them


class LengthIndexTranslator(UnIndexTranslator):
    """An integer column."""

    meta_type = "LengthIndex"

    def columns(self) -> tuple[base.Column, ...]:
        return (base.Column(self.base, "integer"),)

    def extract(self, obj: Any, report: base.Report) -> base.Values | None:
        value = self.datum(obj)
        return None if value is MISSING else (value,)

    def match_any(self, keys: list[Any]) -> base.Condition:
        return base.Condition(f"{self.column.quoted} = ANY(%s::integer[])", (keys,))

    def match_range(self, low: Any, high: Any) -> base.Condition:
        ends = [(">=", low), ("<=", high)]
        return base.all_of(base.Condition(f"{self.column.quoted} {o} %s", (end,)) for o, end in ends if end is not None)

    def order_by(self) -> tuple[str, ...]:
        return (self.column.quoted,)


@pytest.fixture
def taught() -> Iterator[None]:
    utility = {"component": LengthIndexTranslator, "provided": IPGIndexTranslator, "name": "LengthIndex"}
    getGlobalSiteManager().registerUtility(**utility)
    yield
    getGlobalSiteManager().unregisterUtility(**utility)


def length_index() -> LengthIndex:
    return LengthIndex("length", extra={"indexed_attrs": "Title"})


def test_an_unknown_type_is_refused(catalog: Any) -> None:
    before = sorted(catalog.indexes())
    with pytest.raises(CatalogError, match=r"LengthIndex.*length"):
        catalog.addIndex("length", length_index())
    assert sorted(catalog.indexes()) == before


@pytest.mark.parametrize(
    ("indexes", "error", "message"),
    [
        ([length_index()], UnsupportedIndexes, r"length \(LengthIndex\)"),
        # Words of queries as names; the last one is not one.
        (
            [FieldIndex(name) for name in ("sort_on", "where", "b_limit")],
            UnsupportedNames,
            r"the site was not changed\..*'sort_on'.*'where'",
        ),
    ],
    ids=["an unknown type", "names"],
)
def test_unsupported_index_stops_the_installation(stock: Any, indexes: list[Any], error: Any, message: str) -> None:
    for index in indexes:
        stock.portal_catalog.addIndex(index.getId(), index)
    transaction.commit()
    tool = stock.portal_catalog.aq_base
    with pytest.raises(error, match=message) as refused:
        stock.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
    assert "b_limit" not in str(refused.value)
    assert stock.portal_catalog.aq_base is tool
    assert not stock._p_jar._registered_objects
    assert stock.portal_setup.getLastVersionForProfile("plone.pgcatalog:default") == "unknown"


def test_type_with_a_new_translator_answers(taught: None, portal: Any, catalog: Any) -> None:
    catalog.addIndex("length", length_index())
    for title in ("a", "bb", "cc", "dddd", ""):
        create(portal, "Document", f"page-{title}", title=title)
    transaction.commit()
    oracle = make_oracle(portal)
    for query in (
        {"length": 2},
        {"length": [1, 2]},
        {"length": {"query": 2, "range": "min"}},
        {"length": {"query": 2, "range": "min"}, "sort_on": ["length", "getId"], "sort_order": "descending"},
        {"portal_type": "Document", "length": {"not": 2}},
        {"portal_type": "Document", "sort_on": ["length", "getId"]},
    ):
        assert answer(catalog, query) == answer(oracle, query)
    assert catalog.uniqueValuesFor("length") == (0, 1, 2, 4)
    assert catalog.Indexes["length"].__class__.__name__ == "LengthIndex"
    assert dict(catalog.Indexes["length"].uniqueValues(withLengths=True)) == {0: 1, 1: 1, 2: 2, 4: 2}


def test_type_with_a_new_translator_is_converted(taught: None, stock: Any) -> None:
    create(stock, "Document", "page", title="four")
    stock.portal_catalog.addIndex("length", length_index())
    stock.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
    transaction.commit()
    assert [b.getId for b in stock.portal_catalog(length=4, portal_type="Document")] == ["page"]
