"""The statement that counts facets.

It filters once, groups by the columns of all facets at once (GROUPING SETS), and turns the few groups into the keys of the
indexes.  So an array of keywords is taken apart once per distinct array, not once per row.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import expression_in
from plone.pgcatalog.query.expression import find
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Range
from plone.pgcatalog.settings import RESTRICTIONS
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.fragment import Statement
from typing import Any


#: GROUPING() takes no more arguments.
MAX_COLUMNS = 31
#: Ranges of all facets: each is a column of the rows that are found, and a table has 1,600 at the most.
MAX_BUCKETS = 500

#: Buckets of an index: label -> (from, up to but without); None is an open end.
Buckets = Mapping[str, tuple[Any, Any]]


class Facet(dict[Any, int]):
    """Value -> number of rows, most frequent first; ``truncated`` when there are more values than the limit."""

    # For untrusted code, such as a Script (Python), which may use other dicts without that.
    __allow_access_to_unprotected_subobjects__ = True

    truncated: bool = False


@dataclass(frozen=True)
class FacetQuery:
    """What is to be counted.

    ``criteria`` is a whole query dict, restrictions included, ``sort`` its (index name, reverse) pairs; ``names`` and
    ``ranges`` the facets; with ``exclude_own`` each ignores the criterion for its own index.
    """

    criteria: Mapping[str, Any]
    sort: Sequence[tuple[str, bool]]
    names: Sequence[str]
    ranges: Mapping[str, Buckets]
    exclude_own: bool
    limit: int | None

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise TypeError("facets takes a sequence of index names")
        object.__setattr__(self, "names", tuple(dict.fromkeys(self.names)))
        if sum(map(len, self.ranges.values())) > MAX_BUCKETS:
            raise LimitExceeded(f"a search has more than {MAX_BUCKETS} ranges in its facets")
        for name in (*self.names, *self.ranges):
            if name in RESTRICTIONS:
                raise QueryError(f"{name!r} is no facet")
        if both := set(self.names).intersection(self.ranges):
            raise QueryError(f"{sorted(both)[0]!r} is asked for values and for ranges")


class FacetStatement:
    """Makes the statement for a FacetQuery, and facets of its only row."""

    def __init__(self, catalog: Catalog, query: FacetQuery) -> None:
        self.query = query
        self._catalog = catalog
        self.facet_translators = [_facet_translator(self._translator(name)) for name in query.names]
        own_names = {*query.names, *query.ranges} if query.exclude_own else set()
        criteria = query.criteria
        #: index -> its own condition, which only the other facets heed
        self.own = {
            name: self._translator(name).where(criteria) or NOTHING
            for name in (*query.names, *query.ranges)
            if name in own_names and name in criteria
        }
        self.where = self._base()
        self.buckets = [
            (name, label, self._bucket(name, *ends))
            for name, buckets in query.ranges.items()
            for label, ends in buckets.items()
        ]

    def _translator(self, name: str) -> IndexTranslator:
        return find(self._catalog.translator, name)

    def _base(self) -> Condition:
        """Return the condition of all that is no facet's own."""
        criteria = self.query.criteria
        names = set(self._catalog.indexes)
        expression = expression_in(criteria)
        if expression is None and names.isdisjoint(criteria):
            return NOTHING
        # And() finds all: without own conditions there may be no other.
        rest = {k: v for k, v in criteria.items() if k not in self.own} | {WHERE: expression or And()}
        return compile_query(rest, self._catalog.indexes, self._catalog.translator, self.query.sort).where

    def _bucket(self, name: str, low: Any, high: Any) -> Condition:
        parts: list[Expression] = []
        if low is not None and high is not None and self._translator(name).column.is_array:
            # One of many values has to be in it, whatever the others are.
            parts.append(Range(name, low, high))
        elif low is not None or high is not None:
            parts += [Range(name, low, high)]
            parts += [] if high is None else [Not(Range(name, min=high))]
        return And(*parts).condition(self._catalog.translator)

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to count, whatever the catalog holds."""
        return self.where is NOTHING or not (self.facet_translators or self.buckets)

    # -- SQL

    def of_rows(self, change: Callable[[Condition], Condition]) -> None:
        """Replace each condition by what *change* makes of it: the one that is asked of the rows as they are stored."""
        self.where = change(self.where)
        self.own = {name: change(condition) for name, condition in self.own.items()}
        self.buckets = [(name, label, change(condition)) for name, label, condition in self.buckets]

    def statement(
        self, relation: str, source_params: tuple[Any, ...], lists: Callable[[Iterable[Column]], str]
    ) -> Statement:
        """Return the statement over *relation*, with *source_params*; *lists* gives the SQL of columns, lists as such."""
        flags = list(self.own.values())
        buckets = [condition for _, _, condition in self.buckets]
        columns = [c.quoted for t in self.facet_translators for c in t.columns()]
        if len(columns) > MAX_COLUMNS:
            raise LimitExceeded(f"a search has more than {MAX_COLUMNS} facets")
        found = columns + [f"({c.sql}) IS TRUE AS own{i}" for i, c in enumerate(flags)]
        found += [f"({c.sql}) IS TRUE AS bucket{i}" for i, c in enumerate(buckets)]
        params = [p for c in (*flags, *buckets) for p in c.params]
        ctes = [f"found AS (SELECT {', '.join(dict.fromkeys(found))} FROM {relation} WHERE {self.where.sql})"]
        parts = []
        if columns:
            ctes.append(f"counted AS MATERIALIZED ({self._grouping(columns)})")
            parts += [self._facet(i, t, columns, lists) for i, t in enumerate(self.facet_translators)]
        if buckets:
            counts = (
                f"count(*) FILTER (WHERE {' AND '.join([f'bucket{i}', *self._others(name)])})"
                for i, (name, _, _) in enumerate(self.buckets)
            )
            parts.append(f"(SELECT ARRAY[{', '.join(counts)}] AS counts FROM found) AS buckets")
        text = f"WITH {', '.join(ctes)} SELECT * FROM {' CROSS JOIN '.join(parts)}"
        return Statement(text, (*params, *source_params, *self.where.params), self.where.is_costly)

    def _others(self, name: str) -> list[str]:
        """Return the flags of the conditions that the facet *name* heeds."""
        return [f"own{i}" for i, own in enumerate(self.own) if own != name]

    def _grouping(self, columns: list[str]) -> str:
        sets = [f"({', '.join(c.quoted for c in t.columns())})" for t in self.facet_translators]
        counts = (
            [
                f"count(*) FILTER (WHERE {' AND '.join(others)}) AS n{i}"
                if (others := self._others(t.id))
                else f"count(*) AS n{i}"
                for i, t in enumerate(self.facet_translators)
            ]
            if self.own
            else ["count(*) AS n"]
        )
        return (
            f"SELECT {', '.join(columns)}, GROUPING({', '.join(columns)}) AS grouped, {', '.join(counts)}"
            f" FROM found GROUP BY GROUPING SETS ({', '.join(sets)})"
        )

    def _facet(
        self, number: int, translator: IndexTranslator, columns: list[str], lists: Callable[[Iterable[Column]], str]
    ) -> str:
        """Return the subquery of a facet: one row with its keys, in the index's own type, and their counts."""
        mine = {c.quoted for c in translator.columns()}
        # A bit is set for each column that does not belong to the grouping set.
        mask = sum(1 << i for i, column in enumerate(reversed(columns)) if column not in mine)
        count = f"n{number}" if self.own else "n"
        groups = (
            f"SELECT {lists(translator.columns())}, {count} AS n FROM counted WHERE grouped = {mask} AND {count} > 0"
        )
        keys = (
            f"SELECT key, sum(n)::bigint AS n FROM (SELECT {translator.key_expression()} AS key, n"
            f" FROM ({groups}) AS found) AS one WHERE key IS NOT NULL GROUP BY key"
        )
        if self.query.limit is not None:
            keys += f" ORDER BY n DESC, key LIMIT {self.query.limit + 1:d}"
        order = "ORDER BY n DESC, key"
        return (
            f"(SELECT array_agg(key {order}) AS keys{number}, array_agg(n {order}) AS counts{number}"
            f" FROM ({keys}) AS many) AS facet{number}"
        )

    # -- answers

    def facets(self, row: Sequence[Any]) -> dict[str, Facet]:
        """Return the facets in the result *row*; empty ones for an empty row."""
        empty: list[Any] = [None] * (2 * len(self.facet_translators))
        row = row or [*empty, [0] * len(self.buckets)]
        answer = {}
        for i, translator in enumerate(self.facet_translators):
            keys, counts = row[2 * i] or [], row[2 * i + 1] or []
            pairs = list(zip(map(translator.key, keys), counts, strict=True))
            facet = answer[translator.id] = Facet(pairs[: self.query.limit])
            facet.truncated = len(pairs) > len(facet)
        if self.buckets:
            for (name, label, _), count in zip(self.buckets, row[-1], strict=True):
                answer.setdefault(name, Facet())[label] = count
        return answer


def _facet_translator(translator: IndexTranslator) -> IndexTranslator:
    """Return *translator*; raises QueryError for an index without unique values."""
    if translator.key_expression() is None:
        raise QueryError(f"index {translator.id!r} of type {translator.meta_type} has no facets")
    return translator
