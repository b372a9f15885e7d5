"""The shape of a query: what it asks for, without the values."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.observe.expressions import shape_of_expression
from plone.pgcatalog.query.expression import expression_in
from plone.pgcatalog.query.expression import WHERE
from typing import Any


#: Options whose value is part of the shape; of others it is enough that they are there.
TOLD = ("range", "operator")


def shape_of(
    query: Mapping[str, Any],
    options: Mapping[str, Collection[str]],
    sort: Sequence[tuple[str, bool]],
    limited: bool,
) -> str:
    """Return the shape of *query*: equal for queries that differ in nothing but values.

    *options* are the names of all indexes, each with the names of its query options; other keys of the query do not
    count.  *sort* are (index name, reverse) pairs.
    """
    parts = [index_shape(name, query, options[name]) for name in sorted(options) if name in query]
    expression = expression_in(query)
    if expression is not None:
        parts.append(f"{WHERE} {shape_of_expression(expression)}")
    if sort:
        parts.append("sort " + " ".join(f"{name} desc" if reverse else name for name, reverse in sort))
    if limited:
        parts.append("limit")
    return "; ".join(parts)


def index_shape(name: str, query: Mapping[str, Any], options: Collection[str]) -> str:
    """Return what *query* asks of the index *name*."""
    value = query[name]
    record = dict(value) if isinstance(value, Mapping) else {"query": value}
    for option in options:
        # The old way to write options: Title_range, next to Title.
        if f"{name}_{option}" in query:
            record.setdefault(option, query[f"{name}_{option}"])
    words = [name, kind_of(record.get("query"))]
    for option in sorted(set(record) & set(options) - {"query"}):
        words.append(f"{option}:{word(record[option])}" if option in TOLD else option)
    return " ".join(filter(None, words))


def kind_of(value: Any) -> str:
    """Return how many values are asked for: "=" for one, "in" for several, "" for none."""
    if value is None:
        return ""
    if isinstance(value, list | tuple | set | frozenset):
        return "=" if len(value) == 1 else "in" if value else "nothing"
    return "="


def word(value: Any) -> str:
    """Return the text of an option, without what does not belong to the options of ZCatalog."""
    known = [w for w in ("min", "max", "and", "or") if isinstance(value, str) and w in value.lower()]
    return ":".join(known)
