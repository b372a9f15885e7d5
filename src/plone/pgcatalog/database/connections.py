"""Connections of our own: every one that is not the storage's is opened here.

A pooler may stand between (PgBouncer in transaction mode): then the session of the server is another client's as soon as
a transaction ends.  What ``connect`` opens leaves nothing there; ``connect_directly`` (``database/direct.py``) is for work
that needs a session.

Each begins autocommit, says in ``pg_stat_activity`` what it is for, and is closed by whoever has opened it.
"""

from collections.abc import Generator
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextlib import contextmanager
from contextlib import nullcontext
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from psycopg.abc import Params
from psycopg.pq import TransactionStatus
from psycopg.rows import RowFactory
from psycopg.rows import tuple_row
from typing import Any
from typing import Self

import psycopg


#: Longest wait for a connection, in seconds.
CONNECT_SECONDS = 5
SET = "SELECT set_config(name, value, %s) FROM unnest(%s::text[], %s::text[]) AS setting (name, value)"


class OwnConnection(psycopg.Connection[Any]):
    """An autocommit connection whose settings are those of its transactions, not of its session.

    A statement outside of ``transaction()`` gets a transaction of its own, so VACUUM and CREATE INDEX CONCURRENTLY are
    refused.  ``read_only``, an attribute of psycopg, makes every BEGIN a BEGIN READ ONLY.
    """

    #: settings of each transaction, as PostgreSQL takes them
    settings: Mapping[str, str] = {}

    @contextmanager
    def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> Iterator[psycopg.Transaction]:
        """Begin a transaction with the settings, or a savepoint in the one that was begun."""
        begins = self.info.transaction_status == TransactionStatus.IDLE
        with super().transaction(savepoint_name, force_rollback) as transaction:
            if begins and self.settings:
                self.execute(SET, (True, list(self.settings), list(self.settings.values())))
            yield transaction

    def in_transaction(self) -> AbstractContextManager[Any]:
        """Return the context of the transaction that was begun, or of one of its own."""
        return self.transaction() if self.info.transaction_status == TransactionStatus.IDLE else nullcontext()


class OwnCursor(psycopg.Cursor[Any]):
    """A cursor of an OwnConnection."""

    connection: OwnConnection

    def execute(
        self, query: Any, params: Params | None = None, *, prepare: bool | None = None, binary: bool | None = None
    ) -> Self:
        with self.connection.in_transaction():
            return super().execute(query, params, prepare=prepare, binary=binary)

    def executemany(self, query: Any, params_seq: Iterable[Params], *, returning: bool = False) -> None:
        with self.connection.in_transaction():
            super().executemany(query, params_seq, returning=returning)

    def stream(
        self, query: Any, params: Params | None = None, *, binary: bool | None = None, size: int = 1
    ) -> Generator[Any]:
        with self.connection.in_transaction():
            yield from super().stream(query, params, binary=binary, size=size)

    @contextmanager
    def copy(self, statement: Any, params: Params | None = None, *, writer: Any = None) -> Generator[psycopg.Copy]:
        with self.connection.in_transaction(), super().copy(statement, params, writer=writer) as copy:
            yield copy


def connect(
    dsn: str,
    purpose: str,
    seconds: float = 30,
    *,
    lock_seconds: float | None = None,
    read_only: bool = False,
    durable: bool = True,
    row_factory: RowFactory[Any] = tuple_row,
) -> OwnConnection:
    """Return a new connection to the database *dsn*, its rows made by *row_factory*, that leaves nothing on the session.

    A statement may take *seconds*, and wait *lock_seconds* for a lock, as long as it may take if None; 0 is any time.
    *read_only* makes it refuse writes.  Without *durable* a crash of the server may lose its last commits.

    Raises psycopg.OperationalError.
    """
    connection = OwnConnection.connect(dsn, **OWN, application_name=f"pgcatalog: {purpose}", row_factory=row_factory)
    connection.read_only = read_only
    connection.settings = settings_of(seconds, lock_seconds, durable)
    return connection


#: How an OwnConnection is made.  Nothing is prepared: that would stay on the session.
OWN: Mapping[str, Any] = {
    "autocommit": True,
    "connect_timeout": CONNECT_SECONDS,
    "cursor_factory": OwnCursor,
    "prepare_threshold": None,
}


def plain_connection(dsn: str, purpose: str, **options: Any) -> psycopg.Connection[Any]:
    """Return a new autocommit connection of psycopg's to the database *dsn*, with further *options* of psycopg's.

    Nothing is prepared unless they say so.  Raises psycopg.OperationalError.
    """
    defaults = {"autocommit": True, "connect_timeout": CONNECT_SECONDS, "prepare_threshold": None}
    return psycopg.connect(dsn, **defaults | options, application_name=f"pgcatalog: {purpose}")


def settings_of(seconds: float, lock_seconds: float | None, durable: bool) -> dict[str, str]:
    """Return PostgreSQL's settings for what ``connect`` takes."""
    limits = {"statement_timeout": seconds, "lock_timeout": seconds if lock_seconds is None else lock_seconds}
    settings = {name: milliseconds(limit) for name, limit in limits.items()}
    return settings if durable else settings | {"synchronous_commit": "off"}


def milliseconds(seconds: float) -> str:
    """Return *seconds* as PostgreSQL's settings of times take them."""
    return str(int(seconds * 1000))


def plain(error: psycopg.Error) -> str:
    """Return what PostgreSQL says is wrong, in one line."""
    message = error.diag.message_primary or str(error) or type(error).__name__
    return message.strip().splitlines()[0]


@contextmanager
def errors_as(error_class: type[MessageError]) -> Iterator[None]:
    """Raise what PostgreSQL says is wrong as an *error_class*."""
    try:
        yield
    except psycopg.Error as error:
        raise error_class(_("PostgreSQL: ${error}", {"error": plain(error)})) from error
