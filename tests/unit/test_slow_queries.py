"""The shape of a query distinguishes queries by their criteria, never by values."""

from collections import defaultdict
from DateTime import DateTime
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from hypothesis import given
from hypothesis import strategies as st
from itertools import pairwise
from plone.pgcatalog.observe import log
from plone.pgcatalog.observe import plan
from plone.pgcatalog.observe import record
from plone.pgcatalog.observe.plan import deviation
from plone.pgcatalog.observe.plan import why
from plone.pgcatalog.observe.recorder import PAUSE
from plone.pgcatalog.observe.recorder import Throttle
from plone.pgcatalog.query import objects as q
from plone.pgcatalog.zmi import slow_queries as page
from typing import Any

import json
import pytest


OPTIONS = ("query", "range", "not", "operator")
INDEXES: dict[str, tuple[str, ...]] = {
    "Creator": OPTIONS,
    "Subject": OPTIONS,
    "modified": OPTIONS,
    "allowedRolesAndUsers": OPTIONS,
    "path": ("query", "depth", "level"),
    "SearchableText": ("query",),
}


def shape(query: dict[str, Any], sort: Any = (), limited: bool = False) -> str:
    return record.shape_of(query, INDEXES, sort, limited)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"Creator": "jane"}, "Creator ="),
        ({"Creator": ["jane"]}, "Creator ="),
        ({"Creator": ["jane", "joe"]}, "Creator in"),
        ({"Creator": []}, "Creator nothing"),
        ({"Creator": {"not": "jane"}}, "Creator not"),
        ({"Subject": {"query": ["a", "b"], "operator": "and"}}, "Subject in operator:and"),
        ({"modified": {"query": DateTime(), "range": "min"}}, "modified = range:min"),
        ({"modified": DateTime(), "modified_range": "max"}, "modified = range:max"),
        ({"path": {"query": "/plone", "depth": 1}}, "path = depth"),
        ({"path": "/plone", "Creator": "x"}, "Creator =; path ="),
        ({"unknown": "x", "Creator": "x"}, "Creator ="),
        ({"Creator": {"query": "x", "invented by a visitor": 1}}, "Creator ="),
        ({"modified": {"query": 1, "range": "invented"}}, "modified = range:"),
        (
            {"where": q.Or(q.Eq("Creator", 1), q.Not(q.In("Subject", [2])))},
            "where Or(Eq Creator, Not(In Subject))",
        ),
        ({"where": "of a request"}, ""),
        ({}, ""),
    ],
)
def test_shape_has_the_criteria_without_values(query: dict[str, Any], expected: str) -> None:
    assert shape(query) == expected


def test_sort_and_limit_are_part_of_the_shape() -> None:
    sort = [("modified", True), ("Creator", False)]
    assert shape({"Creator": "x"}, sort, True) == "Creator =; sort modified desc Creator; limit"


def test_recorded_query_can_be_restored() -> None:
    query = {
        "Creator": "jane",
        "Subject": {"query": ("a", b"b"), "operator": "and"},
        "modified": {"query": [DateTime("2026/01/01 UTC"), DateTime("2026/02/01 UTC")], "range": "min:max"},
        "path_depth": 1,
        "path": "/plone",
        "b_size": 10,
        "where": q.And(
            q.Eq("Creator", "j"),
            q.Range("modified", max=3),
            q.Text("x"),
            q.Path(["/a", "/b"], depth=2),
            {"Subject": ["a"]},
        ),
        "unknown": object(),
    }
    text, left_out = record.encode_query(query, INDEXES, [("modified", True)], "5")
    del query["unknown"]
    assert record.recall(json.loads(text)) == (query, [("modified", True)], 5)
    assert left_out == []


def test_user_is_not_recorded() -> None:
    roles = ["Anonymous", "Member", "user:jane", "user:Staff"]
    text, _ = record.encode_query({"allowedRolesAndUsers": roles}, INDEXES, (), None)
    assert record.recall(json.loads(text))[0] == {"allowedRolesAndUsers": ["Anonymous", "Member"]}
    text, _ = record.encode_query({"allowedRolesAndUsers": {"query": roles}}, INDEXES, (), None)
    assert record.recall(json.loads(text))[0] == {"allowedRolesAndUsers": {"query": ["Anonymous", "Member"]}}
    text, left_out = record.encode_query({"where": q.In("allowedRolesAndUsers", roles)}, INDEXES, (), None)
    assert "jane" not in text
    assert left_out == ["where"]


def test_masked_values_are_not_recorded() -> None:
    query = {"SearchableText": "my illness", "Creator": "jane", "where": q.Text("my illness")}
    text, left_out = record.encode_query(query, INDEXES, (), None, {"SearchableText", "Title"})
    assert "illness" not in text
    assert "jane" in text
    assert left_out == ["SearchableText", "where"]
    text, left_out = record.encode_query(query, INDEXES, (), None, {"*"})
    assert json.loads(text) == {"query": {}, "where": None, "sort": [], "limit": None}
    assert left_out == ["Creator", "SearchableText", "where"]


@pytest.mark.parametrize("value", [object(), ["x" * record.MAX_BYTES], {"query": lambda: 1}, "x" * 10**6])
def test_values_that_cannot_be_recorded_are_named(value: Any) -> None:
    text, left_out = record.encode_query({"Creator": value, "path": "/x"}, INDEXES, (), object())
    assert json.loads(text)["query"] == {"path": "/x"}
    assert left_out == ["Creator"]


@pytest.mark.parametrize("value", ["a\0b", "\ud800", float("nan"), 10**400, "\N{GRINNING FACE}", b"\xff", None, [None]])
def test_odd_values_are_restored(value: Any) -> None:
    text, left_out = record.encode_query({"Creator": value}, INDEXES, (), None)
    assert left_out == []
    assert repr(record.recall(json.loads(text))[0]) == repr({"Creator": value})


NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)


@given(st.lists(st.floats(0.01, 29_000), min_size=1, max_size=50), st.sampled_from([0.5, 0.95]))
def test_a_quantile_is_in_the_bucket_of_the_true_one(times: list[float], part: float) -> None:
    counts = log.histogram(times)
    assert sum(counts) == len(times)
    place = next(n for n in range(1, len(times) + 1) if n >= part * len(times))
    true = sorted(times)[place - 1]
    low = max([0, *(bound for bound in log.BOUNDS if bound <= true)])
    high = min(bound for bound in (*log.BOUNDS, 2 * log.BOUNDS[-1]) if bound > true)
    assert low <= log.quantile(counts, part) <= high
    assert log.quantile(log.histogram([]), part) == 0.0


TIMES = {"mean_ms": 25.0, "median_ms": 25.0, "p95_ms": 30.0, "max_ms": 30.0, "total_ms": 100.0, "server_ms": None}
PARTS = {"embed_ms": 0.0, "compile_ms": 5.0, "execute_ms": 90.0, "decode_ms": 5.0}
OTHERS = {"shape": "x", "operation": "page", "count": 4, "last": NOW, "share": 1.0, "newest": 1, "key": "k", "long": 0}


def group(**changed: Any) -> log.Group:
    cold = {"process": 0, "connection": 0}
    return log.Group(**{**TIMES, **PARTS, **OTHERS, "is_new": False, "cold": cold, "plan": None, **changed})


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "unknown"),
        ({"server_ms": 80.0}, "plan"),
        ({"server_ms": 10.0}, "waiting"),
        ({"server_ms": 10.0, "decode_ms": 200.0}, "transfer"),
        ({"server_ms": 10.0, "compile_ms": 200.0}, "compile"),
        ({"server_ms": 10.0, "embed_ms": 200.0}, "embed"),
        ({"server_ms": 10.0, "cold": {"process": 3, "connection": 0}}, "cold"),
        # Time that the server always needs is not caused by a cold cache.
        ({"server_ms": 80.0, "cold": {"process": 3, "connection": 0}}, "plan"),
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
        first: log.Figures(1, 10.0, 20.0),
        NOW.replace(minute=0): log.Figures(4, 50.0, 80.0),
        first - timedelta(hours=1): log.Figures(9, 1.0, 1.0),
    }
    chart = page.chart_of(log.History(hours=hours), 24, NOW)
    assert [bar.figures.count for bar in chart.bars] == [1, 4]
    assert chart.bars[0].x == 0
    assert chart.bars[-1].x + chart.width <= page.WIDTH
    assert max(bar.p95 for bar in chart.bars) == page.HEIGHT
    assert all(0 < bar.p50 <= bar.p95 <= page.HEIGHT for bar in chart.bars)
    assert page.chart_of(log.History(), 24, NOW).bars == []


EVENTS = st.lists(st.tuples(st.integers(0, 2 * int(PAUSE)), st.sampled_from("abc")), max_size=60)


@given(EVENTS)
def test_repeated_line_is_logged_once_a_minute_and_others_counted(events: list[tuple[int, str]]) -> None:
    now = 0.0
    throttle = Throttle(clock=lambda: now)
    lines: dict[str, list[tuple[float, int]]] = defaultdict(list)
    happened: dict[str, int] = defaultdict(int)
    for passed, thing in events:
        now += passed
        happened[thing] += 1
        count = throttle.left_out(thing)
        if count is not None:
            lines[thing].append((now, count))
    for written in lines.values():
        times = [time for time, _ in written]
        assert all(later - earlier >= PAUSE for earlier, later in pairwise(times))
    # After a pause there is a line again, which counts all omitted ones.
    now += PAUSE
    for thing, written in lines.items():
        last = throttle.left_out(thing)
        assert last is not None
        assert sum(count + 1 for _, count in written) + last == happened[thing]


@given(st.lists(st.integers(0, 50), max_size=200))
def test_number_of_remembered_lines_is_bounded(things: list[int]) -> None:
    throttle = Throttle(size=5, clock=lambda: 0.0)
    for thing in things:
        throttle.left_out(thing)
        assert len(throttle._lines) <= 5


@pytest.mark.parametrize(("is_compared", "said"), [(False, ""), (True, "none")])
def test_absence_last_week_is_stated_only_for_an_existing_log(is_compared: bool, said: str) -> None:
    new = group()
    history = log.History(now={new.key: log.Figures(9, 1.0, 2.0)}, is_compared=is_compared)
    assert deviation(new, history, 24) == said


def test_stored_plan_has_rows_and_no_values() -> None:
    scan = {
        **{"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 9, "Actual Rows": 5.0, "Actual Loops": 2},
        **{"Actual Total Time": 1.5, "Rows Removed by Filter": 995, "Filter": "(name = 'secret'::text)"},
    }
    aggregate = {
        **{"Node Type": "Aggregate", "Plan Rows": 1, "Actual Rows": 1, "Actual Loops": 1, "Actual Total Time": 4.0},
        **{"Output": ["count(*)"], "Plans": [scan]},
    }
    kept = plan.summary({"Plan": aggregate, "Planning Time": 1.0, "Execution Time": 5.0})
    assert "secret" not in str(kept)
    assert plan.PlanFigures.of(kept) == plan.PlanFigures(6.0, 2000, 10)
    assert plan.PlanFigures.of(plan.summary({"Plan": aggregate})) is None
    text = "\n".join(plan.lines(kept["plan"]))
    assert "  Seq Scan on t: 5 rows, 9 rows expected, 3.00 ms, 2 times, 1,990 rows removed by filters" in text
    assert "Filter: (name = 'secret'::text)" in "\n".join(plan.lines(aggregate))
