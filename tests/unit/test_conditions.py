"""Conditions: what joins them, and what is known of all rows."""

from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any

import itertools
import re


NAMES = ("a", "b", "c")
COLUMNS = [Column(name, "integer") for name in NAMES]
FILLED = [has_value(column) for column in COLUMNS]
LEAVES = [
    *FILLED,
    *(condition.hidden() for condition in FILLED),
    *(Condition(f"{column.quoted} = %s", (1,)) for column in COLUMNS),
    NOTHING,
    EVERYTHING,
]
CONDITIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3).map(all_of), st.lists(parts, max_size=3).map(any_of), parts.map(lambda c: ~c)
    ),
    max_leaves=8,
)


def holds(condition: Condition, row: dict[str, int | None]) -> Any:
    """Return what PostgreSQL would say of *row*: True, False or None."""
    text = re.sub(r'"(\w)" IS NOT NULL', r'filled("\1")', condition.sql)
    text = re.sub(r'"(\w)" = %s', r'equal("\1")', text)
    text = text.replace("IS NOT TRUE", "!= T").replace("IS TRUE", "== T")
    text = text.replace("AND", "&").replace("OR", "|").replace("TRUE", "T").replace("FALSE", "F")
    names = {
        "filled": lambda name: Truth(row[name] is not None),
        "equal": lambda name: Truth(None if row[name] is None else row[name] == 1),
        "T": Truth(True),
        "F": Truth(False),
    }
    return eval(text, {"__builtins__": {}}, names).value


class Truth:
    """SQL's three values."""

    def __init__(self, value: bool | None) -> None:
        self.value = value

    def __and__(self, other: "Truth") -> "Truth":
        values = {self.value, other.value}
        return Truth(False if False in values else None if None in values else True)

    def __or__(self, other: "Truth") -> "Truth":
        values = {self.value, other.value}
        return Truth(True if True in values else None if None in values else False)

    def __eq__(self, other: object) -> "Truth":  # type: ignore[override]
        return Truth(self.value is True)

    def __ne__(self, other: object) -> "Truth":  # type: ignore[override]
        return Truth(self.value is not True)

    __hash__ = None  # type: ignore[assignment]


def without(condition: Condition, complete: set[str]) -> Condition:
    """Return *condition* without what it says of the columns *complete*."""
    return condition.changed(
        lambda part: EVERYTHING if isinstance(part, Predicate) and part.column.name in complete else part
    )


@given(CONDITIONS, st.sets(st.sampled_from(NAMES)))
def test_what_all_rows_have_need_not_be_asked(condition: Condition, complete: set[str]) -> None:
    needed = without(condition, complete)
    hidden = condition.changed(lambda part: part.hidden() if isinstance(part, Predicate) else part)
    for values in itertools.product(*((0, 1) if name in complete else (None, 0, 1) for name in NAMES)):
        row = dict(zip(NAMES, values, strict=True))
        expected = holds(condition, row) is True
        assert (holds(needed, row) is True) is expected
        assert (holds(hidden, row) is True) is expected


def test_nothing_is_left_of_what_all_rows_have() -> None:
    a, b, _ = FILLED
    equal = Condition('"a" = %s', (1,))

    def needed(condition: Condition) -> Condition:
        return without(condition, {"a"})

    assert needed(all_of([a, equal])) == equal
    assert needed(all_of([a, a.hidden()])) is EVERYTHING
    assert needed(any_of([a, equal])) is EVERYTHING
    assert needed(all_of([b, any_of([equal, all_of([a, b])])])) == all_of([b, any_of([equal, b])])
    untouched = all_of([b, equal])
    assert needed(untouched) is untouched
