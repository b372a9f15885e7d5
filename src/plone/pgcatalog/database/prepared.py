"""Sends several statements in one message (one round trip), and prepares the statements that are repeated.

Parsing and planning dominate small queries, and a prepared statement omits them.  psycopg's cursors either prepare one
statement, or send several that are parsed anew.  Also contains the planner settings for cases in which PostgreSQL's
estimates are known to be wrong.
"""

from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.values import array_of
from psycopg import capabilities
from psycopg.adapt import PyFormat
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus
from psycopg.pq import ExecStatus
from psycopg.pq import Format
from psycopg.waiting import Ready
from psycopg.waiting import Wait
from time import perf_counter
from typing import Any

import psycopg
import re


Rows = list[tuple[Any, ...]]

#: Below this number of rows, planning takes longer than running any plan.
FEW_ROWS = 2000
PLAN_GENERIC = "SET LOCAL plan_cache_mode = force_generic_plan"
#: The number of rows per value varies too much for a generic plan.
PLAN_CUSTOM = "SET LOCAL plan_cache_mode = force_custom_plan"

#: For a table with more rows than this, a bitmap may not fit into PostgreSQL's default work_mem of 4 MB.
MANY_ROWS = 50_000
#: A bitmap that does not fit stores whole pages, and each row of such a page is fetched and compared again.
MORE_MEMORY = "SET LOCAL work_mem = '64MB'"
HAS_MEMORY = "pg_size_bytes(current_setting('work_mem')) >= pg_size_bytes('64MB')"

NO_SCAN = "SET LOCAL enable_seqscan = off"
ANY_SCAN = "SET LOCAL enable_seqscan TO DEFAULT"

#: Whether a statement may be prepared, its SQL, its parameters as libpq expects them, their types and formats.
Dumped = tuple[bool, str, Sequence[Any], tuple[int, ...], Sequence[Any]]
#: The SQL of a statement and the types of its parameters.
StatementKey = tuple[str, tuple[int, ...]]

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ"
NEWEST_TID = Statement("SELECT coalesce(max(tid), 0) FROM transaction_log")

#: Statements that a connection remembers; the least recently used one is forgotten.
MOST_PREPARED = 60

_PLACEHOLDER = re.compile("%[s%]")
_NAMED = re.compile(r"%(?:%|\((\w+)\)s)")


class FollowedConnection(psycopg.Connection[Any]):
    """A connection through a pooler that tracks prepared statements, if they are closed by the protocol.

    psycopg itself prepares nothing there (``database/direct.py``): its DEALLOCATE ALL would also remove our statements.
    """

    #: Whether ``PreparedStatements`` prepares statements on this connection.
    prepares_ours = True


class PreparedStatements:
    """The statements of *connection*, a psycopg connection, prepared from their second use on; for one thread at a time.

    Other threads may use psycopg's cursors on the connection meanwhile: the lock of the connection serialises both.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._encoding = connection.info.encoding
        self._transformer = Transformer(connection)
        #: name of the prepared statement; None after the first use, which is not prepared
        self._names: OrderedDict[StatementKey, bytes | None] = OrderedDict()
        self._number = 0
        #: seconds in which the rows of the last message were decoded
        self.decoding = 0.0
        #: seconds from the result of the leading statement to the end of the last message
        self.trailing_seconds = 0.0
        #: whether the last message contained a statement that was new to this connection
        self.met_new = False
        #: for each result of the message: the statement that it prepares, None if it prepares none
        self._sent: list[StatementKey | None] = []
        #: the connection's own lock
        self.lock = connection.lock
        #: whether the result of COMMIT is still unread, with the connection in pipeline mode
        self._is_ending = False

    @classmethod
    def of(cls, connection: Any) -> "PreparedStatements":
        """Return the PreparedStatements of *connection*, created on first use."""
        statements: PreparedStatements | None = connection.__dict__.get("_pgcatalog_statements")
        if statements is None:
            statements = connection._pgcatalog_statements = cls(connection)
            statements._follow()
            connection.lock = Turn(statements)
        return statements

    def _follow(self) -> None:
        """Forget all statements whenever psycopg sends DEALLOCATE ALL: after each rollback, DROP and ALTER.

        Executing a removed statement would write an error to PostgreSQL's log.
        """
        deallocate = self._connection._deallocate

        def deallocate_and_forget(name: bytes | None) -> Any:
            if name is None:
                self.forget()
            return deallocate(name)

        self._connection._deallocate = deallocate_and_forget

    def run(
        self,
        statements: Sequence[Statement],
        before: Sequence[str] = (),
        first: int | None = None,
    ) -> list[Rows]:
        """Run *statements* in one message; return the rows of each.

        - *before*: commands that are sent first, and never prepared
        - *first*: place in *statements* of the leading one, whose result is sent at once; ``trailing_seconds`` is the time
          since then

        No statement is prepared if the connection does not allow it.

        Raises the psycopg.Error of the first statement that fails; the statements behind it are not run.
        InvalidSqlStatementName means that another client has removed prepared statements from the session: call ``forget``
        then.
        """
        if self._connection.cursor_factory is psycopg.Cursor:
            return self._run(statements, before, first)
        # An instrumentation such as OpenTelemetry's traces the cursors: it sees the whole message as one statement.
        with message_cursor(self._connection.cursor_factory)(self._connection) as cursor:
            cursor.send = lambda: self._run(statements, before, first)
            cursor.execute("; ".join([*before, *(query for query, *_ in statements)]))
            answers: list[Rows] = cursor.answers
            return answers

    def _run(self, statements: Sequence[Statement], before: Sequence[str], first: int | None) -> list[Rows]:
        # psycopg prepares its own statements, or a pooler tracks ours.
        connection = self._connection
        prepare = connection.prepare_threshold is not None or getattr(connection, "prepares_ours", False)
        dumped = [(prepare and each.is_prepared, each.sql, *self._dump(each.params)) for each in statements]
        with connection.lock:
            results, ends = self._exchange(dumped, before, first)
        received = perf_counter()
        rows = [self._rows(results[end - 1]) for end in ends]
        self.decoding = perf_counter() - received
        return rows

    def _exchange(
        self, statements: Sequence[Dumped], before: Sequence[str], first: int | None
    ) -> tuple[list[Any], list[int]]:
        """Send *before* and *statements*; return all results, and for each statement the number of results up to its own."""
        pgconn = self._pgconn
        if not self._is_ending:
            pgconn.enter_pipeline_mode()
        try:
            self._sent.clear()
            self.met_new = False
            for command in before:
                pgconn.send_query_params(command.encode(), None)
                self._sent.append(None)
            ends = []
            for place, statement in enumerate(statements):
                ends.append(self._send(*statement))
                if place == first:
                    pgconn.send_flush_request()
            pgconn.pipeline_sync()
            self._read_end()
            # Wait as psycopg's cursors do, so that other threads run meanwhile.
            results: list[Any] = self._connection.wait(self._receive(0 if first is None else ends[first]))
            return results, ends
        finally:
            if pgconn.status == ConnStatus.OK and not pgconn.is_busy():
                pgconn.exit_pipeline_mode()

    def end(self) -> None:
        """Send COMMIT, and leave its result to be read with the next message.  Raises psycopg.Error."""
        with self.lock:
            self.finish()
            self._pgconn.enter_pipeline_mode()
            self._is_ending = True
            self._pgconn.send_query_params(b"COMMIT", None)
            self._pgconn.pipeline_sync()
            self._pgconn.flush()

    def _read_end(self) -> None:
        """Read the result of the COMMIT sent by ``end``, if it is unread; a lost connection raises at its next use."""
        if self._is_ending:
            self._is_ending = False
            with suppress(psycopg.Error):
                self._connection.wait(self._receive(0))

    def finish(self) -> None:
        """Read an unread result of COMMIT, so that psycopg's own methods find the connection idle."""
        if self._is_ending:
            self._read_end()
            if self._pgconn.status == ConnStatus.OK:
                self._pgconn.exit_pipeline_mode()

    def _close(self, name: bytes) -> None:
        """Send the removal of the statement *name*: by the protocol, which a pooler understands, if libpq can (17)."""
        if capabilities.has_send_close_prepared():
            self._pgconn.send_close_prepared(name)
        else:
            self._pgconn.send_query_params(b"DEALLOCATE " + name, None)

    def forget(self) -> None:
        """Forget all prepared statements, because the server's session no longer has them: each is prepared anew."""
        self._names.clear()

    def _dump(self, params: Sequence[Any]) -> tuple[Sequence[Any], tuple[int, ...], Sequence[Any]]:
        """Return *params* as libpq expects them, with their types and formats."""
        if not params:
            return [], (), []
        # psycopg dumps lists in Python code: five lists took as long as the rest of sending the statement.
        arrays = {at: array for at, value in enumerate(params) if type(value) is list and (array := array_of(value))}
        others = [None if at in arrays else value for at, value in enumerate(params)] if arrays else params
        transformer = self._transformer
        values = list(transformer.dump_sequence(others, [PyFormat.AUTO] * len(params)))
        types, formats = list(transformer.types or ()), list(transformer.formats or ())
        for at, (literal, oid) in arrays.items():
            values[at], types[at], formats[at] = literal, oid, Format.TEXT
        return values, tuple(types), formats

    def _send(
        self, prepare: bool, statement: str, values: Sequence[Any], types: tuple[int, ...], formats: Sequence[Any]
    ) -> int:
        """Send *statement*; return the number of results up to its own."""
        name = self._prepared((statement, types)) if prepare else None
        if name is None:
            self._pgconn.send_query_params(numbered(statement), values, types, formats)
        else:
            self._pgconn.send_query_prepared(name, values, formats)
        self._sent.append(None)
        return len(self._sent)

    def _prepared(self, key: StatementKey) -> bytes | None:
        """Return the name of a prepared statement, which is prepared at its second use; None at its first use."""
        name = self._names.get(key)
        if name is None and key in self._names:
            self._number += 1
            name = self._names[key] = f"pgcatalog_{self._number}".encode()
            self._pgconn.send_prepare(name, numbered(key[0]), key[1])
            self._sent.append(key)
        elif name is None:
            self._names[key] = None
            self.met_new = True
            _, forgotten = self._names.popitem(last=False) if len(self._names) > MOST_PREPARED else (None, None)
            if forgotten is not None:
                self._close(forgotten)
                self._sent.append(None)
        self._names.move_to_end(key)
        return name

    def _receive(self, first: int) -> Generator[Wait, Ready, list[Any]]:
        """Wait for all results of the message and return them; yield the states to wait for, as psycopg expects.

        *first* is the number of results up to the leading statement's; 0 if there is no leading statement.  Raises
        psycopg.Error for the first error.
        """
        pgconn, answered = self._pgconn, None
        results: list[Any] = []
        error = None
        while pgconn.flush():
            if (yield Wait.RW) & Ready.R:
                pgconn.consume_input()
        while True:
            while pgconn.is_busy():
                yield Wait.R
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                if pgconn.status != ConnStatus.OK:
                    raise psycopg.OperationalError(pgconn.get_error_message(self._encoding))
                continue
            if result.status == ExecStatus.PIPELINE_SYNC:
                break
            if error is None and result.status == ExecStatus.FATAL_ERROR:
                error = error_from_result(result, encoding=self._encoding)
                for key in filter(None, self._sent[len(results) :]):
                    self._names.pop(key, None)
                if pgconn.status != ConnStatus.OK:
                    break
            elif error is None:
                results.append(result)
                if len(results) == first:
                    answered = perf_counter()
        self.trailing_seconds = 0.0 if answered is None else perf_counter() - answered
        if error is not None:
            raise error
        return results

    def _rows(self, result: Any) -> Rows:
        if result.status != ExecStatus.TUPLES_OK:
            return []
        self._transformer.set_pgresult(result)
        rows: Rows = self._transformer.load_rows(0, result.ntuples, tuple)
        return rows


class Turn:
    """The lock of a connection for psycopg's own methods; reads the unread results of *statements* once it is acquired."""

    def __init__(self, statements: PreparedStatements) -> None:
        self._statements = statements
        self._lock = statements.lock

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._statements.finish()
        except BaseException:  # also KeyboardInterrupt: without __exit__ the connection would stay locked
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def end_snapshot(connection: Any) -> None:
    """End the snapshot of the psycopg *connection* without waiting for the result.  Raises psycopg.Error."""
    PreparedStatements.of(connection).end()


def finish(connection: Any) -> None:
    """Read the result that ``end_snapshot`` has left unread: the psycopg *connection* is then idle, or lost."""
    statements = PreparedStatements.of(connection)
    with statements.lock:
        statements.finish()


def begin_snapshot(connection: Any, has_begun: bool) -> int:
    """Begin a snapshot on the psycopg *connection*, after ending the current one if it *has_begun*; one message.

    Returns the id of its newest transaction, 0 if there is none.  Raises psycopg.Error.
    """
    prepared = PreparedStatements.of(connection)
    try:
        [[(newest,)]] = prepared.run([NEWEST_TID], ["COMMIT", BEGIN] if has_begun else [BEGIN])
    except psycopg.Error:
        # Another client may have removed the prepared statements.
        prepared.forget()
        raise
    return int(newest)


def numbered(statement: str) -> bytes:
    """Return *statement* with ``$1``, ``$2`` … instead of ``%s``, and ``%`` instead of ``%%``."""
    numbers = count(1)
    return _PLACEHOLDER.sub(lambda match: "%" if match[0] == "%%" else f"${next(numbers)}", statement).encode()


def positional(statement: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return *statement* with ``%s`` instead of its named placeholders, and the *values* in their order."""
    params: list[Any] = []

    def placeholder(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        params.append(values[match[1]])
        return "%s"

    return _NAMED.sub(placeholder, statement), params


class MessageCursor(psycopg.Cursor[Any]):
    """A cursor that runs a whole message by calling ``send``, and stores the rows of each statement in ``answers``."""

    send: Callable[[], list[Rows]]
    answers: list[Rows]

    def execute(self, *_: Any, **__: Any) -> "MessageCursor":
        self.answers = self.send()
        return self


@cache
def message_cursor(factory: type) -> Any:
    """Return a subclass of *factory*, a class of cursors, and MessageCursor.

    OpenTelemetry's instrumentation replaces the cursor factory of a connection by one whose cursors are traced.
    """
    return type("MessageCursor", (factory, MessageCursor), {})


def with_planner_hints(statement: Statement, replans: bool = True) -> tuple[list[Statement], int]:
    """Return *statement* together with the commands that set and reset its planner settings, and its place among them.

    *replans*: whether the transaction plans a prepared statement at each execution.

    PostgreSQL estimates that comparing long values is as cheap as comparing numbers.  But most long values have to be
    fetched from TOAST tables and decompressed, so a sequential scan takes several times as long as the GIN index, which does
    not read them.
    """
    before, after = [], []
    if statement.is_costly:
        before, after = [Statement(NO_SCAN)], [Statement(ANY_SCAN)]
    if statement.plans_once and replans:
        before, after = [Statement(PLAN_GENERIC), *before], [*after, Statement(PLAN_CUSTOM)]
    return [*before, statement, *after], len(before)
