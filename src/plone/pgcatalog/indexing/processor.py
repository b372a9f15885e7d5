"""The storage's hooks: the only place where the catalog writes.

Registered once with the storage of each opened database; depends on its database only.

The storage cannot undo changes of a catalog, because they are not part of any object.  So the writer logs the changed
paths (history-preserving storages only); when an undo is committed, a separate transaction catalogues the objects at
those paths again, or uncatalogues the paths.
"""

from Acquisition import aq_base
from dataclasses import replace
from functools import partial
from plone.pgcatalog.database.connections import connect
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
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.manager import committing
from plone.pgcatalog.indexing.manager import PendingManager
from plone.pgcatalog.indexing.merge import packed
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.overlap import changed_objects
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.indexing.writer import dump
from plone.pgcatalog.indexing.writer import Writer
from plone.pgcatalog.queue.table import put
from plone.pgcatalog.request import application
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.storage import adapt
from plone.pgcatalog.storage import dsn_of
from plone.pgcatalog.storage import forget_objects
from plone.pgcatalog.storage import pooled_connection
from plone.pgcatalog.storage import processors
from plone.pgcatalog.storage import require_supported_storage
from plone.pgcatalog.storage.snapshots import PollMessages
from psycopg import Cursor
from typing import Any
from weakref import ref
from weakref import WeakKeyDictionary
from ZODB.POSException import ConflictError
from ZODB.utils import p64
from zodb_pgjsonb import ExtraColumn
from zope.component.hooks import setSite

import logging
import orjson
import psycopg
import transaction


logger = logging.getLogger(__name__)

#: Loggers of ZODB's connections and of their storage instances.
CONNECTION_LOGS = ("ZODB.Connection", "zodb_pgjsonb.instance")
#: An array is a change of an idx, ``[{key: new value}, [removed keys]]``: others may have changed other keys.
UPDATE_IDX = read_statement("indexing", "idx_update")


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
        #: False before the first commit of this process: an earlier process may have left retired relations
        self._cleaned_up = False
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
                    self._clean_up(manager.session, pending)

    def undone(self, cursor: Cursor[Any], tid: int, restored: Any, deleted: Any, entries: Any) -> None:
        """Have the catalogs follow the undo of *tid* after its commit, and log it for an undo of the undo."""
        # If a commit fails before its end, the next one on this connection logs too many paths, which is harmless.
        self._undone.setdefault(cursor.connection, []).append(tid)
        follow_undo(self._database(), cursor, tid)

    def _clean_up(self, session: Session, pending: CatalogPending) -> None:
        """Have retired relations dropped after a commit that retires some, and after the first commit."""
        if pending.cleared or pending.dropped or pending.replacement is not None or not self._cleaned_up:
            self._cleaned_up = True
            drop_after_commit(session)

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


ATTEMPTS = 5
#: Logged in place of all paths by a transaction that cleared the catalog.
WHOLE_CATALOG = ""


def follow_undo(database: Any, cursor: Cursor[Any], tid: int) -> None:
    """Have the paths that *tid* changed catalogued again when the undo that is running with *cursor* is committed."""
    cursor.execute("SELECT catalog, path FROM pgcatalog_changes WHERE tid = %s", [tid])
    changes: dict[int, list[str]] = {}
    for row in cursor.fetchall():
        changes.setdefault(row["catalog"], []).append(row["path"])
    if changes:
        transaction.get().addAfterCommitHook(_committed, (database, changes))


def _committed(success: bool, database: Any, changes: dict[int, list[str]]) -> None:
    """Catalogue the undone paths in a separate transaction; retry after a conflict."""
    if not success:
        return
    manager = transaction.TransactionManager()
    for attempt in range(ATTEMPTS):
        try:
            with application(database, manager) as app:
                for zoid, paths in changes.items():
                    _catalogue(app, zoid, paths)
                manager.get().note("catalog follows an undo")
                manager.commit()
                return
        except ConflictError:
            logger.info("conflict while updating the catalog after an undo, attempt %s", attempt + 1)
    logger.error("updating the catalog after an undo failed: run pgcatalog verify --repair")


def _catalogue(app: Any, zoid: int, paths: list[str]) -> None:
    catalog = find_catalog(app, zoid, paths)
    if catalog is None:
        return
    setSite(catalog.aq_parent)
    if WHOLE_CATALOG in paths:
        catalog._core.change().is_whole = True
        verifier = Verifier(catalog)
        for difference in list(verifier.differences()):
            verifier.repair(difference)
        return
    found = {path: obj for path in paths if (obj := object_at(app, path)) is not None}
    # Removed rows first: the object's row at its current path needs their record id, which is the oid.
    for path in paths:
        if path not in found and catalog._core.view().select("1", Condition("path = %s", (clean_path(path),))).value():
            catalog.uncatalog_object(path)
    for path, obj in found.items():
        catalog.catalog_object(obj, path)


def object_at(app: Any, path: str) -> Any:
    """Return the object with the physical path *path*, None if there is no such object."""
    obj = app.unrestrictedTraverse(path, None)
    return obj if obj is not None and "/".join(obj.getPhysicalPath()) == path else None


def find_catalog(app: Any, zoid: int, paths: list[str]) -> Any:
    """Return the catalog tool with oid *zoid*, wrapped in its site; None if it no longer exists.

    The sites on the *paths* are searched first, then the Plone sites in the root.
    """
    oid = p64(zoid)
    for path in paths:
        container = app
        for name in path.strip("/").split("/"):
            container = container.unrestrictedTraverse(name, None)
            tool = None if container is None else aq_base(container).__dict__.get("portal_catalog")
            if tool is not None and aq_base(tool)._p_oid == oid:
                return container.portal_catalog
            if container is None:
                break
    for site in app.objectValues("Plone Site"):
        if aq_base(site.portal_catalog)._p_oid == oid:
            return site.portal_catalog
    return None


def drop_after_commit(session: Session) -> None:
    """Have retired relations dropped after the commit of *session*; relations that are in use remain until the next time."""
    session.jar.transaction_manager.get().addAfterCommitHook(_drop_retired, (session,))


def _drop_retired(success: bool, session: Session) -> None:
    if not success:
        return
    try:
        _release(session)
        with connect(dsn_of(session.jar), "retired relations") as connection:
            drop_retired(connection.cursor())
    except psycopg.Error as error:
        # The commit is done; retired relations do no harm.
        logger.warning("dropping retired relations failed, and is retried later: %s", error)


def _release(session: Session) -> None:
    """Begin a new snapshot in place of the one that the commit ended with.

    The former one locks object_state, because it has read the changes of others there.  The new one has no changes to
    read.
    """
    jar: Any = session.jar
    if not jar.explicit_transactions:
        jar.newTransaction(None, False)
        session.forget_snapshot()
