"""The tab *Advanced*: the work that is seldom needed, and how far it is."""

from functools import partial
from plone.pgcatalog.database import statistics
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.zmi import jobs
from plone.pgcatalog.zmi.jobs import Job
from plone.pgcatalog.zmi.jobs import JobError
from plone.pgcatalog.zmi.maintenance import rebuild
from plone.pgcatalog.zmi.maintenance import vacuum
from plone.pgcatalog.zmi.maintenance import verify
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any


ACTIONS = ("rebuild", "abandon", "verify", "repair", "vacuum", "stop", "clear_cache")


class AdvancedPage(ManagePage):
    """Shows jobs; POST with one of ``ACTIONS`` does it.  ``manage_catalogClear`` is the tool's own action."""

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
        return _("What the interrupted rebuild had made is dropped.")

    def verify(self) -> str:
        jobs.start(self.context, "verify", verify)
        return _("The catalog is being compared with the content.")

    def repair(self) -> str:
        jobs.start(self.context, "verify", partial(verify, repair=True))
        return _("The catalog is being compared with the content, and mended.")

    def vacuum(self) -> str:
        jobs.start(self.context, "vacuum", vacuum)
        return _("What is left over is being cleared.")

    def stop(self) -> str:
        jobs.stop(self.catalog, self.field("stop"))
        return _("It will stop soon.")

    def clear_cache(self) -> str:
        result_cache().clear()
        return _("The cache of this process is empty.")

    # -- for the template

    def jobs(self) -> dict[str, Job]:
        """Return the jobs; the page reloads itself while one runs."""
        found = jobs.jobs_of(self.catalog.session.execute, self.catalog.zoid)
        if any(job.is_running for job in found.values()):
            self.reload_soon()
        return found

    def interrupted(self) -> dict[str, Any] | None:
        """Return the rebuild that was interrupted, None if there is none."""
        catalog = self.catalog
        for found in statistics.overview(catalog.session.execute, catalog.zoid)["catalogs"]:
            rebuild: dict[str, Any] | None = found["rebuild"]
            return rebuild if rebuild and not rebuild["running"] else None
        return None

    def cache(self) -> dict[str, Any]:
        kept = result_cache()
        return {"entries": f"{len(kept):,}", "bytes": kept.size, "limit": kept.limit}
