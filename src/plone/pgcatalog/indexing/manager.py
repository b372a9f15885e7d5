"""The data manager of a transaction's pending catalog changes: abort, savepoints, commit."""

from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexing.overlap import seen_rows
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.resolve import resolve
from plone.pgcatalog.indexing.resolve import unresolved
from plone.pgcatalog.storage import require_writable
from transaction.interfaces import IDataManagerSavepoint
from transaction.interfaces import ISavepointDataManager
from typing import Any
from zope.interface import implementer

import threading


class Committing(threading.local):
    """The managers whose transaction this thread is committing."""

    def __init__(self) -> None:
        self.managers: list[PendingManager] = []


committing = Committing()


def change(session: Session, tool: Any, zoid: int, site_path: str | None) -> CatalogPending:
    """Return the pending changes of the catalog *tool*, to be extended; joins the transaction.

    *site_path* is the path of the site whose catalog *tool* is, None if it is not a site's catalog.  Raises
    ReadOnlyError.
    """
    require_writable(session.jar)
    session.materialize_results()
    PendingManager.of(session).join()
    # Without changed objects, a commit reaches the storage only if the connection has joined the transaction.
    session.jar._register()
    if zoid not in session.pending:
        session.pending[zoid] = CatalogPending(tool, zoid)
    pending: CatalogPending = session.pending[zoid]
    pending.site_path = site_path
    return pending


def resolve_pending(session: Session, pending: CatalogPending) -> None:
    """Assign rids to the *pending* entries, according to the rows in the snapshot of *session*."""
    entries = unresolved(pending)
    if entries:
        rows = []
        if pending.cleared:
            # The commit refuses to clear a relation that has changed since this snapshot, so it needs the state in the
            # snapshot.
            session.read_states()
        else:
            rows = seen_rows(session, pending.zoid, entries)
        pending.see(rows)
        resolve(pending, entries, (row[:3] for row in rows), session.new_rid)


@implementer(ISavepointDataManager)
class PendingManager:
    """Data manager of the pending changes of *session*; ``PendingManager.of(session)`` returns or creates it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.transaction_manager = None
        #: zoids of objects whose idx is stored with their state in the running commit
        self.idx_written: set[int] = set()
        self._joined = False

    @classmethod
    def of(cls, session: Session) -> "PendingManager":
        """Return the manager of *session*, created if necessary."""
        if session.manager is None:
            session.manager = cls(session)
        manager: PendingManager = session.manager
        return manager

    def join(self) -> None:
        """Join the transaction, unless this has been done."""
        if not self._joined:
            self._joined = True
            self.session.jar.transaction_manager.get().join(self)

    def sortKey(self) -> str:
        # Sorts before every storage: pending rows must be resolved before the storage begins to store objects.
        return "!plone.pgcatalog"

    def abort(self, txn: Any) -> None:
        self._forget()

    def tpc_begin(self, txn: Any) -> None:
        for pending in self.session.pending.values():
            pending.delete_nameless()
            resolve_pending(self.session, pending)
        committing.managers.append(self)

    def commit(self, txn: Any) -> None:
        pass

    def tpc_vote(self, txn: Any) -> None:
        pass

    def tpc_finish(self, txn: Any) -> None:
        self._forget()

    def tpc_abort(self, txn: Any) -> None:
        self._forget()

    def savepoint(self) -> "PendingSavepoint":
        return PendingSavepoint(self.session)

    def _forget(self) -> None:
        self._joined = False
        self.idx_written.clear()
        self.session.pending.clear()
        self.session.overlays.clear()
        if self in committing.managers:
            committing.managers.remove(self)


@implementer(IDataManagerSavepoint)
class PendingSavepoint:
    """A state of the pending changes that a transaction can return to."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.states = {zoid: (pending, pending.snapshot()) for zoid, pending in session.pending.items()}

    def rollback(self) -> None:
        self.session.materialize_results()
        self.session.pending = {}
        for zoid, (pending, state) in self.states.items():
            pending.restore(state)
            self.session.pending[zoid] = pending
