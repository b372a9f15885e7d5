"""Runs statements on one catalog, and reads what they bring."""

from array import array
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.database.keywords import with_some_row
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.session import COLD_CONNECTION
from plone.pgcatalog.database.session import COLD_PROCESS
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.observe.trace import Trace
from plone.pgcatalog.query import bind
from plone.pgcatalog.query import kept
from plone.pgcatalog.query import statements
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.results.fetch import Fetch
from plone.pgcatalog.results.seen import Maker
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


Rows = list[tuple[Any, ...]]
TOO_LARGE = (
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,
    psycopg.errors.TooManyArguments,
    psycopg.errors.TooManyColumns,
)
#: The protocol counts the values of a statement in two bytes.
MAX_PARAMS = 65535


class CatalogView(SeenCatalog):
    """Runs statements against the catalog with tool oid *zoid* on *session*'s snapshot."""

    def __init__(self, session: Session, zoid: int, layout: Layout) -> None:
        super().__init__(session, zoid, layout)
        #: told how long each statement took
        self.trace: Trace | None = None
        #: seconds that a statement may take, None for as long as the server lets it
        self.limit: float | None = None

    def execute(self, query: str, params: Sequence[Any] = ()) -> Rows:
        """Run *query*, as ``ask`` does."""
        return self.ask(Statement(query, tuple(params)))

    def ask(self, statement: Statement, seconds: float | None = None) -> Rows:
        """See ``Session.ask``; without *seconds* the view's own limit counts.

        Raises SearchTimeout when it is over, and LimitExceeded when PostgreSQL refuses a statement for its size.
        """
        limit = self.limit if seconds is None else seconds
        if len(statement.params) > MAX_PARAMS:
            raise LimitExceeded(f"a search has more than {MAX_PARAMS} values in its conditions")
        try:
            return self.session.ask(statement, limit)
        except TOO_LARGE as error:
            reason = error.diag.message_primary
            raise LimitExceeded(f"a search asks for more than PostgreSQL answers at once: {reason}") from error
        except psycopg.errors.QueryCanceled as error:
            allowed = "it is allowed to" if limit is None else f"{limit:g} s"
            raise SearchTimeout(f"the search took longer than {allowed}") from error

    def select(
        self, expressions: str, where: Condition = EVERYTHING, tail: str = "", params: Sequence[Any] = ()
    ) -> Rows:
        """Return the rows of ``SELECT expressions FROM catalog WHERE where tail``; *params* belong to *expressions*."""

        def statement(stored: Stored) -> Statement:
            return bind.select(expressions, bind.condition(where, stored), stored, tail, params)

        return self.run("rows", self.binding(statement, where))

    def select_values(
        self, first: str, columns: Sequence[Column], where: Condition = EVERYTHING, tail: str = ""
    ) -> Rows:
        """Return ``select`` of the expressions *first* and the values of *columns*, lists as such."""

        def statement(stored: Stored) -> Statement:
            expressions = ", ".join(filter(None, (first, bind.columns_sql(columns, stored))))
            return bind.select(expressions, bind.condition(where, stored), stored, tail)

        return self.run("rows", self.binding(statement, where))

    def order(self, query: CompiledQuery) -> tuple[Order, ...]:
        """Return the terms that *query* is sorted by, for the rows of the snapshot."""
        stored = self.stored()
        return query.order if stored is None else bind.order(query, stored)

    def run(self, operation: str, statement: Maker, seconds: float | None = None) -> Rows:
        """Run what *statement* makes for the snapshot, in *seconds*; in its message goes what a batch has collected."""
        messages, cold = self.session.messages, "" if self.session.generations.has_read else COLD_PROCESS
        started, fetched, along = perf_counter(), messages.fetching, messages.going_along
        sent = statement()
        if sent is None:
            return []
        rows = self._send(sent, seconds)
        if self.trace is not None:
            spent = perf_counter() - started - (messages.going_along - along)
            cold = cold or (COLD_CONNECTION if messages.met_new else "")
            self.trace.ran(operation, sent, spent, messages.fetching - fetched, len(rows), cold)
        return rows

    def _send(self, statement: Statement, seconds: float | None) -> Rows:
        """Run *statement*, and in its message what a batch has collected; return its rows.  Raises as ``ask``."""
        reads = self.session.collected.take(self.zoid)
        along = [(read, sent) for read in reads if (sent := read.statement())] if self.is_committed else []
        if not along or any(len(sent.params) > MAX_PARAMS for sent in (statement, *(sent for _, sent in along))):
            return self.ask(statement, seconds)
        limit = self.limit if seconds is None else seconds
        too_slow = False
        try:
            statements = [(statement, limit), *((sent, read.seconds) for read, sent in along)]
            rows: Rows
            rows, *others = self.session.ask_all(statements)
            for (read, _), answer in zip(along, others, strict=True):
                read.answer = answer
            return rows
        except psycopg.Error as error:
            too_slow = isinstance(error, psycopg.errors.QueryCanceled)
        # Each by itself says which of them has failed; of two, one that succeeds tells of the other.
        answered = self.ask(statement, seconds)
        if too_slow and len(along) == 1:
            along[0][0].is_too_slow = True
        return answered

    def count(self, query: CompiledQuery) -> int:
        """Return the number of rows that match; one more than the query's ``count_limit`` for any number beyond that."""
        rows = self.run("count", self.binding(partial(statements.count, query), query.where))
        return rows[0][0] if rows else 0

    def page(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        excluded_keys: Sequence[str] | None = None,
        held: bytes | None = b"",
        with_total: bool = False,
        value: Column | None = None,
        most: int | None = None,
    ) -> tuple[Rows, int | None]:
        """Return (rid, path, score) rows ``[start:start + size]`` of the sorted result, and the number of all rows that match.

        The score of what is not ranked is None; so is the number without *with_total* if it was not found on the way, and
        always if there is no row.  With *excluded_keys*, keys of idx that nobody wants, the rows have more in the fourth
        place, unless the transaction sees changes of its own: their version, and the other keys of those not in *held*, a
        bitmap, None for all rows; see ``idx_texts``.  The last place has the *value* of a column, for a page without *size*.
        The fourth place of a page with more than *most* rows is None.
        """
        column = None if size is None else with_total

        def statement() -> Statement | None:
            stored = self.stored(query.where)
            if stored is None:
                return None
            state = self.read_state()
            if excluded_keys is None or not self.is_committed or state is None or not self.has_columns(state):
                return statements.page(query, stored, start, size, statements.value_column(value), column)
            return statements.page_with_metadata(query, stored, start, size, excluded_keys, held, column, value, most)

        rows = self.run("page", statement)
        if column is None or not rows:
            return rows, None
        return [row[:-1] for row in rows], rows[0][-1]

    def rids(self, query: CompiledQuery, size: int | None = None) -> array[int]:
        """Return the rids of the sorted result, which is not ranked, or of its first *size* rows: one row with one binary value."""
        statement = partial(statements.ids, query) if size is None else partial(statements.first_ids, query, size=size)
        rows = self.run("rids", self.binding(statement, query.where))
        rids = array("q")
        if rows and rows[0][0]:
            rids.frombytes(rows[0][0])
            if sys.byteorder == "little":
                rids.byteswap()
        return rids

    def paths(self, rids: Iterable[int]) -> dict[int, str]:
        """Return the paths of *rids*, leaving out unknown ones."""
        condition = Condition("rid = ANY(%s::bigint[])", (list(rids),))
        return dict(self.select("rid, path", condition))

    # -- idx

    def idx(self, rids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the idx JSON (undecoded values) of the rows *rids*, those pending included."""
        texts = ((rid, statements.split_version(text)[1]) for rid, _, text in self.idx_texts(rids))
        idx = {rid: orjson.loads(text) if text else {} for rid, text in texts}
        for rid in rids:
            pending = self.pending_idx(rid, idx.get(rid))
            if pending is not None:
                idx[rid] = pending
        return idx

    def idx_texts(
        self, rids: Sequence[int], excluded_keys: Sequence[str] = (), versions: Mapping[int, str] = MappingProxyType({})
    ) -> Rows:
        """Return (rid, path, text) of the committed rows *rids*, and of those of another version than in *versions*.

        ``statements.split_version(text)`` are the row's version, and its idx as JSON without the keys *excluded_keys*.  *versions* are
        by rid; a row that is gone has None for its path.
        """

        def statement() -> Statement | None:
            state = self.read_state()
            if state is None:
                return None
            return statements.changed_rows(state.relation, rids, excluded_keys, versions)

        return self.run("metadata", statement)


class RowsFetch(Fetch[Rows]):
    """The rows of *statement* in the catalog of *view*; in an open ``Session.batch`` it goes in the message of the batch.

    A failure leaves the other statements of the message alone: the statement is repeated alone, and raises.  *seconds* is
    its time limit, None for the view's.  A transaction with pending changes sends each statement alone.
    """

    def __init__(self, view: CatalogView, statement: Maker, seconds: float | None = None) -> None:
        self.statement = statement
        self.seconds: float | None = view.limit if seconds is None else seconds
        self.answer: Rows | None = None
        self.is_too_slow = False
        self._view = view
        view.session.collected.add(view.zoid, self)

    def value(self) -> Rows:
        """Return the rows, [] if there is nothing to read.  Raises as ``CatalogView.ask``."""
        if self.is_too_slow:
            raise SearchTimeout(f"the search took longer than {self.seconds} s")
        if self.answer is None:
            self._view.session.collected.remove(self._view.zoid, self)
            self.answer = self._view.run("rows", self.statement, self.seconds)
        return self.answer

    def send(self) -> None:
        """Send the statements that the batch has collected; if this one fails, ``value`` raises."""
        with suppress(psycopg.Error, SearchTimeout, LimitExceeded):
            self.value()


# -- values of indexes


def entries(view: CatalogView, translator: IndexTranslator, where: Condition = EVERYTHING) -> Iterator[tuple[int, Any]]:
    """Yield (rid, entry) of the rows that match *where* and have a value in the index, ascending by rid."""
    columns = translator.columns()
    if not columns:
        return
    has_value = Condition(f"{columns[0].quoted} IS NOT NULL") & where
    for rid, *values in view.select_values("rid", columns, has_value, "ORDER BY rid"):
        yield rid, translator.entry(tuple(values))


def key_counts(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> Rows:
    """Return (key, number of rows) of the rows that match *where*; see ``statements.key_counts``."""

    def statement(stored: Stored) -> Statement:
        query = translator.columns(), key, where, stored
        return kept.key_counts(*query) or statements.key_counts(*query)

    return view.run("keys", view.binding(statement, where))


def key_rids(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> Rows:
    """Return (key, rid) of the rows that match *where*, in this order; *key* is the translator's expression of a key."""
    return view.run("keys", view.binding(partial(statements.key_rids, translator.columns(), key, where), where))


def collected_keys(view: CatalogView, translator: IndexTranslator, key: str) -> list[Any] | None:
    """Return the keys of ``key_counts`` in their order, found by looking up those that there may be.

    None where they are not known, or reading all rows takes no longer.
    """
    column = next(iter(translator.columns()), None)
    if column is None or not column.can_be_interned or key != f"unnest({column.quoted})" or not view.is_committed:
        return None
    state = view.read_state()
    if state is None or column.name not in state.collected:
        return None
    keywords = view.session.known_sets().elements(column.name)
    statement = None if keywords is None else with_some_row(state, column, keywords)
    return None if statement is None else [row[0] for row in view.run("keys", lambda: statement)]
