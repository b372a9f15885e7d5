"""The storage's hooks: the only place where the catalog writes.

Registered once with the storage of each opened database; depends on its database only.

The storage cannot undo changes of a catalog, because they are not part of any object.  So the writer logs the changed
paths (history-preserving storages only); when an undo is committed, a job catalogues the objects at those paths again, or
uncatalogues the paths.
"""

from dataclasses import replace
from functools import partial
from plone.pgcatalog.database import background
from plone.pgcatalog.database import retirement
from plone.pgcatalog.database.errors import shorten_outage
from plone.pgcatalog.database.errors import transient_reads
from plone.pgcatalog.database.errors import transient_when_locked
from plone.pgcatalog.database.errors import transient_when_lost
from plone.pgcatalog.database.history import check_order
from plone.pgcatalog.database.history import read_changes
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.prepared import begin_snapshot
from plone.pgcatalog.database.prepared import end_snapshot
from plone.pgcatalog.database.prepared import finish
from plone.pgcatalog.database.restored import is_expected
from plone.pgcatalog.database.restored import missing
from plone.pgcatalog.database.restored import recreate_tables
from plone.pgcatalog.indexing.manager import committing
from plone.pgcatalog.indexing.manager import PendingManager
from plone.pgcatalog.indexing.merge import packed
from plone.pgcatalog.indexing.overlap import changed_objects
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.writer import dump
from plone.pgcatalog.indexing.writer import Writer
from plone.pgcatalog.queue.table import put
from plone.pgcatalog.queue.worker import do_now
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.storage import adapt
from plone.pgcatalog.storage import database_dsn
from plone.pgcatalog.storage import forget_objects
from plone.pgcatalog.storage import pooled_connection
from plone.pgcatalog.storage import processors
from plone.pgcatalog.storage import require_supported_storage
from plone.pgcatalog.storage.snapshots import PollMessages
from psycopg import Cursor
from typing import Any
from weakref import ref
from weakref import WeakKeyDictionary
from zodb_pgjsonb import ExtraColumn

import logging
import orjson
import transaction


logger = logging.getLogger(__name__)

#: Loggers of ZODB's connections and of their storage instances.
CONNECTION_LOGS = ("ZODB.Connection", "zodb_pgjsonb.instance")
#: An array is a change of an idx, ``[{key: new value}, [removed keys]]``: others may have changed other keys.
UPDATE_IDX = read_statement("indexing", "idx_update")


#: The name of the kind of jobs that follow an undo.
UNDO = "undo"
#: Seconds after which a worker does what the process of an undo has not done.
UNDO_SECONDS = 5.0

#: An undo changes the rows that the undone transactions changed; its own tid is the newest in the log.
LOG_UNDONE = (
    "INSERT INTO pgcatalog_changes (tid, catalog, path)"
    " SELECT DISTINCT (SELECT max(tid) FROM transaction_log), catalog, path FROM pgcatalog_changes WHERE tid = ANY(%s)"
    " ON CONFLICT DO NOTHING"
)


class PGCatalogStateProcessor:
    """State processor of zodb-pgjsonb (duck-typed; see its ``IStateProcessor``).

    The storage records under the class name that the schema exists.
    """

    def __init__(self, database: Any) -> None:
        self._database = ref(database)
        #: psycopg connection -> tids that its running commit undoes
        self._undone: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()

    def get_extra_columns(self) -> list[ExtraColumn]:
        return [ExtraColumn("idx", "%(idx)s::jsonb", UPDATE_IDX)]

    def get_schema_sql(self) -> str:
        return load_sql("base")

    def process(self, zoid: int, class_mod: str, class_name: str, state: Any) -> dict[str, Any] | None:
        """Return {"idx": JSON text of an object's idx or its change}, None if this commit does not change it."""
        for manager in self._managers():
            for pending in manager.session.pending.values():
                entry = primary_entry(pending, zoid)
                if entry is not None and (entry.new or entry.idx or entry.vanished):
                    manager.idx_written.add(zoid)
                    return {"idx": dump_change(pending, entry)}
        return None

    def finalize(self, cursor: Cursor[Any]) -> None:
        """Write all catalogs with pending changes; an exception aborts the commit.

        Raises ClockBehind if others would not see the commit, HistoryChanged if transactions that were seen are lost.
        """
        with transient_when_lost(cursor.connection), transient_when_locked():
            check_order(self._database(), cursor)
            if undone := self._undone.pop(cursor.connection, None):
                cursor.execute(LOG_UNDONE, [undone])
            for manager in self._managers():
                for pending in manager.session.pending.values():
                    relation = Writer(cursor, manager.session, pending, manager.idx_written).write()
                    if relation is not None:
                        put_jobs(cursor, pending, relation)
                    if pending.cleared or pending.dropped or pending.replacement is not None:
                        put(cursor, retirement.KIND, pending.zoid, [pending.zoid])

    def undone(self, cursor: Cursor[Any], tid: int, restored: Any, deleted: Any, entries: Any) -> None:
        """Have the catalogs follow the undo of *tid* after its commit, and log it for an undo of the undo."""
        # If a commit fails before its end, the next one on this connection logs too many paths, which is harmless.
        self._undone.setdefault(cursor.connection, []).append(tid)
        follow_undo(self._database(), cursor, tid)

    def _managers(self) -> list[PendingManager]:
        database = self._database()
        return [m for m in committing.managers if m.session.jar.db() is database]


def put_jobs(cursor: Cursor[Any], pending: CatalogPending, relation: str) -> None:
    """Put the jobs that the *pending* changes require; *cursor* has written the changes into *relation*."""
    jobs = pending.jobs()
    for kind, zoids in changed_objects(cursor, pending, relation).items():
        jobs.setdefault(kind, []).extend(zoids)
    for kind, zoids in jobs.items():
        put(cursor, kind, pending.zoid, zoids, pending.is_backfill)
    for kind in pending.own_jobs:
        put(cursor, kind, pending.zoid, [pending.zoid], is_backfill=True)


def dump_change(pending: CatalogPending, entry: Entry) -> str:
    """Return as JSON text how *entry* changes its object's idx.

    The text is ``[{key: new value}, [removed keys]]``, or the whole idx if the old one is unknown.
    """
    if not entry.new:
        return dump([entry.idx, sorted(entry.vanished)])
    row = None if pending.cleared or entry.rid is None else pending.seen.get(entry.rid)
    if row is None or row.idx is None or row.keys is not None or not pending.is_primary(replace(entry, path=row.path)):
        return dump(entry.idx)
    old = orjson.loads(row.idx)
    new = orjson.loads(dump(entry.idx))
    changed = {k: v for k, v in new.items() if k not in old or packed(v) != packed(old[k])}
    return orjson.dumps([changed, sorted(old.keys() - new.keys())]).decode()


def primary_entry(pending: CatalogPending, zoid: int) -> Any:
    """Return the pending entry whose idx belongs to the object *zoid*, None if there is none."""
    entry = pending.entries.get(pending.owners.get(zoid, ""))
    if entry is None or entry.deleted or entry.rid != zoid or not pending.is_primary(entry):
        return None
    return entry


def register(database: Any) -> bool:
    """Register the processor with the storage of *database* if necessary; return False if it is not zodb-pgjsonb.

    Raises UnknownStorage for a zodb-pgjsonb that lacks a feature that we use.
    """
    if not hasattr(database.storage, "register_state_processor"):
        return False
    require_supported_storage(database)
    if not any(isinstance(p, PGCatalogStateProcessor) for p in processors(database)):
        database.storage.register_state_processor(PGCatalogStateProcessor(database))
        _complete_tables(database)
        # Zope opens its database before it imports this package: cached records may predate `preserve_values`.
        database.storage.clear_caches()
        database._connectionMap(forget_objects)
        messages = PollMessages(begin_snapshot, partial(read_changes, database), end_snapshot, finish)
        adapt(database, messages, transient_reads)
        for name in CONNECTION_LOGS:
            logging.getLogger(name).addFilter(shorten_outage)
    return True


def _complete_tables(database: Any) -> None:
    """Have the storage of *database* create our missing tables before the first read, whatever its stamps are."""
    if database.storage.isReadOnly():
        return
    with pooled_connection(database) as connection:
        names = missing(connection)
        if names:
            level = logging.WARNING if is_expected(connection) else logging.INFO
            logger.log(level, "recreated missing parts of the database: %s", ", ".join(names))
            database.storage.defer_startup_action(recreate_tables, "plone.pgcatalog: missing tables")


def follow_undo(database: Any, cursor: Cursor[Any], tid: int) -> None:
    """Put jobs that catalogue the paths that *tid* changed again, with the undo that is running with *cursor*.

    They are done right after its commit, before the request goes on; by a worker, if the process dies before.
    """
    cursor.execute("SELECT DISTINCT catalog FROM pgcatalog_changes WHERE tid = %s", [tid])
    catalogs = [row["catalog"] for row in cursor.fetchall()]
    for catalog in catalogs:
        put(cursor, UNDO, catalog, [tid], delay=UNDO_SECONDS)
    if catalogs:
        transaction.get().addAfterCommitHook(_follow, (database, catalogs, tid))


def _follow(success: bool, database: Any, catalogs: list[int], tid: int) -> None:
    """Do the jobs of ``follow_undo``, in a thread: this one has the transaction that has just been committed."""

    def work() -> None:
        for catalog in catalogs:
            do_now(database, str(database_dsn(database)), UNDO, catalog, tid)

    if success:
        background.start("undo", work).join()
