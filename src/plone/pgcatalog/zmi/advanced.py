"""The tab *Advanced*: rare maintenance jobs, and their progress."""

from contextlib import closing
from functools import partial
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import errors_as
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.retirement import clear_stale
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.database.retirement import vacuum_analyze
from plone.pgcatalog.files.job import repeat_failed
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexing.rebuild import PHASES
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.indexing.rebuild_worker import default_workers
from plone.pgcatalog.indexing.rebuild_worker import helpers
from plone.pgcatalog.indexing.rebuild_worker import own_zope_conf
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.meaning.job import put_all
from plone.pgcatalog.observe.jobs import compared
from plone.pgcatalog.observe.jobs import JOBS
from plone.pgcatalog.observe.jobs import rebuilt
from plone.pgcatalog.observe.jobs import vacuumed
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.storage import dsn_of
from plone.pgcatalog.storage import writable_dsn_of
from plone.pgcatalog.zmi import jobs
from plone.pgcatalog.zmi.jobs import JobError
from plone.pgcatalog.zmi.jobs import JobProgress
from plone.pgcatalog.zmi.jobs import ReportProgress
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from psycopg.rows import dict_row
from typing import Any


#: Maximum number of differences that are listed; the others are counted.
NAMED = 20


def rebuild(tool: Any, report: ReportProgress, skip_broken: bool = False) -> list[str]:
    """Rebuild the catalog *tool* beside the live one, or resume an interrupted rebuild."""
    runner = Rebuild(tool, skip_broken)
    zope_conf = own_zope_conf()
    site = "/".join(tool.getPhysicalPath()[1:-1])
    count = default_workers(len(tool)) - 1 if zope_conf else 0
    with closing(runner), closing(runner.steps()) as steps, helpers(count, zope_conf or "", site, skip_broken):
        for target in steps:
            report(target.done, target.total, PHASES[target.phase])
    return [rebuilt(target.done)]


def verify(tool: Any, report: ReportProgress, repair: bool = False) -> list[str]:
    """Compare the catalog *tool* with the content; with *repair*, repair the differences."""
    total = len(tool)
    verifier = Verifier(tool, lambda done: report(done, total, _("Comparing")))
    differences = list(verifier.differences())
    if repair:
        verifier.repair_all(differences, lambda done: report(done, len(differences), _("Repairing")))
    lines = [str(difference) for difference in differences[:NAMED]]
    if len(differences) > NAMED:
        lines.append(_("… and ${number} more", {"number": f"{len(differences) - NAMED:,}"}))
    left = sum(not difference.can_be_repaired for difference in differences)
    return [compared(verifier.checked, len(differences), left if repair else None), *lines]


def vacuum(tool: Any, report: ReportProgress) -> list[str]:
    """Run the steps of ``pgcatalog vacuum`` for the table of the catalog *tool*, except the repair of counts."""
    catalog = tool._core
    state = catalog.view().read_state()
    with connect_directly(dsn_of(catalog.jar), "vacuum", 0, row_factory=dict_row) as connection:
        report(0, 0, _("Dropping retired tables"))
        dropped = drop_retired(connection.cursor())
        report(0, 0, _("Clearing leftovers of deleted objects"))
        cleared = clear_stale(connection)
        if state is not None:
            report(0, 0, "VACUUM ANALYZE")
            vacuum_analyze(connection, state.relation)
            report(0, 0, _("Counting the words of texts"))
            count_words(connection, catalog.zoid)
    return [vacuumed(len(dropped), cleared)]


ACTIONS = ("rebuild", "abandon", "verify", "repair", "vacuum", "repeat_files", "embed_all", "stop", "clear_cache")


class AdvancedPage(ManagePage):
    """Shows jobs; POST with one of ``ACTIONS`` runs it.  ``manage_catalogClear`` is the tool's own action."""

    template = ViewPageTemplateFile("templates/advanced.pt")
    name = "manage_catalogAdvanced"

    def post(self) -> Any:
        for action in ACTIONS:
            if action in self.request.form:
                return self.redirect(self._done(action))
        return self.template()

    def _done(self, action: str) -> str:
        try:
            message: str = getattr(self, action)()
        except (JobError, RebuildRunning) as error:
            return _("Not done: ${reason}.", mapping={"reason": error.message})
        return message

    def rebuild(self) -> str:
        jobs.start(self.context, "rebuild", partial(rebuild, skip_broken=bool(self.field("skip_broken"))))
        return _("The catalog is being rebuilt.")

    def abandon(self) -> str:
        runner = Rebuild(self.context)
        try:
            runner.abandon()
        finally:
            runner.close()
        return _("The table of the interrupted rebuild is dropped.")

    def verify(self) -> str:
        jobs.start(self.context, "verify", verify)
        return _("The catalog is being compared with the content.")

    def repair(self) -> str:
        jobs.start(self.context, "verify", partial(verify, repair=True))
        return _("The catalog is being compared with the content, and repaired.")

    def vacuum(self) -> str:
        jobs.start(self.context, "vacuum", vacuum)
        return _("The catalog is being vacuumed.")

    def repeat_files(self) -> str:
        with errors_as(JobError), connect(writable_dsn_of(self.catalog.jar), "repeat files") as connection:
            count = repeat_failed(connection, self.catalog.zoid)
        return _("${number} files are being processed again.", mapping={"number": str(count)})

    def embed_all(self) -> str:
        with errors_as(JobError), connect(writable_dsn_of(self.catalog.jar), "vectors") as connection:
            count = put_all(connection, self.catalog.zoid)
        return _("${number} pages were queued for vectors.", mapping={"number": str(count)})

    def stop(self) -> str:
        name = self.field("stop")
        if name in JOBS:
            jobs.stop(self.catalog, name)
        return _("The job will stop soon.")

    def clear_cache(self) -> str:
        result_cache().clear()
        return _("The cache of this process is empty.")

    # -- for the template

    def jobs(self) -> dict[str, JobProgress]:
        """Return the jobs; the page reloads itself while one runs."""
        by_name = jobs.jobs_of(self.catalog.session.execute, self.catalog.zoid)
        if any(job.is_running for job in by_name.values()):
            self.reload_soon()
        return by_name

    def interrupted(self) -> dict[str, Any] | None:
        """Return the interrupted rebuild, None if there is none."""
        catalog = self.catalog
        for catalog_figures in statistics.overview(catalog.session.execute, catalog.zoid)["catalogs"]:
            rebuild: dict[str, Any] | None = catalog_figures["rebuild"]
            return rebuild if rebuild and not rebuild["running"] else None
        return None

    def cache(self) -> dict[str, Any]:
        cached = result_cache()
        return {"entries": f"{len(cached):,}", "bytes": cached.size, "limit": cached.limit}
