"""Builds and drops advised SQL indexes, CONCURRENTLY: searches and saves go on meanwhile.

PostgreSQL waits for older snapshots, that of the asking request among them, so the work is done by a thread of its own.  An
advisory lock says everywhere that somebody is at it, and goes with its connection.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from plone.pgcatalog.advice import registry
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import PREFIX
from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.observe.log import Execute
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.sql import locks
from plone.pgcatalog.storage import writable_dsn_of
from psycopg import Connection
from psycopg import sql
from typing import Any

import logging
import psycopg
import threading


logger = logging.getLogger(__name__)

#: Longest wait for a thread to begin its work.
START_SECONDS = 10


class BuildError(MessageError):
    """An index was not built or not dropped; the message says why, and nothing is half-done."""


class BusyError(BuildError):
    """Somebody else is building or dropping the index."""


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """A catalog: its database, its tool's oid, and the relation it has now."""

    dsn: str
    zoid: int
    relation: str

    @classmethod
    def of(cls, catalog: Catalog) -> "IndexTarget":
        """Return that of *catalog*; raises BuildError when it has no relation yet."""
        state = catalog.view().read_state()
        if state is None:
            raise BuildError(_("the catalog has no table yet"))
        return cls(writable_dsn_of(catalog.jar), catalog.zoid, state.relation)

    def index(self, name: str) -> str:
        """Return the full name of the index *name*."""
        return f"{self.relation}_{name}"

    @contextmanager
    def connected(self, purpose: str) -> Iterator[Execute]:
        """Yield the execute of a connection for short statements.  Raises BuildError for what PostgreSQL refuses."""
        with errors_told(), connect(self.dsn, purpose) as connection:
            yield lambda query, values: connection.execute(query, values).fetchall()

    @contextmanager
    def working(self, purpose: str) -> Iterator[tuple[Connection[Any], Execute]]:
        """Yield a connection with a session of its own, for work of any length, and its execute.  Raises BuildError."""
        with errors_told(), connect_directly(self.dsn, purpose, seconds=0) as connection:
            try:
                yield connection, lambda query, values: connection.execute(query, values).fetchall()
            finally:
                if not connection.closed:
                    connection.execute(locks.RELEASE)


@contextmanager
def errors_told() -> Iterator[None]:
    """Make an error of the database a BuildError."""
    try:
        yield
    except psycopg.Error as error:
        raise BuildError(_("PostgreSQL: ${error}", {"error": plain(error)})) from error


def apply(target: IndexTarget, candidate: Candidate, reason: str) -> None:
    """Register *candidate* and build it in the background.  Raises BuildError when it cannot even be registered."""
    register(target, candidate, reason)
    in_background(build, target, candidate.name)


def register(target: IndexTarget, candidate: Candidate, reason: str) -> None:
    """Note that *candidate* is to be an index.  Raises BuildError."""
    with target.connected("register index") as execute:
        registry.register(execute, target.zoid, candidate, reason)


def build(target: IndexTarget, name: str, started: Callable[[], object] = lambda: None) -> None:
    """Build the registered index *name*, and wait for it; one that is there and valid is left alone.

    *started* is called as soon as everybody can see that somebody is at it.  Raises BuildError.  Whatever a failed build,
    this one or an earlier one, has left is dropped.
    """
    entry = find(target, name)
    index, relation = sql.Identifier(entry.index), sql.Identifier(target.relation)
    create = sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} ").format(index, relation)
    with working(target, name, "build index") as connection:
        started()
        if entry.is_there and not entry.is_valid:
            drop_index(connection, entry.index)
        if not entry.is_valid:
            connection.execute(create + sql.SQL(entry.definition))
            comment = sql.Literal(f"advised by plone.pgcatalog: {entry.reason}")
            connection.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(index, comment))


def drop(target: IndexTarget, name: str, started: Callable[[], object] = lambda: None) -> None:
    """Drop the registered index *name*, and wait for it; *started* is that of ``build``.  Raises BuildError."""
    entry = find(target, name)
    with working(target, name, "drop index") as connection:
        started()
        drop_index(connection, entry.index)
        with target.connected("forget index") as execute:
            registry.forget(execute, target.zoid, name)


def cancel(target: IndexTarget, name: str) -> None:
    """Stop whoever builds the index *name*.  Raises BuildError when nobody does."""
    entry = find(target, name)
    if entry.pid is None:
        raise BuildError(_("${index} is not being built", {"index": entry.index}))
    with target.connected("cancel build") as execute:
        execute("SELECT pg_cancel_backend(%(pid)s)", {"pid": entry.pid})


def find(target: IndexTarget, name: str) -> registry.Registered:
    """Return the registered index *name*; raises BuildError for any other one."""
    with target.connected("look up index") as execute:
        for entry in registry.registered(execute, target.zoid, target.relation):
            if entry.name == name and name.startswith(PREFIX):
                return entry
    raise BuildError(_("${name} is no index made on advice for this catalog", {"name": repr(name)}))


@contextmanager
def working(target: IndexTarget, name: str, purpose: str) -> Iterator[Connection[Any]]:
    """Yield a connection that holds the lock of the index *name*; an error is noted, and leaves no invalid index."""
    index = target.index(name)
    try:
        with target.working(purpose) as (connection, execute):
            [(free,)] = execute(
                "SELECT pg_try_advisory_lock(%(lock)s, hashtext(%(index)s))",
                {"lock": locks.ADVISED_INDEX, "index": index},
            )
            if not free:
                raise BusyError(_("${index} is being built or dropped already", {"index": index}))
            yield connection
    except BusyError:
        raise
    except BuildError as error:
        tidy_up(target, name, str(error))
        raise
    with target.connected("note success") as execute:
        registry.set_message(execute, target.zoid, name, "")
    logger.info("%s %s: done", purpose, index)


def tidy_up(target: IndexTarget, name: str, message: str) -> None:
    """Drop the invalid index that a failed build has left, and note why it failed."""
    try:
        with target.working("tidy up") as (connection, execute):
            registry.set_message(execute, target.zoid, name, message)
            invalid = "SELECT FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%(index)s)) AND NOT indisvalid"
            if execute(invalid, {"index": target.index(name)}):
                drop_index(connection, target.index(name))
    except BuildError as error:
        # The page shows the index as interrupted, with a button to repair it.
        logger.warning("%s could not be tidied up: %s", target.index(name), error)


def drop_index(connection: Connection[Any], index: str) -> None:
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index)))


def in_background(
    action: Callable[[IndexTarget, str, Callable[[], None]], None], target: IndexTarget, name: str
) -> None:
    """Run *action* in a thread, and return as soon as it has started: whoever looks then sees it at work."""
    started = threading.Event()

    def run() -> None:
        try:
            action(target, name, started.set)
        except BuildError as error:
            logger.warning("%s: %s", target.index(name), error)
        finally:
            started.set()

    background.start("index", run)
    started.wait(START_SECONDS)
