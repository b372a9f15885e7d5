"""Reads the log of slow queries of one catalog."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.sql import log_sql
from plone.pgcatalog.protocols import Catalog
from typing import Any


#: Runs a statement with named values and returns its rows as tuples.
Execute = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Group:
    """All slow queries of one shape and operation; times in milliseconds, share of all time from 0 to 1."""

    shape: str
    operation: str
    count: int
    mean_ms: float
    p95_ms: float
    max_ms: float
    total_ms: float
    last: datetime
    share: float
    newest: int


@dataclass(frozen=True, slots=True)
class Example:
    """One recorded query; ``query`` is what ``record.recall`` takes."""

    id: int
    recorded_at: datetime
    path: str
    operation: str
    shape: str
    query: dict[str, Any]
    left_out: list[str]
    total_ms: float
    compile_ms: float
    execute_ms: float
    decode_ms: float
    result_rows: int
    statement: str


class SlowQueryLog:
    """The log of the catalog with tool oid *zoid*, read with *execute*."""

    def __init__(self, execute: Execute, zoid: int) -> None:
        self._execute = execute
        self.zoid = zoid

    def groups(self, limit: int = 50) -> list[Group]:
        """Return the groups, those first that cost most time."""
        rows = self._execute(log_sql("groups"), {"catalog": self.zoid, "limit": limit})
        return [Group(*row) for row in rows]

    def examples(self, shape: str | None = None, operation: str | None = None, limit: int = 20) -> list[Example]:
        """Return the newest queries, of one shape and operation when they are given."""
        return self._examples(shape, operation, None, limit)

    def example(self, id: int) -> Example | None:
        """Return the query number *id* if it is in this catalog's log."""
        found = self._examples(None, None, id, 1) if 0 <= id < 2**63 else []
        return found[0] if found else None

    def _examples(self, shape: str | None, operation: str | None, id: int | None, limit: int) -> list[Example]:
        values = {"catalog": self.zoid, "shape": shape, "operation": operation, "id": id, "limit": limit}
        return [Example(*row) for row in self._execute(log_sql("examples"), values)]


def log_of(catalog: Catalog) -> SlowQueryLog:
    """Return the log of *catalog*, as its snapshot sees it."""
    return SlowQueryLog(catalog.session.execute, catalog.zoid)


def clear(dsn: str, zoid: int) -> int:
    """Delete the log of the catalog with tool oid *zoid*; return how many queries it had."""
    recorder.recorders[dsn].flush(EXIT_SECONDS)
    with connect(dsn, "clear slow queries") as connection:
        return connection.execute("DELETE FROM pgcatalog_slow_queries WHERE catalog = %s", (zoid,)).rowcount
