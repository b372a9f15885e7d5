"""The SQL indexes that were made on advice: only these are ever dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.observe.log import Execute
from plone.pgcatalog.observe.sql import log_sql
from plone.pgcatalog.sql import locks


@dataclass(frozen=True, slots=True)
class Registered:
    """An index made on advice, and how it is now; *done* goes from 0 to 1 while it is built."""

    name: str
    definition: str
    columns: Sequence[str]
    reason: str
    message: str
    created_at: datetime
    index: str
    is_there: bool
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
        if self.is_there:
            return "ready" if self.is_valid else "interrupted"
        return "failed" if self.message else "missing"


def registered(execute: Execute, zoid: int, relation: str) -> list[Registered]:
    """Return the indexes of the catalog with tool oid *zoid*, as they are on *relation*."""
    values = {"catalog": zoid, "relation": relation, "quoted": quote(relation), "lock": locks.ADVISED_INDEX}
    return [Registered(*row) for row in execute(log_sql("registered"), values)]


def register(execute: Execute, zoid: int, candidate: Candidate, reason: str) -> None:
    """Note that *candidate* is to be an index of the catalog with tool oid *zoid*."""
    execute(
        "INSERT INTO pgcatalog_indexes (catalog, name, definition, columns, reason)"
        " VALUES (%(catalog)s, %(name)s, %(definition)s, %(columns)s, %(reason)s)"
        " ON CONFLICT (catalog, name) DO UPDATE SET message = '' RETURNING name",
        {
            "catalog": zoid,
            "name": candidate.name,
            "definition": candidate.definition,
            "columns": list(candidate.columns),
            "reason": reason,
        },
    )


def set_message(execute: Execute, zoid: int, name: str, message: str) -> None:
    """Note why building or dropping failed; '' for all is well."""
    execute(
        "UPDATE pgcatalog_indexes SET message = %(message)s WHERE catalog = %(catalog)s AND name = %(name)s"
        " RETURNING name",
        {"catalog": zoid, "name": name, "message": message},
    )


def forget(execute: Execute, zoid: int, name: str) -> None:
    """Note that *name* is no index of the catalog any more."""
    execute(
        "DELETE FROM pgcatalog_indexes WHERE catalog = %(catalog)s AND name = %(name)s RETURNING name",
        {"catalog": zoid, "name": name},
    )
