"""The whole API: what ZCatalog's classes have, ours have too.

The names come from the installed classes, so a release of Plone that adds a method fails here by name.
What ours leave out on purpose stands in ``OMITTED``, with the reason.
"""

from Acquisition import aq_base
from collections.abc import Iterator
from inspect import Parameter
from inspect import signature
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.compat.catalog import _CatalogCompat
from plone.pgcatalog.compat.proxy_types import proxy_class
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from tests.integration.content import create
from tests.integration.custom import make_index
from tests.integration.oracle import make_oracle
from typing import Any

import Acquisition
import ExtensionClass
import Persistence


#: What every persistent, acquiring object has; the catalog is one, ``_CatalogCompat`` need not be.
FOUNDATIONS = {name for cls in (Persistence.Persistent, Acquisition.Implicit, ExtensionClass.Base) for name in dir(cls)}
SPECIAL = ("__len__", "__getitem__", "__call__", "__init__")

#: Not there on purpose, and why.
OMITTED = {
    "Catalog.__init__": "a view of the tool, which nobody but the tool makes",
    "DateRangeIndex._always": "a tree that only the class itself reads",
    "DateRangeIndex._since": "as _always",
    "DateRangeIndex._since_only": "as _always",
    "DateRangeIndex._until": "as _always",
    "DateRangeIndex._until_only": "as _always",
}
#: What index types leave undeclared, and we protect, because some of their classes let everybody in.
PROTECTED = ("clear", "index_object", "unindex_object")


def names_of(cls: type, *instances: Any) -> list[str]:
    """Return the names that *cls* and its *instances* have, public and private."""
    names = {n for n in dir(cls) if not n.startswith("__") or n in SPECIAL}
    names |= {n for instance in instances for n in vars(aq_base(instance))}
    return sorted(n for n in names if not n.endswith("__roles__"))


def parameters(method: Any) -> list[str] | None:
    """Return the names of the parameters of *method*, None if it takes just any."""
    try:
        found = signature(method).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for p in found):
        return None
    return [p.name for p in found if p.name != "self"]


def accepts(ours: Any, theirs: Any) -> bool:
    """True when a call that *theirs* accepts is accepted by *ours*, by position or by name."""
    mine, wanted = parameters(ours), parameters(theirs)
    if mine is None or wanted is None:
        return True
    extra = [p for p in list(signature(ours).parameters.values()) if p.name in mine[len(wanted) :]]
    return mine[: len(wanted)] == wanted and all(p.default is not Parameter.empty for p in extra)


def permission(cls: type, name: str) -> Any:
    """Return the security declaration of *name* in a form that compares: a permission's name, or roles."""
    declared = getattr(cls, f"{name}__roles__", "undeclared")
    return getattr(declared, "__name__", declared)


def index_classes(catalog: Any) -> list[type]:
    """Return the classes of all index types that can be added."""
    return list(dict.fromkeys(i["instance"] for i in catalog.Indexes.all_meta_types()))


def compare(theirs: type, ours: type, names: list[str], real: Any, other: Any) -> Iterator[str]:
    """Yield what is wrong with *names* of the class *ours* and its instance *other*; *real* is one of *theirs*."""
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


def test_the_tool_has_everything(portal: Any, catalog: Any) -> None:
    theirs = CatalogTool().__of__(portal)
    wrong = compare(CatalogTool, PlonePGCatalogTool, names_of(CatalogTool, theirs), theirs, catalog)
    assert "\n".join(wrong) == ""


def test_the_inner_catalog_has_everything(catalog: Any) -> None:
    theirs = Catalog()
    names = [n for n in names_of(Catalog, theirs) if n not in FOUNDATIONS or n in SPECIAL]
    assert "\n".join(compare(Catalog, _CatalogCompat, names, theirs, catalog._catalog)) == ""


def test_every_index_type_has_everything(catalog: Any) -> None:
    wrong: list[str] = []
    for cls in index_classes(catalog):
        index = make_index(cls, catalog)
        catalog._catalog.addIndex(index.getId(), index)
        ours = catalog.Indexes[index.getId()]
        names = names_of(cls, index)
        found = list(compare(cls, proxy_class(cls), names, index, aq_base(ours)))
        wrong += [f"{cls.__name__}.{line}" for line in found]
    assert "\n".join(wrong) == ""


def test_brains_have_everything(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "page")
    (ours,) = catalog(getId="page")
    (theirs,) = make_oracle(portal)(getId="page")
    names = [n for n in names_of(AbstractCatalogBrain) if n not in FOUNDATIONS or n in SPECIAL]
    assert "\n".join(compare(AbstractCatalogBrain, type(aq_base(ours)), names, theirs, ours)) == ""


def test_omissions_are_omissions(catalog: Any) -> None:
    classes = {cls.__name__: proxy_class(cls) for cls in index_classes(catalog)} | {"Catalog": _CatalogCompat}
    names = [line.split(".") for line in OMITTED if not line.endswith("__")]
    assert [name for owner, name in names if hasattr(classes[owner], name)] == []
