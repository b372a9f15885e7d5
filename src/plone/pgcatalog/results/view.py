"""Reads one catalog as its transaction sees it: committed rows of the snapshot plus pending ones."""

from array import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog import settings
from plone.pgcatalog.database.planning import hide_unselective_indexes
from plone.pgcatalog.database.planning import plans_once
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.database.schema import Layout
from plone.pgcatalog.database.session import COLD_CONNECTION
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.sets import in_numbers
from plone.pgcatalog.database.sets import KnownSets
from plone.pgcatalog.database.time_limit import SearchTimeout
from plone.pgcatalog.fulltext.ranking import Score
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.overlay import Overlay
from plone.pgcatalog.indexing.overlay import Source
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.observe.trace import Trace
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.later import ask_along
from plone.pgcatalog.results.later import MAX_PARAMS
from plone.pgcatalog.results.ranked import Stages
from plone.pgcatalog.results.ranked import total_column
from plone.pgcatalog.results.versions import changed_rows
from plone.pgcatalog.results.versions import split_version
from plone.pgcatalog.results.versions import versioned_idx_sql
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.fragment import Fragment
from plone.pgcatalog.sql.fragment import Statement
from plone.pgcatalog.sql.predicate import NOT_NULL
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.sets import listed
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
#: None when there is nothing to ask.
Asked = Statement | None


class CatalogView:
    """Runs statements against the catalog with tool oid *zoid* on *session*'s snapshot."""

    def __init__(self, session: Session, zoid: int, layout: Layout) -> None:
        self.session = session
        self.zoid = zoid
        self.layout = layout
        #: told how long each statement took
        self.trace: Trace | None = None
        #: True for rows in the order of their rids whatever is pending: a stream goes on behind the last one
        self.by_rid = False
        #: seconds that a statement may take, None for as long as the server lets it
        self.limit: float | None = None
        #: the states that the snapshot showed last, and the stamp: each row of a long result asks for it
        self._stamped: tuple[Any, Stamp | None] = (None, None)

    def read_state(self) -> CatalogState | None:
        """Return the committed state, None when nothing has ever been committed; see ``Session.read_states``."""
        return self.session.read_states().get(self.zoid)

    @property
    def pending(self) -> CatalogPending | None:
        return self.session.pending.get(self.zoid)

    @property
    def is_committed(self) -> bool:
        """True when the transaction has changed nothing here: what it sees is what the snapshot's generation names."""
        return self.zoid not in self.session.pending

    def stamp(self) -> Stamp | None:
        """Return the cache stamp of this snapshot; None with pending changes or no catalog."""
        session = self.session
        if self.zoid in session.pending:
            return None
        states, stamp = self._stamped
        if states is None or states is not session.known_states:
            state, stamp = self.read_state(), None
            if state is not None and self._has_columns(state):
                stamp = Stamp(session.generations.number, self.zoid, state.relation, state.generation, state.tid)
            self._stamped = session.known_states, stamp
        return stamp

    def is_current(self, stamp: Stamp | None) -> bool:
        """True if *stamp* is this snapshot's."""
        return stamp is not None and self.stamp() == stamp

    def _has_columns(self, state: CatalogState) -> bool:
        return state.columns.issuperset(self.layout.names)

    def _guess(self) -> CatalogState | None:
        """Return the state that the snapshot will probably show, None when it is known, or nobody has seen any."""
        if not self.is_committed or self.session.knows_states():
            return None
        guess = self.session.generations.newest.get(self.zoid)
        return guess if guess and self._has_columns(guess) else None

    def source(self, state: CatalogState | None = None) -> Source | None:
        """Return what to select from in *state*, by default the snapshot's; None when there is nothing at all."""
        pending = self.pending
        if pending is not None and (pending.entries or pending.cleared or pending.cleared_columns):
            return self._overlay(pending).source()
        state = state or self.read_state()
        if state is None:
            return None
        if not self._has_columns(state):
            # An index was added in this transaction: its column comes with the commit.
            return self._overlay(pending or CatalogPending(None, self.zoid)).source()
        return quote(state.relation), ()

    def _overlay(self, pending: CatalogPending) -> Overlay:
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        if overlay is None or overlay.layout != self.layout or overlay.pending is not pending:
            overlay = Overlay(self.session, pending, self.layout)
            self.session.overlays[self.zoid] = overlay
        return overlay

    # -- statements

    def execute(self, query: str, params: Sequence[Any] = ()) -> Rows:
        """Run *query*, as ``ask`` does."""
        return self.ask(Statement(query, tuple(params)))

    def ask(self, statement: Statement, with_states: bool = False, seconds: float | None = None) -> Rows:
        """See ``Session.ask``; without *seconds* the view's own limit counts.

        Raises SearchTimeout when it is over, and LimitExceeded when PostgreSQL refuses a statement for its size.
        """
        limit = self.limit if seconds is None else seconds
        if len(statement.params) > MAX_PARAMS:
            raise LimitExceeded(f"a search has more than {MAX_PARAMS} values in its conditions")
        try:
            return self.session.ask(statement, with_states, limit)
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
        return self.run("rows", lambda state: self.statement(expressions, where, tail, params, state))

    def statement(
        self,
        expressions: str,
        where: Condition = EVERYTHING,
        tail: str = "",
        params: Sequence[Any] = (),
        state: CatalogState | None = None,
        window: tuple[int, int | None] | None = None,
    ) -> Asked:
        """Return the statement of ``select``, in *state* if that is not the snapshot's; *window* is that of ``Statement``."""
        return self._statement(expressions, self.needed(where, state), tail, params, state, window)

    def _statement(
        self,
        expressions: str,
        where: Condition,
        tail: str = "",
        params: Sequence[Any] = (),
        state: CatalogState | None = None,
        window: tuple[int, int | None] | None = None,
    ) -> Asked:
        """Return the statement of ``statement`` for a condition that is ``needed`` already."""
        source = self.source(state)
        if source is None:
            return None
        relation, source_params = source
        condition = "" if where is EVERYTHING else f" WHERE {where.sql}"
        sql = f"SELECT {expressions} FROM {relation}{condition} {tail}"
        return Statement(sql, (*params, *source_params, *where.params), where.is_costly, window)

    def needed(self, where: Condition, state: CatalogState | None = None) -> Condition:
        """Return *where* for the rows in *state*, by default the snapshot's: without what is true of all of them, and with
        the numbers of lists where those are interned.
        """
        state = state or self.read_state()
        complete = state.complete if state is not None and self.is_committed else ()
        interned = self.stored(state).numbered
        known: list[KnownSets] = []

        def asked(part: Condition) -> Condition:
            if not isinstance(part, Predicate):
                return part
            if part.operator == NOT_NULL and part.column.name in complete:
                return EVERYTHING
            if part.column.name not in interned:
                return part
            if not known:
                known.extend(self._known_sets(state))
            self.session.look_up(part)
            return in_numbers(part, interned, known)

        return where.changed(asked)

    def stored(self, state: CatalogState | None = None) -> Layout:
        """Return the layout as the rows in *state*, by default the snapshot's, are stored."""
        return self.layout.stored(self.layout.interned(state or self.read_state()))

    def _known_sets(self, state: CatalogState | None) -> list[KnownSets]:
        """Return the lists that rows in *state* may have: those of the database, and those that are pending."""
        sets = self.session.generations.sets
        if state is None or sets.newest < state.newest_set:
            sets = self.session.known_sets()
        if self.is_committed:
            return [sets]
        self.source(state)  # brings the overlay up to date
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        return [sets] if overlay is None else [sets, overlay.sets]

    def order(self, query: CompiledQuery, state: CatalogState | None = None) -> tuple[Order, ...]:
        """Return the terms that *query* is sorted by, for the rows in *state*, by default the snapshot's."""
        values = self.values(state)

        def asked(term: Order) -> Order:
            value = values.get(term.column.name) if term.column is not None else None
            return term if value is None else replace(term, expression=value)

        return tuple(map(asked, query.order))

    def _order_by(self, query: CompiledQuery, state: CatalogState | None) -> str:
        """Return the ORDER BY of *query*; without an order of its own what the transaction has moved comes last.

        ZCatalog gives a moved object a new rid.  Who searches while he moves objects, as plone.app.multilingual does, takes
        the first of two for the one that was there before.
        """
        order = ", ".join([term.sql for term in self.order(query, state)])
        pending = self.pending
        if pending is None or self.by_rid or query.order != (OLDEST_FIRST,):
            return order
        self.source()  # settles which rows are moved
        return f"{self._overlay(pending).moved()}, {order}" if pending.left else order

    def lists(self, columns: Iterable[Column], state: CatalogState | None = None) -> str:
        """Return the SQL of *columns* under their names, with the lists where those are interned."""
        values = self.values(state)
        return ", ".join(f"{values[c.name]} AS {c.quoted}" if c.name in values else c.quoted for c in columns)

    def values(self, state: CatalogState | None = None) -> dict[str, str]:
        """Return the SQL of the lists themselves for each column that is interned, by name."""
        pending = "" if self.is_committed else self._lists(state)
        return {name: listed(column, pending) for name, column in self.stored(state).numbered.items()}

    def _lists(self, state: CatalogState | None) -> str:
        """Return the table with lists that the transaction has not saved yet."""
        self.source(state)  # brings the overlay up to date
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        return overlay.lists if overlay else ""

    def hide_unselective_indexes(self, where: Condition, state: CatalogState | None = None) -> Condition:
        """Return *where* for a statement that needs all rows that match; see ``hide_unselective_indexes``."""

        def share(column: Column, values: Sequence[Any] | None) -> float | None:
            asked = state or self.read_state()
            if asked is None or self.session.is_small():
                return None
            selectivity = self.session.generations.selectivity
            return selectivity.share(self.session.ask, asked.relation, column, values)

        return hide_unselective_indexes(self.needed(where, state), share)

    def run(self, operation: str, statement: Callable[[CatalogState | None], Asked]) -> Rows:
        """Run what *statement* returns for the snapshot's state.

        When nobody has met the snapshot's newest transaction yet, its state is read in the message of a first try with
        the one that is known; that counts if it names the same table.
        """
        cold = "" if self.trace is None else self.session.coldness()
        started, fetched, along = perf_counter(), self.session.fetching, self.session.going_along
        guess = self._guess()
        sent = None if guess is None else statement(guess)
        rows = None if sent is None or guess is None else self._try(sent, guess)
        if rows is None:
            sent = statement(None)
            rows = None if sent is None else ask_along(self, sent)
        if self.trace is not None and sent is not None:
            seconds, fetching = perf_counter() - started, self.session.fetching - fetched
            seconds -= self.session.going_along - along
            cold = cold or (COLD_CONNECTION if self.session.met_new else "")
            self.trace.ran(operation, sent, seconds, fetching, len(rows or ()), cold)
        return rows or []

    def _try(self, statement: Statement, guess: CatalogState) -> Rows | None:
        try:
            return ask_along(self, statement, guess)
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
            return None

    def count(self, query: CompiledQuery) -> int:
        """Return the number of rows that match; one more than the query's ``count_limit`` for any number beyond that."""
        rows = self.run("count", lambda state: self.count_statement(query, state))
        return rows[0][0] if rows else 0

    def count_statement(self, query: CompiledQuery, state: CatalogState | None = None) -> Asked:
        where, limit = self.hide_unselective_indexes(query.where, state), query.count_limit
        tail = "" if limit is None else f"LIMIT {limit + 1:d}"
        found = self._statement("count(*)" if limit is None else "", where, tail, state=state)
        return replace(found, sql=f"SELECT count(*) FROM ({found.sql}) AS found") if tail and found else found

    def page(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        excluded_keys: Sequence[str] | None = None,
        with_idx: bool = True,
    ) -> Rows:
        """Return (rid, path, score) rows ``[start:start + size]`` of the sorted result; the score of what is not ranked is None.

        With *excluded_keys*, keys of idx that nobody wants, the rows have more in the fourth place, unless the transaction sees
        changes of its own: their version, and *with_idx* the other keys, see ``idx_texts``.
        """
        return self.page_and_total(query, start, size, excluded_keys, with_idx, with_total=False)[0]

    def page_and_total(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        excluded_keys: Sequence[str] | None = None,
        with_idx: bool = True,
        with_total: bool = True,
    ) -> tuple[Rows, int | None]:
        """Return what ``page`` does, and the number of all rows that match.

        That is None without *with_total* if it was not found out on the way, and always if there is no row.
        """

        column = None if size is None else with_total
        if excluded_keys is None or not self.is_committed:
            rows = self.run("page", lambda s: self.page_statement(query, start, size, "", s, column))
        else:
            rows = self.run(
                "page", lambda s: self.full_page_statement(query, start, size, excluded_keys, with_idx, s, column)
            )
        if column is None or not rows:
            return rows, None
        return [row[:-1] for row in rows], rows[0][-1]

    def page_statement(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        more: str = "",
        state: CatalogState | None = None,
        with_total: bool | None = None,
    ) -> Asked:
        """Return the statement of ``page``; None for *with_total* is one without a column for the total."""
        score, first, once = query.score, None, False
        where = self.hide_unselective_indexes(query.where, state) if score else self.needed(query.where, state)
        if score:
            stages = self._stages(where, score, state)
            if stages is not None:
                first, once = stages.first, stages.plans_once and plans_once(where)
                if size is not None and start + size <= stages.newest:
                    where = stages.only_ranked
                else:
                    score = stages.scored
        params = score.params if score else ()
        if with_total is not None:
            count = self.count_statement(query, state) if with_total else None
            total = total_column(query.score, first is not None, count)
            more += f", {total.sql} AS total"
            params = (*params, *total.params)
        expressions = f"rid, path, {score.sql if score else 'NULL'} AS score{more}"
        tail = f"ORDER BY {'score DESC NULLS LAST, rid DESC' if score else self._order_by(query, state)}"
        if size is not None:
            tail += f" LIMIT {size:d}"
        if start:
            tail += f" OFFSET {start:d}"
        page = self._statement(expressions, where, tail, params, state, (start, size))
        if page is None or first is None:
            return page
        params = (*first.params, *page.params)
        return replace(page, sql=first.sql + page.sql, params=params, is_costly=True, plans_once=once)

    def _stages(self, where: Condition, score: Fragment, state: CatalogState | None) -> Stages | None:
        """Return the two stages of ranking what matches *where*; None where all of it is ranked."""
        asked = state or self.read_state()
        if asked is None or not isinstance(score, Score):
            return None
        source = self.source(state)
        return source and Stages.of(source, where, score, asked.rows, settings.RANKED_ROWS)

    def full_page_statement(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        excluded_keys: Sequence[str],
        with_idx: bool = True,
        state: CatalogState | None = None,
        with_total: bool | None = None,
    ) -> Asked:
        state = state or self.read_state()
        if state is None or not self._has_columns(state):
            return self.page_statement(query, start, size, "", state, with_total)
        # The idx is fetched for the rows of the page only: behind LIMIT.
        page = self.page_statement(query, start, size, ", zoid, idx, xmin", state, with_total)
        text, params = versioned_idx_sql("page", excluded_keys, with_idx)
        if page is None:
            return None
        total = "" if with_total is None else ", total"
        sql = f"SELECT rid, path, score, {text}{total} FROM ({page.sql}) AS page"
        return replace(page, sql=sql, params=(*params, *page.params))

    def rids(self, query: CompiledQuery) -> array[int]:
        """Return the rids of the whole sorted result, which is not ranked: one row with one binary value."""
        rows = self.run("rids", lambda state: self.rids_statement(query, state))
        rids = array("q")
        if rows and rows[0][0]:
            rids.frombytes(rows[0][0])
            if sys.byteorder == "little":
                rids.byteswap()
        return rids

    def rids_statement(self, query: CompiledQuery, state: CatalogState | None = None) -> Asked:
        expression = f"string_agg(int8send(rid), ''::bytea ORDER BY {self._order_by(query, state)})"
        where = self.hide_unselective_indexes(query.where, state)
        if not where.is_costly:
            return self._statement(expression, where, state=state)
        # Behind OFFSET, PostgreSQL sorts what it has found, and does not compare all rows in the order of an index.
        found = self._statement("*", where, "OFFSET 0", state=state)
        return found and replace(found, sql=f"SELECT {expression} FROM ({found.sql}) AS catalog")

    def paths(self, rids: Iterable[int]) -> dict[int, str]:
        """Return the paths of *rids*, leaving out unknown ones."""
        condition = Condition("rid = ANY(%s::bigint[])", (list(rids),))
        return dict(self.select("rid, path", condition))

    # -- idx

    def idx(self, rids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the idx JSON (undecoded values) of the rows *rids*, those pending included."""
        texts = ((rid, split_version(text)[1]) for rid, _, text in self.idx_texts(rids))
        found = {rid: orjson.loads(text) if text else {} for rid, text in texts}
        for rid in rids:
            pending = self.pending_idx(rid, found.get(rid))
            if pending is not None:
                found[rid] = pending
        return found

    def idx_texts(
        self, rids: Sequence[int], excluded_keys: Sequence[str] = (), known: Mapping[int, str] = MappingProxyType({})
    ) -> Rows:
        """Return (rid, path, text) of the committed rows *rids*, and of those of another version than the *known* one.

        ``split_version(text)`` are the row's version, and its idx as JSON without the keys *excluded_keys*.  *known* are
        versions by rid; a row that is gone has None for its path.
        """

        def statement(state: CatalogState | None) -> Asked:
            state = state or self.read_state()
            if state is None:
                return None
            return changed_rows(state.relation, rids, excluded_keys, known)

        return self.run("metadata", statement)

    def pending_idx(self, rid: int, committed: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the idx of the row *rid* as the transaction has changed it, None when it has not."""
        pending = self.pending
        entry = None if pending is None else pending.pending_at(rid)
        if entry is None:
            return None
        if entry.new or committed is None:
            return entry.idx
        return {k: v for k, v in committed.items() if k not in entry.vanished} | entry.idx
