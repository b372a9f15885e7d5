"""Facets: the number of matching rows per value, for many indexes in one statement."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from copy import copy
from plone.pgcatalog.discovery.facet_groups import Buckets
from plone.pgcatalog.discovery.facet_groups import children_of
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.discovery.facet_groups import FacetGroup
from plone.pgcatalog.discovery.facet_groups import FacetQuery
from plone.pgcatalog.discovery.facet_groups import Facets
from plone.pgcatalog.discovery.facet_groups import folders_of
from plone.pgcatalog.discovery.facet_groups import Steps
from plone.pgcatalog.discovery.facet_groups import steps_of
from plone.pgcatalog.discovery.facet_groups import values_of
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import CompiledQueries
from plone.pgcatalog.query.criteria import expression_in
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import find
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Range
from plone.pgcatalog.query.stored_counts import StoredCounts
from plone.pgcatalog.results.answer import ENTRY_BYTES
from plone.pgcatalog.results.cache import FACETS
from plone.pgcatalog.results.cache import Key
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.settings import RESTRICTIONS
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.values import key_digest
from plone.pgcatalog.sql.values import ROWS
from types import MappingProxyType
from typing import Any
from typing import Self


#: Most values of one facet, by default.
LIMIT = 100
#: Time limit in seconds for the facets of a page; after it the page is shown without them.
FACET_SECONDS = 3.0


def facets(
    results: CatalogSearchResults,
    names: Sequence[str] = (),
    *,
    ranges: Mapping[str, Buckets] | None = None,
    children: Mapping[str, str | Sequence[str]] | None = None,
    chosen: Mapping[str, Expression] | None = None,
    exclude_own: bool = False,
    limit: int | None = LIMIT,
    timeout: float | None = None,
) -> Fetch[Facets]:
    """Return a fetch of the facets of all rows that match the search of *results*, whatever its limit or batch is.

    The value is a Facets: index name -> Facet, a Facet being value -> number of rows.  Its ``total`` is the number of rows
    that match all criteria; it may be None if only ranges were counted.  One statement.

    - *names*: the indexes whose values are counted, up to *limit* values each; None: unlimited.
    - *ranges*: index name -> {label: (start, end)}; the end is exclusive.
    - *children*: path index -> a path or several; counts, for each child of a path, the rows at it and below it.
    - *chosen*: further criteria, index name -> query object; a facet ignores the one under its own name.
    - *exclude_own*: a facet ignores the criterion of the query for its index, so that several values can be chosen.
    - *timeout*: time limit in seconds; None for the site's own.

    Raises QueryError for an index that has no facets, LimitExceeded for too many facets, and SearchTimeout.
    """
    options = ranges or {}, exclude_own, limit, children or {}, chosen or {}
    return FacetCounting(results, FacetQuery(results.criteria, results.sort, names, *options), timeout)


class FacetCounting(Fetch[Facets]):
    """A fetch of the facets of *query* for the search of *results*, from the cache or by a statement.

    *seconds*: its time limit; None for the site's own.  In an open batch the statement is sent with the batch.
    """

    def __init__(self, results: CatalogSearchResults, query: FacetQuery, seconds: float | None) -> None:
        self._facets = FacetStatement(results.context, query, results.catalog.configuration.compiled_queries)
        self._view = results.catalog.search_view()
        self._keyed: Statement | None = None
        self._rows: RowsFetch | None = None
        if not self._facets.is_empty and self._cached() is None:
            self._rows = self._fetch(seconds)

    def value(self) -> Facets:
        """Return the facets.  Raises SearchTimeout."""
        return self._facets.facets([] if self._facets.is_empty else self._row())

    def _row(self) -> Sequence[Any]:
        row = self._cached() if self._rows is None or self._rows.answer is None else None
        if row is None:
            rows = self._rows or self._fetch()
            row = next(iter(rows.value()), ())
            key = self._key()
            if row and key is not None:
                size = ENTRY_BYTES + sum(60 + len(str(value)) for values in row for value in values or ())
                result_cache().put(key, row, size)
        return row

    def _cached(self) -> Sequence[Any] | None:
        """Return the cached row for this snapshot; None if there is none."""
        key = self._key()
        row: Sequence[Any] | None = None if key is None else result_cache().get(key)
        return row

    def _key(self) -> Key | None:
        """Return the key of the row in the result cache; None if it cannot be cached."""
        self._keyed = self._keyed or self._view.statement(self._bound, *self._facets.conditions)
        stamp = self._view.stamp()
        if self._keyed is None or stamp is None:
            return None
        text, params = self._keyed
        try:
            return FACETS, stamp, key_digest(text, list(params))
        except (TypeError, ValueError):
            return None

    def _fetch(self, seconds: float | None = None) -> RowsFetch:
        return self._view.fetch(self._bound, *self._facets.conditions, seconds=seconds)

    def _bound(self, stored: Stored) -> Statement:
        bound = self._facets.changed(lambda condition: bind.condition(condition, stored))
        bound.stored_counts = None if bound.ignorable else StoredCounts.of(self._facets.where, stored)
        bound.where = bind.selective_condition(bound.where, stored)
        return bound.statement(*stored.source, bind.lists_sql(stored))


def facet_counts(results: CatalogSearchResults) -> dict[str, "FacetFields"]:
    """Return the value of ``facet_counts`` of *results*: {"facet_fields": …}, with fields that are counted on access."""
    catalog = results.catalog
    names = [n for n in catalog.indexes if n not in RESTRICTIONS and catalog.translator(n).key_expression() is not None]
    return {"facet_fields": FacetFields(results, tuple(names))}


class FacetFields(Mapping[str, dict[str, int]]):
    """Index name -> {value as text: count}, counted on first access."""

    __allow_access_to_unprotected_subobjects__ = True

    def __init__(self, results: Any, names: tuple[str, ...]) -> None:
        self._results = results
        self._names = names
        self._counted: dict[str, dict[str, int]] = {}

    def __getitem__(self, name: str) -> dict[str, int]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._counted:
            facet = self._results.facets([name], limit=None)[name]
            self._counted[name] = {key if isinstance(key, str) else str(key): n for key, n in facet.items()}
        return self._counted[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


#: Most arguments of GROUPING().
MAX_COLUMNS = 31
#: The index that says whether an object is a folder.
FOLDERS = "is_folderish"


class FacetStatement:
    """Builds the statement for a FacetQuery, and the facets from its only row; *compiled_queries* is a cache."""

    def __init__(self, context: SearchContext, query: FacetQuery, compiled_queries: CompiledQueries) -> None:
        self.query = query
        self._context = context
        self._compiled_queries = compiled_queries
        self.steps: list[Steps] = []
        self.buckets: list[tuple[str, str, Condition]] = []
        for number, (name, buckets) in enumerate(query.ranges.items()):
            if steps := steps_of(self._translator(name), buckets, number):
                self.steps.append(steps)
            else:
                self.buckets += [(name, label, self._bucket(name, *ends)) for label, ends in buckets.items()]
        self.groups: list[FacetGroup] = [
            *(values_of(self._translator(name)) for name in query.names),
            *(self._place(name, path, number) for number, (name, path) in enumerate(query.places)),
            *(steps.group for steps in self.steps),
        ]
        #: facet -> the condition that it ignores; it applies to the other facets only
        self.ignorable = self._ignorable()
        #: the stored counts that are read instead of rows; None to count rows only
        self.stored_counts: StoredCounts | None = None
        chosen = all_of(self.ignorable.values())
        # The nearest rows depend on the criteria.  So a row is near if it is near with all criteria, as in the search, or
        # near without the criteria of the facets.
        self.where = self._base().changed(
            lambda part: any_of((part.within(chosen), part)) if self.ignorable and isinstance(part, Near) else part
        )

    def _translator(self, name: str) -> IndexTranslator:
        return find(self._context, name)

    def _place(self, name: str, path: str, number: int) -> FacetGroup:
        if self.query.only_folders and FOLDERS in self._context.indexes:
            return folders_of(self._translator(name), path, self._translator(FOLDERS).column)
        return children_of(self._translator(name), path, number)

    def _ignorable(self) -> dict[str, Condition]:
        """Return facet -> the condition that it ignores, for facets with such a condition."""
        ignorable = {}
        for name in dict.fromkeys(self.query.facets):
            conditions = []
            if self.query.exclude_own and name in self.query.criteria:
                conditions.append(self._translator(name).where(self.query.criteria, self._context) or NOTHING)
            if name in self.query.chosen:
                conditions.append(self.query.chosen[name].condition(self._context))
            if conditions:
                ignorable[name] = all_of(conditions)
        return ignorable

    def _base(self) -> Condition:
        """Return the condition that applies to all facets."""
        criteria, facets = self.query.criteria, self.query.facets
        names = set(self._context.indexes)
        expression = expression_in(criteria)
        if expression is None and names.isdisjoint(criteria):
            return NOTHING
        # Chosen criteria under other names than those of the facets apply to all facets.
        held = [expression or And(), *(e for name, e in self.query.chosen.items() if name not in facets)]
        ignored = facets if self.query.exclude_own else ()
        # And() matches all rows: without the ignored criteria there may be no other.
        rest = {k: v for k, v in criteria.items() if k not in ignored} | {WHERE: And(*held)}
        return self._compiled_queries.find_or_compile(rest, self._context, self.query.sort, None).where

    def _bucket(self, name: str, low: Any, high: Any) -> Condition:
        parts: list[Expression] = []
        if low is not None and high is not None and self._translator(name).column.is_array:
            # Of several values of a row, one has to be in the range.
            parts.append(Range(name, low, high))
        elif low is not None or high is not None:
            parts += [Range(name, low, high)]
            parts += [] if high is None else [Not(Range(name, min=high))]
        return And(*parts).condition(self._context)

    @property
    def is_empty(self) -> bool:
        """True if the result is empty whatever the rows of the catalog are."""
        return self.where is NOTHING or not (self.groups or self.buckets)

    # -- SQL

    @property
    def conditions(self) -> list[Condition]:
        """All conditions of the statement."""
        return [self.where, *self.ignorable.values(), *(condition for _, _, condition in self.buckets)]

    def changed(self, change: Callable[[Condition], Condition]) -> Self:
        """Return a copy with each condition replaced by the result of *change*, which binds it to the stored rows."""
        changed = copy(self)
        changed.where = change(self.where)
        changed.ignorable = {name: change(condition) for name, condition in self.ignorable.items()}
        changed.buckets = [(name, label, change(condition)) for name, label, condition in self.buckets]
        return changed

    def statement(
        self, relation: str, source_params: tuple[Any, ...], lists: Mapping[str, str] = MappingProxyType({})
    ) -> Statement:
        """Return the statement over *relation*, whose placeholders have the values *source_params*.

        *lists*: name of an interned column -> SQL of the list that its number stands for.
        """
        flags = [(c, f"own{i}") for i, c in enumerate(self.ignorable.values())]
        flags += [(c, f"bucket{i}") for i, (_, _, c) in enumerate(self.buckets)]
        # Several groups may use the same columns.
        columns = list({name: (column, name) for group in self._live for column, name in group.columns}.values())
        names = [name for _, name in columns]
        if len({name for group in self.groups for _, name in group.columns}) > MAX_COLUMNS:
            raise LimitExceeded(f"a search has more than {MAX_COLUMNS} facets")
        read = [*columns, *((Fragment(f"({c.sql}) IS TRUE", c.params), name) for c, name in flags)]
        expressions = ", ".join(f"{expression.sql} AS {name}" for expression, name in read) or "1"
        fields = dict.fromkeys(filter(None, self._fields))
        stored = (
            self.stored_counts.counts([ROWS, *fields]) if self.stored_counts is not None and fields else Fragment("")
        )
        ctes = [f"stored AS MATERIALIZED ({stored.sql})"] if fields else []
        if names or self.buckets:
            ctes.append(f"found AS (SELECT {expressions} FROM {relation} WHERE {self.where.sql})")
        if names:
            ctes.append(f"counted AS MATERIALIZED ({self._grouping(names)})")
        values = {quote(name): f"{value} AS {quote(name)}" for name, value in lists.items()}
        parts = [
            self._facet(i, self._keys_of(i, names, values) if field is None else self._stored_keys(field))
            for i, field in enumerate(self._fields)
        ]
        if fields:
            parts.append(
                f"(SELECT ARRAY[coalesce((SELECT n FROM stored WHERE field = '{ROWS}'), 0)] AS total) AS whole"
            )
        elif names:
            # The total is in the grouping set without columns, for which GROUPING() has all bits set.
            total, grouped = "total" if self.ignorable else "n", (1 << len(names)) - 1
            parts.append(f"(SELECT ARRAY[{total}] AS total FROM counted WHERE grouped = {grouped}) AS whole")
        if self.buckets:
            counts = (
                f"count(*) FILTER (WHERE {' AND '.join([f'bucket{i}', *self._others(name)])})"
                for i, (name, _, _) in enumerate(self.buckets)
            )
            parts.append(f"(SELECT ARRAY[{', '.join(counts)}] AS counts FROM found) AS buckets")
        text = f"WITH {', '.join(ctes)} SELECT * FROM {' CROSS JOIN '.join(parts)}"
        params = tuple(value for expression, _ in read for value in expression.params)
        keys = tuple(value for group in self.groups for value in group.key.params)
        found = (*params, *source_params, *self.where.params) if names or self.buckets else ()
        return Statement(text, (*stored.params, *found, *keys), self.where.is_costly)

    @property
    def _fields(self) -> list[str | None]:
        """For each group the name of its field in the stored counts; None if it is counted in the rows."""
        stored = self.stored_counts
        if stored is None:
            return [None] * len(self.groups)
        return [stored.field(group.key.sql, [name for _, name in group.columns]) for group in self.groups]

    @property
    def _live(self) -> list[FacetGroup]:
        """The groups that are counted in the rows."""
        return [group for group, field in zip(self.groups, self._fields, strict=True) if field is None]

    def _stored_keys(self, field: str) -> str:
        """Return the SELECT of (key, n) of *field* from the stored counts."""
        assert self.stored_counts is not None
        return f"SELECT value::{self.stored_counts.type(field)} AS key, n FROM stored WHERE field = '{field}'"

    def _others(self, name: str) -> list[str]:
        """Return the flags of the ignorable conditions that apply to the facet *name*."""
        return [f"own{i}" for i, facet in enumerate(self.ignorable) if facet != name]

    def _grouping(self, names: list[str]) -> str:
        sets = list(dict.fromkeys(f"({', '.join(name for _, name in group.columns)})" for group in self._live))
        counts = (
            [
                f"count(*) FILTER (WHERE {' AND '.join(others)}) AS n{i}"
                if (others := self._others(group.name))
                else f"count(*) AS n{i}"
                for i, group in enumerate(self.groups)
            ]
            if self.ignorable
            else ["count(*) AS n"]
        )
        every = [f"own{i}" for i in range(len(self.ignorable))]
        if every:
            counts.append(f"count(*) FILTER (WHERE {' AND '.join(every)}) AS total")
        return (
            f"SELECT {', '.join(names)}, GROUPING({', '.join(names)}) AS grouped, {', '.join(counts)}"
            f" FROM found GROUP BY GROUPING SETS ({', '.join(sets)}, ())"
        )

    def _keys_of(self, number: int, names: list[str], values: Mapping[str, str]) -> str:
        """Return the SELECT of (key, n) of a group from the rows; keys have the type of the index."""
        group = self.groups[number]
        mine = {name for _, name in group.columns}
        # GROUPING() sets a bit for each column that is not in the grouping set.
        mask = sum(1 << i for i, name in enumerate(reversed(names)) if name not in mine)
        count = f"n{number}" if self.ignorable else "n"
        columns = ", ".join(values.get(name, name) for _, name in group.columns)
        groups = f"SELECT {columns}, {count} AS n FROM counted WHERE grouped = {mask} AND {count} > 0"
        return (
            f"SELECT key, sum(n)::bigint AS n FROM (SELECT {group.key.sql} AS key, n"
            f" FROM ({groups}) AS found) AS one WHERE key IS NOT NULL GROUP BY key"
        )

    def _facet(self, number: int, keys: str) -> str:
        """Return the subquery of a facet: one row with its *keys* and their counts."""
        if self.query.limit is not None and number < self._limited:
            keys += f" ORDER BY n DESC, key LIMIT {self.query.limit + 1:d}"
        order = "ORDER BY n DESC, key"
        return (
            f"(SELECT array_agg(key {order}) AS keys{number}, array_agg(n {order}) AS counts{number}"
            f" FROM ({keys}) AS many) AS facet{number}"
        )

    @property
    def _limited(self) -> int:
        """The number of groups that are subject to the limit: all but the steps, which come last."""
        return len(self.groups) - len(self.steps)

    # -- results

    def facets(self, row: Sequence[Any]) -> Facets:
        """Return the facets in *row*, the result of the statement; all counts are 0 if *row* is empty."""
        empty: list[Any] = [None] * (2 * len(self.groups))
        row = row or [*empty, [0], [0] * len(self.buckets)]
        answer = Facets()
        for i, group in enumerate(self.groups[: self._limited]):
            pairs = self._pairs(row, i)
            facet = answer.setdefault(group.name, Facet())
            facet |= pairs[: self.query.limit]
            facet.truncated |= self.query.limit is not None and len(pairs) > self.query.limit
        for i, steps in enumerate(self.steps, self._limited):
            answer[steps.name] = Facet(steps.counts(dict(self._pairs(row, i))))
        if self.buckets:
            for (name, label, _), count in zip(self.buckets, row[-1], strict=True):
                answer.setdefault(name, Facet())[label] = count
        if self.groups:
            [answer.total] = row[2 * len(self.groups)]
        return answer

    def _pairs(self, row: Sequence[Any], number: int) -> list[tuple[Any, int]]:
        """Return the (key, count) pairs of a group, with keys as Python values."""
        keys, counts = row[2 * number] or [], row[2 * number + 1] or []
        return list(zip(map(self.groups[number].value, keys), counts, strict=True))
