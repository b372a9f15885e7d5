"""Log lines about the same thing: one a minute, and none is forgotten in the count."""

from collections import defaultdict
from hypothesis import given
from hypothesis import strategies as st
from itertools import pairwise
from plone.pgcatalog.observe.recorder import PAUSE
from plone.pgcatalog.observe.recorder import Throttle


EVENTS = st.lists(st.tuples(st.integers(0, 2 * int(PAUSE)), st.sampled_from("abc")), max_size=60)


@given(EVENTS)
def test_one_line_a_minute_for_each_thing_and_all_others_are_counted(events: list[tuple[int, str]]) -> None:
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
    # After a pause there is a line again, which tells of all that was left out.
    now += PAUSE
    for thing, written in lines.items():
        last = throttle.left_out(thing)
        assert last is not None
        assert sum(count + 1 for _, count in written) + last == happened[thing]


@given(st.lists(st.integers(0, 50), max_size=200))
def test_no_more_things_are_remembered_than_there_is_room_for(things: list[int]) -> None:
    throttle = Throttle(size=5, clock=lambda: 0.0)
    for thing in things:
        throttle.left_out(thing)
        assert len(throttle._lines) <= 5
