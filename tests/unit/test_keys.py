"""Laws of the text keys: they compare as the values do, and can be decoded."""

from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from DateTime.DateTime import DateTime
from decimal import Decimal
from enum import IntEnum
from enum import StrEnum
from fractions import Fraction
from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.indexes import keys
from typing import Any
from uuid import UUID
from zope.i18nmessageid import Message

import pytest


def aware(moment: datetime, minutes: int) -> datetime:
    return moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))


# All characters, lone surrogates too, and more often those used in keys.
characters = st.one_of(
    st.characters(exclude_categories=[]),
    st.sampled_from("\x00\x01\x02\x03\x04\x05az~\ud7ff\ud800\udfff\ue000\ue001\uffff"),
)
texts = st.text(characters, max_size=20)
numbers = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.decimals(-100, 100, places=2),
    st.sampled_from([0.1, Decimal("0.1"), -0.0, 5e-324, 1e308, 10**2000, Decimal("1E-9999")]),
)
days = st.dates()
local_times = st.datetimes()
moments = st.builds(aware, st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)), st.integers(-1439, 1439))
zope_dates = st.builds(
    DateTime, st.floats(-(2**36), 2**37), st.sampled_from(["UTC", "GMT+1", "GMT-7", "Europe/Berlin"])
)
scalars = [texts, numbers, days, local_times, moments, st.binary(max_size=20), st.uuids()]
sequences = st.one_of(
    *(st.tuples(scalar, scalar) for scalar in scalars),
    *(st.lists(scalar, max_size=3).map(tuple) for scalar in scalars),
    st.recursive(st.lists(texts, max_size=3), lambda items: st.lists(items, max_size=3)),
)


def two(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(strategy, strategy)


def key_of(value: Any) -> str:
    key = keys.encode_key(value)
    assert key is not None
    return key


@given(st.one_of(*map(two, scalars), *(two(st.lists(s, max_size=3)) for s in scalars)))
@example(("", "\x00"))
@example(("a", "a\x00"))
@example(("\ud800", "\ue000"))
@example(("\udfff", "\uffff"))
@example((-0.12, -0.123))
@example((Decimal("0.1"), 0.1))
@example((10**4299, 10**4300))
@example(([1], [1, -(10**10)]))
@example((["a"], ["a\x00"]))
@example(([["a"], "b"], [["a", "b"]]))
def test_order_and_equality_are_those_of_the_values(pair: tuple[Any, Any]) -> None:
    a, b = pair
    assert (key_of(a) == key_of(b)) is (a == b)
    if not keys.is_truncated(key_of(a)) and not keys.is_truncated(key_of(b)):
        try:
            less = a < b
        except TypeError:  # lists of different types: any order is right
            return
        assert (key_of(a) < key_of(b)) is less


@given(two(zope_dates))
def test_zope_dates_are_ordered_by_instant(pair: tuple[DateTime, DateTime]) -> None:
    a, b = pair
    assert (key_of(a) == key_of(b)) is (a == b)
    if a.micros() != b.micros():
        assert (key_of(a) < key_of(b)) is (a < b)


VALUES = st.one_of(*scalars, zope_dates, sequences, st.none())


@given(VALUES)
def test_key_fits_into_postgresql_and_can_be_decoded(value: Any) -> None:
    key = key_of(value)
    assert "\x00" not in key
    assert len(key.encode()) <= keys.MAX_BYTES
    assert keys.is_truncated(key) or keys.decode_key(key) == value


@given(st.one_of(texts, st.binary()), st.integers(1, 5), st.integers(300, 2000))
def test_a_long_value_keeps_its_identity_and_its_beginning(unit: Any, tail: int, times: int) -> None:
    value = unit * times
    key = key_of(value)
    assert len(key.encode()) <= keys.MAX_BYTES
    assert keys.encode_key(value) == key
    assert value.startswith(keys.decode_key(key))
    if keys.is_truncated(key):
        assert key != keys.encode_key(value + unit[:1] * tail)
        assert keys.decode_key(key)


@given(VALUES, st.one_of(*scalars, zope_dates))
def test_the_range_of_a_type_holds_its_keys_only(value: Any, other: Any) -> None:
    low, high = keys.type_range(key_of(value))
    inside = key_of(other) >= low and (high is None or key_of(other) < high)
    assert inside is (kind(value) == kind(other))


def kind(value: Any) -> Any:
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, datetime):
        return "local" if value.tzinfo is None else "moment"
    return type(value)


@given(numbers, texts)
def test_numbers_sort_before_strings(number: Any, text: str) -> None:
    assert key_of(number) < key_of(text)


class Size(IntEnum):
    SMALL = 1


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("news", "news"),
        ("Über", "Über"),
        ("a\tb", "a\tb"),
        (Message("news", "plone", default="News"), "news"),
        *((Colour.RED, "red"), ("", "\x03"), ("\x03a", "\x03\x03a"), ("a\x00", "a\x01\x03"), (10, "\x02n>a21")),
        (10.0, "\x02n>a21"),
        (Decimal("10.00"), "\x02n>a21"),
        *((True, "\x02n>a11"), (Size.SMALL, "\x02n>a11"), (0, "\x02n="), (-0.0, "\x02n="), (-42, "\x02n<Z757~")),
        *((0.5, "\x02n>a05"), (0.0625, "\x02n>Z8625")),
        (float("-inf"), "\x02n<!"),
        (Decimal("Infinity"), "\x02n>~"),
        (date(2020, 2, 29), "\x02d2020-02-29"),
        (datetime(2020, 2, 29, 12), "\x02l2020-02-29T12:00:00.000000"),
        (datetime(2020, 2, 29, 12, tzinfo=UTC), "\x02i2020-02-29T12:00:00.000000"),
        (DateTime(0, "UTC"), "\x02z=\x01\x02UTC"),
        (UUID(int=10), "\x02u0000000000000000000000000000000a"),
        (b"a\x00\xff", "\x02ba\x01\x03ÿ"),
        ((), "\x02t"),
        (("a", 0), "\x02ta\x01\x02\x02n=\x01\x02"),
        ([("a",)], "\x02s\x02ta\x01\x03\x02\x01\x02"),
        (None, "\x020"),
    ],
)
def test_format_of_keys_is_stable(value: Any, key: str) -> None:
    """The stored format: a change needs a rebuild of every catalog."""
    assert keys.encode_key(value) == key


def test_numbers_are_decoded_into_their_simplest_type() -> None:
    values = (10.0, True, Decimal("0.5"), Decimal("0.1"), 10**30, Decimal("1E+999999999"))
    decoded = [keys.decode_key(key_of(value)) for value in values]
    assert decoded == [10, 1, 0.5, Decimal("0.1"), 10**30, values[-1]]
    # A huge exponent is not expanded.
    assert [type(value) for value in decoded] == [int, int, float, Decimal, int, Decimal]


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), Decimal("NaN"), Decimal("sNaN"), 1j, Fraction(1, 3)),
        *({}, set(), frozenset("a"), object(), ("a", {}), ENDLESS),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_a_value_without_a_place_in_an_order_has_no_key(value: Any) -> None:
    assert keys.encode_key(value) is None


def test_truncated_sequence_loses_its_last_elements_and_a_number_its_last_digits() -> None:
    assert keys.decode_key(key_of(("a", "b" * 700, "c" * 700))) == ("a", "b" * 700)
    value = 10**2000 + 1
    assert keys.is_truncated(key_of(value))
    assert [keys.decode_key(key_of(each)) for each in (value, -value)] == [10**2000, -(10**2000)]
