"""Figures of slow queries: quantiles of buckets, parts of the time, bars of a chart, rows of a plan."""

from datetime import datetime
from datetime import timedelta
from datetime import UTC
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.observe.log import BOUNDS
from plone.pgcatalog.observe.log import Figures
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import histogram
from plone.pgcatalog.observe.log import History
from plone.pgcatalog.observe.log import quantile
from plone.pgcatalog.observe.plan import lines
from plone.pgcatalog.observe.plan import PlanFigures
from plone.pgcatalog.observe.plan import summary
from plone.pgcatalog.observe.plan import why
from plone.pgcatalog.zmi.slow_queries import chart_of
from plone.pgcatalog.zmi.slow_queries import HEIGHT
from plone.pgcatalog.zmi.slow_queries import WIDTH
from typing import Any

import pytest


NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)


@given(st.lists(st.floats(0.01, 29_000), min_size=1, max_size=50), st.sampled_from([0.5, 0.95]))
def test_a_quantile_is_in_the_bucket_of_the_true_one(times: list[float], part: float) -> None:
    counts = histogram(times)
    assert sum(counts) == len(times)
    place = next(n for n in range(1, len(times) + 1) if n >= part * len(times))
    true = sorted(times)[place - 1]
    low = max([0, *(bound for bound in BOUNDS if bound <= true)])
    high = min(bound for bound in (*BOUNDS, 2 * BOUNDS[-1]) if bound > true)
    assert low <= quantile(counts, part) <= high


def test_of_nothing_there_is_no_quantile() -> None:
    assert quantile(histogram([]), 0.5) == 0.0
    assert Figures.of(None) == Figures(0, 0.0, 0.0)


def group(**changed: Any) -> Group:
    values = {
        **{"shape": "x", "operation": "page", "count": 4, "mean_ms": 25.0, "p95_ms": 30.0, "max_ms": 30.0},
        **{"total_ms": 100.0, "last": NOW, "share": 1.0, "newest": 1, "key": "k", "median_ms": 25.0, "long": 0},
        **{"is_new": False, "compile_ms": 5.0, "execute_ms": 90.0, "decode_ms": 5.0, "server_ms": None},
        **{"cold": {"process": 0, "write": 0, "connection": 0}, "plan": None},
    }
    return Group(**(values | changed))


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "unknown"),
        ({"server_ms": 80.0}, "plan"),
        ({"server_ms": 10.0}, "waiting"),
        ({"server_ms": 10.0, "decode_ms": 200.0}, "transfer"),
        ({"server_ms": 10.0, "compile_ms": 200.0}, "compile"),
        ({"server_ms": 10.0, "cold": {"process": 0, "write": 3, "connection": 0}}, "cold"),
        # What the server needs every time is not slow because it is cold.
        ({"server_ms": 80.0, "cold": {"process": 0, "write": 3, "connection": 0}}, "plan"),
    ],
)
def test_the_cause_is_the_largest_part_of_the_time(changed: dict[str, Any], cause: str) -> None:
    found = why(group(**changed))
    assert found.cause == cause
    assert sum(found.parts.values()) == pytest.approx(1)
    assert min(found.parts.values()) >= 0


def test_bars_are_in_the_picture() -> None:
    first = NOW.replace(minute=0) - timedelta(hours=23)
    hours = {
        first: Figures(1, 10.0, 20.0),
        NOW.replace(minute=0): Figures(4, 50.0, 80.0),
        first - timedelta(hours=1): Figures(9, 1.0, 1.0),
    }
    chart = chart_of(History(hours=hours), 24, NOW)
    assert [bar.figures.count for bar in chart.bars] == [1, 4]
    assert chart.bars[0].x == 0
    assert chart.bars[-1].x + chart.width <= WIDTH
    assert max(bar.p95 for bar in chart.bars) == HEIGHT
    assert all(0 < bar.p50 <= bar.p95 <= HEIGHT for bar in chart.bars)
    assert chart_of(History(), 24, NOW).bars == []


SCAN = {
    **{"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 9, "Actual Rows": 5.0, "Actual Loops": 2},
    **{"Actual Total Time": 1.5, "Rows Removed by Filter": 995, "Filter": "(name = 'secret'::text)"},
}
AGGREGATE = {
    **{"Node Type": "Aggregate", "Plan Rows": 1, "Actual Rows": 1, "Actual Loops": 1, "Actual Total Time": 4.0},
    **{"Output": ["count(*)"], "Plans": [SCAN]},
}


def test_a_plan_tells_rows_and_keeps_no_values() -> None:
    kept = summary({"Plan": AGGREGATE, "Planning Time": 1.0, "Execution Time": 5.0})
    assert "secret" not in str(kept)
    assert PlanFigures.of(kept) == PlanFigures(6.0, 2000, 10, 0)
    assert PlanFigures.of(summary({"Plan": AGGREGATE})) is None
    text = "\n".join(lines(kept["plan"]))
    assert "  Seq Scan on t: 5 rows, 9 rows expected, 3.00 ms, 2 times, 1,990 rows read in vain" in text
    assert "Filter: (name = 'secret'::text)" in "\n".join(lines(AGGREGATE))
