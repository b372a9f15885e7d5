"""SQL as values: predicates, conditions and orders, their combination, facts about all rows, and literals of arrays."""

from datetime import datetime
from datetime import UTC
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.indexes import base
from plone.pgcatalog.query.bind import hide_unselective_indexes
from plone.pgcatalog.query.bind import SELECTIVE_SHARE
from plone.pgcatalog.sql import predicate as p
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.expression import all_of
from plone.pgcatalog.sql.expression import any_of
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.shares import Shares
from plone.pgcatalog.sql.values import array_of
from plone.pgcatalog.sql.values import FLOAT8_ARRAY
from plone.pgcatalog.sql.values import INT8_ARRAY
from plone.pgcatalog.sql.values import INT8_LIMIT
from plone.pgcatalog.sql.values import TEXT_ARRAY
from typing import Any

import itertools
import pytest
import re
import sqlite3


TYPE = Column("type", "text")
DAY = Column("day", "integer")
TIME = Column("time", "timestamptz")
SINCE = Column("since", "integer", is_period=True)
ROLES = Column("roles", "text[]")
NUMBERS = Column("roles", "bigint", is_interned=True)
TAGS = Column("tags", "text[]")
WORDS = Column("words", "tsvector", is_long=True)
A = p.equals(TYPE, "a")
TEXT = p.matches(WORDS, "'x'")


@pytest.mark.parametrize(
    ("condition", "sql", "params"),
    [
        (A, '"type" = %s', ("a",)),
        (p.any_value(TYPE, ("a", "b")), '"type" = ANY(%s::text[])', (["a", "b"],)),
        (p.compared(DAY, "<", 3), '"day" < %s', (3,)),
        (p.between(DAY, 1, 3), '"day" BETWEEN %s AND %s', (1, 3)),
        (p.below(TYPE, "/a"), '"type" = %s OR ("type" >= %s AND "type" < %s)', ("/a", "/a/", "/a0")),
        (p.overlaps(TAGS, ["a"]), '"tags" && %s::text[]', (["a"],)),
        (p.contains(Column("days", "integer[]"), [1]), '"days" @> %s::integer[]', ([1],)),
        (TEXT, '"words" @@ %s::tsquery', ("'x'",)),
        (p.has_value(TYPE), '"type" IS NOT NULL', ()),
        (p.is_flag(TYPE, True), '"type"', ()),
        (p.is_flag(TYPE, False), 'NOT "type"', ()),
        (p.equals(Column('ty"pe', "text"), 1), '"ty""pe" = %s', (1,)),
    ],
)
def test_a_predicate_is_rendered(condition: Condition, sql: str, params: tuple[Any, ...]) -> None:
    assert (condition.sql, condition.params) == (sql, params)
    assert condition == Condition(sql, params)


def test_and_or_and_not_are_rendered_with_their_values_in_order() -> None:
    opaque = Condition("lower(x) = %s", ("o",))
    condition = (A & opaque) | ~(TEXT & p.equals(DAY, 1))
    assert condition.sql == (
        '(("type" = %s) AND (lower(x) = %s)) OR ((("words" @@ %s::tsquery) AND ("day" = %s)) IS NOT TRUE)'
    )
    assert condition.params == ("a", "o", "'x'", 1)


@pytest.mark.parametrize("one", [A, Condition("x"), A & TEXT, NOTHING, EVERYTHING])
def test_nothing_and_everything_are_simplified(one: Condition) -> None:
    assert all_of([one, EVERYTHING]) is one
    assert all_of([EVERYTHING, NOTHING, one]) is NOTHING
    assert any_of([NOTHING, one]) is one
    assert any_of([one, NOTHING, EVERYTHING]) is EVERYTHING
    assert all_of([]) is EVERYTHING
    assert any_of([]) is NOTHING
    assert ~EVERYTHING is NOTHING
    assert ~NOTHING is EVERYTHING


def test_equal_conditions_have_the_same_sql_and_values() -> None:
    again = p.equals(TYPE, "a") & TEXT
    assert again == A & TEXT
    assert hash(again) == hash(A & TEXT)
    assert again != A
    assert p.equals(TYPE, "b") != A
    assert A != '"type" = %s'


def test_conjuncts_are_the_necessary_parts_of_a_condition() -> None:
    either, opaque = A | TEXT, Condition("x")
    assert list(((A & either) & (opaque & ~TEXT)).conjuncts()) == [A, either, opaque, ~TEXT]
    assert list(either.conjuncts()) == [either]


def test_columns_are_unknown_for_opaque_parts_without_a_declaration() -> None:
    assert ((A & TEXT) | ~A).columns == (TYPE, WORDS)
    assert (A & Condition("x")).columns is None
    assert (~(A | Condition("x"))).columns is None
    assert (A & Condition("x", (), (DAY,))).columns == (TYPE, DAY)
    assert EVERYTHING.columns == NOTHING.columns == ()


def test_comparison_of_long_values_is_costly() -> None:
    for condition in (TEXT, A & TEXT, A | TEXT, ~TEXT, A & ~(A | TEXT), Condition("x", is_costly=True)):
        assert condition.is_costly
    for condition in (A, p.has_value(WORDS), ~A & Condition("words @@ %s", ("x",)), NOTHING, EVERYTHING):
        assert not condition.is_costly


def test_order_is_rendered() -> None:
    assert [Order('"a"').sql, Order('"a"', descending=True).sql] == ['"a"', '"a" DESC']
    assert (Order('"day"', column=DAY).type, Order("lower(x)").type) == ("integer", None)


def test_names_imported_by_add_ons_are_stable() -> None:
    for one in (Column, Condition, EVERYTHING, NOTHING, all_of, any_of, Fragment):
        assert one in [getattr(base, name) for name in base.__all__]


# -- planning


def hidden(condition: Condition, shares: dict[str, float]) -> str:
    """Return the SQL of *condition* with hints for columns of whose rows *shares* have each of the values of the tests."""
    of_value = {name: dict.fromkeys(("a", "b", "r", "1", "7"), share) for name, share in shares.items()}
    changed = hide_unselective_indexes(condition, Shares(shares, of_value, BOUNDS))
    assert changed.params == condition.params
    assert changed.columns == condition.columns
    assert condition.is_costly or changed is condition
    return changed.sql


#: Twenty words, /00 to /19, and twenty days.
BOUNDS = {"type": [f"/{n:02}" for n in range(20)], "time": [f"2026-01-{n:02}T00:00:00" for n in range(1, 21)]}


def day(number: int) -> datetime:
    """Return noon of a day in January."""
    return datetime(2026, 1, number, 12, tzinfo=UTC)


MOST, FEW = 2 * SELECTIVE_SHARE, SELECTIVE_SHARE
HIDDEN_TYPE = """("type" || '') = %s"""
HIDDEN_ROLES = '("roles" || NULL::text[]) && %s::text[]'


@pytest.mark.parametrize(
    ("condition", "shares", "sql"),
    [
        (A, {"type": MOST}, HIDDEN_TYPE),
        (A, {"type": FEW}, '"type" = %s'),
        (A, {}, '"type" = %s'),
        (p.any_value(TYPE, ["a", "b"]), {"type": MOST}, """("type" || '') = ANY(%s::text[])"""),
        (p.any_value(NUMBERS, [7]), {}, '"roles" = ANY(%s::bigint[])'),
        (p.any_value(NUMBERS, [7]), {"roles": MOST}, '("roles" = ANY(%s::bigint[])) IS TRUE'),
        (p.overlaps(ROLES, ["r"]), {"roles": FEW}, '"roles" && %s::text[]'),
        (p.overlaps(TAGS, ["r"]), {}, '"tags" && %s::text[]'),
        (p.overlaps(TAGS, ["r"]), {"tags": MOST}, '("tags" || NULL::text[]) && %s::text[]'),
        (p.contains(ROLES, ["r"]), {"roles": MOST}, '"roles" @> %s::text[]'),
        (p.equals(DAY, 1), {"day": MOST}, '"day" = %s'),
        (p.compared(DAY, "<=", 1), {"day": MOST}, '"day" <= %s'),
        (p.compared(SINCE, "<=", 1), {}, '("since" <= %s) IS TRUE'),
        (p.below(TYPE, "/a"), {}, p.below(TYPE, "/a").sql),
        (p.below(TYPE, ""), {}, f"({p.below(TYPE, '').sql}) IS TRUE"),
        (p.between(TYPE, "/01", "/02"), {}, '"type" BETWEEN %s AND %s'),
        (p.between(TYPE, "/01", "/03"), {}, '("type" BETWEEN %s AND %s) IS TRUE'),
        (p.between(TYPE, "/01", "/03"), {"type": 0.5}, '"type" BETWEEN %s AND %s'),
        (p.compared(TIME, ">=", day(19)), {}, '"time" >= %s'),
        (p.compared(TIME, ">=", day(17)), {}, '("time" >= %s) IS TRUE'),
        # Neither end is selective, both are.
        (p.compared(TIME, ">=", day(9)) & p.compared(TIME, "<", day(10)), {}, '("time" >= %s) AND ("time" < %s)'),
        (
            p.compared(TIME, ">=", day(9)) | p.compared(TIME, "<", day(10)),
            {},
            '(("time" >= %s) IS TRUE) OR (("time" < %s) IS TRUE)',
        ),
        (p.has_value(TYPE), {"type": MOST}, '("type" IS NOT NULL) IS TRUE'),
        (Condition('"type" = %s', ("a",), (TYPE,)), {"type": MOST}, '"type" = %s'),
        (
            A | ~p.overlaps(ROLES, ["r"]),
            {"type": MOST, "roles": MOST},
            f"({HIDDEN_TYPE}) OR (({HIDDEN_ROLES}) IS NOT TRUE)",
        ),
    ],
)
def test_value_of_most_rows_is_compared_beside_long_values(condition: Any, shares: Any, sql: str) -> None:
    assert hidden(condition & TEXT, shares) == f'({sql}) AND ("words" @@ %s::tsquery)'
    assert hidden(condition, shares) == condition.sql


# -- tests for a value that every row has

SQLITE = sqlite3.connect(":memory:")
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
    """Return the result of *condition* for *row*: 1, 0 or None; SQLite has the three truth values of PostgreSQL."""
    text = condition.sql
    for name, value in row.items():
        text = text.replace(f'"{name}"', "NULL" if value is None else str(value))
    [(found,)] = SQLITE.execute(f"SELECT {text.replace('%s', '?')}", condition.params)
    return found


def without(condition: Condition, complete: set[str]) -> Condition:
    """Return *condition* without redundant tests of the columns *complete*."""
    return condition.changed(
        lambda part: EVERYTHING if isinstance(part, Predicate) and part.column.name in complete else part
    )


@given(CONDITIONS, st.sets(st.sampled_from(NAMES)))
def test_test_for_a_value_is_omitted_in_complete_columns(condition: Condition, complete: set[str]) -> None:
    needed = without(condition, complete)
    hidden = condition.changed(lambda part: part.hidden() if isinstance(part, Predicate) else part)
    for values in itertools.product(*((0, 1) if name in complete else (None, 0, 1) for name in NAMES)):
        row = dict(zip(NAMES, values, strict=True))
        # False and NULL exclude a row alike.
        expected = bool(holds(condition, row))
        assert [bool(holds(needed, row)), bool(holds(hidden, row))] == [expected, expected]


def test_condition_that_all_rows_fulfil_is_empty() -> None:
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


# -- lists become the literals of PostgreSQL's manual, or are left to psycopg


@pytest.mark.parametrize(
    ("values", "literal"),
    [
        (["a"], b'{"a"}'),
        (["a", "", "NULL"], b'{"a","","NULL"}'),
        (['say "x"', "back\\slash", "a,b", "{c}", " d "], b'{"say \\"x\\"","back\\\\slash","a,b","{c}"," d "}'),
        (["ü", "日本"], '{"ü","日本"}'.encode()),
    ],
)
def test_texts_become_quoted_literals(values: list[str], literal: bytes) -> None:
    assert array_of(values) == (literal, TEXT_ARRAY)


def test_numbers_become_literals() -> None:
    assert array_of([1, -2, INT8_LIMIT - 1, -INT8_LIMIT]) == (
        b"{1,-2,9223372036854775807,-9223372036854775808}",
        INT8_ARRAY,
    )
    floats = [0.0, -0.25, 1e300, float("inf"), float("nan")]
    assert array_of(floats) == (b"{0.0,-0.25,1e+300,inf,nan}", FLOAT8_ARRAY)


@pytest.mark.parametrize(
    "values",
    [
        *(
            [],
            [None],
            ["a", None],
            [1, "a"],
            [True],
            [1, 1.0],
            [b"a"],
            [INT8_LIMIT],
            [-INT8_LIMIT - 1],
            ["a\0b"],
            ["\0"],
        ),
        *(["\ud800"], [["a"]]),
    ],
)
def test_other_values_are_left_to_psycopg(values: list[Any]) -> None:
    assert array_of(values) is None


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_escaped_text_can_be_read_back(values: list[str]) -> None:
    found = array_of(values)
    assert found is not None
    # Without braces and escapes, each text is between quotes.
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"(?:,|$)', found[0].decode()[1:-1], re.S)
    assert [re.sub(r"\\(.)", r"\1", text, flags=re.S) for text in quoted] == values
