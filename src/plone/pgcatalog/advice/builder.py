"""Builds and drops advised SQL indexes CONCURRENTLY, so searches and saves continue meanwhile.

PostgreSQL waits for older snapshots, also for the snapshot of the request, so a long job does the work.  Only advised indexes
are ever dropped.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import PREFIX
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import errors_as
from plone.pgcatalog.database.connections import message_of
from plone.pgcatalog.database.expected import Execute
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.queue import long
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.kind import LongKind
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.storage import writable_dsn_of
from psycopg import Connection
from psycopg import sql
from psycopg.errors import QueryCanceled
from typing import Any
from zope.interface import implementer

import hashlib
import psycopg


#: The name of the kind of jobs; its arguments are ``name``, of the index, and ``is_dropped``.
KIND = "index"

REGISTER = (
    "INSERT INTO pgcatalog_indexes (catalog, name, definition, columns, reason)"
    " VALUES (%(catalog)s, %(name)s, %(definition)s, %(columns)s, %(reason)s)"
    " ON CONFLICT (catalog, name) DO NOTHING"
)
FORGET = "DELETE FROM pgcatalog_indexes WHERE catalog = %(catalog)s AND name = %(name)s"
RELATION = "SELECT relation FROM pgcatalog_state WHERE catalog = %(catalog)s"
INVALID = "SELECT FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s)) AND NOT indisvalid"


class BuildError(MessageError):
    """An index is not built or not dropped; the message says why."""


@dataclass(frozen=True, slots=True)
class Registered:
    """An advised index and its present state; *done* rises from 0 to 1 while it is built."""

    name: str
    definition: str
    columns: Sequence[str]
    reason: str
    created_at: datetime
    index: str
    exists: bool
    is_valid: bool
    bytes: int
    scans: int
    failure: str
    is_waiting: bool
    attempts: int
    stop: bool
    pid: int | None
    phase: str
    done: float

    @property
    def state(self) -> str:
        """Return "working" or "stopping" while it is built or dropped, or the state of an index that is not.

        "waiting" for a worker; "ready"; "interrupted" by a crash; "failed"; or "missing".
        """
        if self.pid is not None:
            return "stopping" if self.stop else "working"
        if self.is_waiting:
            return "interrupted" if self.attempts else "waiting"
        if self.exists:
            return "ready" if self.is_valid else "interrupted"
        return "failed" if self.failure else "missing"

    @property
    def message(self) -> str:
        """The reason why the last build or drop has failed; "" if it has not."""
        return restored(self.failure)


def registered(execute: Execute, zoid: int, relation: str) -> list[Registered]:
    """Return the advised indexes of the catalog with tool oid *zoid*, and their state on *relation*."""
    values = {"catalog": zoid, "relation": relation, "quoted": quote(relation)}
    return [Registered(*row) for row in execute(read_statement("advice", "registered"), values)]


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """A catalog: its ZODB.DB, the DSN of that, the oid of its tool, and its present relation."""

    database: Any
    dsn: str
    zoid: int
    relation: str

    @classmethod
    def of(cls, catalog: Catalog) -> "IndexTarget":
        """Return the target for *catalog*; raises BuildError if it has no relation yet."""
        state = catalog.view().read_state()
        if state is None:
            raise BuildError(_("the catalog has no table yet"))
        return cls(catalog.jar.db(), writable_dsn_of(catalog.jar), catalog.zoid, state.relation)

    def index(self, name: str) -> str:
        return f"{self.relation}_{name}"

    def run(self, purpose: str, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a short *statement* on its own connection; return its rows.  Raises BuildError for errors of PostgreSQL."""
        with errors_as(BuildError), connect(self.dsn, purpose) as connection:
            cursor = connection.execute(statement, {"catalog": self.zoid, **values})
            return cursor.fetchall() if cursor.description else []


def apply(target: IndexTarget, candidate: Candidate, reason: str) -> None:
    """Register *candidate* and start its build.  Raises BuildError if it cannot be registered, and JobError."""
    register(target, candidate, reason)
    start(target, candidate.name)


def register(target: IndexTarget, candidate: Candidate, reason: str) -> None:
    values = {"definition": candidate.definition, "columns": list(candidate.columns), "reason": reason}
    target.run("register index", REGISTER, {"name": candidate.name, **values})


def start(target: IndexTarget, name: str, is_dropped: bool = False) -> None:
    """Start the job that builds, or drops, the registered index *name*.

    Raises BuildError if it is not registered, JobError if it is being built or dropped already.
    """
    find(target, name)
    arguments = {"name": name, "is_dropped": is_dropped}
    long.start(target.database, target.dsn, KIND, target.zoid, subject_of(name), arguments)


def do(target: IndexTarget, name: str, is_dropped: bool = False) -> None:
    """Build, or drop, the registered index *name*, and wait for it; raises as ``start``, and JobError if it fails."""
    find(target, name)
    arguments = {"name": name, "is_dropped": is_dropped}
    long.do(target.database, target.dsn, KIND, target.zoid, subject_of(name), arguments)


def cancel(target: IndexTarget, name: str) -> None:
    """Request the end of the job that builds or drops the index *name*, or waits to; do not wait until it has ended.

    Raises BuildError if the index is not registered or has no such job, JobError if PostgreSQL refuses.
    """
    entry = find(target, name)
    if entry.pid is None and not entry.is_waiting:
        raise BuildError(_("${index} is not being built", {"index": entry.index}))
    long.stop(target.dsn, KIND, target.zoid, subject_of(name))


def subject_of(name: str) -> int:
    """Return the subject of jobs about the index *name*: 64 bits of a hash."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)


def find(target: IndexTarget, name: str) -> Registered:
    """Return the registered index *name*; raises BuildError if it is not registered."""
    for entry in registered(partial(target.run, "look up index"), target.zoid, target.relation):
        if entry.name == name and name.startswith(PREFIX):
            return entry
    raise BuildError(_("${name} is not an index created from advice for this catalog", {"name": repr(name)}))


@implementer(IJobKind)
class AdvisedIndex(LongKind):
    """The kind of jobs that build or drop an advised index."""

    is_one_statement = True

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """Build the index, unless it is valid, or drop it; a build that fails leaves no index."""
        connection, arguments = progress.connection, job.arguments or {}
        row = connection.execute(RELATION, {"catalog": job.catalog}).fetchone()
        if row is None:
            return
        relation = str(row[0])
        entries = registered(lambda *statement: connection.execute(*statement).fetchall(), job.catalog, relation)
        for entry in entries:
            if entry.name == arguments.get("name"):
                try:
                    if arguments.get("is_dropped"):
                        drop(connection, job.catalog, entry)
                    else:
                        build(connection, relation, entry)
                except psycopg.Error as error:
                    if connection.closed:
                        raise  # the next attempt repairs it
                    if connection.execute(INVALID, (entry.index,)).fetchall():
                        drop_index(connection, entry.index)
                    if isinstance(error, QueryCanceled):
                        raise
                    raise JobFailed(stored(message_of(error))) from error


def build(connection: Connection[Any], relation: str, entry: Registered) -> None:
    if entry.is_valid:
        return
    drop_index(connection, entry.index)
    index = sql.Identifier(entry.index)
    create = sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} ").format(index, sql.Identifier(relation))
    connection.execute(create + sql.SQL(entry.definition))
    comment = sql.Literal(f"advised by plone.pgcatalog: {entry.reason}")
    connection.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(index, comment))


def drop(connection: Connection[Any], catalog: int, entry: Registered) -> None:
    drop_index(connection, entry.index)
    connection.execute(FORGET, {"catalog": catalog, "name": entry.name})


def drop_index(connection: Connection[Any], index: str) -> None:
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(index)))
