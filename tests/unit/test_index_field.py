"""FieldIndex and UUIDIndex: columns and values."""

from Acquisition import Explicit
from Acquisition import Implicit
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.indexes.simple import UUIDIndexTranslator
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
from types import SimpleNamespace
from typing import Any

import pytest


field = FieldIndexTranslator(FieldIndex("x"), "x_column")
uuid = UUIDIndexTranslator(UUIDIndex("x"), "x")


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def test_schema() -> None:
    assert field.columns() == (Column("x_column", "text"),)
    assert field.sql_indexes() == (SQLIndex("x_column", '("x_column")', column="x_column"),)
    assert field.order_by() == ('"x_column"',)
    assert field.key_expression() == '"x_column"'


@pytest.mark.parametrize(
    ("value", "values"),
    [
        ("a", ("a",)),
        ("", ("\x03",)),
        (0, ("\x02n=",)),
        (lambda: "called", ("called",)),
        (("a", 1), ("\x02ta\x01\x02\x02n>a11\x01\x02",)),
        (None, None),
        ([], None),
    ],
)
def test_value(value: Any, values: Any) -> None:
    assert field.extract(SimpleNamespace(x=value), refused) == values


def test_no_attribute_is_no_value() -> None:
    assert field.extract(SimpleNamespace(), refused) is None


@pytest.mark.parametrize("error", [AttributeError, TypeError])
def test_an_attribute_error_is_no_value(error: type[Exception]) -> None:
    def method() -> None:
        raise error

    assert field.extract(SimpleNamespace(x=method), refused) is None


def test_another_error_propagates() -> None:
    def method() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        field.extract(SimpleNamespace(x=method), refused)


def test_what_cannot_be_held_is_reported() -> None:
    reports: list[str] = []
    assert field.extract(SimpleNamespace(x={}), reports.append) is None
    long = field.extract(SimpleNamespace(x="long" * 22_000), reports.append)
    assert long is not None
    assert len(long[0]) == 900
    assert reports == [
        "a value of type dict has no order and is left out",
        "a long value is found as a whole, but sorted by its beginning only",
    ]
    condition = field.where({"x": "long" * 22_000})
    assert condition is not None
    assert condition.params == long


def test_entry_and_key() -> None:
    assert field.entry(("\x02n>a1425",)) == 4.25
    assert field.entry(("a",)) == "a"
    assert field.key("\x02n>a21") == 10


def test_uuid_is_not_acquired() -> None:
    class Parent(Implicit):
        x = "parent's"

    class Child(Implicit):
        pass

    class Stranger(Explicit):
        x = "own"

    assert field.extract(Child().__of__(Parent()), refused) == ("parent's",)
    assert uuid.extract(Child().__of__(Parent()), refused) is None
    assert uuid.extract(Stranger().__of__(Parent()), refused) == ("own",)


def test_uuid_query() -> None:
    condition = uuid.where({"x": ["a", "b"]})
    assert condition is not None
    assert (condition.sql, condition.params) == ('"x" = ANY(%s::text[])', (["a", "b"],))
    with pytest.raises(ValueError):
        uuid.where({"x": {"query": "a", "operator": "or"}})
