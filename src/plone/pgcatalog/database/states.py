"""Reads the states of a database's catalogs: SQL for a SELECT of one row at least, and what is made of its rows."""

from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.database.generations import States
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.sets import NEWEST as NEWEST_SET
from typing import Any


COLUMNS = (
    "catalog, relation, version, columns, generation, tid,"
    " coalesce((SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(quote_ident(relation))), -1),"
    f" CASE WHEN complete_at = generation THEN complete ELSE '{{}}' END, interned, {NEWEST_SET},"
    " CASE WHEN complete_at = generation THEN collected ELSE '{}' END"
)
OF_CATALOGS = "FROM (VALUES (1)) AS one LEFT JOIN pgcatalog_state ON true"


def states_of(rows: Iterable[Sequence[Any]]) -> States:
    """Return the states that *rows* of COLUMNS tell; without a catalog there is a row of NULLs."""
    return {
        row[0]: CatalogState(
            relation=row[1],
            version=row[2],
            columns=frozenset(row[3]),
            generation=row[4],
            tid=row[5],
            rows=row[6],
            complete=frozenset(row[7]),
            interned=frozenset(row[8]),
            newest_set=row[9],
            collected=frozenset(row[10]),
        )
        for row in rows
        if row[0] is not None
    }


def newest_set(states: States) -> int:
    """Return which list (``added``) is the newest one in a snapshot with *states*."""
    return max((state.newest_set for state in states.values()), default=0)
