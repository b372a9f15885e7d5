"""When a page is read without the idx of its rows."""

from plone.pgcatalog.database.familiarity import Familiarity
from plone.pgcatalog.database.familiarity import MEMORY

import pytest


def test_nothing_is_known_at_first() -> None:
    assert not Familiarity().spares_idx(25)


def test_pages_that_are_known_are_read_without() -> None:
    familiarity = Familiarity()
    familiarity.learn(0, 25)
    for _ in range(2):
        familiarity.learn(25, 25)
    assert familiarity.spares_idx(25)


def test_what_was_known_long_ago_is_forgotten() -> None:
    familiarity = Familiarity()
    for known in [25] * 100 + [0] * 8:
        familiarity.learn(known, 25)
    assert not familiarity.spares_idx(25)


@pytest.mark.parametrize(("size", "spares"), [(1, False), (25, False), (100, True)])
def test_pages_of_which_some_rows_are_unknown(size: int, spares: bool) -> None:
    """The second round trip is dearer than the idx of a short page, and cheaper than that of a long one."""
    familiarity = Familiarity()
    for _ in range(30):
        familiarity.learn(20, 25)
    assert familiarity.spares_idx(size) is spares


def test_versions_are_spared_when_all_rows_of_this_state_were_known() -> None:
    familiarity = Familiarity()
    assert not familiarity.spares_version(None)
    for _ in range(MEMORY):
        assert not familiarity.spares_version("now")
        familiarity.learn_state("now", True)
    assert familiarity.spares_version("now")
    assert not familiarity.spares_version("later")
    assert not familiarity.spares_version(None)


def test_one_unknown_row_begins_anew() -> None:
    familiarity = Familiarity()
    for whole in [True] * MEMORY + [False] + [True] * (MEMORY - 1):
        familiarity.learn_state("now", whole)
    assert not familiarity.spares_version("now")
