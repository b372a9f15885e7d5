"""Streams of brains: the whole result of a search in order, read batch by batch with keyset paging.

The next batch begins behind the last row of the previous one, so each batch costs the same, and memory holds one batch.
Before the transaction changes the catalog or ends, the record ids of the remaining rows are read at once: a stream
yields the rows of the snapshot it began in, even if the loop over it changes the catalog.
"""

from array import array
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.predicate import equals
from plone.pgcatalog.sql.values import whole
from typing import Any
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


#: Default number of rows of a batch.
BATCH = 1000


#: The values of a row for the terms of a sort, as PostgreSQL's text; None for NULL.
SortKeys = Sequence[str | None]


class Keyset:
    """Builds the condition for the rows behind a given row in the order of *terms*."""

    def __init__(self, terms: Sequence[Order]) -> None:
        self._terms = terms

    def __len__(self) -> int:
        return len(self._terms)

    def keys(self, view: CatalogView, rid: int) -> SortKeys:
        """Return the keys of the row *rid*, which must exist."""
        [keys] = view.select(", ".join(f"({term.expression})::text" for term in self._terms), equals(RID, rid)).value()
        return keys

    def behind(self, keys: SortKeys) -> Condition:
        """Return the condition for the rows behind a row with *keys*."""
        pairs = list(zip(self._terms, keys, strict=True))
        first = self._compared(*pairs[0], inclusive=True)
        ways = (
            all_of([*(self._equal(*key) for key in pairs[:i]), self._compared(*pairs[i])]) for i in range(len(pairs))
        )
        # An index can use the bound by the first key alone.
        return first & any_of(ways)

    def _condition(self, term: Order, operator: str, key: str) -> Condition:
        placeholder = "%s" if term.type is None else f"%s::{term.type}"
        return Condition(f"{term.expression} {operator} {placeholder}", (key,))

    def _equal(self, term: Order, key: str | None) -> Condition:
        return Condition(f"{term.expression} IS NULL") if key is None else self._condition(term, "=", key)

    def _compared(self, term: Order, key: str | None, inclusive: bool = False) -> Condition:
        """Return the condition for rows behind *key* (*inclusive*: or at it) in the order of ORDER BY; None is NULL."""
        if key is None:
            return NOTHING if term.has_nulls_last else Condition(f"{term.expression} IS NOT NULL")
        condition = self._condition(term, ("<" if term.descending else ">") + ("=" if inclusive else ""), key)
        if not term.has_nulls_last or not term.nulls:
            return condition
        return condition | Condition(f"{term.expression} IS NULL")


class BrainStream(Iterator[Any]):
    """Iterator over the brains of all rows of *compiled* in *catalog*; with *after*, of the rows behind these keys.

    Rows are read from *view*, by default a new one.
    """

    #: Untrusted code, such as a Script (Python), may iterate; it gets no attribute by name.
    __allow_access_to_unprotected_subobjects__: Mapping[str, int] = {}

    def __init__(
        self,
        catalog: "Catalog",
        compiled: CompiledQuery,
        batch: int,
        after: SortKeys | None = None,
        view: CatalogView | None = None,
    ) -> None:
        batch = whole("batch", batch, LARGEST_WINDOW)
        if batch < 1:
            raise QueryError(f"a batch must have at least one row, not {batch!r}")
        if compiled.python_sort:
            raise QueryError(f"a stream cannot be sorted by {', '.join(name for name, _ in compiled.python_sort)}")
        if compiled.window.size is not None:
            raise QueryError("a stream does not support b_size or sort_limit")
        self._catalog = catalog
        self._view = view or catalog.view()
        self._view.by_rid = True
        # Rows are not ranked: a score cannot be a key of the keyset.
        self._compiled = replace(compiled, score=None)
        self._keyset = Keyset(self._view.order(compiled))
        self._after = after
        self._size = batch
        self._brain_of = catalog.brain_maker()
        self._loader = RowLoader(self._view, array("q"), catalog.excluded_keys)
        self._rids: Sequence[int] = array("q")
        self._at = 0
        #: record ids behind the batch, once they are read
        self._rest: array[int] | None = array("q") if compiled.is_empty else None
        #: the error of ``materialize``, raised by the next batch; None if it has not failed
        self._error: Exception | None = None
        if self._rest is None:
            self._view.session.open_results.add(self)

    def __iter__(self) -> "BrainStream":
        return self

    def __next__(self) -> Any:
        while self._at >= len(self._rids):
            self._next_batch()
        rid = self._rids[self._at]
        self._at += 1
        return self._brain_of(self._loader, rid)

    def batch(self) -> Iterator[Any]:
        """Yield the brains of the first batch."""
        for _ in range(self._size):
            brain = next(self, None)
            if brain is None:
                return
            yield brain

    def keys(self) -> SortKeys:
        """Return the keys of the last row of the batch, which must have one."""
        return self._keyset.keys(self._view, self._rids[-1])

    def materialize(self, ending: bool = False) -> None:
        """Read the record ids of the remaining rows, before the catalog changes or the snapshot ends."""
        if self._rest is None:
            self._rest = self._view.rids(self._remaining()).value()

    def fail(self, error: Exception) -> None:
        """Raise *error* behind the current batch, because the snapshot of the search is gone."""
        self._error = error

    def _remaining(self) -> CompiledQuery:
        """Return the query for the rows behind the batch."""
        keys = self._keyset.keys(self._view, self._rids[-1]) if self._rids else self._after
        if keys is None:
            return self._compiled
        return replace(self._compiled, where=self._compiled.where & self._keyset.behind(keys))

    def _next_batch(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None)
        if self._rest is None:
            self._read_batch()
        else:
            self._begin_batch(self._rest)
        self._at = 0

    def _read_batch(self) -> None:
        loader = RowLoader(self._view, array("q"), self._catalog.excluded_keys)
        rows, _ = self._view.page(self._remaining(), 0, self._size, loader.excluded_keys).value()
        if len(rows) < self._size:
            self._rest = array("q")
            self._view.session.open_results.discard(self)
        self._use(loader, array("q", [row[0] for row in rows]))
        if not rows:
            raise StopIteration
        loader.add_rows(rows, share=False)

    def _begin_batch(self, rest: "array[int]") -> None:
        """Start the batch with the next of the record ids *rest*; rows that are gone meanwhile are left out."""
        if not rest:
            self._use(RowLoader(self._view, rest), rest)
            raise StopIteration
        batch, self._rest = rest[: self._size], rest[self._size :]
        paths = self._view.paths(batch).value()
        rids = array("q", [rid for rid in batch if rid in paths])
        self._use(RowLoader(self._view, rids, self._catalog.excluded_keys), rids)
        self._loader.place([(rid, paths[rid]) for rid in rids])

    def _use(self, loader: RowLoader, rids: "array[int]") -> None:
        self._loader = loader
        self._rids = loader.neighbours.rids = rids
        self._at = 0
