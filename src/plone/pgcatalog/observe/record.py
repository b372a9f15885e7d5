"""The record of a slow query: its JSON form, and its shape (the query without values)."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields
from plone.pgcatalog.indexing.codec import CodecError
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.query import objects
from plone.pgcatalog.query.criteria import expression_in
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.nearest import AS_SITE
from plone.pgcatalog.query.nearest import HYBRID
from plone.pgcatalog.query.nearest import RANK
from plone.pgcatalog.query.objects import Compound
from plone.pgcatalog.query.objects import DictQuery
from plone.pgcatalog.query.objects import Leaf
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.sql.expression import Statement
from typing import Any

import orjson


#: Longest JSON of the value of an index that is stored, in bytes.
MAX_BYTES = 16_000
ROLES_INDEX = "allowedRolesAndUsers"
#: Keys of a query that are stored besides its indexes.
WINDOW = ("b_start", "b_size")


@dataclass(frozen=True, slots=True)
class SlowQuery:
    """A row of ``pgcatalog_slow_queries``; times in milliseconds.

    The parameters of *statement* are used for EXPLAIN and not stored.
    """

    catalog: int
    path: str
    operation: str
    shape: str
    query: str
    left_out: list[str]
    total_ms: float
    embed_ms: float
    compile_ms: float
    execute_ms: float
    decode_ms: float
    result_rows: int
    statement: Statement
    #: path of the request's URL, and why the statement ran cold: "process", "connection" or ""
    page: str = ""
    cold: str = ""

    @property
    def kind(self) -> tuple[int, str, str]:
        """The key by which slow queries are grouped: catalog, operation and shape."""
        return self.catalog, self.operation, self.shape

    def row(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return tuple((values | {"statement": self.statement.sql}).values())


def encode_query(
    query: Mapping[str, Any],
    options: Mapping[str, Collection[str]],
    sort: Sequence[tuple[str, bool]],
    limit: Any,
    masked: Collection[str] = (),
    page: tuple[int, int | None] | None = None,
) -> tuple[str, list[str]]:
    """Return the JSON text of a query, and the names of the indexes whose values it leaves out.

    The arguments are those of ``shape_of``; the names of *masked* indexes, "*" for all; and (start, size) of the *page* that
    was read, None if no page was.  A value is left out if it is masked, too long, or has no JSON form.  Of
    ``allowedRolesAndUsers`` only the roles are stored, not the names of users and groups.
    """
    stored: dict[str, Any] = {}
    left_out = []
    for name in sorted(options):
        parts = {key: query[key] for key in (name, *(f"{name}_{o}" for o in options[name])) if key in query}
        if name not in parts:
            continue
        if name == ROLES_INDEX:
            parts[name] = without_users(parts[name])
        encoded = None if is_masked(name, masked) else encoded_parts(parts)
        if encoded is None:
            left_out.append(name)
        else:
            stored.update(encoded)
    stored.update({key: int(query[key]) for key in WINDOW if is_number(query.get(key))})
    if query.get(RANK) == HYBRID and RANK not in options:
        stored[RANK] = HYBRID
    if query.get(AS_SITE) is True and AS_SITE not in options:
        stored[AS_SITE] = True
    expression = expression_in(query)
    where = None if expression is None else encoded_expression(expression, masked)
    if expression is not None and where is None:
        left_out.append(WHERE)
    size = int(limit) if is_number(limit) else None
    data: dict[str, Any] = {"query": stored, "where": where, "sort": list(sort), "limit": size}
    if page is not None:
        data["page"] = page
    return orjson.dumps(data).decode(), left_out


def recall(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, bool]], int | None]:
    """Return query, sort and limit from *data*, the JSON of ``encode_query``.  Raises CodecError for damaged data."""
    sort = [(str(name), bool(reverse)) for name, reverse in data["sort"]]
    query = {key: decode(value) for key, value in data["query"].items()}
    if data["where"] is not None:
        query[WHERE] = load_expression(data["where"])
    return query, sort, data["limit"]


def query_text(data: Mapping[str, Any]) -> str:
    """Return the query in *data*, the JSON of ``encode_query``, as Python code; damaged data as JSON."""
    try:
        query, sort, limit = recall(data)
    except CodecError:
        return orjson.dumps(data, option=orjson.OPT_SORT_KEYS).decode()
    if sort:
        query["sort_on"] = [name for name, _reverse in sort]
        query["sort_order"] = ["descending" if reverse else "ascending" for _name, reverse in sort]
    if limit is not None:
        query["sort_limit"] = limit
    return repr(query)


def page_in(data: Mapping[str, Any]) -> tuple[int, int | None] | None:
    """Return (start, size) of the page that was read, from *data*, the JSON of ``encode_query``; None if no page was.

    A size of None means all rows from start on.
    """
    match data.get("page"):
        case [int(start), int() | None as size]:
            return start, size
    return None


def is_masked(name: str, masked: Collection[str]) -> bool:
    return name in masked or "*" in masked


def encoded_parts(parts: dict[str, Any]) -> dict[str, Any] | None:
    try:
        encoded = {key: encode(value) for key, value in parts.items()}
    except CodecError:
        return None
    return short(encoded)


def encoded_expression(expression: Expression, masked: Collection[str]) -> dict[str, Any] | None:
    """Return *expression* as JSON data; None if it is masked, has no JSON form or is too long."""
    if any(name == ROLES_INDEX or is_masked(name, masked) for name in expression.names()):
        return None
    try:
        return short(dump_expression(expression))
    except CodecError:
        return None


def short(data: dict[str, Any]) -> dict[str, Any] | None:
    return data if len(orjson.dumps(data)) <= MAX_BYTES else None


def without_users(value: Any) -> Any:
    """Return *value*, a query for ``allowedRolesAndUsers``, without its users and groups."""
    if isinstance(value, Mapping):
        return {key: without_users(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [role for role in value if not str(role).startswith("user:")]
    return "" if str(value).startswith("user:") else value


def is_number(value: Any) -> bool:
    try:
        return abs(int(value)) < 2**53
    except (TypeError, ValueError, OverflowError):
        return False


#: Options whose value is part of the shape; of other options only the name is.
SHAPE_OPTIONS = ("range", "operator")


def shape_of(
    query: Mapping[str, Any],
    options: Mapping[str, Collection[str]],
    sort: Sequence[tuple[str, bool]],
    limited: bool,
) -> str:
    """Return the shape of *query*, which is equal for queries that differ only in their values.

    *options* are the names of all indexes with the names of their query options; other keys of the query are ignored.
    *sort* are (index name, reverse) pairs.
    """
    parts = [index_shape(name, query, options[name]) for name in sorted(options) if name in query]
    expression = expression_in(query)
    if expression is not None:
        parts.append(f"{WHERE} {shape_of_expression(expression)}")
    if query.get(RANK) == HYBRID and RANK not in options:
        parts.append(f"{RANK} {HYBRID}")
    if sort:
        parts.append("sort " + " ".join(f"{name} desc" if reverse else name for name, reverse in sort))
    if limited:
        parts.append("limit")
    return "; ".join(parts)


def index_shape(name: str, query: Mapping[str, Any], options: Collection[str]) -> str:
    value = query[name]
    record = dict(value) if isinstance(value, Mapping) else {"query": value}
    for option in options:
        # The old syntax for options: Title_range, next to Title.
        if f"{name}_{option}" in query:
            record.setdefault(option, query[f"{name}_{option}"])
    words = [name, kind_of(record.get("query"))]
    for option in sorted(set(record) & set(options) - {"query"}):
        words.append(f"{option}:{word(record[option])}" if option in SHAPE_OPTIONS else option)
    return " ".join(filter(None, words))


def kind_of(value: Any) -> str:
    """Return "=" for one value, "in" for several, "nothing" for an empty sequence, "" for None."""
    if value is None:
        return ""
    if isinstance(value, list | tuple | set | frozenset):
        return "=" if len(value) == 1 else "in" if value else "nothing"
    return "="


def word(value: Any) -> str:
    """Return the words min, max, and, or in *value*, the value of an option, joined by colons."""
    words = [w for w in ("min", "max", "and", "or") if isinstance(value, str) and w in value.lower()]
    return ":".join(words)


JOINED: dict[str, type[Compound]] = {"And": objects.And, "Or": objects.Or}
LEAVES: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (objects.Eq, objects.In, objects.Range, objects.Text, objects.Path)
}


def shape_of_expression(expression: Expression) -> str:
    name = type(expression).__name__
    if isinstance(expression, Compound):
        return f"{name}({', '.join(map(shape_of_expression, expression.parts))})"
    if isinstance(expression, Not):
        return f"{name}({shape_of_expression(expression.part)})"
    return f"{name} {' '.join(sorted(expression.names()))}"


def dump_expression(expression: Expression) -> dict[str, Any]:
    """Return *expression* as JSON data.  Raises CodecError if it has no JSON form."""
    name = type(expression).__name__
    if isinstance(expression, Compound) and name in JOINED:
        return {name: [dump_expression(part) for part in expression.parts]}
    if isinstance(expression, Not):
        return {name: dump_expression(expression.part)}
    if isinstance(expression, DictQuery):
        return {name: {key: encode(value) for key, value in expression.query.items()}}
    if isinstance(expression, Leaf) and name in LEAVES:
        values = {field.name: getattr(expression, field.name) for field in fields(LEAVES[name])}
        return {name: {key: encode(value) for key, value in values.items()}}
    raise CodecError(f"no JSON form for query objects of type {name}")


def load_expression(data: Mapping[str, Any]) -> Expression:
    """Return the expression that ``dump_expression`` wrote as *data*.  Raises CodecError for other data."""
    try:
        [(name, content)] = data.items()
        if name in JOINED:
            return JOINED[name](*map(load_expression, content))
        if name == Not.__name__:
            return Not(load_expression(content))
        values = {key: decode(value) for key, value in content.items()}
        if name == DictQuery.__name__:
            return DictQuery(values)
        expression: Expression = LEAVES[name](**values)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CodecError(f"not a query object: {error}") from error
    return expression
