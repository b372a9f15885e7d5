"""When a page is read without the idx of its rows."""

from plone.pgcatalog.database.hit_rate import Habits
from plone.pgcatalog.database.hit_rate import HitRate
from plone.pgcatalog.database.hit_rate import MEMORY
from plone.pgcatalog.database.hit_rate import MOST_HABITS

import pytest


def test_nothing_is_known_at_first() -> None:
    assert not HitRate().skip_metadata(25)


def test_pages_that_are_known_are_read_without() -> None:
    rate = HitRate()
    rate.learn(0, 25)
    for _ in range(2):
        rate.learn(25, 25)
    assert rate.skip_metadata(25)


def test_what_was_known_long_ago_is_forgotten() -> None:
    rate = HitRate()
    for known in [25] * 100 + [0] * 8:
        rate.learn(known, 25)
    assert not rate.skip_metadata(25)


@pytest.mark.parametrize(("size", "skips"), [(1, False), (25, False), (100, True)])
def test_pages_of_which_some_rows_are_unknown(size: int, skips: bool) -> None:
    """The second round trip is dearer than the idx of a short page, and cheaper than that of a long one."""
    rate = HitRate()
    for _ in range(30):
        rate.learn(20, 25)
    assert rate.skip_metadata(size) is skips


def test_few_rows_are_brought_with_their_idx_when_some_page_is_unknown() -> None:
    """Another round trip for one unknown row is dearer than the idx of five."""
    rate = HitRate()
    for known in [5, 4] * 10:
        rate.learn(known, 5, room=25)
    assert not rate.skip_metadata(25)
    for _ in range(MEMORY * 3):
        rate.learn(5, 5, room=25)
    assert rate.skip_metadata(25)


def test_versions_are_spared_when_all_rows_of_this_state_were_known() -> None:
    rate = HitRate()
    assert not rate.skip_versions(None)
    for _ in range(MEMORY):
        assert not rate.skip_versions("now")
        rate.learn_state("now", True)
    assert rate.skip_versions("now")
    assert not rate.skip_versions("later")
    assert not rate.skip_versions(None)


def test_one_unknown_row_begins_anew() -> None:
    rate = HitRate()
    for whole in [True] * MEMORY + [False] + [True] * (MEMORY - 1):
        rate.learn_state("now", whole)
    assert not rate.skip_versions("now")


def test_a_second_part_is_expected_when_it_has_mostly_followed() -> None:
    habits = Habits()
    assert habits.expects("list") == 0
    for _ in range(3):
        habits.begin("list")
        habits.follow("list", 25)
    habits.begin("list")
    assert habits.expects("list") == 25
    assert habits.expects("menu") == 0
    for _ in range(3):
        habits.begin("list")
    assert habits.expects("list") == 0


def test_habits_of_very_many_searches_are_forgotten() -> None:
    habits = Habits()
    for _ in range(4):
        habits.begin("list")
        habits.follow("list", 25)
    for number in range(2 * MOST_HABITS):
        habits.begin(number)
    assert habits.expects("list") == 0
