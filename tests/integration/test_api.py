"""The whole API: our classes have all methods of ZCatalog's.

The names are read from the installed classes, so a release of Plone that adds a method fails here by name. Deliberate
omissions are in ``OMITTED``, with the reason.
"""

from Acquisition import aq_base
from BTrees.IIBTree import IISet
from BTrees.IIBTree import intersection
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from DateTime import DateTime
from inspect import Parameter
from inspect import signature
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.compat.catalog import _CatalogCompat
from plone.pgcatalog.compat.proxy_types import proxy_class
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from Products.ZCatalog.query import IndexQuery
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.custom import make_index
from tests.integration.oracle import make_oracle
from tests.integration.oracle import outcome
from typing import Any

import Acquisition
import ExtensionClass
import Persistence
import pytest


#: Attributes of every persistent, acquiring object; the catalog is one, ``_CatalogCompat`` need not be.
FOUNDATIONS = {name for cls in (Persistence.Persistent, Acquisition.Implicit, ExtensionClass.Base) for name in dir(cls)}
SPECIAL = ("__len__", "__getitem__", "__call__", "__init__")

#: Omitted on purpose, and why.
OMITTED = {
    "Catalog.__init__": "a view of the tool, which nobody but the tool makes",
    "DateRangeIndex._since": "a tree that only the class itself reads",
    "DateRangeIndex._since_only": "as _since",
    "DateRangeIndex._until": "as _since",
    "DateRangeIndex._until_only": "as _since",
}
#: Undeclared by index types, and protected by us, because some of their classes allow access to all users.
PROTECTED = ("clear", "index_object", "unindex_object")


def names_of(cls: type, *instances: Any) -> list[str]:
    """Return the names that *cls* and its *instances* have, public and private."""
    names = {n for n in dir(cls) if not n.startswith("__") or n in SPECIAL}
    names |= {n for instance in instances for n in vars(aq_base(instance))}
    return sorted(n for n in names if not n.endswith("__roles__"))


def parameters(method: Any) -> list[str] | None:
    """Return the names of the parameters of *method*; None if it accepts any."""
    try:
        found = signature(method).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for p in found):
        return None
    return [p.name for p in found if p.name != "self"]


def accepts(ours: Any, theirs: Any) -> bool:
    """Return whether *ours* accepts, by position or by name, every call that *theirs* accepts."""
    mine, wanted = parameters(ours), parameters(theirs)
    if mine is None or wanted is None:
        return True
    extra = [p for p in list(signature(ours).parameters.values()) if p.name in mine[len(wanted) :]]
    return mine[: len(wanted)] == wanted and all(p.default is not Parameter.empty for p in extra)


def permission(cls: type, name: str) -> Any:
    """Return the security declaration of *name* in a comparable form: a permission's name, or roles."""
    declared = getattr(cls, f"{name}__roles__", "undeclared")
    return getattr(declared, "__name__", declared)


def index_classes(catalog: Any) -> list[type]:
    """Return the classes of all index types that a user can add."""
    return list(dict.fromkeys(i["instance"] for i in catalog.Indexes.all_meta_types()))


def compare(theirs: type, ours: type, names: list[str], real: Any, other: Any) -> Iterator[str]:
    """Yield the faults in *names* of the class *ours* and its instance *other*; *real* is an instance of *theirs*."""
    for name in names:
        if f"{theirs.__name__}.{name}" in OMITTED or not hasattr(real, name):
            continue
        if not hasattr(other, name):
            yield f"{name} is missing"
            continue
        method, mine = getattr(theirs, name, None), getattr(other, name)
        if callable(method) and not callable(mine):
            yield f"{name} is not callable"
        elif callable(method) and not accepts(getattr(ours, name), method):
            yield f"{name} has the parameters {parameters(getattr(ours, name))}, not {parameters(method)}"
        mine, wanted = permission(ours, name), permission(theirs, name)
        if mine != wanted and not (wanted == "undeclared" and name in PROTECTED):
            yield f"{name} is protected by {mine}, not {wanted}"


def test_tool_has_all_methods_of_zcatalogs_tool(portal: Any, catalog: Any) -> None:
    theirs = CatalogTool().__of__(portal)
    wrong = compare(CatalogTool, PlonePGCatalogTool, names_of(CatalogTool, theirs), theirs, catalog)
    assert "\n".join(wrong) == ""


def test_inner_catalog_has_all_methods_of_zcatalogs(catalog: Any) -> None:
    theirs = Catalog()
    names = [n for n in names_of(Catalog, theirs) if n not in FOUNDATIONS or n in SPECIAL]
    assert "\n".join(compare(Catalog, _CatalogCompat, names, theirs, catalog._catalog)) == ""


def test_every_index_type_has_all_methods_of_the_real_one(catalog: Any) -> None:
    wrong: list[str] = []
    for cls in index_classes(catalog):
        index = make_index(cls, catalog)
        catalog._catalog.addIndex(index.getId(), index)
        ours = catalog.Indexes[index.getId()]
        names = names_of(cls, index)
        found = list(compare(cls, proxy_class(cls), names, index, aq_base(ours)))
        wrong += [f"{cls.__name__}.{line}" for line in found]
    assert "\n".join(wrong) == ""


def test_brains_have_all_methods_of_zcatalogs(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "page")
    (ours,) = catalog(getId="page")
    (theirs,) = make_oracle(portal)(getId="page")
    names = [n for n in names_of(AbstractCatalogBrain) if n not in FOUNDATIONS or n in SPECIAL]
    assert "\n".join(compare(AbstractCatalogBrain, type(aq_base(ours)), names, theirs, ours)) == ""


def test_omitted_names_are_really_missing(catalog: Any) -> None:
    classes = {cls.__name__: proxy_class(cls) for cls in index_classes(catalog)} | {"Catalog": _CatalogCompat}
    names = [line.split(".") for line in OMITTED if not line.endswith("__")]
    assert [name for owner, name in names if hasattr(classes[owner], name)] == []


PAGE = "/plone/my_folder/page"
NAMES = ("getId", "portal_type", "Subject", "UID", "is_folderish", "created", "effectiveRange", "start", "path")


SHARED = populate


def paths(catalog: Any, rids: Iterable[int]) -> list[str]:
    return sorted(catalog.getpath(rid) for rid in rids)


def rid_of(catalog: Any) -> Any:
    return catalog.getrid(PAGE)


def scores_of(catalog: Any, brain: Any) -> tuple[Any, Any, bool]:
    return brain.data_record_score_, brain.data_record_normalized_score_, brain.getRID() == rid_of(catalog)


#: Calls without an index; each has the same result for both catalogs.
CALLS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "bool": bool,
    "getAllBrains": lambda c: sorted(b.getPath() for b in c.getAllBrains()),
    "searchAll": lambda c: (len(c.searchAll()), sorted(b.Title for b in c.searchAll())),
    "searchAll slice": lambda c: len(c.searchAll()[2:5]),
    "getobject": lambda c: aq_base(c.getobject(rid_of(c))),
    "getpath": lambda c: c.getpath(rid_of(c)),
    "getrid unknown": lambda c: (c.getrid("/nobody"), c.getrid("/nobody", "default")),
    "getMetadataForUID": lambda c: c.getMetadataForUID(PAGE),
    "getMetadataForRID": lambda c: c.getMetadataForRID(str(rid_of(c))),
    "getIndexDataForUID": lambda c: sorted(c.getIndexDataForUID(PAGE)["SearchableText"]),
    "getIndexDataForRID": lambda c: sorted(c.getIndexDataForRID(rid_of(c))),
    "getIndexDataForRID unknown": lambda c: c.getIndexDataForRID(-1)["getId"],
    "index_objects": lambda c: sorted(type(aq_base(i)).__name__ for i in c.index_objects()),
    "getIndexObjects": lambda c: [i.getId() for i in c.getIndexObjects()],
    "indexes": lambda c: sorted(c.indexes()),
    "schema": lambda c: sorted(c.schema()),
    "availableIndexes": lambda c: c.availableIndexes(),
    "Indexes.objectIds": lambda c: sorted(c.Indexes.objectIds()),
    "Indexes.objectIds by type": lambda c: sorted(c.Indexes.objectIds("KeywordIndex")),
    "Indexes item": lambda c: c.Indexes["getId"].meta_type,
    "Indexes contains": lambda c: ("getId" in c.Indexes, "nobody" in c.Indexes),
    "Indexes traversal": lambda c: c.unrestrictedTraverse("Indexes/getId").absolute_url(),
    "resolve_path": lambda c: (aq_base(c.resolve_path(PAGE)), c.resolve_path("/plone/nobody")),
    "resolve_url": lambda c: (aq_base(c.resolve_url(PAGE, c.REQUEST)), c.resolve_url("/nobody", c.REQUEST)),
    "valid_roles": lambda c: list(c.valid_roles()),
    "_searchable_arguments": lambda c: c._searchable_arguments(),
    "_searchable_result_columns": lambda c: c._searchable_result_columns(),
    "uniqueValuesFor text": lambda c: c.uniqueValuesFor("SearchableText"),
    "ZopeFindAndApply": lambda c: sorted(
        path for path, _ in c.ZopeFindAndApply(c.aq_parent, obj_metatypes=["Dexterity Item"], search_sub=1)
    ),
    "getCatalogPlan": lambda c: "queryplan = {" in c.getCatalogPlan(),
    "_catalog.uids.get": lambda c: (c._catalog.uids.get("/nobody"), c._catalog.uids.get("/nobody", 1)),
    "_catalog.uids in": lambda c: (PAGE in c._catalog.uids, "/nobody" in c._catalog.uids),
    "_catalog.paths": lambda c: sorted(c._catalog.paths.values()),
    "_catalog.paths in": lambda c: (rid_of(c) in c._catalog.paths, -1 in c._catalog.paths, len(c._catalog.paths)),
    "_catalog.data": lambda c: c._catalog.data[rid_of(c)],
    "_catalog.data get": lambda c: c._catalog.data.get(-1, "default"),
    "_catalog.names": lambda c: c._catalog.names,
    "_catalog.schema": lambda c: c._catalog.schema,
    "_catalog.hasuid": lambda c: (c._catalog.hasuid(PAGE) == rid_of(c), c._catalog.hasuid("/nobody")),
    "_catalog.recordify": lambda c: c._catalog.recordify(c.resolve_path(PAGE))[:3],
    "_catalog._getSortIndex": lambda c: c._catalog._getSortIndex({"sort_on": "getId"}).getId(),
    "_catalog._getSortIndex several": lambda c: [
        i.getId() for i in c._catalog._getSortIndex({"sort_on": ["getId"] * 2})
    ],
    "_catalog._getSortIndex none": lambda c: c._catalog._getSortIndex({}),
    "_catalog._getSortIndex unknown": lambda c: c._catalog._getSortIndex({"sort_on": "nobody"}),
    "_catalog._getSortIndex text": lambda c: c._catalog._getSortIndex({"sort_on": "SearchableText"}),
    "_catalog.make_query": lambda c: c._catalog.make_query({"a": ("y", "x"), "b": 1}),
    "_catalog()": lambda c: sorted(b.getPath() for b in c._catalog(portal_type="Event")),
    "_catalog.updateBrains": lambda c: c._catalog.updateBrains(),
    "brains of single records": lambda c: [
        (*scores_of(c, brain), brain.Title, brain.getPath(), brain.getURL(), brain.Subject)
        for brain in (
            c._catalog[rid_of(c)],
            c._catalog[(7, 3, rid_of(c))],
            c._catalog.instantiate((rid_of(c), c._catalog.data[rid_of(c)]), score_data=(3, 7)),
        )
    ],
    "a text index": lambda c: (
        *(getattr(c.Indexes["SearchableText"], name)() for name in ("getIndexType", "getLexiconURL", "indexSize")),
        c.Indexes["SearchableText"].getLexicon().getId(),
        c.Indexes["SearchableText"].getIndexSourceNames(),
        paths(c, [rid for rid, _ in c.Indexes["SearchableText"].query("quick")[0]]),
        c.Indexes["SearchableText"].query("quick")[1],
    ),
    "a position applied": lambda c: c._catalog.getIndex("getObjPositionInParent")._apply_index(
        {"getObjPositionInParent": 1}
    ),
    "a text index's values": lambda c: c.Indexes["SearchableText"].uniqueValues(),
    "a path index searches": lambda c: [
        paths(c, c._catalog.getIndex("path").search(*asked, **options))
        for asked, options in (
            *((("/plone/my_folder",), {}), (("/plone/my_folder",), {"depth": 1}), ((("b", 3),), {})),
            (("/plone/my_folder/a/b",), {"navtree": 1, "depth": 1}),
        )
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_have_zcatalogs_results(both: Any, name: str) -> None:
    ours, theirs = (outcome(CALLS[name], catalog) for catalog in both)
    assert ours == theirs


def test_brain_class_can_be_replaced(both: Any) -> None:
    class Shouting:
        def shout(self) -> str:
            return self.Title.upper()  # type: ignore[attr-defined,no-any-return]

    ours, oracle = both
    ours._catalog.useBrains(Shouting)
    oracle._catalog.useBrains(Shouting)
    try:
        assert [b.shout() for b in ours(getId="page")] == [b.shout() for b in oracle(getId="page")] == ["PAGE ONE"]
    finally:
        for catalog in (ours, oracle):
            catalog._catalog.useBrains(object)
    assert not hasattr(ours(getId="page")[0], "shout")


# -- index objects


#: Calls of (catalog, index).
INDEX_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "class": lambda c, i: (type(aq_base(i)).__name__, i.meta_type, i.id, i.getId()),
    "hasUniqueValuesFor": lambda c, i: (bool(i.hasUniqueValuesFor(i.id)), bool(i.hasUniqueValuesFor("nobody"))),
    "getIndexSourceNames": lambda c, i: list(i.getIndexSourceNames()),
    "getIndexQueryNames": lambda c, i: list(i.getIndexQueryNames()),
    "uniqueValues": lambda c, i: list(i.uniqueValues()),
    "uniqueValues lengths": lambda c, i: sorted(i.uniqueValues(withLengths=True)),
    "uniqueValues by name": lambda c, i: list(i.uniqueValues(i.id)),
    "uniqueValues of another": lambda c, i: list(i.uniqueValues("nobody")),
    "uniqueValuesFor": lambda c, i: c.uniqueValuesFor(i.id),
    "numObjects": lambda c, i: i.numObjects(),
    "indexSize": lambda c, i: i.indexSize(),
    "len": lambda c, i: len(i),
    "getEntryForObject": lambda c, i: i.getEntryForObject(rid_of(c)),
    "getEntryForObject unknown": lambda c, i: (i.getEntryForObject(-1), i.getEntryForObject(-1, "default")),
    "documentToKeyMap": lambda c, i: sorted((c.getpath(r), v) for r, v in dict(i.documentToKeyMap()).items()),
    "keyForDocument": lambda c, i: i.keyForDocument(rid_of(c)),
    "_unindex": lambda c, i: (rid_of(c) in i._unindex, -1 in i._unindex, len(i._unindex)),
    "_unindex get": lambda c, i: i._unindex.get(-1, "default"),
    "_apply_index none": lambda c, i: i._apply_index({"nobody": 1}),
    "referencedObjects": lambda c, i: paths(c, i.referencedObjects()),
    "items": lambda c, i: [(key, paths(c, rids)) for key, rids in i.items()],
}
#: The forward index of these types has another shape, which only the class itself reads.
OWN_SHAPE = ("is_folderish", "effectiveRange", "path")


def is_comparable(name: str, call: str) -> bool:
    if name in OWN_SHAPE and call == "items":
        return False
    if name in ("effectiveRange", "path") and call == "referencedObjects":
        return False  # the real index has no such list
    # Deviation path-unique-values.
    return name != "path" or not call.startswith("uniqueValues") or call == "uniqueValues of another"


CASES = [(name, call) for name in NAMES for call in INDEX_CALLS if is_comparable(name, call)]


@pytest.mark.parametrize(("name", "call"), CASES)
def test_an_index_answers_the_same(both: Any, name: str, call: str) -> None:
    ours, theirs = (outcome(lambda c: INDEX_CALLS[call](c, c.Indexes[name]), catalog) for catalog in both)
    if (name == "is_folderish" and call.startswith("uniqueValues")) or (
        name == "Subject" and call in ("getEntryForObject", "keyForDocument")
    ):
        ours, theirs = sorted(ours), sorted(theirs)
    if name == "Subject" and call == "documentToKeyMap":
        ours, theirs = ([(p, sorted(v)) for p, v in found] for found in (ours, theirs))
    assert ours == theirs


QUERIES: dict[str, Any] = {
    "getId": ["page", "news"],
    "portal_type": {"query": ["Document", "Event"], "not": ["Event"]},
    "Subject": {"query": ["Rot", "x y"], "operator": "and"},
    "UID": "nobody",
    "is_folderish": True,
    "created": {"query": DateTime("2020/01/01 UTC"), "range": "min"},
    "effectiveRange": DateTime("2020/01/01 UTC"),
    "start": {"query": DateTime("2026/04/01 UTC"), "range": "min"},
    "path": {"query": "/plone/my_folder", "depth": 1},
    "SearchableText": "quick",
}


@pytest.mark.parametrize("name", QUERIES)
def test_index_can_be_applied_and_queried_directly(both: Any, name: str) -> None:
    def apply(catalog: Any) -> Any:
        index = catalog._catalog.getIndex(name)
        rids, used = index._apply_index({name: QUERIES[name]})
        assert len(intersection(IISet(rids), IISet(catalog._catalog.paths.keys()))) == len(rids)
        record = IndexQuery({name: QUERIES[name]}, name, index.query_options, index.operators, index.useOperator)
        return paths(catalog, rids), used, paths(catalog, index.query_index(record))

    ours, theirs = map(apply, both)
    assert ours == theirs


def test_a_boolean_index_always_has_both_values(both: Any) -> None:
    for catalog in both:
        rare, common = catalog.Indexes["is_folderish"].uniqueValues(withLengths=True)
        assert rare[1] <= common[1]
        assert {rare[0], common[0]} == {True, False}
        assert len(list(catalog.Indexes["is_folderish"].items())) == 2
        # No object has a value here.
        assert sorted(catalog.Indexes["is_default_page"].uniqueValues()) == [False, True]


@pytest.mark.parametrize("field", ["effective", "expires", "effectiveRange", None])
@pytest.mark.parametrize("lengths", [True, False])
def test_a_date_range_index_has_values_by_field(both: Any, field: str | None, lengths: bool) -> None:
    ours, theirs = (list(c.Indexes["effectiveRange"].uniqueValues(field, lengths)) for c in both)
    assert ours == theirs
