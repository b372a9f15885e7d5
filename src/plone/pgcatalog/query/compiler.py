"""Compiles a ZCatalog query into the parts of one SELECT, and caches compiled queries.

Each part means the same as in Products.ZCatalog.Catalog (``search``, ``sortResults``, ``_sort_limit_arguments``); the
translators of the index types return conditions, orders and scores.
"""

from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from functools import cached_property
from functools import partial
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.registry import BUILT_IN
from plone.pgcatalog.query.criteria import check_values
from plone.pgcatalog.query.criteria import expression_in
from plone.pgcatalog.query.criteria import LIST_KEYS
from plone.pgcatalog.query.criteria import names_read
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.nearest import Fusion
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.oids import oid_conditions
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.predicate import ANY
from plone.pgcatalog.sql.predicate import EQUALS
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.values import frozen
from plone.pgcatalog.sql.values import key_digest
from typing import Any


# -- compiling


#: The last term of every ORDER BY is one of these.
OLDEST_FIRST, NEWEST_FIRST = (Order(RID.name, descending, RID, nulls=False) for descending in (False, True))

#: More rows than a table can have; the sum of LIMIT and OFFSET must fit into PostgreSQL's 64 bits.
LARGEST_WINDOW = 2**60

#: The score by words of a hybrid search whose words have no score.
UNRANKED = Fragment("NULL::float8")


@dataclass(frozen=True)
class CompiledQuery:
    """A compiled query, not yet bound to a catalog.

    - ``where``: the condition of the rows that match
    - ``order``: the terms of ORDER BY, always ending with rid
    - ``score``: an SQL number to rank by, None if the result is not ranked
    - ``window``: the requested part of the result
    - ``python_sort``: (index name, reverse) pairs to sort by in Python instead of SQL
    - ``sort_count``: the number of indexes that the query sorts by
    - ``count_limit``: counting may stop behind this many rows; None: it may not stop
    """

    where: Condition
    order: tuple[Order, ...]
    score: Fragment | None
    window: "Window"
    python_sort: tuple[tuple[str, bool], ...] = ()
    sort_count: int = 0
    count_limit: int | None = None

    @cached_property
    def key(self) -> bytes | None:
        """A digest; queries with equal keys have the same answer.  None if a parameter cannot be part of a key."""
        where, score, window = self.where, self.score, self.window
        rank = score and (score.sql, tuple(score.params))
        try:
            return key_digest(where.sql, tuple(where.params), self.order_by, rank, window.start, window.size)
        except (TypeError, ValueError):
            return None

    @cached_property
    def order_by(self) -> str:
        """The terms of ``order`` as SQL."""
        return ", ".join([term.sql for term in self.order])

    @cached_property
    def unique(self) -> Predicate | None:
        """The part of ``where`` that compares a column of unique values by ``=`` or ``= ANY``; None if there is none."""
        for part in self.where.conjuncts():
            if isinstance(part, Predicate) and part.column.is_unique and part.operator in (EQUALS, ANY):
                return part
        return None

    @property
    def is_empty(self) -> bool:
        """True if no row can match, whatever the catalog contains."""
        return self.where is NOTHING

    def cut(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return the window of all *rows*, which are sorted; its start may be negative.

        ZCatalog sorts only the rows up to the end of the window, and a negative start counts from there.  If the end is
        before the first row, it fails in a sort by one index (here: no rows); in a sort by several, it counts backwards.
        """
        if self.window.size is None:
            return rows
        end = self.window.start + self.window.size
        if self.sort_count:
            rows = rows[: max(end, 0) if self.sort_count == 1 else end]
        return rows[self.window.start : end]


@dataclass(frozen=True, slots=True)
class Window:
    """The requested part of the sorted result: ``result[start:start + size]``; all rows if size is None."""

    start: int = 0
    size: int | None = None
    #: True for a page, whose caller probably needs the number of all rows, too
    is_page: bool = field(default=False, compare=False)

    @property
    def fits_sql(self) -> bool:
        """False for a negative start or size, which count as in Python's slices."""
        return self.start >= 0 and (self.size is None or self.size >= 0)


def compile_query(
    query: Mapping[str, Any],
    context: SearchContext,
    sort: Sequence[tuple[str, bool]],
    limit: Any = None,
    where_of: Callable[[str, SearchContext], Condition | None] | None = None,
) -> CompiledQuery:
    """Compile *query* for the indexes of *context*.

    - *sort*: (index name, reverse) pairs; *limit*: the ``sort_limit``
    - *where_of*: returns the condition of an index, by name; None for ``where`` of the translator

    A query without an index, an oid and a query object under ``where`` finds nothing, as in ZCatalog.  Raises the errors
    of the indexes for wrong options or values, and QueryError for a query object or for a value that is no oid.
    """
    indexes = context.indexes
    where_of = where_of or (lambda name, context: indexes[name].where(query, context))
    named = {n: t for n, t in indexes.items() if n in query and not isinstance(query[n], Expression)}
    # PostgreSQL evaluates the conditions of a row in this order.
    conditions = sorted(((n, where_of(n, context) or NOTHING) for n in named), key=lambda each: each[1].is_costly)
    expression = expression_in(query)
    given = [] if expression is None else [expression.condition(context)]
    found = [*oid_conditions(query, indexes), *(where for _, where in conditions), *given]
    if found and context.left_out is not None:
        found.append(~context.left_out)
    where = all_of(found) if found else NOTHING
    sorters = [(indexes[name], reverse) for name, reverse in sort]
    part = window(query, limit)
    order, not_null = order_terms(sorters, part.size is not None)
    score = None if sorters else next((s for t in named.values() if (s := t.score(query, context)) is not None), None)
    if score is None and expression is not None and not sorters:
        score = expression.score(context)
    text = dict(conditions).get(SOURCE_INDEX)
    if context.question is not None and text is not None:
        not_excluded = indexes[SOURCE_INDEX].not_excluded(query, context)
        among = all_of([*(each for each in found if each is not text), not_excluded])
        near = Near(context.question, among)
        score = None if sorters else Fusion(score or UNRANKED, where, near)
        where = all_of((among, any_of((text, near))))
    if any(t.order_by() == () for t, _ in sorters):
        return CompiledQuery(where, (OLDEST_FIRST,), None, part, tuple(sort), len(sorters))
    if not_null:
        where = all_of((where, *not_null))
    return CompiledQuery(where, order, score, part, (), len(sorters))


def order_terms(
    sorters: Sequence[tuple[IndexTranslator, bool]], limited: bool
) -> tuple[tuple[Order, ...], list[Condition]]:
    """Return the terms of ORDER BY, and the conditions that drop rows without a value in a sort index.

    - In a *limited* search each index drops rows, otherwise the first one only: rows without a value in a further index
      come first.
    - Ties are broken by rid: descending in a *limited* descending sort by one index, where ZCatalog sorts (key, rid)
      pairs; otherwise ascending, as in ZCatalog's walk through the sort index.
    """
    terms: list[Order] = []
    not_null: list[Condition] = []
    for translator, reverse in sorters:
        columns = {column.quoted: column for column in translator.columns()}
        expressions = translator.order_by() or ()
        has_nulls = bool(terms) and not limited
        terms += [
            Order(e, reverse, columns.get(e), nulls=has_nulls or i > 0, nulls_lowest=has_nulls and i == 0)
            for i, e in enumerate(expressions)
        ]
        for e in () if has_nulls else expressions[:1]:
            filled = columns.get(e)
            opaque = Condition(f"{e} IS NOT NULL", (), translator.columns())
            not_null.append(opaque if filled is None else has_value(filled))
    newest_first = limited and len(sorters) == 1 and sorters[0][1]
    return (*terms, NEWEST_FIRST if newest_first else OLDEST_FIRST), not_null


def window(query: Mapping[str, Any], limit: Any) -> Window:
    """Return the window of ``b_start`` and ``b_size`` in *query*, else of *limit*, the ``sort_limit``."""
    is_page = query.get("b_size") is not None
    size = query["b_size"] if is_page else limit or None
    if size is None:
        return Window()
    start, size = int(query.get("b_start", 0)), int(size)
    return Window(min(start, LARGEST_WINDOW), min(size, LARGEST_WINDOW), is_page)


# -- caching


#: Upper limit of the cache of one configuration: queries, and conditions of one index.
MOST_COMPILED = 500


class CompiledQueries:
    """Cache (LRU) of compiled queries, and of conditions of one index, for a catalog in one state of its settings.

    *indexes* are the translators, *lexicons* the lexicons of text indexes, both by name.  Nothing is cached unless the
    settings are committed (*is_saved*).
    """

    def __init__(
        self, indexes: Mapping[str, IndexTranslator], lexicons: Mapping[str, Any], is_saved: bool = True
    ) -> None:
        self._lexicons = lexicons
        self._is_saved = is_saved
        self._memory: OrderedDict[Hashable, Any] = OrderedDict()
        #: name of an index with its own ``cache_key`` -> function that returns the key of a value
        self._key_of = {n: partial(t.cache_key, t.index) for n, t in indexes.items() if t.has_cache_key}
        #: the indexes whose condition depends only on the value under their name, if there are no old-style options
        built_in = {n: t for n, t in indexes.items() if BUILT_IN.get(t.meta_type) is type(t)}
        self._own = {name for name, t in built_in.items() if t.is_stable and not t.has_ranking}

    def find_or_compile(
        self, criteria: Mapping[str, Any], context: SearchContext, sort: Sequence[tuple[str, bool]], limit: Any
    ) -> CompiledQuery:
        """Return ``compile_query`` of the same arguments, from the cache if possible."""
        indexes = context.indexes
        keys = value_keys(criteria, self._key_of) if self._is_saved else {}
        # A lexicon has the same pipeline elements as long as it has not changed.
        words = tuple([getattr(each, "_pipeline", None) for name, each in self._lexicons.items() if name in criteria])
        is_plain = not words or (context.is_plain and all(type(elements) is tuple for elements in words))
        key: Hashable = None
        if (
            keys
            and is_plain
            and context.left_out is None
            and all(indexes[name].is_stable for name in keys if name in indexes)
        ):
            try:
                hash(words)
                key = tuple(keys.items()), words, tuple(sort), frozen(limit)
            except TypeError:
                pass  # an add-on's lexicon, or a limit, without a stable key
        return self._once(key, partial(self._compile, criteria, context, sort, limit, keys))

    def _compile(
        self,
        criteria: Mapping[str, Any],
        context: SearchContext,
        sort: Sequence[tuple[str, bool]],
        limit: Any,
        keys: Mapping[str, Hashable],
    ) -> CompiledQuery:
        indexes = context.indexes
        has_options = names_read(keys, indexes).difference(indexes, LIST_KEYS)
        parts = {} if has_options else {name: (name, keys[name]) for name in self._own.intersection(keys)}
        check_values(criteria, {n: t for n, t in indexes.items() if parts.get(n) not in self._memory})

        def where_of(name: str, context: SearchContext) -> Condition | None:
            return self._once(parts.get(name), lambda: indexes[name].where(criteria, context))

        return compile_query(criteria, context, sort, limit, where_of)

    def _once[T](self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value of *key*, else the result of *compute*, which is cached unless *key* is None."""
        if key in self._memory:
            self._memory.move_to_end(key)
            return self._memory[key]  # type: ignore[no-any-return]
        value = compute()
        if key is not None:
            self._memory[key] = value
            if len(self._memory) > MOST_COMPILED:
                self._memory.popitem(last=False)
        return value


def value_keys(query: Mapping[str, Any], key_of: Mapping[str, Callable[[Any], Hashable]]) -> dict[str, Hashable]:
    """Return name -> key of each value of *query*; *key_of*: name -> function for the values of that index.

    Empty if a value has no stable key, or a name is no text.
    """
    keys: dict[str, Hashable] = {}
    if not all(isinstance(name, str) for name in query):
        return keys
    try:
        for name, value in query.items():
            keys[name] = key_of[name](value) if name in key_of and type(value) is not str else frozen(value)
        hash(tuple(keys.values()))
    except (TypeError, RecursionError):
        return {}
    return keys
