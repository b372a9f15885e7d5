"""Rebuilds a catalog beside the live one: searches continue, changes are followed, and one commit swaps the relations.

    parts    if the site splits compounds, the words that may be their parts are renewed
    walk     the content is catalogued into a new relation, by any number of workers
    rest     the other objects in the live relation are catalogued as well
    index    the SQL indexes are created
    replay   paths that commits have changed in the meantime are catalogued again
    swap     one commit: the remaining changes, the idx of the objects, and the state that names the relation

Progress is stored in tables (``pgcatalog_rebuild…``), and each batch is one transaction with its visits: an interrupted
rebuild can be resumed.
"""

from Acquisition import aq_inner
from Acquisition import aq_parent
from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from plone.pgcatalog.database import counts
from plone.pgcatalog.database import retirement
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import idx_table
from plone.pgcatalog.database.sets import save as save_sets
from plone.pgcatalog.fulltext import compounds
from plone.pgcatalog.fulltext.site import site_languages
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing import rebuild_relation as relation
from plone.pgcatalog.indexing.rebuild_relation import RebuildTarget
from plone.pgcatalog.indexing.rebuild_worker import BrokenObject
from plone.pgcatalog.indexing.rebuild_worker import follow_log
from plone.pgcatalog.indexing.rebuild_worker import PAUSE
from plone.pgcatalog.indexing.rebuild_worker import rebuild_connection
from plone.pgcatalog.indexing.rebuild_worker import RebuildGone
from plone.pgcatalog.indexing.rebuild_worker import RebuildWorker
from plone.pgcatalog.indexing.rebuild_worker import StartOver
from plone.pgcatalog.indexing.rebuild_worker import VISITING
from plone.pgcatalog.queue.table import put
from plone.pgcatalog.queue.worker import put_needed
from plone.pgcatalog.request import application
from plone.pgcatalog.settings import split_compounds
from plone.pgcatalog.sql import locks
from psycopg import Cursor
from psycopg.pq import TransactionStatus
from typing import Any
from zope.component.hooks import setSite

import logging
import psycopg
import time
import transaction


__all__ = ["PHASES", "BrokenObject", "Rebuild", "RebuildGone", "RebuildRunning"]

logger = logging.getLogger(__name__)

#: Log entries applied in one transaction.
LOG_BATCH = 200
#: Rounds of replay before the swap applies the remaining entries while all commits wait.
ROUNDS = 50
#: Attempts at the swap, which fails if a lock is not available.
SWAPS = 5

#: Phase -> its description for users.
PHASES = {
    "walk": _("Visiting the content"),
    "rest": _("Visiting other catalogued objects"),
    "index": _("Creating the SQL indexes"),
    "replay": _("Applying changes made meanwhile"),
    "done": _("Done"),
}

#: Deletes the idx of objects from object_state if the old relation's row has it there and the new relation's row has
#: not.
FORGET_IDX = (
    "UPDATE object_state o SET idx = NULL FROM {old} c WHERE o.zoid = c.rid AND c.idx IS NULL AND o.idx IS NOT NULL"
    " AND NOT EXISTS (SELECT FROM {new} n WHERE n.rid = c.rid AND n.idx IS NULL)"
)
COPY_IDX = "UPDATE object_state o SET idx = i.idx FROM {idx} i WHERE o.zoid = i.rid AND o.idx IS DISTINCT FROM i.idx"


class RebuildRunning(MessageError, RuntimeError):
    """A rebuild of this catalog is running."""


class Rebuild:
    """The rebuild of *catalog*, a wrapped tool: begins one, or resumes one that was interrupted.

    - *skip_broken*: leave out objects that cannot be catalogued, with an ERROR in the log for each; otherwise they stop
      the rebuild
    - *paths*: visit only the objects at these paths, instead of all content; ignored when a rebuild is resumed
    """

    def __init__(self, catalog: Any, skip_broken: bool = False, paths: Sequence[str] | None = None) -> None:
        self.catalog = catalog
        self.core = catalog._core
        self.zoid = self.core.zoid
        self.manager = self.core.jar.transaction_manager
        self.skip_broken = skip_broken
        self.paths = paths
        self.connection = rebuild_connection(catalog)
        self.worker = RebuildWorker(catalog, self.connection, skip_broken)

    def close(self) -> None:
        """Close the connection. An unfinished rebuild can be resumed."""
        self.connection.close()

    def steps(self) -> Generator[RebuildTarget]:
        """Do the rebuild step by step; yield the progress after each step, at last with the phase ``done``.

        Raises BrokenObject, RebuildRunning, RebuildGone, RebuildBusy, psycopg.Error.  In each case the live catalog is
        unchanged; except after RebuildGone, the rebuild can be resumed.
        """
        self._lock()
        try:
            while True:
                try:
                    yield from self._steps()
                    return
                except StartOver as reason:
                    logger.info("the rebuild starts again: %s", reason)
                    self._abandon()
        finally:
            self._unlock()

    def _lock(self) -> None:
        """Acquire the lock for rebuilds of this catalog; raises RebuildRunning."""
        [(free,)] = self.connection.execute(
            "SELECT pg_try_advisory_lock(%s, %s)", locks.of_catalog(locks.REBUILD, self.zoid)
        ).fetchall()
        if not free:
            raise RebuildRunning(_("A rebuild of this catalog is running."))

    def _unlock(self) -> None:
        """Release the lock; close a connection that was interrupted during a statement, which releases its lock, too."""
        if self.connection.closed:
            return
        if self.connection.info.transaction_status == TransactionStatus.IDLE:
            self.connection.execute("SELECT pg_advisory_unlock(%s, %s)", locks.of_catalog(locks.REBUILD, self.zoid))
        else:
            self.connection.cancel()
            self.connection.close()

    def abandon(self) -> str | None:
        """Drop an interrupted rebuild; return its relation, None if there is no rebuild; raises RebuildRunning."""
        self._lock()
        with self.connection.cursor() as cursor:
            target = relation.read(cursor, self.zoid)
        self._abandon()
        self._unlock()
        return None if target is None else target.relation

    def _abandon(self) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            retirement.forget_rebuild(cursor, self.zoid)
            put(cursor, retirement.KIND, self.zoid, [self.zoid])
        with self.connection.transaction(), self.connection.cursor() as cursor:
            retirement.drop_retired(cursor)

    # -- phases

    def _steps(self) -> Iterator[RebuildTarget]:
        self._renew_compounds()
        target = self._begin()
        yield target
        while target.phase in VISITING:
            if self.worker.step() is None:
                self._end_phase(target)
            target = self._read()
            yield target
        if target.phase == "index":
            target = self._create_indexes(target)
            yield target
        for _round in range(ROUNDS):
            if self._replay(target) < LOG_BATCH:
                break
            yield self._read()
        self._swap(target)
        self._count_words()
        self._put_jobs()
        yield replace(target, phase="done")

    def _count_words(self) -> None:
        try:
            count_words(self.connection, self.zoid)
        except psycopg.Error as error:
            # The rebuild is done; a search will start the count again.
            logger.warning("counting the words of the new relation failed: %s", error)

    def _put_jobs(self) -> None:
        """Put the jobs that the new rows need: no commit has put jobs for rows that were made beside the live ones."""
        try:
            put_needed(self.connection, self.zoid)
        except psycopg.Error as error:
            # The rebuild is done; the next worker puts the jobs when it starts.
            logger.warning("queueing jobs for texts and vectors failed: %s", error)

    def _renew_compounds(self) -> None:
        """Commit the words that may be parts of compounds, unless the site splits none, or a rebuild is being resumed."""
        self.manager.begin()
        with self.connection.cursor() as cursor:
            is_resumed = relation.read(cursor, self.zoid) is not None
        languages = site_languages(self.catalog)
        if is_resumed or not split_compounds(self.catalog) or not compounds.with_compounds(languages):
            return
        count_words(self.connection, self.zoid)
        for attempt in self.manager.attempts(SWAPS):
            with attempt as txn:
                txn.note("words of compounds renewed")
                compounds.renew(self.catalog, self.connection, languages)

    def _begin(self) -> RebuildTarget:
        site = aq_parent(aq_inner(self.catalog))
        container = "/".join(site.getPhysicalPath()[:-1])
        self.manager.begin()
        with self.connection.transaction(), self.connection.cursor() as cursor:
            return relation.begin(cursor, self.zoid, self.catalog._core.layout(), (container, site.getId()), self.paths)

    def _read(self) -> RebuildTarget:
        with self.connection.cursor() as cursor:
            target = relation.read(cursor, self.zoid)
        if target is None:
            raise RebuildGone(RebuildGone.__doc__)
        return target

    def _end_phase(self, target: RebuildTarget) -> None:
        """Begin the next phase, unless other workers are still busy."""
        with self.connection.transaction(), self.connection.cursor() as cursor:
            if relation.has_visits(cursor, self.zoid):
                time.sleep(PAUSE)
            elif target.phase == "walk":
                relation.add_rest(cursor, target)
                relation.set_phase(cursor, target, "rest")
            else:
                relation.set_phase(cursor, target, "index")

    def _create_indexes(self, target: RebuildTarget) -> RebuildTarget:
        """Create the SQL indexes, each in a transaction of its own: a resumed rebuild does not repeat the finished ones."""
        self.manager.begin()
        layout = self.catalog._core.layout().with_interned(target.interned)
        with self.connection.cursor() as cursor:
            for index in schema.fitting_indexes(cursor, target.relation, layout.indexes):
                schema.create_indexes(cursor, target.relation, [index])
            with self.connection.transaction():
                schema.create_advised_indexes(cursor, self.zoid, target.relation, layout.names)
            with self.connection.transaction():
                counts.create(cursor, target.relation)
            self.manager.abort()
            # Counts use index-only scans where VACUUM has marked the rows as visible to all; rows are joined with their
            # lists.
            cursor.execute(f"VACUUM (ANALYZE) {quote(target.relation)}, pgcatalog_sets, pgcatalog_counts")
            relation.set_phase(cursor, target, "replay")
        return self._read()

    def _replay(self, target: RebuildTarget) -> int:
        """Apply a batch of the log; return its number of entries."""
        try:
            self.worker.save_sets.begin(target)
            with self.connection.transaction(), self.connection.cursor() as cursor:
                follow = follow_log(self.catalog, cursor, target, self.skip_broken, LOG_BATCH, self.worker.save_sets)
                self.manager.begin()
                return follow()
        finally:
            self.manager.abort()
            self.core.jar.cacheGC()

    # -- swap

    def _swap(self, target: RebuildTarget) -> None:
        """Make *target* the catalog's relation in a commit of its own; raises the exceptions of a commit."""
        swap = Swap(self.catalog, target, self.skip_broken)
        for attempt in self.manager.attempts(SWAPS):
            with attempt as txn:
                txn.note("catalog rebuilt")
                self.core.change().replacement = swap


class Swap:
    """Replaces the catalog's relation by *target* in a commit; the storage's lock blocks all other commits meanwhile."""

    def __init__(self, catalog: Any, target: RebuildTarget, skip_broken: bool) -> None:
        self.catalog = catalog
        self.target = target
        self.skip_broken = skip_broken

    def __call__(self, cursor: Cursor[Any], state: CatalogState) -> CatalogState:
        """Apply the rest of the log, move idx, and return the successor of *state*, to be saved.

        Raises StartOver, RebuildGone.
        """
        target = relation.read(cursor, self.target.catalog)
        if target is None or target.relation != self.target.relation:
            raise RebuildGone(RebuildGone.__doc__)
        self._follow(cursor, target)
        tables = {
            "old": quote(state.relation),
            "new": quote(target.relation),
            "idx": quote(idx_table(target.relation)),
        }
        cursor.execute(FORGET_IDX.format(**tables))
        cursor.execute(COPY_IDX.format(**tables))
        cursor.execute(f"DROP TABLE {tables['idx']}")
        cursor.execute("DELETE FROM pgcatalog_rebuild WHERE catalog = %s", [target.catalog])
        retirement.retire_relation(cursor, state.relation)
        version = max(state.version, target.version)
        complete = schema.complete_columns(cursor, target.relation, target.columns)
        return CatalogState(
            target.relation,
            version,
            frozenset(target.columns),
            state.generation,
            complete=complete,
            interned=target.interned,
        )

    def _follow(self, cursor: Cursor[Any], target: RebuildTarget) -> None:
        """Apply the log to its end, with the objects of the last commit, which another connection loads."""
        if not relation.read_log(cursor, target, 1)[0]:
            return
        with application(self.catalog._core.jar.db(), transaction.TransactionManager()) as app:
            catalog = app.unrestrictedTraverse("/".join(self.catalog.getPhysicalPath()))
            setSite(aq_parent(aq_inner(catalog)))
            while follow_log(catalog, cursor, target, self.skip_broken, LOG_BATCH, partial(save_sets, cursor))():
                pass
