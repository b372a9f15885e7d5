"""BooleanIndex and GopipIndex."""

from plone.folder.nogopip import GopipIndex
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.simple import BooleanIndexTranslator
from plone.pgcatalog.indexes.simple import GopipIndexTranslator
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from types import SimpleNamespace
from typing import Any

import pytest


boolean = BooleanIndexTranslator(BooleanIndex("x"), "x")
gopip = GopipIndexTranslator(GopipIndex("x", caller=SimpleNamespace(_catalog=None)), "x")


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def test_schema() -> None:
    assert boolean.columns() == (Column("x", "boolean"),)
    assert boolean.sql_indexes() == ()
    assert boolean.order_by() == ('"x"',)


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (1, True), ("x", True), (False, False), (None, False), ("", False)]
)
def test_value(value: Any, expected: bool) -> None:
    assert boolean.extract(SimpleNamespace(x=value), refused) == (expected,)


def test_no_attribute_is_no_value() -> None:
    assert boolean.extract(SimpleNamespace(), refused) is None


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        *((True, '"x"'), (1, '"x"'), ("False", '"x"'), (object(), '"x"'), ([[]], 'NOT "x"')),
        *((False, 'NOT "x"'), (0, 'NOT "x"'), (None, 'NOT "x"'), ("", 'NOT "x"')),
        *(([False], 'NOT "x"'), ([True, False], '"x"'), ((0, 1), 'NOT "x"')),
        ({"query": [False]}, 'NOT "x"'),
    ],
)
def test_the_first_value_counts(query: Any, sql: str) -> None:
    condition = boolean.where({"x": query})
    assert condition is not None
    assert (condition.sql, condition.params) == (sql, ())


def test_no_value_finds_nothing() -> None:
    assert boolean.where({"x": []}) is NOTHING
    assert boolean.where({"y": True}) is None


@pytest.mark.parametrize("option", ["not", "range", "operator"])
def test_options_are_refused(option: str) -> None:
    with pytest.raises(ValueError, match=option):
        boolean.where({"x": {"query": True, option: "or"}})


def test_entry_and_key() -> None:
    assert (boolean.entry((True,)), type(boolean.entry((True,)))) == (1, int)
    assert boolean.key(False) is False


def test_gopip_stores_and_finds_nothing_but_sorts() -> None:
    assert gopip.columns() == ()
    assert gopip.sql_indexes() == ()
    assert gopip.extract(SimpleNamespace(x=1), refused) is None
    assert gopip.where({"x": 1}) is None
    assert gopip.order_by() == ()
    assert gopip.entry(()) == []
    assert gopip.key_expression() is None
