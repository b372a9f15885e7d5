"""Drops relations that are no longer used: commits mark them, and they are dropped when no snapshot can read them.

A DROP in the commit itself would lock object_state against every reader of every site until its end.
"""

from collections.abc import Iterable
from contextlib import suppress
from plone.pgcatalog.database import counts
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.layout import chunks_prefix
from plone.pgcatalog.database.layout import emptied
from plone.pgcatalog.database.layout import idx_table
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.layout import view_name
from plone.pgcatalog.sql import locks
from psycopg import Connection
from psycopg import Cursor
from psycopg import sql
from psycopg.errors import LockNotAvailable
from typing import Any


#: The name of the kind of jobs that drop retired relations.
KIND = "retired"
RETIRE_LEFT_OVER = (
    "INSERT INTO pgcatalog_retired (relation) SELECT relname FROM pg_class"
    " WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relname ~ %s"
    " AND NOT EXISTS (SELECT FROM pgcatalog_state WHERE relation = relname)"
    " AND NOT EXISTS (SELECT FROM pgcatalog_rebuild WHERE relname IN (relation, relation || '_idx')) ON CONFLICT DO NOTHING"
)
RETIRE_CHUNKS = (
    "INSERT INTO pgcatalog_retired (relation) SELECT relname FROM pg_class"
    " WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relname ~ %s ON CONFLICT DO NOTHING"
)
#: A concurrent call waits here for the end of this one, and then finds the new names.
NOT_EMPTIED = f"SELECT relation FROM pgcatalog_retired WHERE relation = ANY(%s::text[]) AND relation !~ '{emptied('')}$' FOR UPDATE"
INDEXES = (
    "SELECT c.relname AS relation FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid"
    " WHERE indrelid IN (SELECT to_regclass(quote_ident(name)) FROM unnest(%s::text[]) AS name)"
    " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)"
)
RENAME_RETIRED = "UPDATE pgcatalog_retired SET relation = %s WHERE relation = %s"
#: Objects per transaction; commits of the storage wait for it.
BATCH = 1000
CLEAR = (
    "WITH batch AS (SELECT o.zoid FROM object_state o WHERE o.zoid > %s AND o.idx IS NOT NULL AND {nowhere}"
    " ORDER BY o.zoid LIMIT %s)"
    " UPDATE object_state o SET idx = NULL FROM batch WHERE o.zoid = batch.zoid RETURNING o.zoid"
)


def retire_left_over(cursor: Cursor[Any], zoid: int) -> None:
    """Mark for dropping the relations of the catalog tool with oid *zoid* that neither it nor its rebuild uses."""
    cursor.execute(RETIRE_LEFT_OVER, [f"^pgcatalog_{zoid:x}(_[0-9]+)*(_idx)?({emptied('')})?$"])


def retire_relation(cursor: Cursor[Any], relation: str) -> None:
    """Mark *relation* for dropping: a snapshot older than this commit may still read it."""
    cursor.execute("INSERT INTO pgcatalog_retired (relation) VALUES (%s) ON CONFLICT DO NOTHING", (relation,))


def retire_chunks(cursor: Cursor[Any], zoid: int) -> None:
    """Mark for dropping the tables of text chunks of the catalog tool with oid *zoid*."""
    cursor.execute(RETIRE_CHUNKS, [f"^{chunks_prefix(zoid)}[0-9]+$"])


def drop_retired(cursor: Cursor[Any]) -> tuple[list[str], bool]:
    """Drop the retired relations that no snapshot can read any more; return their names, and whether some are left.

    Their foreign key makes a DROP lock object_state against every reader of every site.  So it is not part of a commit,
    which would hold that lock until its end, and NOWAIT prevents readers from queueing behind a request for the lock.
    On a busy site that lock is seldom free: then none is dropped, and their space is freed.
    """
    names: list[str] = []
    try:
        with cursor.connection.transaction():
            cursor.execute(load_sql("forget_retired"))
            names += [name for name in _relations(cursor) if name is not None]
            if names:
                tables = _listed(names)
                cursor.execute(sql.SQL("LOCK TABLE {}, object_state IN ACCESS EXCLUSIVE MODE NOWAIT").format(tables))
                cursor.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(_listed(map(view_name, names))))
                cursor.execute(sql.SQL("DROP TABLE {}").format(tables))
    except LockNotAvailable:
        with suppress(LockNotAvailable), cursor.connection.transaction():
            empty_retired(cursor, names)
        return [], True
    # No reader waits for these locks.
    if names:
        with cursor.connection.transaction():
            counts.drop(cursor, names)
    cursor.execute("SELECT EXISTS (SELECT FROM pgcatalog_retired) AS is_left")
    [row] = cursor.fetchall()
    return names, bool(row["is_left"] if isinstance(row, dict) else row[0])


def empty_retired(cursor: Cursor[Any], names: list[str]) -> None:
    """Remove all rows and SQL indexes of the retired relations *names*, and rename these.

    Indexes of constraints stay.  Raises LockNotAvailable if one of the relations is in use.

    TRUNCATE does not respect snapshots.  No session here can read the relations, but one on a standby might: it finds no
    relation, as after a DROP, and not an empty one.
    """
    cursor.execute(NOT_EMPTIED, (names,))
    left = _relations(cursor)
    if not left:
        return
    cursor.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT").format(_listed(left)))
    cursor.execute(sql.SQL("TRUNCATE {}").format(_listed(left)))
    cursor.execute(INDEXES, (left,))
    if indexes := _relations(cursor):
        cursor.execute(sql.SQL("DROP INDEX {}").format(_listed(indexes)))
    counts.drop(cursor, left)
    cursor.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(_listed(map(view_name, left))))
    for name in left:
        cursor.execute(
            sql.SQL("ALTER TABLE {} RENAME TO {}").format(sql.Identifier(name), sql.Identifier(emptied(name)))
        )
        cursor.execute(RENAME_RETIRED, (emptied(name), name))


def _relations(cursor: Cursor[Any]) -> list[str]:
    """Return the column ``relation`` of the result of *cursor*; tuples have no other column."""
    return [row["relation"] if isinstance(row, dict) else row[0] for row in cursor.fetchall()]


def _listed(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def forget_rebuild(cursor: Cursor[Any], zoid: int) -> None:
    """End the rebuild of the catalog tool with oid *zoid*, if there is one, and retire the relations that it has created."""
    cursor.execute("DELETE FROM pgcatalog_queue WHERE kind = 'visit' AND catalog = %s", (zoid,))
    cursor.execute("DELETE FROM pgcatalog_rebuild WHERE catalog = %s RETURNING relation", (zoid,))
    for relation in _relations(cursor):
        retire_relation(cursor, idx_table(relation))
        retire_relation(cursor, relation)


def vacuum_analyze(connection: Connection[Any], relation: str) -> None:
    """Run VACUUM and ANALYZE on *relation*; outside of a transaction."""
    connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(relation)))


# Delete jobs and texts of files that belong to objects removed by a pack.
FORGET_FILES = (
    "DELETE FROM pgcatalog_queue AS job WHERE NOT EXISTS (SELECT FROM object_state WHERE zoid = job.catalog)"
    " OR kind IN ('text', 'embed') AND NOT EXISTS (SELECT FROM object_state WHERE zoid = job.subject)",
    "DELETE FROM pgcatalog_file_blobs AS blob"
    " WHERE NOT EXISTS (SELECT FROM object_state AS o WHERE (o.zoid, o.tid) = (blob.zoid, blob.tid))",
    "DELETE FROM pgcatalog_file_texts AS known WHERE NOT EXISTS"
    " (SELECT FROM pgcatalog_file_blobs AS blob WHERE (blob.digest, blob.kind) = (known.digest, known.kind))",
)


def clear_stale(connection: Connection[Any]) -> int:
    """Clear the idx of objects without a row, batch by batch; return the number of these objects.

    Also deletes jobs and texts of files that belong to objects removed by a pack.
    """
    for statement in FORGET_FILES:
        connection.execute(statement)
    cleared, last = 0, -1
    while True:
        with connection.transaction(), connection.cursor() as cursor:
            # Holds back commits that might write the row, or switch to another relation.
            cursor.execute(locks.HOLD_COMMITS)
            relations = [c["relation"] for c in cursor.execute("SELECT relation FROM pgcatalog_state").fetchall()]
            clear = sql.SQL(CLEAR).format(nowhere=statistics.nowhere(relations))
            zoids = [row["zoid"] for row in cursor.execute(clear, [last, BATCH]).fetchall()]
        cleared += len(zoids)
        if len(zoids) < BATCH:
            return cleared
        last = max(zoids)
