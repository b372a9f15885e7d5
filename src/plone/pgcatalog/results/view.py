"""Runs statements on one catalog, and returns their rows."""

from array import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from functools import partial
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.database.session import COLD_CONNECTION
from plone.pgcatalog.database.session import COLD_PROCESS
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.observe.trace import Trace
from plone.pgcatalog.query import bind
from plone.pgcatalog.query import statements
from plone.pgcatalog.query import stored_counts
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.results.seen import SeenCatalog
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.expression import Statement
from time import perf_counter
from types import MappingProxyType
from typing import Any

import orjson
import psycopg
import sys


#: Builds a statement for the stored form of a catalog; returns None if there is nothing to read.
StatementBuilder = Callable[[Stored], Statement | None]
TOO_LARGE = (
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,
    psycopg.errors.TooManyArguments,
    psycopg.errors.TooManyColumns,
)
#: PostgreSQL's protocol counts the values of a statement in two bytes.
MAX_PARAMS = 65535


class Fetch[Value]:
    """A deferred value: *read* returns it, and is called once, by the first call of ``value``.

    A chain of fetches begins with a ``RowsFetch``.
    """

    def __init__(self, read: Callable[[], Value]) -> None:
        self._read = read

    @classmethod
    def of(cls, value: Value) -> "Fetch[Value]":
        """Return a fetch of *value* that reads nothing."""
        return Fetch(lambda: value)

    @cached_property
    def _value(self) -> Value:
        return self._read()

    def value(self) -> Value:
        """Return the value; the first call reads it.  Raises as ``RowsFetch.value``."""
        return self._value

    def then[Other](self, function: Callable[[Value], Other]) -> "Fetch[Other]":
        """Return a fetch of the result of *function* for the value."""
        return Fetch(lambda: function(self.value()))


class CatalogView(SeenCatalog):
    """Runs statements against the catalog with tool oid *zoid* on *session*'s snapshot."""

    def __init__(self, session: Session, zoid: int, layout: Layout) -> None:
        super().__init__(session, zoid, layout)
        #: receives the duration of each statement
        self.trace: Trace | None = None
        #: time limit of a statement in seconds; None for the limit of the server
        self.limit: float | None = None

    def statement(self, build: StatementBuilder, *conditions: Condition) -> Statement | None:
        """Return the statement that *build* builds for the stored form of the catalog; None if there is nothing to read.

        *conditions* are all conditions that *build* binds.
        """
        snapshot = self.snapshot()
        return None if snapshot is None else build(self.with_values(snapshot.stored, conditions))

    def fetch(
        self, build: StatementBuilder, *conditions: Condition, operation: str = "rows", seconds: float | None = None
    ) -> "RowsFetch":
        """Return a fetch of the rows of the statement that *build* builds, see ``statement``; *seconds* is its time limit.

        *operation* names the statement in the record of slow queries.
        """
        return RowsFetch(self, partial(self.statement, build, *conditions), operation, seconds)

    def select(
        self,
        expressions: str,
        where: Condition = EVERYTHING,
        tail: str = "",
        params: Sequence[Any] = (),
        columns: Sequence[Column] = (),
    ) -> "RowsFetch":
        """Return a fetch of the rows of ``SELECT expressions, columns FROM catalog WHERE where tail``.

        *params* belong to *expressions*.  Interned *columns* have their lists as values, not the numbers.
        """

        def statement(stored: Stored) -> Statement:
            values = ", ".join(filter(None, (expressions, bind.columns_sql(columns, stored))))
            return bind.select(values, bind.condition(where, stored), stored, tail, params)

        return self.fetch(statement, where)

    def order(self, compiled: CompiledQuery) -> tuple[Order, ...]:
        """Return the terms that the query *compiled* is sorted by, for the rows of the snapshot."""
        snapshot = self.snapshot()
        return compiled.order if snapshot is None else bind.order(compiled, snapshot.stored)

    def count(self, compiled: CompiledQuery) -> Fetch[int]:
        """Return a fetch of the number of rows that match, at most one more than ``count_limit`` of *compiled*."""
        rows = self.fetch(partial(statements.count, compiled), compiled.where, operation="count")
        return rows.then(lambda rows: rows[0][0] if rows else 0)

    def page(
        self,
        compiled: CompiledQuery,
        start: int,
        size: int | None,
        excluded_keys: Sequence[str] | None = None,
        with_idx: bool = True,
        with_total: bool = False,
        value: Column | None = None,
        most: int | None = None,
    ) -> Fetch[tuple[Rows, int | None]]:
        """Return a fetch of the rows ``[start:start + size]`` of the sorted result, and of the number of all that match.

        - A row is (rid, path, score); the score is None if the result is not ranked.
        - The number is None without *with_total*, unless it costs nothing; without *size*; and if the page has no row.
        - With *excluded_keys*, keys of idx that no brain reads, and without pending changes, a row has a fourth place: its
          version and idx as in ``idx_texts``; without *with_idx* its version only.
        - *value* is a column whose value is added in the last place, for a page without *size*.
        - *most*: the fourth place is None if the page has more rows.
        """
        column = None if size is None else with_total

        def statement(stored: Stored) -> Statement:
            if excluded_keys is None or self.stamp() is None:
                return statements.page(compiled, stored, start, size, statements.value_column(value), column)
            return statements.page_with_metadata(
                compiled, stored, start, size, excluded_keys, with_idx, column, value, most
            )

        rows = self.fetch(statement, compiled.where, operation="page")
        return rows.then(lambda rows: (rows, None) if column is None or not rows else without_total(rows))

    def rids(self, compiled: CompiledQuery, size: int | None = None) -> Fetch[array[int]]:
        """Return a fetch of the rids of the sorted, unranked result, or of its first *size* rows, read as one value."""
        statement = (
            partial(statements.ids, compiled) if size is None else partial(statements.first_ids, compiled, size=size)
        )
        return self.fetch(statement, compiled.where, operation="rids").then(from_binary)

    def paths(self, rids: Iterable[int]) -> Fetch[dict[int, str]]:
        """Return a fetch of rid -> path for *rids*; unknown rids are left out."""
        return self.select("rid, path", Condition("rid = ANY(%s::bigint[])", (list(rids),))).then(dict)

    # -- idx

    def idx(self, rids: Sequence[int]) -> Fetch[dict[int, dict[str, Any]]]:
        """Return a fetch of rid -> idx (JSON with undecoded values) for the rows *rids*, pending changes included."""
        return self.idx_texts(rids).then(partial(self._as_pending, rids))

    def _as_pending(self, rids: Sequence[int], committed: Rows) -> dict[int, dict[str, Any]]:
        texts = ((rid, statements.split_version(text)[1]) for rid, _, text in committed)
        idx = {rid: orjson.loads(text) if text else {} for rid, text in texts}
        pending = {rid: self.pending_idx(rid, idx.get(rid)) for rid in rids}
        return idx | {rid: changed for rid, changed in pending.items() if changed is not None}

    def idx_texts(
        self, rids: Sequence[int], excluded_keys: Sequence[str] = (), versions: Mapping[int, str] = MappingProxyType({})
    ) -> "RowsFetch":
        """Return a fetch of (rid, path, text) of the committed rows *rids*, and of changed rows among *versions*.

        *versions* maps rids to versions; a row is changed if it has another version.  ``statements.split_version(text)``
        returns the version of the row, and its idx as JSON without *excluded_keys*.  The path is None if the row is gone.
        """

        def statement() -> Statement | None:
            # Pending changes leave committed rows as they are, so no overlay is needed.
            state = self.read_state()
            return None if state is None else statements.changed_rows(state.relation, rids, excluded_keys, versions)

        return RowsFetch(self, statement, "metadata", None)


def without_total(rows: Rows) -> tuple[Rows, int]:
    """Return *rows* without their last column, and the number of all rows, which is the value of that column."""
    return [row[:-1] for row in rows], rows[0][-1]


def from_binary(rows: Rows) -> "array[int]":
    """Return the rids in the binary value of ``statements.ids``."""
    rids = array("q")
    if rows and rows[0][0]:
        rids.frombytes(rows[0][0])
        if sys.byteorder == "little":
            rids.byteswap()
    return rids


class RowsFetch(Fetch[Rows]):
    """A fetch of the rows of *statement* in the catalog of *view*; an open ``Session.batch`` sends several in one message.

    If a message fails, each of its statements is repeated alone, and raises its own error only.  *seconds* is the time
    limit, None for the view's.  A transaction with pending changes sends each statement alone.
    """

    def __init__(
        self, view: CatalogView, statement: Callable[[], Statement | None], operation: str, seconds: float | None
    ) -> None:
        self.statement = statement
        self.seconds: float | None = view.limit if seconds is None else seconds
        self.answer: Rows | None = None
        self.is_too_slow = False
        self._view = view
        self._operation = operation
        view.session.collected.add(view.zoid, self)

    def value(self) -> Rows:
        """Return the rows, [] if there is nothing to read.

        Raises SearchTimeout at the time limit, and LimitExceeded if PostgreSQL refuses a statement for its size.
        """
        if self.is_too_slow:
            raise self._timeout()
        if self.answer is None:
            self._view.session.collected.remove(self._view.zoid, self)
            self.answer = self._read()
        return self.answer

    def send(self) -> None:
        """Send the statements that the batch has collected; ``value`` raises the error of this one."""
        with suppress(psycopg.Error, SearchTimeout, LimitExceeded):
            self.value()

    def joinable(self) -> Statement | None:
        """Return the statement for the message of another read; None if there is none, or if ``value`` raises its error."""
        try:
            return self.statement() if self._view.is_committed else None
        except Exception:  # noqa: BLE001  whatever the error, the other read must be answered
            return None

    def _read(self) -> Rows:
        session, trace = self._view.session, self._view.trace
        messages, cold = session.messages, "" if session.generations.has_read else COLD_PROCESS
        started, fetched, trailing = perf_counter(), messages.fetching, messages.trailing_seconds
        statement = self.statement()
        if statement is None:
            return []
        rows = self._send(statement)
        if trace is not None:
            spent = perf_counter() - started - (messages.trailing_seconds - trailing)
            cold = cold or (COLD_CONNECTION if messages.met_new else "")
            trace.ran(self._operation, statement, spent, messages.fetching - fetched, len(rows), cold)
        return rows

    def _send(self, statement: Statement) -> Rows:
        """Run *statement* in one message with the statements that a batch has collected; return its rows."""
        view = self._view
        reads = view.session.collected.claim(view.zoid)
        joined = [(read, sent) for read in reads if (sent := read.joinable())] if view.is_committed else []
        if not joined or any(len(sent.params) > MAX_PARAMS for sent in (statement, *(sent for _, sent in joined))):
            return self._query(statement)
        is_too_slow = False
        try:
            statements = [(statement, self.seconds), *((sent, read.seconds) for read, sent in joined)]
            rows: Rows
            rows, *others = view.session.query_all(statements)
            for (read, _), answer in zip(joined, others, strict=True):
                read.answer = answer
            return rows
        except psycopg.Error as error:
            is_too_slow = isinstance(error, psycopg.errors.QueryCanceled)
        # Repeating a statement alone shows whether it has failed; of two, if this one succeeds, the other was too slow.
        rows = self._query(statement)
        if is_too_slow and len(joined) == 1:
            joined[0][0].is_too_slow = True
        return rows

    def _query(self, statement: Statement) -> Rows:
        """Run *statement* alone; return its rows.  Raises as ``value``."""
        if len(statement.params) > MAX_PARAMS:
            raise LimitExceeded(f"a search has more than {MAX_PARAMS} values in its conditions")
        try:
            return self._view.session.query(statement, self.seconds)
        except TOO_LARGE as error:
            reason = error.diag.message_primary
            raise LimitExceeded(f"a search exceeds a limit of PostgreSQL: {reason}") from error
        except psycopg.errors.QueryCanceled as error:
            raise self._timeout() from error

    def _timeout(self) -> SearchTimeout:
        allowed = "the time limit" if self.seconds is None else f"{self.seconds:g} s"
        return SearchTimeout(f"the search took longer than {allowed}")


# -- values of indexes


def entries(
    view: CatalogView, translator: IndexTranslator, where: Condition = EVERYTHING
) -> Fetch[Iterator[tuple[int, Any]]]:
    """Return a fetch of (rid, entry), by rid, of the rows that match *where* and have a value in the index."""
    columns = translator.columns()
    if not columns:
        return Fetch.of(iter(()))
    has_value = Condition(f"{columns[0].quoted} IS NOT NULL") & where
    rows = view.select("rid", has_value, "ORDER BY rid", columns=columns)
    return rows.then(lambda rows: ((rid, translator.entry(tuple(values))) for rid, *values in rows))


def key_counts(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> RowsFetch:
    """Return a fetch of (key, number of rows) of the rows that match *where*; see ``statements.key_counts``."""

    def statement(stored: Stored) -> Statement:
        arguments = translator.columns(), key, where, stored
        return stored_counts.key_counts(*arguments) or statements.key_counts(*arguments)

    return view.fetch(statement, where, operation="keys")


def key_rids(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> RowsFetch:
    """Return a fetch of (key, rid), sorted, of the rows that match *where*; *key* is the translator's SQL of a key."""
    return view.fetch(partial(statements.key_rids, translator.columns(), key, where), where, operation="keys")
