"""The tour: ten typical queries of every Plone site, with counts and timings."""

from Acquisition import aq_base
from dataclasses import dataclass
from dataclasses import field
from DateTime import DateTime
from datetime import datetime
from datetime import timedelta
from demo.site import acting_as
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text
from statistics import median
from typing import Any

import time


REPEATS = 5
#: Number of rows on a page, and read by the tour.
PAGE = 25


@dataclass(frozen=True)
class Step:
    """One query of the tour, and its user (None: anonymous)."""

    title: str
    query: dict[str, Any] = field(default_factory=dict)
    user: str | None = None
    #: Return the values of this index instead of searching.
    values_of: str = ""

    def run(self, catalog: Any) -> Any:
        """Return the results or values that *catalog* returns."""
        if self.values_of:
            return catalog.uniqueValuesFor(self.values_of)
        return catalog(**self.query)


def steps(site_path: str, today: datetime) -> list[Step]:
    """Return the tour through the site at that path; ``today`` is that of the plan."""

    def day(offset: int) -> DateTime:
        return DateTime(today + timedelta(days=offset))

    pages = {"portal_type": "Document", "sort_on": "sortable_title"}
    tags = ["Klima", "Wasser"]
    types = ["Document", "News Item", "Event"]
    next_month = {"query": (day(0), day(31)), "range": "min:max"}
    last_year = {"query": (day(-365), day(-30)), "range": "min:max"}
    newest = {"sort_on": "modified", "sort_order": "reverse"}
    branch = f"{site_path}/de/news/climate"
    navigation = {"query": branch, "navtree": True, "navtree_start": 1}
    internal = {"path": f"{site_path}/de/internal", "sort_on": "path"}
    return [
        Step(
            "1  The newest published pages",
            {"portal_type": "Document", "review_state": "published"}
            | {"sort_on": "effective", "sort_order": "reverse", "sort_limit": 10},
        ),
        Step(
            "2  A folder in its own order",
            {"path": {"query": f"{site_path}/de", "depth": 1}} | {"sort_on": "getObjPositionInParent"},
            user="anna",
        ),
        Step(
            "3  The navigation tree",
            {"path": navigation, "exclude_from_nav": False} | {"sort_on": "getObjPositionInParent"},
        ),
        Step("4a Text in English", {"SearchableText": "citizens AND bridges"}),
        Step("4b Text in German, newest first", {"SearchableText": "Bürger Büch*"} | newest),
        Step("4c Text in Chinese", {"SearchableText": "图书馆"}, user="chen"),
        Step(
            "4d Beginnings of words, phrase, NOT",
            {"SearchableText": 'micro* AND "New Haven" AND NOT comets'},
            user="dora",
        ),
        Step("5a Tags: all of these", {"Subject": {"query": tags, "operator": "and"}, "sort_on": "Date"}),
        Step(
            "5b Tags: any of these",
            {"Subject": {"query": tags, "operator": "or"}} | pages | {"b_size": 20},
        ),
        Step("6  Events of the next month", {"portal_type": "Event", "start": next_month, "sort_on": "start"}),
        Step(
            "7  Changed within the last year",
            {"modified": last_year, "portal_type": {"not": ["Folder", "Image"]}} | newest,
            user="emil",
        ),
        Step(
            "8  Three types by title, second page",
            {"portal_type": types, "sort_on": ["sortable_title", "modified"]} | {"b_start": 20, "b_size": 20},
            user="admin",
        ),
        Step("9a Internal folder: anonymous", internal),
        Step("9b ... a reader by local role", internal, user="bert"),
        Step("9c ... a reader by group", internal, user="fay"),
        Step("10 All tags", values_of="Subject"),
    ]


def measure(site: Any, step: Step) -> tuple[int, str, float, float]:
    """Search, count and read a page of titles; return count, first title, seconds cold and the median of REPEATS warm."""
    times = []
    with acting_as(site, step.user):
        for _ in range(1 + REPEATS):
            start = time.perf_counter()
            results = step.run(site.portal_catalog)
            if step.values_of:
                count, titles = len(results), [str(value) for value in results]
            else:
                count = results.actual_result_count
                titles = [brain.Title for brain in results[:PAGE]]
            times.append(time.perf_counter() - start)
    return count, titles[0] if titles else "", times[0], median(times[1:])


def table(site: Any, today: datetime) -> Table:
    """Run the tour, starting with a cold object cache; return it as a table for the screen."""
    kind = type(aq_base(site.portal_catalog))
    result = Table(
        box=SIMPLE,
        pad_edge=False,
        title=f"Ten questions to {kind.__module__}.{kind.__qualname__}",
        caption="cold: the first time in this process; warm: median of five",
    )
    result.add_column("Question", no_wrap=True)
    result.add_column("User", no_wrap=True)
    result.add_column("Found", justify="right", no_wrap=True)
    # The only column that shrinks on a narrow screen.
    result.add_column("First")
    result.add_column("Cold ms", justify="right", no_wrap=True)
    result.add_column("Warm ms", justify="right", no_wrap=True)
    site._p_jar.cacheMinimize()
    for step in steps("/".join(site.getPhysicalPath()), today):
        count, first, cold, warm = measure(site, step)
        title = Text(first, no_wrap=True, overflow="ellipsis")
        user = step.user or "anonymous"
        result.add_row(step.title, user, f"{count:,}", title, f"{cold * 1000:.1f}", f"{warm * 1000:.1f}")
    return result
