"""Lists that catalogs keep by number: which numbers a condition asks for."""

from plone.pgcatalog.database import sets as sets_module
from plone.pgcatalog.database.sets import KnownSets
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
#: One list more than a process keeps.
NEWEST = MANY_LISTS + 1
LISTS = [["a"], ["a", "b"], ["b", "c"], ["c"], ["d", "e", "f"]]


def known(lists: list[list[str]], name: str = "tags") -> KnownSets:
    sets = KnownSets()
    sets.learn([(set_number(name, each), name, each) for each in lists], newest=len(lists))
    return sets


def numbers(condition: Condition) -> set[int]:
    """Return the numbers that *condition* asks for."""
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
def test_a_condition_asks_for_the_numbers_of_the_lists_it_is_true_of(part: Condition, law: Any) -> None:
    expected = {set_number("tags", each) for each in LISTS if law(each)}
    assert numbers(as_interned(part, INTERNED, [known(LISTS)])) == expected
    # Those in the database, and those to come.
    assert numbers(as_interned(part, INTERNED, [known(LISTS[:2]), known(LISTS[2:])])) == expected


def test_what_is_not_interned_is_asked_as_it_is() -> None:
    sets = [known(LISTS)]
    for part in (p.overlaps(OTHER, ["a"]), p.equals(Column("type", "text"), "a"), Condition("TRUE")):
        assert as_interned(part, INTERNED, sets) is part
    # Nor is what has been changed already.
    once = as_interned(p.overlaps(TAGS, ["a"]), INTERNED, sets)
    assert as_interned(once, INTERNED, sets) is once
    assert as_interned(p.has_value(TAGS), INTERNED, sets).sql == '"tags" IS NOT NULL'


def test_an_excluded_list_that_there_is_not_excludes_nothing() -> None:
    excluded = ~p.overlaps(TAGS, ["z"])
    assert excluded.changed(lambda part: as_interned(part, INTERNED, [known(LISTS)])).sql == "TRUE"


def test_of_a_column_with_many_lists_nothing_is_kept() -> None:
    """20,000 users with folders of their own: PostgreSQL looks for their lists."""
    lists = [["Manager", f"user:{i:05}"] for i in range(MANY_LISTS + 1)]
    sets = known(lists)
    sets.learn([(1, "other", ["a"])], newest=sets.newest + 1)
    assert sets.partly_known == {"tags"}
    assert sets.unread().params == (sets.newest, ["tags"], [], MANY_LISTS + 1)
    assert not sets.numbers_of(p.overlaps(TAGS, ["Manager"]))
    asked = as_interned(p.overlaps(TAGS, ["user:00007"]), INTERNED, [sets])
    assert asked.sql == ('"tags" + 0 IN (SELECT number FROM pgcatalog_sets WHERE name = %s AND "vals" && %s::text[])')
    assert asked.params == ("tags", ["user:00007"])
    pending = as_interned(p.overlaps(TAGS, ["mine"]), INTERNED, [sets, known([["mine"]])])
    assert pending.sql == f'({asked.sql}) OR ("tags" = ANY(%s::bigint[]))'
    assert pending.params[2] == [set_number("tags", ["mine"])]


def many_lists() -> KnownSets:
    """Return what a process knows of a column with more lists than it keeps."""
    return known([["Manager", f"user:{i:05}"] for i in range(NEWEST)])


def test_of_a_column_with_many_lists_those_of_an_element_are_kept_once_asked_for() -> None:
    sets = many_lists()
    anonymous = p.overlaps(TAGS, ["Anonymous"])
    assert sets.unread_elements(anonymous) == ["Anonymous"]
    sets.learn_elements("tags", [("Anonymous", [3])], NEWEST)
    assert sets.unread_elements(anonymous) == []
    asked = as_interned(anonymous, INTERNED, [sets])
    assert (asked.sql, asked.params) == ('"tags" = ANY(%s::bigint[])', ([3],))
    # A list that comes later is read if it has the element.
    read = sets.unread()
    assert read.params[2] == ["Anonymous"]
    sets.learn([(9, "tags", ["Anonymous", "Editor"]), (8, "tags", ["Editor"])], NEWEST + 2, read)
    assert as_interned(anonymous, INTERNED, [sets]).params == ([3, 9],)
    both = p.overlaps(TAGS, ["Anonymous", "Editor"])
    assert sets.unread_elements(both) == ["Editor"]
    assert "SELECT number" in as_interned(both, INTERNED, [sets]).sql
    sets.learn_elements("tags", [("Editor", [8, 9])], NEWEST + 2)
    assert as_interned(both, INTERNED, [sets]).params == ([3, 8, 9],)
    assert as_interned(p.contains(TAGS, ["Anonymous", "Editor"]), INTERNED, [sets]).params == ([9],)
    assert "SELECT number" in as_interned(p.contains(TAGS, []), INTERNED, [sets]).sql


def test_an_element_of_very_many_lists_is_looked_for_and_not_asked_for_again() -> None:
    sets = many_lists()
    manager = p.overlaps(TAGS, ["Manager"])
    sets.learn_elements("tags", [("Manager", list(range(NEWEST)))], NEWEST)
    assert sets.unread_elements(manager) == []
    assert "SELECT number" in as_interned(manager, INTERNED, [sets]).sql


def test_what_was_read_beside_a_newer_list_is_not_kept() -> None:
    """Another thread has met a list that the statement did not see."""
    sets = many_lists()
    sets.learn_elements("tags", [("Anonymous", [3])], NEWEST - 1)
    assert sets.unread_elements(p.overlaps(TAGS, ["Anonymous"])) == ["Anonymous"]
    read = sets.unread()
    sets.learn_elements("tags", [("Anonymous", [3])], NEWEST)
    sets.learn([], NEWEST + 1, read)
    assert sets.unread_elements(p.overlaps(TAGS, ["Anonymous"])) == ["Anonymous"]


def test_elements_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many users as one likes take no more memory."""
    monkeypatch.setattr(sets_module, "MOST_NUMBERS", 20)
    sets = many_lists()
    for number in range(1000):
        sets.learn_elements("tags", [(f"user:{number}", [number])], NEWEST)
    kept = [n for n in range(1000) if not sets.unread_elements(p.overlaps(TAGS, [f"user:{n}"]))]
    assert 999 in kept
    assert len(kept) <= 20


def test_the_number_of_a_list_never_changes() -> None:
    """Rows hold it, in databases of which nobody knows."""
    assert set_number("allowed_roles", ["Anonymous", "Manager"]) == 9047464530590566051
    assert set_number("allowed_roles", ["Anonymous", "Manager"]) != set_number("tags", ["Anonymous", "Manager"])
    assert set_number("tags", ["a,b"]) != set_number("tags", ["a", "b"])
    assert -(2**63) <= set_number("tags", ["Ä"]) < 2**63
