"""The tabs *Query Report*, ZCatalog's own list of this process, and *Query Plan*: how PostgreSQL runs what is slow."""

from plone.pgcatalog.advice.explain import explain_example
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import log_of
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any


#: So many shapes of queries, those that cost most time, are planned for the page.
SHAPES = 10


class ReportPage(ManagePage):
    """Shows ``getCatalogReport``; the forms call the tool's own actions."""

    template = ViewPageTemplateFile("templates/report.pt")
    name = "manage_catalogReport"

    # -- for the template

    def report(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.context.getCatalogReport()
        return found

    def key(self, entry: dict[str, Any]) -> str:
        """Return the names, and what else tells the queries of an *entry* apart, for people to read."""
        parts = entry["query"] if isinstance(entry["query"], tuple) else (entry["query"],)
        return ", ".join(part if isinstance(part, str) else " = ".join(map(str, part)) for part in parts)


class PlanPage(ManagePage):
    """Shows how PostgreSQL would run the newest query of the shapes that cost most time."""

    template = ViewPageTemplateFile("templates/plan.pt")
    name = "manage_catalogPlan"

    # -- for the template

    def plans(self) -> list[tuple[Group, str]]:
        """Return the shapes, each with its plan, or why there is none; nothing is run."""
        log = log_of(self.catalog)
        return [(group, self._plan(log.example(group.newest))) for group in log.groups(SHAPES)]

    def _plan(self, example: Any) -> str:
        try:
            return "" if example is None else explain_example(self.catalog, example, run=False).text
        except ReplayError as error:
            return translated(_("No plan: ${reason}.", mapping={"reason": str(error)}), self.request)
