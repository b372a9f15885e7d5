"""Opens all connections of the package, except the storage's own.

A pooler may stand between (PgBouncer in transaction mode): the session of the server then belongs to another client as soon
as a transaction ends.  Connections of ``connect`` leave no state on the session; ``connect_directly``
(``database/direct.py``) is for work that needs a session.

Each connection begins as autocommit, shows its purpose in ``pg_stat_activity``, and is closed by the code that opens it.
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
    """An autocommit connection whose settings apply to its transactions, not to its session.

    A statement outside of ``transaction()`` gets a transaction of its own, so VACUUM and CREATE INDEX CONCURRENTLY are
    refused.  ``read_only``, an attribute of psycopg, makes every BEGIN a BEGIN READ ONLY.
    """

    #: settings of each transaction: name -> value as PostgreSQL accepts it
    settings: Mapping[str, str] = {}

    @contextmanager
    def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> Iterator[psycopg.Transaction]:
        """Begin a transaction with the settings, or a savepoint in the current transaction."""
        begins = self.info.transaction_status == TransactionStatus.IDLE
        with super().transaction(savepoint_name, force_rollback) as transaction:
            if begins and self.settings:
                self.execute(SET, (True, list(self.settings), list(self.settings.values())))
            yield transaction

    def in_transaction(self) -> AbstractContextManager[Any]:
        """Return the context of the current transaction, or of a new one."""
        return self.transaction() if self.info.transaction_status == TransactionStatus.IDLE else nullcontext()


class OwnCursor(psycopg.Cursor[Any]):
    """A cursor that runs each statement in a transaction of its OwnConnection."""

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
    """Return a new connection to the database *dsn* that leaves no state on the session of the server.

    - *purpose*: shown in pg_stat_activity
    - *seconds*: time limit of a statement; 0 for no limit
    - *lock_seconds*: time limit of a wait for a lock; None for *seconds*
    - *read_only*: whether writes are refused
    - *durable*: if false, a crash of the server may lose the last commits
    - *row_factory*: psycopg's factory of the rows

    Raises psycopg.OperationalError.
    """
    connection = OwnConnection.connect(dsn, **OWN, application_name=f"pgcatalog: {purpose}", row_factory=row_factory)
    connection.read_only = read_only
    connection.settings = settings_of(seconds, lock_seconds, durable)
    return connection


#: Options of an OwnConnection.  It prepares no statements, because they would stay on the session.
OWN: Mapping[str, Any] = {
    "autocommit": True,
    "connect_timeout": CONNECT_SECONDS,
    "cursor_factory": OwnCursor,
    "prepare_threshold": None,
}


def plain_connection(dsn: str, purpose: str, **options: Any) -> psycopg.Connection[Any]:
    """Return a new autocommit connection of psycopg to the database *dsn*, with further *options* of psycopg.

    Nothing is prepared unless the options say so.  Raises psycopg.OperationalError.
    """
    defaults = {"autocommit": True, "connect_timeout": CONNECT_SECONDS, "prepare_threshold": None}
    return psycopg.connect(dsn, **defaults | options, application_name=f"pgcatalog: {purpose}")


def settings_of(seconds: float, lock_seconds: float | None, durable: bool) -> dict[str, str]:
    """Return PostgreSQL's settings, name -> value, for the arguments of ``connect``."""
    limits = {"statement_timeout": seconds, "lock_timeout": seconds if lock_seconds is None else lock_seconds}
    settings = {name: milliseconds(limit) for name, limit in limits.items()}
    return settings if durable else settings | {"synchronous_commit": "off"}


def milliseconds(seconds: float) -> str:
    """Return *seconds* as a text with milliseconds, PostgreSQL's unit for settings of times."""
    return str(int(seconds * 1000))


def plain(error: psycopg.Error) -> str:
    """Return the message of *error*, in one line."""
    message = error.diag.message_primary or str(error) or type(error).__name__
    return message.strip().splitlines()[0]


@contextmanager
def errors_as(error_class: type[MessageError]) -> Iterator[None]:
    """Raise an *error_class* with PostgreSQL's message instead of a psycopg.Error."""
    try:
        yield
    except psycopg.Error as error:
        raise error_class(message_of(error)) from error


def message_of(error: psycopg.Error) -> str:
    """Return the message about *error* for users."""
    return _("PostgreSQL: ${error}", {"error": plain(error)})
