"""Builds and drops advised SQL indexes CONCURRENTLY, so searches and saves continue meanwhile.

PostgreSQL waits for older snapshots, also for the snapshot of the request, so a thread does the work.  An advisory lock
marks the work in progress for all processes; it ends with its connection.  Only advised indexes are ever dropped.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import PREFIX
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import errors_as
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.expected import Execute
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.storage import writable_dsn_of
from psycopg import Connection
from psycopg import sql
from typing import Any

import logging
import threading


logger = logging.getLogger(__name__)

#: Time limit for a thread to start its work, in seconds.
START_SECONDS = 10

REGISTER = (
    "INSERT INTO pgcatalog_indexes (catalog, name, definition, columns, reason)"
    " VALUES (%(catalog)s, %(name)s, %(definition)s, %(columns)s, %(reason)s)"
    " ON CONFLICT (catalog, name) DO UPDATE SET message = ''"
)
SET_MESSAGE = "UPDATE pgcatalog_indexes SET message = %(message)s WHERE catalog = %(catalog)s AND name = %(name)s"
FORGET = "DELETE FROM pgcatalog_indexes WHERE catalog = %(catalog)s AND name = %(name)s"
TRY_LOCK = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
INVALID = "SELECT FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s)) AND NOT indisvalid"


class BuildError(MessageError):
    """An index was not built or not dropped; the message says why, and no partial result is left."""


class BusyError(BuildError):
    """Another process is building or dropping the index."""


@dataclass(frozen=True, slots=True)
class Registered:
    """An advised index and its present state; *done* rises from 0 to 1 while it is built."""

    name: str
    definition: str
    columns: Sequence[str]
    reason: str
    message: str
    created_at: datetime
    index: str
    exists: bool
    is_valid: bool
    bytes: int
    scans: int
    pid: int | None
    phase: str
    done: float

    @property
    def state(self) -> str:
        """Return "working" while it is built or dropped; "ready"; "interrupted" by a crash; "failed"; or "missing"."""
        if self.pid is not None:
            return "working"
        if self.exists:
            return "ready" if self.is_valid else "interrupted"
        return "failed" if self.message else "missing"


def registered(execute: Execute, zoid: int, relation: str) -> list[Registered]:
    """Return the advised indexes of the catalog with tool oid *zoid*, and their state on *relation*."""
    values = {"catalog": zoid, "relation": relation, "quoted": quote(relation), "lock": locks.ADVISED_INDEX}
    return [Registered(*row) for row in execute(read_statement("advice", "registered"), values)]


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """A catalog: its database, the oid of its tool, and its present relation."""

    dsn: str
    zoid: int
    relation: str

    @classmethod
    def of(cls, catalog: Catalog) -> "IndexTarget":
        """Return the target for *catalog*; raises BuildError if it has no relation yet."""
        state = catalog.view().read_state()
        if state is None:
            raise BuildError(_("the catalog has no table yet"))
        return cls(writable_dsn_of(catalog.jar), catalog.zoid, state.relation)

    def index(self, name: str) -> str:
        return f"{self.relation}_{name}"

    def run(self, purpose: str, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a short *statement* on its own connection; return its rows.  Raises BuildError for errors of PostgreSQL."""
        with errors_as(BuildError), connect(self.dsn, purpose) as connection:
            cursor = connection.execute(statement, {"catalog": self.zoid, **values})
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def working(self, purpose: str) -> Iterator[Connection[Any]]:
        """Yield a connection with its own session and no time limit.  Raises BuildError."""
        with errors_as(BuildError), connect_directly(self.dsn, purpose, seconds=0) as connection:
            try:
                yield connection
            finally:
                if not connection.closed:
                    connection.execute(locks.RELEASE)


def apply(target: IndexTarget, candidate: Candidate, reason: str) -> None:
    """Register *candidate* and build it in the background.  Raises BuildError if it cannot be registered."""
    register(target, candidate, reason)
    in_background(build, target, candidate.name)


def register(target: IndexTarget, candidate: Candidate, reason: str) -> None:
    values = {"definition": candidate.definition, "columns": list(candidate.columns), "reason": reason}
    target.run("register index", REGISTER, {"name": candidate.name, **values})


def build(target: IndexTarget, name: str, started: Callable[[], object] = lambda: None) -> None:
    """Build the registered index *name*, and wait for it; a valid index is left unchanged.

    *started* is called when the lock is held.  Raises BuildError.  The invalid index of a failed build, this or an earlier
    one, is dropped.
    """
    entry = find(target, name)
    index, relation = sql.Identifier(entry.index), sql.Identifier(target.relation)
    create = sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} ").format(index, relation)
    with working(target, name, "build index") as connection:
        started()
        if entry.exists and not entry.is_valid:
            drop_index(connection, entry.index)
        if not entry.is_valid:
            connection.execute(create + sql.SQL(entry.definition))
            comment = sql.Literal(f"advised by plone.pgcatalog: {entry.reason}")
            connection.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(index, comment))


def drop(target: IndexTarget, name: str, started: Callable[[], object] = lambda: None) -> None:
    """Drop the registered index *name*, and wait for it; *started* as in ``build``.  Raises BuildError."""
    entry = find(target, name)
    with working(target, name, "drop index") as connection:
        started()
        drop_index(connection, entry.index)
        target.run("forget index", FORGET, {"name": name})


def cancel(target: IndexTarget, name: str) -> None:
    """Cancel the build of the index *name*.  Raises BuildError if it is not being built."""
    entry = find(target, name)
    if entry.pid is None:
        raise BuildError(_("${index} is not being built", {"index": entry.index}))
    target.run("cancel build", "SELECT pg_cancel_backend(%(pid)s)", {"pid": entry.pid})


def find(target: IndexTarget, name: str) -> Registered:
    """Return the registered index *name*; raises BuildError if it is not registered."""
    for entry in registered(partial(target.run, "look up index"), target.zoid, target.relation):
        if entry.name == name and name.startswith(PREFIX):
            return entry
    raise BuildError(_("${name} is not an index created from advice for this catalog", {"name": repr(name)}))


@contextmanager
def working(target: IndexTarget, name: str, purpose: str) -> Iterator[Connection[Any]]:
    """Yield a connection that holds the lock of the index *name*; an error is recorded, and an invalid index dropped."""
    index = target.index(name)
    try:
        with target.working(purpose) as connection:
            [(free,)] = connection.execute(TRY_LOCK, (locks.ADVISED_INDEX, index)).fetchall()
            if not free:
                raise BusyError(_("${index} is already being built or dropped", {"index": index}))
            yield connection
    except BusyError:
        raise
    except BuildError as error:
        tidy_up(target, name, str(error))
        raise
    target.run("note success", SET_MESSAGE, {"name": name, "message": ""})
    logger.info("%s %s: done", purpose, index)


def tidy_up(target: IndexTarget, name: str, message: str) -> None:
    """Drop the invalid index of a failed build, and record the reason."""
    try:
        target.run("tidy up", SET_MESSAGE, {"name": name, "message": message})
        with target.working("tidy up") as connection:
            if connection.execute(INVALID, (target.index(name),)).fetchall():
                drop_index(connection, target.index(name))
    except BuildError as error:
        # The page shows the index as interrupted, with a button to repair it.
        logger.warning("%s: cleaning up failed: %s", target.index(name), error)


def drop_index(connection: Connection[Any], index: str) -> None:
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index)))


def in_background(
    action: Callable[[IndexTarget, str, Callable[[], None]], None], target: IndexTarget, name: str
) -> None:
    """Run *action* in a thread; return when it has started, so that the next page shows it as working."""
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
