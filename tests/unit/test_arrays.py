"""Lists become the literals of PostgreSQL's manual, or are left to psycopg."""

from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.sql.values import array_of
from plone.pgcatalog.sql.values import FLOAT8_ARRAY
from plone.pgcatalog.sql.values import INT8_ARRAY
from plone.pgcatalog.sql.values import INT8_LIMIT
from plone.pgcatalog.sql.values import TEXT_ARRAY
from typing import Any

import pytest


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


def test_integers_become_literals() -> None:
    assert array_of([1, -2, INT8_LIMIT - 1, -INT8_LIMIT]) == (
        b"{1,-2,9223372036854775807,-9223372036854775808}",
        INT8_ARRAY,
    )


def test_floats_become_literals() -> None:
    values = [0.0, -0.25, 1e300, float("inf"), float("nan")]
    assert array_of(values) == (b"{0.0,-0.25,1e+300,inf,nan}", FLOAT8_ARRAY)


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
    assert elements(found[0].decode()) == values


def elements(literal: str) -> list[str]:
    """Return the texts of an array literal whose elements are all quoted."""
    found: list[str] = []
    characters = iter(literal[1:-1])
    for character in characters:
        if character == ",":
            continue
        assert character == '"'
        text = ""
        while (each := next(characters)) != '"':
            text += next(characters) if each == "\\" else each
        found.append(text)
    return found
