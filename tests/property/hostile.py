"""Strategies for values that content and its indexers should not have.

Each is a function without arguments that returns a new value for each catalog: a generator, or a hostile object.
"""

from collections.abc import Callable
from DateTime import DateTime
from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from decimal import Decimal
from hypothesis import strategies as st
from tests.integration.bad_values import Hostile
from tests.integration.bad_values import Odd
from typing import Any

import Missing


Maker = Callable[[], Any]


def failing(*names: str) -> type:
    """Return a class of objects whose methods *names* raise."""

    def fail(self: Any, *args: Any) -> Any:
        raise RuntimeError("no answer")

    return type("Failing", (Odd,), dict.fromkeys(names, fail))


#: Methods that may raise; including __call__, which the catalogs do call.
REFUSALS = ("__str__", "__eq__", "__hash__", "__lt__", "__bool__", "__len__", "__iter__", "__call__", "__float__")
ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))

texts = st.one_of(
    st.text(max_size=30),
    st.text(st.characters(categories=("Cc", "Cf", "Cs", "Zs", "Lo")), max_size=10),
    st.sampled_from(["\0", "\ud800", "a\0b", "x" * 3000, "ü" * 20_000, "😀", "%s", "%", "\\", "'", "NULL", "{}"]),
)
numbers = st.one_of(
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.decimals().map(Decimal),
    st.booleans(),
    # For NaN and infinite parts zodb-json-codec stores null, and the object cannot be loaded again.
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)
dates = st.one_of(
    st.datetimes(),
    st.datetimes(timezones=ZONES),
    st.dates(),
    st.floats(-1e14, 1e14).map(DateTime),
    st.sampled_from([datetime.min, datetime.max, date.max, DateTime("9999/12/31 UTC"), DateTime("0001/01/01 UTC")]),
)
scalars = st.one_of(st.none(), texts, numbers, dates, st.binary(max_size=20), st.just(Missing.Value))

#: Values that can be shared by several catalogs and the storage.
plain = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(texts, inner, max_size=4),
        st.sets(st.one_of(texts, st.integers()), max_size=4),
    ),
    max_leaves=12,
)


def nested(levels: int, value: Any) -> Any:
    for _ in range(levels):
        value = [value]
    return value


odd: st.SearchStrategy[Maker] = st.one_of(
    st.sampled_from([Odd, Hostile]),
    st.sets(st.sampled_from(REFUSALS), min_size=1).map(lambda names: failing(*sorted(names))),
    st.lists(scalars, max_size=3).map(lambda values: lambda: (v for v in values)),
    st.lists(scalars, max_size=3).map(lambda values: lambda: [*values, Odd()]),
    st.tuples(st.integers(1, 400), scalars).map(lambda pair: lambda: nested(*pair)),
    st.sampled_from([lambda: range(3), lambda: iter("abc"), lambda: bytearray(b"x"), lambda: object, lambda: Ellipsis]),
)

makers: st.SearchStrategy[Maker] = st.one_of(plain.map(lambda value: lambda: value), odd)
