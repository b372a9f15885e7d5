"""Lists that catalogs keep by number: which numbers a condition asks for."""

from plone.pgcatalog.database.sets import in_numbers
from plone.pgcatalog.database.sets import KnownSets
from plone.pgcatalog.database.sets import MANY_LISTS
from plone.pgcatalog.sql import predicate as p
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.condition import Condition
from plone.pgcatalog.sql.condition import NOTHING
from plone.pgcatalog.sql.sets import set_number
from typing import Any

import pytest


TAGS = Column("tags", "text[]", can_be_interned=True)
OTHER = Column("other", "text[]", can_be_interned=True)
INTERNED = {"tags": TAGS.interned()}
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
    assert numbers(in_numbers(part, INTERNED, [known(LISTS)])) == expected
    # Those in the database, and those to come.
    assert numbers(in_numbers(part, INTERNED, [known(LISTS[:2]), known(LISTS[2:])])) == expected


def test_what_is_not_interned_is_asked_as_it_is() -> None:
    sets = [known(LISTS)]
    for part in (p.overlaps(OTHER, ["a"]), p.equals(Column("type", "text"), "a"), Condition("TRUE")):
        assert in_numbers(part, INTERNED, sets) is part
    # Nor is what has been changed already.
    once = in_numbers(p.overlaps(TAGS, ["a"]), INTERNED, sets)
    assert in_numbers(once, INTERNED, sets) is once
    assert in_numbers(p.has_value(TAGS), INTERNED, sets).sql == '"tags" IS NOT NULL'


def test_an_excluded_list_that_there_is_not_excludes_nothing() -> None:
    excluded = ~p.overlaps(TAGS, ["z"])
    assert excluded.changed(lambda part: in_numbers(part, INTERNED, [known(LISTS)])).sql == "TRUE"


def test_of_a_column_with_many_lists_nothing_is_kept() -> None:
    """20,000 users with folders of their own: PostgreSQL looks for their lists."""
    lists = [["Manager", f"user:{i:05}"] for i in range(MANY_LISTS + 1)]
    sets = known(lists)
    sets.learn([(1, "other", ["a"])], newest=sets.newest + 1)
    assert sets.many == {"tags"}
    assert sets.unread().params == (sets.newest, ["tags"], MANY_LISTS + 1)
    assert not sets.find(p.overlaps(TAGS, ["Manager"]))
    asked = in_numbers(p.overlaps(TAGS, ["user:00007"]), INTERNED, [sets])
    assert asked.sql == ('"tags" IN (SELECT number FROM pgcatalog_sets WHERE name = %s AND "vals" && %s::text[])')
    assert asked.params == ("tags", ["user:00007"])
    pending = in_numbers(p.overlaps(TAGS, ["mine"]), INTERNED, [sets, known([["mine"]])])
    assert pending.sql == f'({asked.sql}) OR ("tags" = ANY(%s::bigint[]))'
    assert pending.params[2] == [set_number("tags", ["mine"])]


def test_the_number_of_a_list_never_changes() -> None:
    """Rows hold it, in databases of which nobody knows."""
    assert set_number("allowed_roles", ["Anonymous", "Manager"]) == 9047464530590566051
    assert set_number("allowed_roles", ["Anonymous", "Manager"]) != set_number("tags", ["Anonymous", "Manager"])
    assert set_number("tags", ["a,b"]) != set_number("tags", ["a", "b"])
    assert -(2**63) <= set_number("tags", ["Ä"]) < 2**63
