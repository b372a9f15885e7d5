"""Converts a query dict to the form that is compiled, as Products.ZCatalog.Catalog does before it calls its indexes."""

from Acquisition import aq_base
from BTrees import family32
from BTrees import family64
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from collections.abc import ValuesView
from itertools import chain
from itertools import repeat
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import WHERE
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from ZPublisher.HTTPRequest import record


_trees = [getattr(family, kind) for family in (family32, family64) for kind in ("OO", "OI", "IO", "II")]
#: Types of several values, including keys of BTrees and generators.
CONTAINERS: tuple[Any, ...] = (
    Sequence,
    Set,
    ValuesView,
    Iterator,
    *{type(tree.BTree().keys()) for tree in _trees},
)
#: Types of one value, or of a list.
UNCONVERTED = (str, bytes, bytearray, memoryview, list, tuple)
#: The keys of a query dict, besides names of indexes, whose value may be a list.
LIST_KEYS = frozenset({"oid", "sort-on", "sort-order", "sort_on", "sort_order", "zoid"})
#: (index name, reverse) pairs
Sort = list[tuple[str, bool]]


def merged(query: Any, keywords: Mapping[str, Any], indexes: Container[str]) -> dict[str, Any]:
    """Return the query dict of *query*, updated by *keywords*, for a catalog with *indexes*.

    A *query* that is neither a query dict nor a query object is ignored, as in ZCatalog.
    """
    query = as_dict(query)
    return with_lists({**(query if isinstance(query, dict) else {}), **keywords}, indexes)


def as_dict(query: Any) -> Any:
    """Return *query* as a query dict if it is a query object, else itself."""
    return {WHERE: query} if isinstance(query, Expression) else query


def expression_in(query: Mapping[str, Any]) -> Expression | None:
    """Return the query object in the query dict *query*, None if it has no query object.

    Anything else under that name, such as a parameter of a request, is ignored, as unknown names are.
    """
    expression = query.get(WHERE)
    return expression if isinstance(expression, Expression) else None


def as_list(value: Any) -> Any:
    """Return *value*, of a query, as a list if it holds several values, else itself."""
    return list(value) if isinstance(value, CONTAINERS) and not isinstance(value, UNCONVERTED) else value


def as_options(value: Any) -> Any:
    """Return *value*, of an index in a query, as a dict if it has options, as a list if it has several values."""
    if isinstance(value, str):
        # Most values are texts, and the next check is slow.
        return value
    if isinstance(value, Mapping | record):
        return {option: as_list(each) for option, each in value.items()}
    return as_list(value)


def names_read(query: Mapping[Any, Any], indexes: Container[str]) -> set[Any]:
    """Return the names in the query dict *query* that a catalog with *indexes* reads.

    These are indexes, their old-style options (``Subject_operator``), and LIST_KEYS.
    """
    prefixes = tuple([f"{name}_" for name in query if name in indexes])
    return {
        name
        for name in query
        if name in indexes or name in LIST_KEYS or (isinstance(name, str) and name.startswith(prefixes))
    }


def with_lists(query: Any, indexes: Container[str]) -> dict[str, Any]:
    """Return the items of *query*, a dict or a request, with dicts and lists in place of other containers.

    Only values that a catalog with *indexes* reads are converted.
    """
    items = dict(query.items())
    return items | {name: as_options(items[name]) for name in names_read(items, indexes)}


def canonical(
    query: Mapping[str, Any], indexes: Container[str], rewriters: Iterable[Any], every: bool = False
) -> dict[str, Any]:
    """Return *query* as ZCatalog's ``Catalog.make_query`` does: rewritten by the indexes *rewriters*, its lists sorted.

    *query* is a result of ``with_lists`` for a catalog with *indexes*.  Lists that the catalog does not read are sorted only
    with *every*.
    """
    for index in rewriters:
        query = index.make_query(query)
    names = query if every else names_read(query, indexes)
    return {**query, **{name: sorted(query[name]) for name in names if isinstance(query[name], list | tuple)}}


def check_values(query: Mapping[str, Any], translators: Mapping[str, IndexTranslator]) -> None:
    """Raise TypeError if a value of an index is itself a list or a dict, as ZCatalog does: its cache hashes values."""
    for name, translator in translators.items():
        if name in query and isinstance(translator, UnIndexTranslator):
            record = parse(translator.index, query)
            hash((*record.keys, *(record.get("not") or ())))


def option(query: Mapping[str, Any], name: str) -> Any:
    """Return the value of the key ``sort-<name>``, else ``sort_<name>``, in *query*; None if there is none."""
    value = query.get(f"sort-{name}")
    return query.get(f"sort_{name}") if value is None else value


def sort_of(query: Mapping[str, Any], indexes: Mapping[str, IndexTranslator]) -> Sort:
    """Return the indexes of ``sort_on`` in *query*, in the directions of ``sort_order``.

    Raises CatalogError for an unknown index, or one that cannot be sorted by.
    """
    names = option(query, "on")
    if names is None:
        return []
    names = names if isinstance(names, list | tuple) else [names]
    for name in names:
        translator = indexes.get(name)
        if translator is None:
            raise CatalogError(f"Unknown sort_on index: {name!r}")
        if not hasattr(aq_base(translator.index), "documentToKeyMap"):
            raise CatalogError(f"The index chosen for sort_on is not capable of being used as a sort index: {name!r}")
    return list(zip(names, sort_directions(option(query, "order")), strict=False))


def sort_directions(order: Any) -> Iterator[bool]:
    """Yield, for each sort index, True if it is reversed; endless.

    *order* is ``sort_order``: None, a string or a sequence of strings, in upper or lower case.  Indexes beyond the given
    directions use the first direction.
    """
    if order is None or isinstance(order, str):
        order = [order or ""]
    reverse = [str(each).lower() in ("reverse", "descending") for each in order] or [False]
    return chain(reverse, repeat(reverse[0]))


def text_queries(criteria: Mapping[str, Any], texts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (index name, search text) for the text indexes *texts* that the query dict *criteria* searches."""
    searched = []
    for name in [name for name in texts if name in criteria]:
        value: Any = criteria[name]
        if not isinstance(value, str | list | tuple):
            value = value.get("query") if hasattr(value, "get") else None
        parts = [value] if isinstance(value, str) else value or ()
        searched += [(name, " ".join(part for part in parts if isinstance(part, str)))]
    expression = expression_in(criteria)
    if expression is not None:
        searched += [(name, text) for name, text in expression.texts() if name in texts]
    return [(name, text) for name, text in searched if text.strip()]
