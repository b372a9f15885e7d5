"""The storage's hooks: the only place where the catalog writes.

Registered once with the storage of each opened database; knows nothing but its database.
"""

from plone.pgcatalog.database.schema import load_sql
from plone.pgcatalog.database.session import committing
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.undo import follow_undo
from plone.pgcatalog.indexing.writer import dump
from plone.pgcatalog.indexing.writer import Writer
from typing import Any
from weakref import ref
from zodb_pgjsonb import ExtraColumn


class PGCatalogStateProcessor:
    """State processor of zodb-pgjsonb (duck-typed; see its ``IStateProcessor``).

    The class name is the key under which the storage remembers that the schema is there.
    """

    def __init__(self, database: Any) -> None:
        self._database = ref(database)

    def get_extra_columns(self) -> list[ExtraColumn]:
        return [ExtraColumn("idx", "%(idx)s::jsonb")]

    def get_schema_sql(self) -> str:
        return load_sql("base")

    def process(self, zoid: int, class_mod: str, class_name: str, state: Any) -> dict[str, Any] | None:
        """Return the idx of an object whose row is written as a whole in this commit, else None (keep it)."""
        for session in self._sessions():
            for pending in session.pending.values():
                entry = primary_entry(pending, zoid)
                if entry is not None:
                    session.idx_written.add(zoid)
                    return {"idx": dump(entry.idx)}
        return None

    def finalize(self, cursor: Any) -> None:
        """Write all catalogs that have something pending; an exception aborts the commit."""
        for session in self._sessions():
            for pending in session.pending.values():
                layout = pending.tool._catalog.layout()
                Writer(cursor, session, pending, layout, session.idx_written).write()

    def undone(self, cursor: Any, tid: int, restored: Any, deleted: Any, entries: Any) -> None:
        """Let the catalogs follow the undo of *tid*, as soon as it is committed."""
        follow_undo(self._database(), cursor, tid)

    def _sessions(self) -> list[Session]:
        database = self._database()
        return [s for s in committing.sessions if s.jar.db() is database]


def primary_entry(pending: CatalogPending, zoid: int) -> Any:
    """Return the pending whole row whose idx belongs to the object *zoid*, or None."""
    entry = pending.entries.get(pending.owners.get(zoid, ""))
    if entry is None or entry.deleted or not entry.new or entry.rid != zoid or not pending.is_primary(entry):
        return None
    return entry


def register(database: Any) -> bool:
    """Register the processor with the storage of *database* unless it has one; False when it is not zodb-pgjsonb."""
    storage = database.storage
    if not hasattr(storage, "register_state_processor"):
        return False
    if not any(isinstance(p, PGCatalogStateProcessor) for p in storage._state_processors):
        storage.register_state_processor(PGCatalogStateProcessor(database))
    return True
