"""Clears what is left over of tables and objects."""

from plone.pgcatalog.database import schema
from plone.pgcatalog.database import statistics
from plone.pgcatalog.protocols import Connection
from plone.pgcatalog.sql import locks
from psycopg import sql


#: Objects in one transaction; commits of the storage wait for it.
BATCH = 1000
CLEAR = (
    "WITH batch AS (SELECT o.zoid FROM object_state o WHERE o.zoid > %s AND o.idx IS NOT NULL AND {nowhere}"
    " ORDER BY o.zoid LIMIT %s)"
    " UPDATE object_state o SET idx = NULL FROM batch WHERE o.zoid = batch.zoid RETURNING o.zoid"
)


def drop_retired(connection: Connection) -> list[str]:
    """Drop the relations that no snapshot can need; return the names of those that are gone."""
    with connection.transaction(), connection.cursor() as cursor:
        names = schema.drop_retired(cursor)
    still = {row["relation"] for row in statistics.retired(connection)}
    return [name for name in names if name not in still]


def vacuum_analyze(connection: Connection, relation: str) -> None:
    """Have PostgreSQL remove the dead rows of *relation*, and renew what it knows of its values; outside of a transaction."""
    connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(relation)))


def clear_stale(connection: Connection) -> int:
    """Clear the idx of objects without a row, batch by batch; return how many there were."""
    cleared, last = 0, -1
    while True:
        with connection.transaction(), connection.cursor() as cursor:
            # No commit may be about to write the row, or to point to another table.
            cursor.execute(locks.HOLD_COMMITS)
            relations = [c["relation"] for c in cursor.execute("SELECT relation FROM pgcatalog_state").fetchall()]
            query = sql.SQL(CLEAR).format(nowhere=statistics.nowhere(relations))
            zoids = [row["zoid"] for row in cursor.execute(query, [last, BATCH]).fetchall()]
        cleared += len(zoids)
        if len(zoids) < BATCH:
            return cleared
        last = max(zoids)
