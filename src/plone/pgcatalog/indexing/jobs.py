"""The kinds of jobs about rows: rebuild, verification, vacuum; dropping of retired tables; following an undo."""

from abc import ABC
from abc import abstractmethod
from contextlib import closing
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.expected import values_of
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.retirement import clear_stale
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.database.retirement import vacuum_analyze
from plone.pgcatalog.fulltext.term_statistics import CHANGED_PART
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import object_at
from plone.pgcatalog.indexing.rebuild import PHASES
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.indexing.rebuild_worker import default_workers
from plone.pgcatalog.indexing.rebuild_worker import helpers
from plone.pgcatalog.indexing.rebuild_worker import own_zope_conf
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.kind import LongKind
from plone.pgcatalog.queue.kind import ShortKind
from plone.pgcatalog.queue.progress import compared
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.progress import rebuilt
from plone.pgcatalog.queue.progress import vacuumed
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.worker import tool_path
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.storage import database_dsn
from psycopg.rows import dict_row
from typing import Any
from ZODB.POSException import ConflictError
from zope.interface import implementer

import logging
import transaction


logger = logging.getLogger(__name__)

#: Path logged in place of all paths by a transaction that cleared the catalog.
WHOLE_CATALOG = ""


# -- long jobs


class CatalogKind(LongKind, ABC):
    """A kind of long jobs that people start for a whole catalog."""

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """See IJobKind."""
        path = tool_path(database, job.catalog)
        if path is not None:
            with opened_at(database, path) as tool:
                self.do(tool, job.arguments or {}, progress)

    @abstractmethod
    def do(self, tool: Any, arguments: dict[str, Any], progress: Progress) -> None:
        """Do the job with *arguments* for the catalog *tool*, opened on a connection of its own."""


@implementer(IJobKind)
class RebuildKind(CatalogKind):
    """Rebuilds a catalog beside the live one, or resumes an interrupted rebuild; argument: ``skip_broken``."""

    def do(self, tool: Any, arguments: dict[str, Any], progress: Progress) -> None:
        """Rebuild the catalog *tool*, in further processes, too, if its zope.conf is known."""
        skip_broken = bool(arguments.get("skip_broken"))
        zope_conf = own_zope_conf()
        site = "/".join(tool.getPhysicalPath()[1:-1])
        count = default_workers(len(tool)) - 1 if zope_conf else 0
        runner = Rebuild(tool, skip_broken)
        try:
            with closing(runner), closing(runner.steps()) as steps, helpers(count, zope_conf or "", site, skip_broken):
                for target in steps:
                    progress.report(target.done, target.total, PHASES[target.phase])
        except RebuildRunning as error:
            raise JobFailed(stored(error.message)) from error
        progress.lines.append(rebuilt(target.done))


@implementer(IJobKind)
class VerifyKind(CatalogKind):
    """Compares a catalog with its content; argument: ``repair``, to repair the differences."""

    #: Maximum number of differences that are listed; the others are counted.
    named = 20

    def do(self, tool: Any, arguments: dict[str, Any], progress: Progress) -> None:
        """Compare the catalog *tool* with the content, and list differences."""
        total, repairs = len(tool), bool(arguments.get("repair"))
        verifier = Verifier(tool, lambda done: progress.report(done, total, _("Comparing")))
        differences = list(verifier.differences())
        if repairs:
            number = len(differences)
            verifier.repair_all(differences, lambda done: progress.report(done, number, _("Repairing")))
        left = sum(not difference.can_be_repaired for difference in differences)
        progress.lines.append(compared(verifier.checked, len(differences), left if repairs else None))
        progress.lines += map(str, differences[: self.named])
        if len(differences) > self.named:
            progress.lines.append(_("… and ${number} more", {"number": f"{len(differences) - self.named:,}"}))


@implementer(IJobKind)
class VacuumKind(CatalogKind):
    """Does the steps of ``pgcatalog vacuum`` for the table of one catalog, except the repair of counts."""

    def do(self, tool: Any, arguments: dict[str, Any], progress: Progress) -> None:
        """Remove leftovers of the database, and vacuum the table of the catalog *tool*."""
        catalog = tool._core
        state = catalog.view().read_state()
        dsn = str(database_dsn(catalog.jar.db()))
        with connect_directly(dsn, "vacuum", 0, row_factory=dict_row) as connection:
            progress.report(0, 0, _("Dropping retired tables"))
            dropped, _left = drop_retired(connection.cursor())
            progress.report(0, 0, _("Clearing leftovers of deleted objects"))
            cleared = clear_stale(connection)
            if state is not None:
                progress.report(0, 0, "VACUUM ANALYZE")
                vacuum_analyze(connection, state.relation)
                progress.report(0, 0, _("Counting the words of texts"))
                count_words(connection, catalog.zoid)
        progress.lines.append(vacuumed(len(dropped), cleared))


@implementer(IJobKind)
class WordCount(LongKind):
    """Counts the words of a catalog."""

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """See IJobKind."""
        dsn = str(database_dsn(database))
        with connect_directly(dsn, "words", 0, lock_seconds=5, durable=False) as connection:
            count_words(connection, job.catalog, progress.report)

    def needed(self, jobs: NeededJobs) -> list[int]:
        """Return the oid of the catalog tool if its texts have changed enough since the last count, and no job waits."""
        values = {"catalog": jobs.catalog, "changed_part": CHANGED_PART}
        return [zoid for (zoid,) in map(values_of, jobs.execute(read_statement("indexing", "words_needed"), values))]


# -- short jobs


@implementer(IJobKind)
class RetiredTables(ShortKind):
    """Drops tables that are no longer used, when no snapshot can read them any more."""

    #: Seconds until the next attempt, while snapshots still read a table, or a lock is not free.
    pause = 10.0

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """See IJobKind."""
        with connect(str(database_dsn(database)), "retired relations") as connection:
            _dropped, left = drop_retired(connection.cursor())
        if left:
            raise JobFailed("", for_good=False, pause=self.pause)

    def needed(self, jobs: NeededJobs) -> list[int]:
        """Return the oid of the catalog tool if tables wait to be dropped."""
        return [jobs.catalog] if jobs.execute("SELECT FROM pgcatalog_retired LIMIT 1", {}) else []


@implementer(IJobKind)
class UndoneTransaction(ShortKind):
    """Catalogues again what an undone transaction has changed; the subject is its tid."""

    #: Maximum number of attempts after conflicts with other transactions.
    attempts = 5

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """See IJobKind."""
        path = tool_path(database, job.catalog)
        if path is None:
            return
        with connect(str(database_dsn(database)), "undo") as connection:
            rows = connection.execute(
                "SELECT path FROM pgcatalog_changes WHERE tid = %s AND catalog = %s", (job.subject, job.catalog)
            ).fetchall()
        for attempt in range(1, self.attempts + 1):
            try:
                with opened_at(database, path) as tool:
                    catalogue_again(tool, [path for (path,) in rows])
                    transaction.get().note("catalog follows an undo")
                    transaction.commit()
                return
            except ConflictError:
                logger.info("conflict while updating the catalog after an undo, attempt %s", attempt)
                if attempt == self.attempts:
                    raise


def catalogue_again(tool: Any, paths: list[str]) -> None:
    """Make the catalog *tool* agree with the objects at *paths*, or with all objects if WHOLE_CATALOG is one of them."""
    if WHOLE_CATALOG in paths:
        tool._core.change().is_whole = True
        verifier = Verifier(tool)
        for difference in list(verifier.differences()):
            verifier.repair(difference)
        return
    found = {path: obj for path in paths if (obj := object_at(tool, path)) is not None}
    # Removed rows first: the object's row at its current path needs their record id, which is the oid.
    for path in paths:
        if path not in found and tool._core.view().select("1", Condition("path = %s", (clean_path(path),))).value():
            tool.uncatalog_object(path)
    for path, obj in found.items():
        tool.catalog_object(obj, path)
