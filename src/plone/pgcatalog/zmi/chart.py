"""A small chart of an hour's slow queries: how many, and how long they took; two rows of bars for an inline SVG."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from plone.pgcatalog.observe.log import Figures
from plone.pgcatalog.observe.log import History


#: Units of the picture: its width, and the height of each row.
WIDTH = 960
HEIGHT = 100
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """The bars of one hour, from *x* on: heights of the count, the median and the 95th percentile."""

    x: float
    hour: datetime
    figures: Figures
    count: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars of *width* units; the most queries of an hour, and the longest time, are as high as the row."""

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
