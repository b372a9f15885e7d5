"""The mixed soak: its schedule, and the rule by which memory and tables level off."""

from checks.soak import levels
from checks.soak import mixed
from checks.soak.__main__ import main
from click.testing import CliRunner
from collections import Counter
from hypothesis import given
from hypothesis import strategies as st
from pathlib import Path

import pytest


HOUR = 3600.0


def line(seconds: float, value: float, per_hour: float = 0.0) -> list[levels.Point]:
    """Return a point for each ten seconds of a run: *value* in the middle, which rises by *per_hour* per cent of it."""
    return [
        (second, value * (1 + per_hour / 100 * (second - seconds / 2) / HOUR)) for second in range(0, int(seconds), 10)
    ]


@given(st.floats(60, 10_000), st.integers(0, 100))
def test_schedule_follows_from_its_seed_and_has_each_kind_in_time(seconds: float, seed: int) -> None:
    events = mixed.schedule(seconds, seed)
    assert events == mixed.schedule(seconds, seed) == sorted(events)
    assert Counter(kind for _, kind in events) == mixed.counts(seconds)
    assert all(mixed.QUIET <= second <= seconds - mixed.QUIET for second, _ in events)


def test_other_seeds_have_other_schedules() -> None:
    assert len({tuple(mixed.schedule(7200, seed)) for seed in range(10)}) == 10


@pytest.mark.parametrize("rise", [-50.0, 0.0, 5.0, 12.0, 40.0])
def test_rise_is_measured_in_per_cent_of_an_hour(rise: float) -> None:
    found = levels.per_hour(line(2 * HOUR, 300, rise), 2 * HOUR)
    # In per cent of the third quarter, which is above the middle.
    assert found == pytest.approx(rise, abs=abs(rise) / 4)


def test_short_peaks_and_the_first_half_count_for_nothing() -> None:
    seconds = 2 * HOUR
    points = [(s, 1000.0 if s % 900 < 60 else 300.0 * min(1.0, s / HOUR)) for s, _ in line(seconds, 1)]
    assert levels.per_hour(points, seconds) == 0


@pytest.mark.parametrize(
    ("kind", "name", "value", "rise", "is_broken"),
    [
        ("memory", "zope1", 300, 4, False),
        ("memory", "zope1", 300, 30, True),
        ("memory", "zope1", 300, -30, False),
        ("memory", "work", 300, 30, False),
        ("bytes", "rows", 10, 30, True),
        ("bytes", "rows", 10, 10, False),
        ("bytes", "rows", 0.5, 30, False),
        ("bytes", "transaction_log", 10, 30, False),
        ("counts", "objects", 1000, 90, False),
    ],
)
def test_what_rises_at_the_end_of_a_long_run_is_broken(
    kind: str, name: str, value: float, rise: float, is_broken: bool
) -> None:
    for seconds, is_long in ((2 * HOUR, True), (HOUR / 4, False)):
        series = {"memory": {}, "bytes": {}, "counts": {}} | {kind: {name: line(seconds, value, rise)}}
        found = levels.broken(levels.summary(series, seconds), seconds, ["work"])
        assert bool(found) == (is_broken and is_long)
        assert all(name in text for text in found)


@given(st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 9)), max_size=50), st.integers(1, 20))
def test_thinned_points_are_few_and_in_their_order(points: list[levels.Point], number: int) -> None:
    found = levels.thinned(points, 1000, number)
    assert len(found) <= number
    assert [second for second, _ in found] == sorted(second for second, _ in found)
    assert {value for _, value in found} <= {v / 2 for v in range(19)}


def test_series_have_the_seconds_of_the_run_and_mebibytes() -> None:
    counts = {"waiting": 1, "failed": 0, "objects": 5, "connections": 2}
    sizes = {"rows": 1 << 20, "words": 1 << 18, "counts": 1 << 18, "transaction_log": 1 << 18}
    dead = {"rows": 3, "words": 4}
    states = {f"class{number}": number << 20 for number in range(10)}
    sample = {"time": 12.0, "bytes": sizes, "dead": dead, "states": states, "indexes": 3 << 19, **counts}
    found = levels.series({"zope1": [(11.0, 3 << 20)]}, [sample], 10.0)
    assert found["memory"] == {"zope1": [(1.0, 3.0)]}
    assert found["bytes"] == {"rows": [(2.0, 1.0)], "others": [(2.0, 0.5)], "transaction_log": [(2.0, 0.25)]}
    largest = {f"class{number}": [(2.0, float(number))] for number in range(2, 10)}
    assert found["states"] == largest | {"others": [(2.0, 1.0)]}
    counts |= {"dead rows": 7, "indexes of objects, MiB": 1.5}
    assert found["counts"] == {name: [(2.0, n)] for name, n in counts.items()}


@pytest.mark.parametrize("options", ["", "--mixed", "--failovers 1", "--failovers 1 --synchronous"])
def test_page_without_a_place_for_the_tables_is_refused_before_the_run(options: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no place")
    result = CliRunner().invoke(main, [*options.split(), "--seconds", "7200", "--page", str(page)])
    assert isinstance(result.exception, ValueError)
    assert "page.md has no <!--" in str(result.exception)
