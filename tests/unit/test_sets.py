"""Lists that catalogs store by number: the numbers in a condition."""

from plone.pgcatalog.database import sets as sets_module
from plone.pgcatalog.database.sets import CachedSets
from plone.pgcatalog.database.sets import MANY_LISTS
from plone.pgcatalog.sql import predicate as p
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.values import as_interned
from plone.pgcatalog.sql.values import set_number
from typing import Any

import pytest


TAGS = Column("tags", "text[]", can_be_interned=True)
OTHER = Column("other", "text[]", can_be_interned=True)
INTERNED = {"tags": TAGS.interned()}
#: One list more than a process caches.
NEWEST = MANY_LISTS + 1
LISTS = [["a"], ["a", "b"], ["b", "c"], ["c"], ["d", "e", "f"]]


def known(lists: list[list[str]], name: str = "tags") -> CachedSets:
    sets = CachedSets()
    sets.store([(set_number(name, each), name, each) for each in lists], newest=len(lists))
    return sets


def many_lists() -> CachedSets:
    """Return the cache of a column with more lists than the limit: 20,000 users have folders of their own."""
    return known([["Manager", f"user:{i:05}"] for i in range(NEWEST)])


def numbers(condition: Condition) -> set[int]:
    """Return the numbers in *condition*."""
    if condition is NOTHING:
        return set()
    assert isinstance(condition, p.Predicate)
    assert condition.sql == '"tags" = ANY(%s::bigint[])'
    return set(condition.values[0])


@pytest.mark.parametrize(
    ("part", "law"),
    [
        (p.overlaps(TAGS, ["a", "c"]), lambda each: set(each) & {"a", "c"}),
        (p.overlaps(TAGS, ["z"]), lambda each: False),
        (p.contains(TAGS, ["a", "b"]), lambda each: {"a", "b"} <= set(each)),
        (p.contains(TAGS, ["a", "z"]), lambda each: False),
        (p.ElementBetween(TAGS, [(">=", "b"), ("<", "c")]), lambda each: any("b" <= v < "c" for v in each)),
        (p.ElementBetween(TAGS, [(">", "c")]), lambda each: any(v > "c" for v in each)),
    ],
)
def test_condition_has_the_numbers_of_the_lists_that_fulfil_it(part: Condition, law: Any) -> None:
    expected = {set_number("tags", each) for each in LISTS if law(each)}
    assert numbers(as_interned(part, INTERNED, [known(LISTS)])) == expected
    # Stored numbers, and pending ones.
    assert numbers(as_interned(part, INTERNED, [known(LISTS[:2]), known(LISTS[2:])])) == expected


def test_condition_of_a_column_without_numbers_is_unchanged() -> None:
    sets = [known(LISTS)]
    for part in (p.overlaps(OTHER, ["a"]), p.equals(Column("type", "text"), "a"), Condition("TRUE")):
        assert as_interned(part, INTERNED, sets) is part
    # A converted condition is not converted again.
    once = as_interned(p.overlaps(TAGS, ["a"]), INTERNED, sets)
    assert as_interned(once, INTERNED, sets) is once
    assert as_interned(p.has_value(TAGS), INTERNED, sets).sql == '"tags" IS NOT NULL'


def test_excluded_list_that_does_not_exist_excludes_nothing() -> None:
    excluded = ~p.overlaps(TAGS, ["z"])
    assert excluded.changed(lambda part: as_interned(part, INTERNED, [known(LISTS)])).sql == "TRUE"


def test_column_with_many_lists_is_not_cached_but_looked_up() -> None:
    sets = many_lists()
    sets.store([(1, "other", ["a"])], newest=sets.newest + 1)
    assert sets.partly_cached == {"tags"}
    assert sets.unread().params == (sets.newest, ["tags"], [], MANY_LISTS + 1)
    assert not sets.numbers_of(p.overlaps(TAGS, ["Manager"]))
    asked = as_interned(p.overlaps(TAGS, ["user:00007"]), INTERNED, [sets])
    assert asked.sql == ('"tags" + 0 IN (SELECT number FROM pgcatalog_sets WHERE name = %s AND "vals" && %s::text[])')
    assert asked.params == ("tags", ["user:00007"])
    pending = as_interned(p.overlaps(TAGS, ["mine"]), INTERNED, [sets, known([["mine"]])])
    assert pending.sql == f'({asked.sql}) OR ("tags" = ANY(%s::bigint[]))'
    assert pending.params[2] == [set_number("tags", ["mine"])]


def test_lists_of_a_requested_element_are_cached_in_a_column_with_many() -> None:
    sets = many_lists()
    anonymous = p.overlaps(TAGS, ["Anonymous"])
    assert sets.unread_elements(anonymous) == ["Anonymous"]
    sets.store_elements("tags", [("Anonymous", [3])], NEWEST)
    assert sets.unread_elements(anonymous) == []
    asked = as_interned(anonymous, INTERNED, [sets])
    assert (asked.sql, asked.params) == ('"tags" = ANY(%s::bigint[])', ([3],))
    # A later list is read if it has the element.
    read = sets.unread()
    assert read.params[2] == ["Anonymous"]
    sets.store([(9, "tags", ["Anonymous", "Editor"]), (8, "tags", ["Editor"])], NEWEST + 2, read)
    assert as_interned(anonymous, INTERNED, [sets]).params == ([3, 9],)
    both = p.overlaps(TAGS, ["Anonymous", "Editor"])
    assert sets.unread_elements(both) == ["Editor"]
    assert "SELECT number" in as_interned(both, INTERNED, [sets]).sql
    sets.store_elements("tags", [("Editor", [8, 9])], NEWEST + 2)
    assert as_interned(both, INTERNED, [sets]).params == ([3, 8, 9],)
    assert as_interned(p.contains(TAGS, ["Anonymous", "Editor"]), INTERNED, [sets]).params == ([9],)
    assert "SELECT number" in as_interned(p.contains(TAGS, []), INTERNED, [sets]).sql


def test_element_of_very_many_lists_is_looked_up_and_not_requested_again() -> None:
    sets = many_lists()
    manager = p.overlaps(TAGS, ["Manager"])
    sets.store_elements("tags", [("Manager", list(range(NEWEST)))], NEWEST)
    assert sets.unread_elements(manager) == []
    assert "SELECT number" in as_interned(manager, INTERNED, [sets]).sql


def test_lists_read_during_an_update_are_not_cached() -> None:
    """Another thread has cached a list that the statement did not see."""
    sets = many_lists()
    sets.store_elements("tags", [("Anonymous", [3])], NEWEST - 1)
    assert sets.unread_elements(p.overlaps(TAGS, ["Anonymous"])) == ["Anonymous"]
    read = sets.unread()
    sets.store_elements("tags", [("Anonymous", [3])], NEWEST)
    sets.store([], NEWEST + 1, read)
    assert sets.unread_elements(p.overlaps(TAGS, ["Anonymous"])) == ["Anonymous"]


def test_elements_are_dropped_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is bounded for any number of users."""
    monkeypatch.setattr(sets_module, "MOST_NUMBERS", 20)
    sets = many_lists()
    for number in range(1000):
        sets.store_elements("tags", [(f"user:{number}", [number])], NEWEST)
    kept = [n for n in range(1000) if not sets.unread_elements(p.overlaps(TAGS, [f"user:{n}"]))]
    assert 999 in kept
    assert len(kept) <= 20


def test_the_number_of_a_list_never_changes() -> None:
    """Rows store it, in unknown databases."""
    assert set_number("allowed_roles", ["Anonymous", "Manager"]) == 9047464530590566051
    assert set_number("allowed_roles", ["Anonymous", "Manager"]) != set_number("tags", ["Anonymous", "Manager"])
    assert set_number("tags", ["a,b"]) != set_number("tags", ["a", "b"])
    assert -(2**63) <= set_number("tags", ["Ä"]) < 2**63
