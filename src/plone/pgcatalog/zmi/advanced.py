"""The tab *Advanced*: rare maintenance jobs, and their progress."""

from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import errors_as
from plone.pgcatalog.files.job import repeat_failed
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.meaning.job import put_all
from plone.pgcatalog.queue import long
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.long import JobError
from plone.pgcatalog.queue.progress import long_jobs
from plone.pgcatalog.queue.progress import LongJob
from plone.pgcatalog.queue.progress import TITLES
from plone.pgcatalog.queue.table import QueueFigures
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.storage import writable_dsn_of
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any


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
        long.start_for(self.context, "rebuild", {"skip_broken": bool(self.field("skip_broken"))})
        return _("The catalog is being rebuilt.")

    def abandon(self) -> str:
        runner = Rebuild(self.context)
        try:
            runner.abandon()
        finally:
            runner.close()
        return _("The table of the interrupted rebuild is dropped.")

    def verify(self) -> str:
        long.start_for(self.context, "verify")
        return _("The catalog is being compared with the content.")

    def repair(self) -> str:
        long.start_for(self.context, "verify", {"repair": True})
        return _("The catalog is being compared with the content, and repaired.")

    def vacuum(self) -> str:
        long.start_for(self.context, "vacuum")
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
        if name in TITLES:
            long.stop(writable_dsn_of(self.catalog.jar), name, self.catalog.zoid, self.catalog.zoid)
        return _("The job will stop soon.")

    def clear_cache(self) -> str:
        result_cache().clear()
        return _("The cache of this process is empty.")

    # -- for the template

    def jobs(self) -> dict[str, LongJob]:
        """Return the long jobs that people start, by name; the page reloads itself while one waits or runs."""
        by_name = long_jobs(self.catalog.session.execute, self.catalog.zoid)
        if any(job.is_open for job in by_name.values()):
            self.reload_soon()
        return by_name

    def others(self) -> list[QueueFigures]:
        """Return the numbers of waiting and failed jobs of all other kinds that have some."""
        figures = table.figures_of(self.catalog.session.execute, self.catalog.zoid)
        return [line for line in figures if line.kind not in TITLES and (line.waiting or line.failed)]

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
