"""Reads one catalog as its transaction sees it: committed rows of the snapshot plus pending ones."""

from array import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog import settings
from plone.pgcatalog.database.planning import hide_unselective_indexes
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.database.schema import Layout
from plone.pgcatalog.database.session import COLD_CONNECTION
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.time_limit import SearchTimeout
from plone.pgcatalog.fulltext import pg_textsearch_index
from plone.pgcatalog.fulltext.pg_textsearch import IndexedScore
from plone.pgcatalog.fulltext.ranking import Score
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.overlay import Overlay
from plone.pgcatalog.indexing.overlay import Source
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.observe.trace import Trace
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.ranked import LARGE_RATIO
from plone.pgcatalog.results.ranked import only
from plone.pgcatalog.results.ranked import ranked_rids
from plone.pgcatalog.results.ranked import scored
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.fragment import Fragment
from plone.pgcatalog.sql.fragment import Statement
from plone.pgcatalog.sql.predicate import NOT_NULL
from plone.pgcatalog.sql.predicate import Predicate
from time import perf_counter
from typing import Any

import orjson
import psycopg
import sys


Rows = list[tuple[Any, ...]]
#: The protocol counts the values of a statement in two bytes.
MAX_PARAMS = 65535
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
        return self._run("rows", lambda state: self.statement(expressions, where, tail, params, state))

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
        source = self.source(state)
        if source is None:
            return None
        relation, source_params = source
        where = self.needed(where, state)
        condition = "" if where is EVERYTHING else f" WHERE {where.sql}"
        sql = f"SELECT {expressions} FROM {relation}{condition} {tail}"
        return Statement(sql, (*params, *source_params, *where.params), where.is_costly, window)

    def needed(self, where: Condition, state: CatalogState | None = None) -> Condition:
        """Return *where* without what is true of every row in *state*, by default the snapshot's."""
        state = state or self.read_state()
        if state is None or not self.is_committed:
            return where
        complete = state.complete

        def asked(part: Condition) -> Condition:
            is_known = isinstance(part, Predicate) and part.operator == NOT_NULL and part.column.name in complete
            return EVERYTHING if is_known else part

        return where.changed(asked) if complete else where

    def hide_unselective_indexes(self, where: Condition, state: CatalogState | None = None) -> Condition:
        """Return *where* for a statement that needs all rows that match; see ``hide_unselective_indexes``."""

        def share(column: Column, values: Sequence[Any] | None) -> float | None:
            asked = state or self.read_state()
            if asked is None or self.session.is_small():
                return None
            selectivity = self.session.generations.selectivities[self.zoid]
            return selectivity.share(self.session.execute, asked.relation, column, values, self.layout.common_elements)

        return hide_unselective_indexes(self.needed(where, state), share)

    def _run(self, operation: str, statement: Callable[[CatalogState | None], Asked]) -> Rows:
        """Run what *statement* returns for the snapshot's state.

        When nobody has met the snapshot's newest transaction yet, its state is read in the message of a first try with
        the one that is known; that counts if it names the same table.
        """
        cold = "" if self.trace is None else self.session.coldness()
        started, fetched = perf_counter(), self.session.fetching
        guess = self._guess()
        if guess is not None:
            sent = statement(guess)
            rows = None if sent is None else self._try(sent, guess)
        else:
            sent, rows = None, None
        if rows is None:
            sent = statement(None)
            rows = [] if sent is None else self.ask(sent)
        if self.trace is not None and sent is not None:
            seconds, fetching = perf_counter() - started, self.session.fetching - fetched
            cold = cold or (COLD_CONNECTION if self.session.met_new else "")
            self.trace.ran(operation, sent, seconds, fetching, len(rows), cold)
        return rows

    def _try(self, statement: Statement, guess: CatalogState) -> Rows | None:
        try:
            rows = self.ask(statement, with_states=True)
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
            return None
        state = self.read_state()
        return rows if state and table_of(state) == table_of(guess) else None

    def count(self, query: CompiledQuery) -> int:
        """Return the number of rows that match."""
        rows = self._run("count", lambda state: self.count_statement(query, state))
        return rows[0][0] if rows else 0

    def count_statement(self, query: CompiledQuery, state: CatalogState | None = None) -> Asked:
        return self.statement("count(*)", self.hide_unselective_indexes(query.where, state), state=state)

    def page(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        excluded_keys: Sequence[str] | None = None,
        with_idx: bool = True,
    ) -> Rows:
        """Return (rid, path, score) rows ``[start:start + size]`` of the sorted result.

        With *excluded_keys*, keys of idx that nobody wants, the rows have more in the fourth place, unless the transaction sees
        changes of its own: their version, and *with_idx* the other keys, see ``idx_texts``.
        """

        def ask(query: CompiledQuery) -> Rows:
            if excluded_keys is None or not self.is_committed:
                return self._run("page", lambda state: self.page_statement(query, start, size, state=state))
            return self._run("page", lambda s: self.full_page_statement(query, start, size, excluded_keys, with_idx, s))

        return self._ranked(query, ask)

    def _ranked(self, query: CompiledQuery, ask: Callable[[CompiledQuery], Rows]) -> Rows:
        """Return what *ask* brings of *query*; ranked by an index of an extension, if that is wanted and can be."""
        score = query.score
        if not isinstance(score, IndexedScore):
            return ask(query)
        plain = replace(query, score=score.plain)
        # Pending rows are in no index.
        stamp = self.stamp()
        relation = None if stamp is None else stamp.relation
        database = self.session.generations.number
        index = relation and pg_textsearch_index.usable_index(
            self.session.execute, database, relation, score.column.name
        )
        if not relation or not index:
            return ask(plain)
        # Behind a statement_timeout of the transaction, pg_textsearch 0.6 refuses to rank a table that a rebuild has made.
        limit, self.limit = self.limit, None
        try:
            return ask(replace(query, score=score.by(index)))
        except pg_textsearch_index.REFUSED as error:
            refused = error
        finally:
            self.limit = limit
        rows = ask(plain)  # raises again what has nothing to do with the index
        pg_textsearch_index.refuse(database, relation, refused)
        return rows

    def page_statement(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        more: str = "",
        state: CatalogState | None = None,
    ) -> Asked:
        where, score = self.needed(query.where, state), query.score
        if score:
            where, score = self._ranking(where, score, None if size is None else start + size, state)
        expressions = f"rid, path, {score.sql if score else 'NULL'} AS score{more}"
        tail = f"ORDER BY {'score DESC, rid DESC' if score else query.order_by}"
        if size is not None:
            tail += f" LIMIT {size:d}"
        if start:
            tail += f" OFFSET {start:d}"
        return self.statement(expressions, where, tail, score.params if score else (), state, (start, size))

    def _ranking(
        self, where: Condition, score: Fragment, end: int | None, state: CatalogState | None
    ) -> tuple[Condition, Fragment]:
        """Return which rows are read to rank those that match *where* up to the row *end*, and what ranks them."""
        asked, limit = state or self.read_state(), settings.RANKED_ROWS
        is_large = asked is not None and limit > 0 and asked.rows > LARGE_RATIO * limit
        source = self.source(state) if is_large and self.is_committed else None
        if source is None or not isinstance(score, Score):
            return self.hide_unselective_indexes(where, state), score
        rids = ranked_rids(source, where, score, limit)
        if end is not None and end <= limit:
            return only(rids, where), score
        return self.hide_unselective_indexes(where, state), scored(rids, score)

    def full_page_statement(
        self,
        query: CompiledQuery,
        start: int,
        size: int | None,
        excluded_keys: Sequence[str],
        with_idx: bool = True,
        state: CatalogState | None = None,
    ) -> Asked:
        state = state or self.read_state()
        if state is None or not self._has_columns(state):
            return self.page_statement(query, start, size, state=state)
        # The idx is fetched for the rows of the page only: behind LIMIT.
        page = self.page_statement(query, start, size, ", zoid, idx, xmin", state)
        text, params = versioned_idx_sql("page", excluded_keys, with_idx)
        if page is None:
            return None
        sql = f"SELECT rid, path, score, {text} FROM ({page.sql}) AS page"
        return Statement(sql, (*params, *page.params), page.is_costly, page.window)

    def rids(self, query: CompiledQuery) -> array[int]:
        """Return the rids of the whole sorted result, which is not ranked: one row with one binary value."""
        rows = self._run("rids", lambda state: self.rids_statement(query, state))
        rids = array("q")
        if rows and rows[0][0]:
            rids.frombytes(rows[0][0])
            if sys.byteorder == "little":
                rids.byteswap()
        return rids

    def rids_statement(self, query: CompiledQuery, state: CatalogState | None = None) -> Asked:
        expression = f"string_agg(int8send(rid), ''::bytea ORDER BY {query.order_by})"
        where = self.hide_unselective_indexes(query.where, state)
        if not where.is_costly:
            return self.statement(expression, where, state=state)
        # Behind OFFSET, PostgreSQL sorts what it has found, and does not compare all rows in the order of an index.
        found = self.statement("*", where, "OFFSET 0", state=state)
        return found and replace(found, sql=f"SELECT {expression} FROM ({found.sql}) AS found")

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

    def idx_texts(self, rids: Sequence[int], excluded_keys: Sequence[str] = (), known: Sequence[int] = ()) -> Rows:
        """Return (rid, path, text) of the committed rows *rids*; ``split_version(text)`` are the row's version, and its idx as
        JSON without the keys *excluded_keys*, or "" for those that are *known*.
        """
        whole = sorted(set(rids).difference(known)) if known else list(rids)

        def statement(state: CatalogState | None) -> Asked:
            state = state or self.read_state()
            if state is None:
                return None
            selects, params = [], []
            for asked, with_idx in ((whole, True), (list(known), False)):
                if asked:
                    text, values = versioned_idx_sql("c", excluded_keys, with_idx)
                    source = f"{quote(state.relation)} c WHERE c.rid = ANY(%s::bigint[])"
                    selects.append(f"SELECT c.rid, c.path, {text} FROM {source}")
                    params += [*values, asked]
            return Statement(" UNION ALL ".join(selects), tuple(params)) if selects else None

        return self._run("metadata", statement)

    def pending_idx(self, rid: int, committed: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the idx of the row *rid* as the transaction has changed it, None when it has not."""
        pending = self.pending
        entry = None if pending is None else pending.pending_at(rid)
        if entry is None:
            return None
        if entry.new or committed is None:
            return entry.idx
        return {k: v for k, v in committed.items() if k not in entry.vanished} | entry.idx


def table_of(state: CatalogState) -> tuple[str, frozenset[str], frozenset[str]]:
    """Return what a statement takes for granted of the table."""
    return state.relation, state.columns, state.complete


def versioned_idx_sql(row: str, excluded_keys: Sequence[str], with_idx: bool = True) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL of a text with the version of *row*, an alias, and *with_idx* its idx, and the parameters of that.

    A transaction gives all rows it writes its own id: those of the catalog's row and of the object's tell every change.
    """
    idx, outer = "", ""
    params: tuple[Any, ...] = ()
    if with_idx:
        idx = f", (coalesce({row}.idx, o.idx) - %s::text[])::text"
        outer, params = f", ({row}.idx - %s::text[])::text", (list(excluded_keys), list(excluded_keys))
    return (
        f"coalesce((SELECT concat({row}.xmin, '.', o.xmin, ' '{idx}) FROM object_state o WHERE o.zoid = {row}.zoid),"
        f" concat({row}.xmin, '. '{outer}))",
        params,
    )


def split_version(text: str) -> tuple[str, str]:
    """Return the version and the idx, as JSON or empty, of a text as ``versioned_idx_sql`` makes it."""
    version, _, idx = text.partition(" ")
    return version, idx
