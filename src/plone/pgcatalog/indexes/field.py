"""FieldIndex: one value of any type per object."""

from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.keys import decode_key
from plone.pgcatalog.indexes.keys import encode_key
from plone.pgcatalog.indexes.keys import is_truncated
from plone.pgcatalog.indexes.unindex import encode_keys
from plone.pgcatalog.indexes.unindex import MISSING
from plone.pgcatalog.indexes.unindex import text_range
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.sql.predicate import equal_to_any
from typing import Any


class FieldIndexTranslator(UnIndexTranslator):
    """A text column of keys (see ``keys``) with a btree."""

    meta_type = "FieldIndex"

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "text"),)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        return (SQLIndex(self.base, f"({self.column.quoted})", column=self.base),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        value = self.datum(obj)
        if value is MISSING:
            return None
        key = text_key(value, report)
        return None if key is None else (key,)

    def match_any(self, keys: list[Any]) -> Condition:
        return equal_to_any(self.column, encode_keys(keys))

    def match_all(self, keys: list[Any]) -> Condition:
        # A key that was never indexed is found nowhere; two different ones are never at one place.
        if any(encode_key(key) is None for key in keys) or len(encode_keys(keys)) > 1:
            return NOTHING
        return self.match_any(keys)

    def match_range(self, low: Any, high: Any) -> Condition:
        return text_range(self.column, low, high)

    def entry(self, values: Values) -> Any:
        return decode_key(values[0])

    def key(self, value: Any) -> Any:
        return decode_key(value)


def text_key(value: Any, report: Report) -> str | None:
    """Return the key of an object's *value*, None if it has none; *report* what is lost."""
    key = encode_key(value)
    if key is None:
        report(f"a value of type {type(value).__name__} has no order and is left out")
    elif is_truncated(key):
        report("a long value is found as a whole, but sorted by its beginning only")
    return key
