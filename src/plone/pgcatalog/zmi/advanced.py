"""The tab *Advanced*: what the catalog is like, and the work that is seldom needed."""

from functools import partial
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.results.cache import FACETS
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.cache import VALUES
from plone.pgcatalog.storage import dsn_of
from plone.pgcatalog.zmi import jobs
from plone.pgcatalog.zmi.browse import Browser
from plone.pgcatalog.zmi.jobs import Job
from plone.pgcatalog.zmi.jobs import JobError
from plone.pgcatalog.zmi.maintenance import rebuild
from plone.pgcatalog.zmi.maintenance import verify
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from psycopg.rows import dict_row
from typing import Any


ACTIONS = ("rebuild", "abandon", "verify", "repair", "stop", "clear_cache")

#: What the cache keeps, in words for the page.
KINDS = {HITS: _("searches"), FACETS: _("facets"), VALUES: _("lists of index values"), ROWS: _("rows")}


class AdvancedPage(ManagePage):
    """Shows figures and jobs; POST with one of ``ACTIONS`` does it.  ``manage_catalogClear`` is the tool's own action."""

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
            return _("Not done: ${reason}.", mapping={"reason": str(error)})
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

    def figures(self) -> dict[str, Any]:
        """Return what ``pgcatalog status`` says of this catalog; empty while nothing has ever been committed."""
        with connect(dsn_of(self.catalog.jar), "figures") as connection:
            connection.row_factory = dict_row
            found = [c for c in statistics.sizes(connection) if c["catalog"] == self.catalog.zoid]
            if not found:
                return {}
            rebuild = statistics.rebuild_of(connection, self.catalog.zoid)
            connections = statistics.connections(connection)
        rows = Browser(self.catalog.view()).total()
        return found[0] | {"rebuild": rebuild, "connections": connections, "rows": rows}

    def cache(self) -> dict[str, Any]:
        kept = result_cache()
        counts = kept.counts.items()
        return {
            "entries": f"{len(kept):,}",
            "bytes": kept.size,
            "limit": kept.limit,
            "hits": ", ".join(self.had(c.hits / (c.hits + c.misses), KINDS[kind]) for kind, c in counts if c.hits),
        }

    def had(self, part: float, kind: str) -> str:
        """Return that the cache had *part* of a *kind* of things, for people to read."""
        values = {"share": self.percent(part), "kind": translated(kind, self.request)}
        return translated(_("${share} of the ${kind}", mapping=values), self.request)
