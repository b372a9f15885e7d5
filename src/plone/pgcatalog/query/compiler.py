"""Compiles a ZCatalog query into the parts of one SELECT, and remembers what was compiled.

The meaning of every part is Products.ZCatalog.Catalog's (``search``, ``sortResults``,
``_sort_limit_arguments``); index types say through their translators what they contribute.
"""

from collections import OrderedDict
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from functools import cached_property
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query.criteria import check_values
from plone.pgcatalog.query.criteria import expression_in
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
from typing import Any


# -- compiling


#: The terms that end every ORDER BY.
OLDEST_FIRST, NEWEST_FIRST = (Order(RID.name, descending, RID, nulls=False) for descending in (False, True))

#: More rows than there can be; PostgreSQL adds LIMIT and OFFSET up in 64 bits.
LARGEST_WINDOW = 2**60

#: The score of words that find nothing, beside what is near.
UNRANKED = Fragment("NULL::float8")


@dataclass(frozen=True)
class CompiledQuery:
    """A query ready to run against a catalog source.

    ``order`` are the terms of ORDER BY, always ending with rid; ``score`` an SQL number to rank
    by, or None; ``python_sort`` the translators' names to sort by in Python instead of SQL; ``sort_count`` how many
    indexes sort; ``is_stable`` False if the same question may be compiled otherwise another time.  Counting its rows may stop
    behind ``count_limit`` of them.
    """

    where: Condition
    order: tuple[Order, ...]
    score: Fragment | None
    window: "Window"
    python_sort: tuple[tuple[str, bool], ...] = ()
    sort_count: int = 0
    is_stable: bool = True
    count_limit: int | None = None

    @cached_property
    def key(self) -> Hashable:
        """What tells the answer from that of other queries; None when the parameters do not say that."""
        score = self.score
        try:
            return (
                self.where.sql,
                frozen(self.where.params),
                self.order_by,
                score and (score.sql, frozen(score.params)),
                self.window,
            )
        except TypeError:
            return None

    @cached_property
    def order_by(self) -> str:
        """The terms of ``order`` as SQL."""
        return ", ".join([term.sql for term in self.order])

    @cached_property
    def unique(self) -> Predicate | None:
        """The part of ``where`` that names values of a column whose values are unique; None if there is no such part."""
        for part in self.where.conjuncts():
            if isinstance(part, Predicate) and part.column.is_unique and part.operator in (EQUALS, ANY):
                return part
        return None

    @property
    def is_empty(self) -> bool:
        """True when no row can match, whatever the catalog holds."""
        return self.where is NOTHING


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the sorted result that is wanted: ``result[start:start + size]``; all when size is None."""

    start: int = 0
    size: int | None = None
    #: True for a page, whose reader probably wants the number of all rows, too
    is_page: bool = field(default=False, compare=False)

    @property
    def fits_sql(self) -> bool:
        """False for a negative start, which counts as Python slices do."""
        return self.start >= 0 and (self.size is None or self.size >= 0)

    def cut(self, rows: Sequence[Any], sort_count: int) -> Sequence[Any]:
        """Return the wanted part of all *rows*, sorted by *sort_count* indexes, for any start.

        ZCatalog sorts no more rows than up to the end of the window; a negative start counts from there.  With an end
        before the first row it fails by one index (nothing, here), and counts backwards by several.
        """
        if self.size is None:
            return rows
        end = self.start + self.size
        if sort_count:
            rows = rows[: max(end, 0) if sort_count == 1 else end]
        return rows[self.start : end]


def compile_query(
    query: Mapping[str, Any], context: SearchContext, sort: Sequence[tuple[str, bool]], limit: Any = None
) -> CompiledQuery:
    """Compile *query* for the indexes of *context*.

    *sort* are (index name, reverse) pairs, *limit* is the ``sort_limit``.  A query that names no index and no oid, and
    has no query object under ``where``, finds nothing, as in ZCatalog.  Raises what the indexes raise for wrong options
    or values, and QueryError for a query object, and for what is no oid.
    """
    context, indexes = replace(context, is_ranked=not sort), context.indexes
    named = [t for name, t in indexes.items() if name in query and not isinstance(query[name], Expression)]
    # PostgreSQL compares a row in this order.
    conditions = sorted(((t.id, t.where(query, context) or NOTHING) for t in named), key=lambda each: each[1].is_costly)
    expression = expression_in(query)
    given = [] if expression is None else [expression.condition(context)]
    found = [*oid_conditions(query, indexes), *(where for _, where in conditions), *given]
    where = all_of(found) if found else NOTHING
    is_stable = expression is None and all(t.is_stable for t in named)
    sorters = [(indexes[name], reverse) for name, reverse in sort]
    part = window(query, limit)
    order, not_null = order_terms(sorters, part.size is not None)
    score = None if sorters else next((s for t in named if (s := t.score(query, context)) is not None), None)
    if score is None and expression is not None and not sorters:
        score = expression.score(context)
    text = dict(conditions).get(SOURCE_INDEX)
    if context.question is not None and text is not None:
        kept = indexes[SOURCE_INDEX].not_excluded(query, context)
        among = all_of([*(each for each in found if each is not text), kept])
        near = Near(context.question, among)
        score = None if sorters else Fusion(score or UNRANKED, where, near)
        where = all_of((among, any_of((text, near))))
    if any(t.order_by() == () for t, _ in sorters):
        return CompiledQuery(where, (OLDEST_FIRST,), None, part, tuple(sort), len(sorters), is_stable)
    if not_null:
        where = all_of((where, *not_null))
    return CompiledQuery(where, order, score, part, (), len(sorters), is_stable)


def order_terms(
    sorters: Sequence[tuple[IndexTranslator, bool]], limited: bool
) -> tuple[tuple[Order, ...], list[Condition]]:
    """Return the terms of ORDER BY, and the conditions that drop rows without a value in a sort index.

    In a *limited* search that is each index, else the first; rows without a value in a further one come before the others.
    Ties are broken by rid: descending in a *limited* descending sort by one index, where ZCatalog sorts (key, rid)
    pairs, else ascending, as where it walks the sort index.
    """
    terms: list[Order] = []
    not_null: list[Condition] = []
    for translator, reverse in sorters:
        columns = {column.quoted: column for column in translator.columns()}
        expressions = translator.order_by() or ()
        is_kept = bool(terms) and not limited
        terms += [
            Order(e, reverse, columns.get(e), nulls=is_kept or i > 0, nulls_lowest=is_kept and i == 0)
            for i, e in enumerate(expressions)
        ]
        for e in () if is_kept else expressions[:1]:
            filled = columns.get(e)
            opaque = Condition(f"{e} IS NOT NULL", (), translator.columns())
            not_null.append(opaque if filled is None else has_value(filled))
    newest_first = limited and len(sorters) == 1 and sorters[0][1]
    return (*terms, NEWEST_FIRST if newest_first else OLDEST_FIRST), not_null


def window(query: Mapping[str, Any], limit: Any) -> Window:
    """Return the wanted part of the result, from ``b_start``, ``b_size`` and ``sort_limit``."""
    is_page = query.get("b_size") is not None
    size = query["b_size"] if is_page else limit or None
    if size is None:
        return Window()
    start, size = int(query.get("b_start", 0)), int(size)
    return Window(min(start, LARGEST_WINDOW), min(size, LARGEST_WINDOW), is_page)


# -- remembering


#: Queries that one configuration keeps.
SIZE = 300


class CompiledQueries:
    """The queries that were compiled last for a catalog in one state of its settings, by ``query_key``.

    *lexicons* are those of its text indexes; None is stored for settings that are not saved.
    """

    def __init__(self, lexicons: Mapping[str, Any], is_saved: bool = True) -> None:
        self._lexicons = lexicons
        self._is_saved = is_saved
        self._queries: OrderedDict[Hashable, CompiledQuery] = OrderedDict()

    def find_or_compile(
        self, criteria: Mapping[str, Any], context: SearchContext, sort: Sequence[tuple[str, bool]], limit: Any
    ) -> CompiledQuery:
        """Return ``compile_query`` of the same arguments, from memory if words find what they found then."""
        key = None
        if self._is_saved and (context.is_plain or self._lexicons.keys().isdisjoint(criteria)):
            key = query_key(criteria, context.indexes, self._lexicons, sort, limit)
        query = None if key is None else self._queries.get(key)
        if query is not None:
            self._queries.move_to_end(key)
            return query
        check_values(criteria, context.indexes)
        query = compile_query(criteria, context, sort, limit)
        if key is not None and query.is_stable:
            self._queries[key] = query
            if len(self._queries) > SIZE:
                self._queries.popitem(last=False)
        return query


def query_key(
    query: Mapping[str, Any],
    translators: Mapping[str, IndexTranslator],
    lexicons: Mapping[str, Any],
    sort: Sequence[tuple[str, bool]],
    limit: Any,
) -> Hashable:
    """Return the cache key of a query to a catalog with these *translators* and *lexicons*.

    None when a value has no stable key.  Values an index treats as equal share a key (``IndexTranslator.cache_key``).
    """
    try:
        criteria = tuple([_criterion(name, value, translators) for name, value in query.items()])
        words = tuple([pipeline(lexicon) for name, lexicon in lexicons.items() if name in query])
        hash(words)
        return criteria, words, tuple(sort), frozen(limit)
    except (TypeError, RecursionError):
        return None


def pipeline(lexicon: Any) -> tuple[Any, ...]:
    """Return what *lexicon* makes words of a text with, the same objects as long as it has not changed.

    Raises TypeError for one of another kind.
    """
    elements = getattr(lexicon, "_pipeline", None)
    if not isinstance(elements, tuple):
        raise TypeError("nobody knows what the words of this lexicon depend on")
    return elements


def _criterion(name: str, value: Any, translators: Mapping[str, IndexTranslator]) -> Hashable:
    translator = None if type(value) is str else translators.get(name)
    return name, frozen(value) if translator is None else translator.cache_key(translator.index, value)
