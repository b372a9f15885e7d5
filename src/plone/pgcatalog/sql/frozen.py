"""Hashable stand-ins for the values of queries: equal ones mean the same."""

from collections.abc import Hashable
from DateTime import DateTime
from datetime import date
from datetime import datetime
from typing import Any


#: Types of values that say all about themselves by equality, within one type.
PLAIN = (int, float, bool, bytes, datetime, date, type(None))


def frozen(value: Any) -> Hashable:
    """Return *value*, of a query or a parameter of SQL, as part of a key.

    Raises TypeError if it says too little about itself.
    """
    kind = type(value)
    if kind is str:
        return kind.__str__(value)
    if kind is list or kind is tuple:
        return (kind, *map(frozen, value))
    if kind in PLAIN:
        return (kind, value)
    if kind is dict:
        return (kind, *((frozen(key), frozen(each)) for key, each in value.items()))
    if kind is DateTime:
        return (kind, value.micros(), value.timezone(), value.timezoneNaive())
    raise TypeError(f"no key for a value of type {kind.__name__}")
