"""What PostgreSQL knows about the catalogs of a database: sizes, use, what is going on.

Reads only; every function takes a psycopg connection whose rows are dicts.
"""

from plone.pgcatalog.database.schema import is_unfilled
from plone.pgcatalog.database.schema import load_sql
from plone.pgcatalog.protocols import Connection
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.names import RANKING_INDEX
from psycopg import sql
from typing import Any

import re


#: Rows whose metadata are nowhere, and objects with metadata that no catalog has: 0 in a sound database.
ROWS_WITHOUT_IDX = (
    "SELECT count(*) AS n FROM {relation} c LEFT JOIN object_state o ON o.zoid = c.zoid"
    " WHERE c.idx IS NULL AND o.idx IS NULL"
)
#: Versions of pg_textsearch below this one do not write all pages of an index to the WAL.
SAFE_VERSION = (1, 3)
UNSAFE = "does not survive a crash of the server: REINDEX INDEX after one, or saves fail (safe: 1.3 or newer)"
STALE = "SELECT count(*) AS n FROM object_state o WHERE o.idx IS NOT NULL AND {nowhere}"


def sizes(connection: Connection) -> list[dict[str, Any]]:
    """Return a dict per catalog with what PostgreSQL knows without looking at rows."""
    found: list[dict[str, Any]] = connection.execute(load_sql("statistics_catalogs")).fetchall()
    return found


def catalogs(connection: Connection) -> list[dict[str, Any]]:
    """Return a dict per catalog: names, counts, sizes in bytes.

    ``site`` is the first path, None when it is empty; ``unfilled`` says that it has only what was saved since the site was
    copied or imported.
    """
    found = sizes(connection)
    for catalog in found:
        relation = sql.Identifier(catalog["relation"])
        query = sql.SQL("SELECT count(*) AS rows, min(path) AS site FROM {}").format(relation)
        catalog.update(connection.execute(query).fetchone())
        catalog["unfilled"] = is_unfilled(catalog["relation"])
        catalog["rebuild"] = rebuild_of(connection, catalog["catalog"])
    return found


def rebuild_of(connection: Connection, catalog: int) -> dict[str, Any] | None:
    """Return the rebuild of *catalog* that is under way, or was interrupted; None when there is none."""
    found: dict[str, Any] | None = connection.execute(
        "SELECT relation, phase, done, total, started,"
        " (SELECT count(*) FROM pgcatalog_rebuild_change c WHERE c.catalog = r.catalog) AS changes,"
        " EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = %s AND l.objid = %s"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND l.granted) AS running FROM pgcatalog_rebuild r WHERE r.catalog = %s",
        [*locks.of_catalog(locks.REBUILD, catalog), catalog],
    ).fetchone()
    return found


def indexes(connection: Connection, relation: str) -> list[dict[str, Any]]:
    """Return a dict per SQL index of *relation*, the largest first."""
    found: list[dict[str, Any]] = connection.execute(load_sql("statistics_indexes"), [relation]).fetchall()
    return found


def textsearch_version(connection: Connection) -> str | None:
    """Return the version of the extension pg_textsearch in the database; None when it is not there."""
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'pg_textsearch'").fetchone()
    return None if row is None else str(row["extversion"])


def is_unsafe(version: str) -> bool:
    """Return whether an index of pg_textsearch *version* may be broken after a crash."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return numbers < SAFE_VERSION


def has_textsearch(connection: Connection, catalog: int) -> bool:
    """Return whether *catalog* is to have an index of pg_textsearch."""
    query = "SELECT FROM pgcatalog_indexes WHERE catalog = %s AND name = %s"
    return connection.execute(query, [catalog, RANKING_INDEX]).fetchone() is not None


def connections(connection: Connection) -> dict[str, Any]:
    """Return how many connections the database has, and what they do."""
    found: dict[str, Any] = connection.execute(load_sql("statistics_connections")).fetchone()
    return found


def retired(connection: Connection) -> list[dict[str, Any]]:
    """Return the relations that wait to be dropped, with their sizes in bytes."""
    found: list[dict[str, Any]] = connection.execute(
        "SELECT relation, coalesce(pg_total_relation_size(to_regclass(quote_ident(relation))), 0) AS bytes"
        " FROM pgcatalog_retired ORDER BY relation"
    ).fetchall()
    return found


def rows_without_idx(connection: Connection, relation: str) -> int:
    """Return how many rows of *relation* have no metadata at all."""
    query = sql.SQL(ROWS_WITHOUT_IDX).format(relation=sql.Identifier(relation))
    return int(connection.execute(query).fetchone()["n"])


def stale_objects(connection: Connection, relations: list[str]) -> int:
    """Return how many objects have an idx and no row in any of *relations*, which are all of the database."""
    query = sql.SQL(STALE).format(nowhere=nowhere(relations))
    return int(connection.execute(query).fetchone()["n"])


def nowhere(relations: list[str]) -> sql.Composable:
    """Return the condition that no row of *relations* keeps its idx in ``o``, an alias of object_state."""
    exists = "NOT EXISTS (SELECT FROM {} c WHERE c.rid = o.zoid AND c.idx IS NULL)"
    conditions = [sql.SQL(exists).format(sql.Identifier(name)) for name in relations]
    return sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true")
