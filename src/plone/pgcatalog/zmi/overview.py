"""The tab *Overview*: state and health of the catalog, and buttons for maintenance."""

from Acquisition import aq_inner
from Acquisition import aq_parent
from datetime import datetime
from datetime import UTC
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.expected import can_be_read
from plone.pgcatalog.database.expected import NamedStatement
from plone.pgcatalog.database.expected import shared_faults
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.needed import NO_ROWS
from plone.pgcatalog.database.needed import settings_statement
from plone.pgcatalog.database.prepared import positional
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.database.restored import PROFILE
from plone.pgcatalog.database.restored import waiting_since
from plone.pgcatalog.distribution import own_distribution
from plone.pgcatalog.files import texts
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.i18n import when
from plone.pgcatalog.indexing.objects import site_path
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.meaning.embedder import check_embedders
from plone.pgcatalog.observe import health
from plone.pgcatalog.queue import table
from plone.pgcatalog.results.cache import FACETS
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.cache import VALUES
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.zmi.browse import Browser
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from rich.filesize import decimal
from typing import Any


#: Kinds of entries of the cache, and their names.
KINDS = {
    HITS: _("searches"),
    FACETS: _("facets"),
    VALUES: _("lists of index values"),
    ROWS: _("rows"),
}
#: Number of hours from which a period is given in days.
MANY_HOURS = 48
#: Names of the figures of a row of the history, in its order.
HISTORY = ("estimated_rows", "table_bytes", "index_bytes")
#: Maximum number of files without a text that are listed with the reason.
SHOWN_FAILURES = 5
FAILED_FILES = f"""
SELECT failure.reason, rows.path, rows.rid
FROM ({table.FAILURES}) AS failure LEFT JOIN {{relation}} rows ON rows.zoid = failure.subject
ORDER BY failure.put_at DESC, failure.subject
"""
#: Age in seconds from which the oldest transaction is shown.
OLD = 60


class FiguresView(BrowserView):
    """HTML for a page about the catalog tool *context*: its health in a line, figures, and maintenance with its buttons.

    It takes up to four round trips to PostgreSQL, each of which depends on the one before:

    - the faults of shared tables
    - the figures, and the settings
    - objects without a job, the number of rows, files without a text
    - an estimate of the number of rows, if there are many
    """

    template = ViewPageTemplateFile("templates/figures.pt")

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        self.catalog = context._core
        execute = self.catalog.session.execute
        faults = shared_faults(execute)
        self.overview, settings = dict(health.NOTHING), []
        if can_be_read(faults):
            figures, settings = self.query_all(
                statistics.overview_statement(self.catalog.zoid), settings_statement(self.catalog.zoid)
            )
            self.overview = statistics.overview_of(execute, figures)
        self.overview |= health.of_shared(faults)
        self.mine: dict[str, Any] | None = next(iter(self.overview["catalogs"]), None)
        self.failures: Rows = []
        if self.mine is not None:
            # The name that ``statistics.catalogs`` would read from the rows.
            self.mine["site"] = site_path(context) or self.mine["relation"]
            self.read_rows(self.mine, NeededJobs(execute, self.catalog.zoid, settings))
            check_embedders([self.mine])
        if self.overview["connections"] is not None:
            self.overview |= self.of_site()

    def __call__(self) -> str:
        html: str = self.template()
        return html

    def query_all(self, *named: NamedStatement | Statement) -> list[Rows]:
        """Return the rows of each statement of *named*, in one round trip."""
        session = self.catalog.session
        statements = [each if isinstance(each, Statement) else statement_of(each) for each in named]
        rows: list[Rows] = session.query_all([(each, None) for each in statements])
        return rows

    def read_rows(self, mine: dict[str, Any], jobs: NeededJobs) -> None:
        """Read the numbers of needed *jobs*, the number of rows, and files without a text, of the catalog *mine*."""
        browser = Browser(self.catalog.view())
        counting = None if statistics.lost_columns(mine) else browser.count_statement()
        files, pages, self.failures, counted = self.query_all(
            *health.needed_statements(mine, jobs), self.failures_statement(mine), counting or NO_ROWS
        )
        health.store_needed(mine, jobs, files, pages)
        self.rows = browser.shown(browser.count_in(counted)) if counted else f"{max(mine['estimated_rows'], 0):,}"

    def failures_statement(self, mine: dict[str, Any]) -> NamedStatement:
        """Return the statement for reason, path and rid of the SHOWN_FAILURES files that failed last."""
        work = [mine["queue"][kind] for kind in texts.KINDS if kind in mine["queue"]]
        if not any(each["failed"] + each["empty"] for each in work) or statistics.lost_columns(mine):
            return NO_ROWS
        values = {"catalog": self.catalog.zoid, "kinds": list(texts.KINDS), "limit": SHOWN_FAILURES}
        return FAILED_FILES.format(relation=quote(mine["relation"])), values

    def of_site(self) -> dict[str, Any]:
        """Return the result of ``health.of_sites`` for this site, from its objects."""
        site = "/".join(self.context.getPhysicalPath()[:-1])
        setup = getattr(aq_parent(aq_inner(self.context)), "portal_setup", None)
        titles = waiting_since(setup.getLastVersionForProfile(PROFILE)) if setup is not None else []
        is_lost = self.mine is None and is_unfilled(self.catalog)
        return {
            "upgrades": [{"site": site, "steps": titles}] if titles else [],
            "without_table": [{"site": site}] if is_lost else [],
        }

    # -- for the template

    @property
    def is_healthy(self) -> bool:
        return not health.attention(self.overview)

    @property
    def health(self) -> str:
        """Return the summary of ``pgcatalog status``, in the language of the page."""
        return translated(health.line(self.overview), self.request)

    def version(self) -> str:
        """Return name and version of the installed distribution."""
        distribution = own_distribution()
        return "plone.pgcatalog" if distribution is None else f"{distribution.metadata['Name']} {distribution.version}"

    def growth(self, name: str) -> str:
        """Return the change of the figure *name* since the oldest row of the history, 30 days at most; empty without one."""
        before = self.mine and self.mine["growth"]
        if not self.mine or not before:
            return ""
        change = self.mine[name] - before["figures"][HISTORY.index(name)]
        shown = f"{change:+,}" if name == "estimated_rows" else f"{'-' if change < 0 else '+'}{decimal(abs(change))}"
        hours = round((datetime.now(UTC) - datetime.fromisoformat(before["hour"])).total_seconds() / 3600)
        if hours < MANY_HOURS:
            time = _("in ${number} hours", mapping={"number": str(hours)})
        else:
            time = _("in ${number} days", mapping={"number": str(round(hours / 24))})
        return f"({shown} {translated(time, self.request)})"

    def last_write(self) -> str:
        time = statistics.saved_at(self.mine["tid"]) if self.mine else None
        return when(time) if time else ""

    def hit_rates(self) -> list[tuple[str, str]]:
        """Return (kind, hit rate) of this process's cache, for kinds that have been used."""
        counts = result_cache().counts.items()
        return [
            (translated(KINDS[kind], self.request), f"{100 * count.hits / (count.hits + count.misses):.0f} %")
            for kind, count in counts
            if count.hits + count.misses
        ]

    def files(self) -> dict[str, Any] | None:
        """Return ``health.of_files``; None if no file waits or has no text."""
        if not self.mine or not (self.mine["needed"]["text"] or any(k in self.mine["queue"] for k in texts.KINDS)):
            return None
        return health.of_files(self.mine)

    def most_failures(self) -> str:
        return f"{table.MOST_FAILURES:,}"

    def failed_files(self) -> list[dict[str, str]]:
        """Return path, URL of its information and reason of the SHOWN_FAILURES files that failed last."""
        return [
            {
                "path": path or "",
                "url": self.url(f"manage_objectInformation?rid={rid}") if path else "",
                "reason": translated(restored(reason), self.request),
            }
            for reason, path, rid in self.failures
        ]

    def meaning(self) -> dict[str, Any] | None:
        """Return the numbers of pages that wait for vectors, and of failed ones, and the tables of vectors; or None."""
        if not self.mine or not (self.mine["vectors"] or self.mine["needed"]["embed"] or "embed" in self.mine["queue"]):
            return None
        work: dict[str, Any] = {"failed": 0, "last_reason": ""} | self.mine["queue"].get("embed", {})
        work["waiting"] = health.unfinished(self.mine, "embed")
        return work | {"tables": self.mine["vectors"]}

    def oldest(self) -> dict[str, Any] | None:
        """Return the oldest transaction if it is older than OLD seconds."""
        oldest: dict[str, Any] | None = self.overview["oldest"]
        return oldest if oldest and oldest["seconds"] >= OLD else None

    def job(self, name: str) -> tuple[str, str]:
        """Return time and result of the last finished job *name*; empty texts if there is none."""
        job = self.mine["jobs"].get(name) if self.mine else None
        if job is None or not job["finished"]:
            return "", ""
        lines = job["message"].splitlines()
        return self.time(job["finished"]), restored(lines[0]) if lines else ""

    def time(self, text: str | None) -> str:
        return when(datetime.fromisoformat(text)) if text else ""

    def size(self, value: float) -> str:
        return decimal(int(value))

    def url(self, page: str) -> str:
        return f"{self.context.absolute_url()}/{page}"


def statement_of(named: NamedStatement) -> Statement:
    statement, params = positional(*named)
    return Statement(statement, tuple(params))


class OverviewPage(ManagePage):
    """Shows figures; its buttons are actions of the tab *Advanced*, which shows their progress."""

    template = ViewPageTemplateFile("templates/overview.pt")
    name = "manage_catalogOverview"

    # -- for the template

    def figures(self) -> str:
        return FiguresView(self.context, self.request)()
