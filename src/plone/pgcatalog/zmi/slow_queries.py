"""The tab *Slow Queries*: times, pages and causes of slow queries, examples, and their plans then and now."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from functools import cached_property
from plone.pgcatalog.advice.replay import explain_example
from plone.pgcatalog.advice.replay import Plan
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.i18n import _
from plone.pgcatalog.observe import log
from plone.pgcatalog.observe import plan
from plone.pgcatalog.observe.log import Choice
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.log import Figures
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import History
from plone.pgcatalog.observe.plan import COLD
from plone.pgcatalog.observe.plan import COMPILE
from plone.pgcatalog.observe.plan import deviation
from plone.pgcatalog.observe.plan import EMBED
from plone.pgcatalog.observe.plan import PARTS
from plone.pgcatalog.observe.plan import PLAN
from plone.pgcatalog.observe.plan import PlanFigures
from plone.pgcatalog.observe.plan import reason
from plone.pgcatalog.observe.plan import rows_text
from plone.pgcatalog.observe.plan import TRANSFER
from plone.pgcatalog.observe.plan import UNKNOWN
from plone.pgcatalog.observe.plan import WAITING
from plone.pgcatalog.observe.plan import Why
from plone.pgcatalog.observe.plan import why
from plone.pgcatalog.observe.record import query_text
from plone.pgcatalog.request import number_in
from plone.pgcatalog.settings import slow_query_mask
from plone.pgcatalog.settings import slow_query_ms
from plone.pgcatalog.storage import writable_dsn_of
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any
from urllib.parse import urlencode


#: Units of the chart: its width, and the height of each row.
WIDTH = 960
HEIGHT = 100
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """The bars of one hour, with their left edge at *x*: heights of the count, the median and the 95th percentile."""

    x: float
    hour: datetime
    figures: Figures
    count: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars of *width* units; HEIGHT stands for *most* queries in an hour, and for *longest_ms*."""

    bars: list[Bar]
    width: float
    most: int
    longest_ms: float
    first: datetime
    last: datetime


def chart_of(history: History, hours: int, now: datetime | None = None) -> Chart:
    """Return the chart of the last *hours* hours of *history*; *now* is for tests."""
    last = (now or datetime.now(UTC)).replace(minute=0, second=0, microsecond=0)
    first = last - (hours - 1) * HOUR
    most = max((figures.count for figures in history.hours.values()), default=0)
    longest = max((figures.p95_ms for figures in history.hours.values()), default=0.0)
    step = WIDTH / hours

    def bars() -> Iterator[Bar]:
        for hour, figures in sorted(history.hours.items()):
            place = round((hour - first) / HOUR)
            if 0 <= place < hours:
                heights = (figures.count / most, figures.p50_ms / longest, figures.p95_ms / longest)
                yield Bar(place * step, hour, figures, *(height * HEIGHT for height in heights))

    return Chart(list(bars()), step * 0.9, most, longest, first, last)


#: Hours -> name of the period.
PERIODS = {24: _("the last 24 hours"), 168: _("the last 7 days"), 720: _("the last 30 days")}
#: Part of the time -> its colour.
COLOURS = {
    EMBED: "#a61e4d",
    COMPILE: "#6f42c1",
    WAITING: "#b35900",
    PLAN: "#1f6fb2",
    UNKNOWN: "#6c757d",
    TRANSFER: "#2b7a3d",
}


class SlowQueriesPage(ManagePage):
    """Shows the log; POST with ``explain``, the id of a query, shows its plans, with ``clear`` empties the log.

    The fields ``hours``, ``page``, ``new`` and ``shape``, the key of a group, filter the log.
    """

    template = ViewPageTemplateFile("templates/slow_queries.pt")
    explained = ViewPageTemplateFile("templates/explained.pt")
    name = "manage_slow_queries"
    periods = PERIODS
    legend = tuple((PARTS[part], colour) for part, colour in COLOURS.items())

    example: Example | None = None
    now: Plan | None = None
    problem = ""

    def post(self) -> Any:
        form = self.request.form
        if "clear" in form:
            count = log.clear(writable_dsn_of(self.catalog.jar), self.catalog.zoid)
            return self.redirect(_("${count} slow queries deleted.", mapping={"count": str(count)}))
        if "explain" in form:
            self.example = self.find(form["explain"])
            self.explain()
            return self.explained()
        return self.template()

    def explain(self) -> None:
        if self.example is None:
            self.problem = _("This query is no longer in the log.")
            return
        try:
            self.now = explain_example(self.catalog, self.example)
        except ReplayError as error:
            self.problem = _("Not explained: ${reason}.", mapping={"reason": error.message})

    def find(self, id: Any) -> Example | None:
        """Return the recorded query with this *id*, a form field of any content; None if there is none."""
        number = number_in(id) if isinstance(id, str) else None
        return None if number is None else self.log.example(number)

    # -- for the templates: the filter

    @property
    def log(self) -> log.SlowQueryLog:
        return log.log_of(self.catalog)

    @cached_property
    def choice(self) -> Choice:
        hours = self.field("hours")
        chosen = int(hours) if hours in map(str, PERIODS) else min(PERIODS)
        return Choice(chosen, self._clean("shape"), self._clean("page"))

    def _clean(self, name: str) -> str | None:
        return self.field(name).replace("\0", "").encode(errors="replace").decode() or None

    @property
    def only_new(self) -> bool:
        return bool(self.field("new"))

    def link(self, **changed: Any) -> str:
        """Return the URL of this page with the present filter, updated by *changed*."""
        choice = self.choice
        fields = {"hours": choice.hours, "page": choice.page, "shape": choice.key, "new": self.field("new")} | changed
        return f"{self.url()}?{urlencode({name: value for name, value in fields.items() if value})}"

    # -- for the templates: contents of the log

    def groups(self) -> list[Group]:
        return [group for group in self.log.groups(choice=self.choice) if group.is_new or not self.only_new]

    def examples(self) -> list[Example]:
        return self.log.examples(self.choice)

    def pages(self) -> list[str]:
        chosen = [self.choice.page] if self.choice.page else []
        return list(dict.fromkeys([*chosen, *self.log.pages(Choice(self.choice.hours))]))

    def history(self) -> History:
        return self.log.history(self.choice)

    def chart(self, history: History) -> Chart:
        assert self.choice.hours is not None
        return chart_of(history, self.choice.hours)

    def deviation(self, group: Group, history: History) -> str:
        """Return a text about the change from the week before; empty if there is none, or too little to compare."""
        return self.translated(deviation(group, history, self.choice.hours))

    def threshold(self) -> str:
        """Return the time from which a query is slow, as text; empty if none is recorded."""
        ms = slow_query_ms(self.catalog.tool)
        return f"{ms:g} ms" if ms else ""

    def without(self, names: Any) -> str:
        """Return a text about the indexes *names* whose values were left out."""
        return _("without values of ${names}", mapping={"names": self.listed(names)})

    def masked(self) -> str:
        return ", ".join(sorted(slow_query_mask(self.catalog.tool)))

    # -- for the templates: causes

    why = staticmethod(why)

    def parts(self, reasons: Why) -> list[tuple[str, str, float, float]]:
        """Return (name, colour, start, width) of the parts of the time in their order; start and width in percent."""
        shown, start = [], 0.0
        for part, share in reasons.parts.items():
            if share > 0:
                shown.append((self.translated(PARTS[part]), COLOURS[part], 100 * start, 100 * share))
            start += share
        return shown

    def reason(self, group: Group) -> str:
        """Return a sentence about the cause, in the language of the page."""
        return self.translated(reason(group))

    def rows_text(self, figures: PlanFigures) -> str:
        return self.translated(rows_text(figures))

    def cold(self, example: Example) -> str:
        return COLD.get(example.cold, "")

    # -- for the templates: examples and plans

    def then(self, example: Example) -> PlanFigures | None:
        return PlanFigures.of(example.plan)

    def then_text(self, example: Example) -> str:
        """Return the text of the recorded plan; empty if there is none."""
        stored = example.plan
        return plan.text(stored["plan"], stored.get("server_ms")) if stored else ""

    def query_text(self, example: Example) -> str:
        return query_text(example.query)

    def values_text(self, explained: Plan) -> str:
        return ", ".join(f"{value!r:.200}" for value in explained.values)
