"""Sends several statements in one message, those that come again as prepared ones.

A cursor of psycopg sends one statement that may be prepared, or several that are parsed and planned anew.  For a small
query that is most of its time: on a connection used for this only, libpq's pipeline is a third of it.
"""

from collections import OrderedDict
from collections.abc import Generator
from collections.abc import Sequence
from functools import cache
from functools import lru_cache
from itertools import count
from plone.pgcatalog.sql.fragment import Statement
from psycopg.adapt import PyFormat
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus
from psycopg.pq import ExecStatus
from psycopg.waiting import Ready
from psycopg.waiting import Wait
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
import re


Rows = list[tuple[Any, ...]]

#: The same with what libpq takes: values, their types and formats.
Dumped = tuple[str, Sequence[Any], tuple[int, ...], Sequence[Any]]

#: Statements that a connection keeps prepared.
SIZE = 60
#: Statements the process remembers to have sent once.
SEEN_SIZE = 1000

_PLACEHOLDER = re.compile("%[s%]")
_seen: set[str] = set()
_connections: "WeakKeyDictionary[Any, PreparedStatements]" = WeakKeyDictionary()


class PreparedStatements:
    """The statements prepared on *connection*, a psycopg connection; for one thread at a time.

    Other threads may use the connection by psycopg's cursors meanwhile: both take turns by its lock.
    """

    def __init__(self, connection: Any) -> None:
        self._pgconn = connection.pgconn
        #: Plone's portlet of events keeps objects of one thread's ZODB connection in memory; others load their states by it.
        self._lock = connection.lock
        self._wait = connection.wait
        self._encoding = connection.info.encoding
        self._transformer = Transformer(connection)
        self._names: OrderedDict[tuple[str, tuple[int, ...]], bytes] = OrderedDict()
        self._number = 0
        #: seconds the last message took to become Python's values
        self.decoding = 0.0
        #: for each result of the message: what is prepared with it, None when it prepares nothing
        self._sent: list[tuple[str, tuple[int, ...]] | None] = []

    @classmethod
    def of(cls, connection: Any) -> "PreparedStatements | None":
        """Return those of *connection*.

        None when it must not prepare any (its ``prepare_threshold`` is None), or somebody watches its cursors, as
        OpenTelemetry's instrumentation does.
        """
        if connection.prepare_threshold is None or connection.cursor_factory is not psycopg.Cursor:
            return None
        found = _connections.get(connection)
        return _connections.setdefault(connection, cls(connection)) if found is None else found

    def run(self, statements: Sequence[Statement], before: Sequence[str] = (), prepare: bool = True) -> list[Rows]:
        """Run *statements* in one message; return the rows of each.  The commands *before* them are not prepared.

        Raises psycopg.Error of the first one that fails; those behind it are not run then.  If they are to be
        prepared, one is InvalidSqlStatementName: psycopg removes what is prepared after a rollback; ``forget`` helps.
        """
        dumped = [(query, *self._dump(params)) for query, params in statements]
        with self._lock:
            results, ends = self._exchange(dumped, before, prepare)
        received = perf_counter()
        rows = [self._rows(results[end - 1]) for end in ends]
        self.decoding = perf_counter() - received
        return rows

    def _exchange(
        self, statements: Sequence[Dumped], before: Sequence[str], prepare: bool
    ) -> tuple[list[Any], list[int]]:
        """Send *statements* behind the commands *before* them; return all results, and how many there are at each one's end."""
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        try:
            self._sent.clear()
            for command in before:
                pgconn.send_query_params(command.encode(), None)
                self._sent.append(None)
            ends = [self._send(prepare, *statement) for statement in statements]
            pgconn.pipeline_sync()
            # Waits as psycopg's cursors do: other threads run meanwhile.
            return self._wait(self._receive()), ends
        finally:
            if pgconn.status == ConnStatus.OK and not pgconn.is_busy():
                pgconn.exit_pipeline_mode()

    def forget(self) -> None:
        """Prepare all statements anew: somebody has removed them from the server's session."""
        self._names.clear()

    def _dump(self, params: Sequence[Any]) -> tuple[Sequence[Any], tuple[int, ...], Sequence[Any]]:
        """Return *params* as libpq takes them, their types and formats."""
        if not params:
            return [], (), []
        transformer = self._transformer
        values = transformer.dump_sequence(params, [PyFormat.AUTO] * len(params))
        return values, tuple(transformer.types or ()), transformer.formats or []

    def _send(
        self, prepare: bool, query: str, values: Sequence[Any], types: tuple[int, ...], formats: Sequence[Any]
    ) -> int:
        """Send *query*; return how many results there will be so far, of which the last one is its own."""
        if prepare and query in _seen:
            self._pgconn.send_query_prepared(self._prepared(query, types), values, formats)
        else:
            if len(_seen) >= SEEN_SIZE:
                _seen.clear()
            _seen.add(query)
            self._pgconn.send_query_params(numbered(query), values, types, formats)
        self._sent.append(None)
        return len(self._sent)

    def _prepared(self, query: str, types: tuple[int, ...]) -> bytes:
        """Return the name of the prepared *query*, which is sent to be prepared if it is not yet."""
        key = query, types
        name = self._names.get(key)
        if name is not None:
            self._names.move_to_end(key)
            return name
        if len(self._names) >= SIZE:
            _, forgotten = self._names.popitem(last=False)
            self._pgconn.send_query_params(b"DEALLOCATE " + forgotten, None)
            self._sent.append(None)
        self._number += 1
        name = self._names[key] = f"pgcatalog_{self._number}".encode()
        self._pgconn.send_prepare(name, numbered(query), types)
        self._sent.append(key)
        return name

    def _receive(self) -> Generator[Wait, Ready, list[Any]]:
        """Yield what to wait for; return all results of the message.  Raises psycopg.Error for the first error."""
        pgconn = self._pgconn
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
        if error is not None:
            raise error
        return results

    def _rows(self, result: Any) -> Rows:
        if result.status != ExecStatus.TUPLES_OK:
            return []
        self._transformer.set_pgresult(result)
        rows: Rows = self._transformer.load_rows(0, result.ntuples, tuple)
        return rows


@lru_cache(SEEN_SIZE)
def numbered(query: str) -> bytes:
    """Return *query* with ``$1`` ... for its ``%s``, and ``%`` for ``%%``."""
    numbers = count(1)
    return _PLACEHOLDER.sub(lambda match: "%" if match[0] == "%%" else f"${next(numbers)}", query).encode()


@cache
def client_cursor(factory: type) -> Any:
    """Return a class of cursors that write values into the statement themselves, and are else what *factory* makes.

    OpenTelemetry's instrumentation replaces the factory of a connection by one whose cursors are traced.
    """
    if issubclass(psycopg.ClientCursor, factory):
        return psycopg.ClientCursor
    return type("ClientCursor", (factory, psycopg.ClientCursor), {})
