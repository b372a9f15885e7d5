"""The searches: the six of the first benchmark and eight more, with repeating or varying values."""

from benchmarks.documents import DAYS
from benchmarks.documents import FIRST_DAY
from benchmarks.documents import STATES
from benchmarks.documents import TAGS
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from DateTime import DateTime
from datetime import timedelta
from plone.base.batch import Batch
from typing import Any


PAGE = 25
#: Length in days of the range of a varying search for dates.
RANGE_DAYS = 180


@dataclass(frozen=True)
class Place:
    """The names in the queries: the path of the folders, their number, some UIDs."""

    path: str
    folders: int
    uids: Sequence[str]

    def folder(self, number: int) -> str:
        return f"{self.path}/folder{number % self.folders}"


@dataclass(frozen=True)
class Scenario:
    """A search: ``query(place, n)`` returns its n-th variant; 0 is the repeated one."""

    name: str
    query: Callable[[Place, int], dict[str, Any]]
    anonymous: bool = False
    #: Whether the query limits the result: its cost should not grow with the catalog.
    limited: bool = False


def date_range(place: Place, n: int) -> dict[str, Any]:
    since = FIRST_DAY + timedelta(days=(n * 97) % (DAYS - RANGE_DAYS))
    until = since + timedelta(days=RANGE_DAYS)
    return {"created": {"query": (DateTime(since), DateTime(until)), "range": "min:max"}}


def tag(n: int) -> str:
    return TAGS[n % len(TAGS)]


def newest(place: Place, n: int) -> dict[str, Any]:
    return {
        "portal_type": "Document",
        "review_state": "published",
        "Subject": tag(n),
        "sort_on": "modified",
        "sort_order": "reverse",
        "sort_limit": 20,
    }


def by_date(place: Place, n: int) -> dict[str, Any]:
    return {"portal_type": "Document", "sort_on": "created", "b_start": n % 10 * PAGE, "b_size": PAGE}


SCENARIOS = (
    Scenario("simple field match", lambda place, n: {"portal_type": "Document"}),
    Scenario("type, state and tag, newest 20", newest, limited=True),
    Scenario("full text", lambda place, n: {"SearchableText": f"word{20 + n % 200}"}),
    Scenario(
        "navigation",
        lambda place, n: {"path": {"query": place.folder(n), "depth": 1}, "sort_on": "sortable_title"},
    ),
    Scenario("published, as anonymous", lambda place, n: {"review_state": "published"}, anonymous=True),
    Scenario("by date, one page", by_date, limited=True),
    Scenario("date range", date_range),
    Scenario("keyword, any of three", lambda place, n: {"Subject": [tag(n), tag(n + 4), tag(n + 9)]}),
    Scenario(
        "keyword, all of two",
        lambda place, n: {"Subject": {"query": [tag(n), tag(n + 1 + n // 15 % 14)], "operator": "and"}},
    ),
    Scenario("path and type", lambda place, n: {"path": place.folder(n), "portal_type": "Document"}),
    Scenario("not", lambda place, n: {"review_state": {"not": list(STATES)[(n + 1) % 3]}}),
    Scenario("text prefix", lambda place, n: {"SearchableText": f"word{10 + n % 90}*"}),
    Scenario("uid", lambda place, n: {"UID": place.uids[n % len(place.uids)]}),
    Scenario(
        "sort without limit",
        lambda place, n: {"portal_type": "Document", "sort_on": ("sortable_title", "created", "getId")[n % 3]},
    ),
)


def chosen(names: Sequence[str]) -> tuple[Scenario, ...]:
    """Return the scenarios *names*; all if there are no names."""
    return tuple(scenario for scenario in SCENARIOS if not names or scenario.name in names)


def touch_len(results: Any) -> int:
    """Use the number of results."""
    return len(results)


def touch_page(results: Any) -> list[Any]:
    """Use a result like a listing: 25 rows with the displayed values of each."""
    return shown(results[:PAGE])


def shown(brains: Iterable[Any]) -> list[Any]:
    """Return the values of *brains* that a listing displays."""
    return [
        (brain.getURL(), brain.Title, brain.Description, brain.portal_type, brain.review_state, brain.modified)
        for brain in brains
    ]


def touch_batch(results: Any) -> list[Any]:
    """Use a result like Plone's batch: the number of results, and the first page."""
    return shown(Batch(results, PAGE))


TOUCHES: dict[str, Callable[[Any], Any]] = {"len": touch_len, "page": touch_page, "page with count": touch_batch}
