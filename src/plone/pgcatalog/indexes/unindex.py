"""The common part of all indexes built on ZCatalog's ``UnIndex``: the query dialect and the indexed value.

The rules are those of ``Products.PluginIndexes.unindex.UnIndex`` (``query_index``, ``_index_object``).  The real
``IndexQuery`` reads the options, and the real index converts the values; only the set operations are implemented here,
as SQL.
"""

from abc import abstractmethod
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.keys import encode_key
from plone.pgcatalog.indexes.keys import type_range
from plone.pgcatalog.sql.predicate import compared
from plone.pgcatalog.sql.predicate import has_value
from Products.PluginIndexes.unindex import _marker
from Products.PluginIndexes.util import safe_callable
from Products.ZCatalog.query import IndexQuery
from typing import Any


#: Result of ``UnIndex._get_object_datum`` for an object without the attribute.
MISSING = _marker


def parse(index: Any, query: Mapping[str, Any]) -> Any:
    """Return the ``IndexQuery`` for *index*; its ``keys`` are None if *query* does not name the index.

    Raises ValueError for an option or operator the index does not allow.
    """
    return IndexQuery(query, index.id, index.query_options, index.operators, index.useOperator)


class UnIndexTranslator(IndexTranslator):
    """Compiles the dialect of ``UnIndex.query_index``; subclasses define the comparisons with their column."""

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for *query*, None if it does not name this index.

        Raises ValueError for options that the index does not allow and for a range without values, and the exceptions
        of the real index's conversion for a value that it does not accept.
        """
        record = parse(self.index, query)
        if record.keys is None:
            return None
        keys = [self.convert_key(key) for key in record.keys]
        excluded = [self.convert_key(key) for key in record.get("not") or ()]
        matching = self._find(keys, record, bool(excluded))
        return matching & ~self._match_any(excluded)

    def _find(self, keys: list[Any], record: Any, with_not: bool) -> Condition:
        words = range_words(record)
        if with_not and not keys:
            # "not" alone also finds rows without a value, unless the query has a range.
            return EVERYTHING if words is None else self.has_value()
        if words is not None:
            return self._range(keys, words)
        if record.operator == "and":
            keys = [key for key in keys if key is not None]
            return self.match_all(keys) if keys else NOTHING
        return self._match_any(keys)

    def _match_any(self, keys: list[Any]) -> Condition:
        # UnIndex never looks up None, which has no order among other values.
        keys = [key for key in keys if key is not None]
        return self.match_any(keys) if keys else NOTHING

    def _range(self, keys: list[Any], words: Sequence[str]) -> Condition:
        low = min(keys) if "min" in words else None
        high = max(keys) if "max" in words else None
        # UnIndex tests `if hi:`, so 0 or "" is no upper end; and a range of unknown words finds all rows with a value.
        high = high or None
        if low is None and high is None:
            return self.has_value()
        return self.match_range(low, high)

    def convert_key(self, key: Any) -> Any:
        """Return the *key* of a query in the form in which the index stores values; None is never looked up."""
        return self.index._convert(key)

    def match_key(self, key: Any) -> Condition:
        return self._match_any([key])

    def order_by(self) -> tuple[str, ...]:
        return (self.column.quoted,)

    def has_value(self) -> Condition:
        """Return the condition for rows that have a value in this index."""
        return has_value(self.column)

    @abstractmethod
    def match_any(self, keys: list[Any]) -> Condition:
        """Return the condition for rows with at least one of the converted *keys* (never empty)."""

    def match_all(self, keys: list[Any]) -> Condition:
        """Return the condition for rows with each of the converted *keys* (never empty)."""
        return all_of(self.match_any([key]) for key in keys)

    @abstractmethod
    def match_range(self, low: Any, high: Any) -> Condition:
        """Return the condition for rows with a value from *low* to *high*; one of them may be None."""

    def datum(self, obj: Any) -> Any:
        """Return the value that the real index would store for *obj*, MISSING if there is no value.

        An index of several attributes indexes them in turn, and each replaces the one before: the last attribute
        counts, whether it has a value or not; only an earlier 0 or "" survives a later None.
        """
        state = MISSING
        for name in self.index.getIndexSourceNames():
            datum = self.index._get_object_datum(obj, name)
            if datum is None:
                state = MISSING if state else state
                continue
            datum = self.convert_datum(datum)
            # MISSING is an empty list in UnIndex, so an empty list is no value either.
            if datum != state:
                state = datum
        return state

    def convert_datum(self, datum: Any) -> Any:
        """Return the real index's conversion of an object's *datum*, MISSING if there is no value."""
        return self.index._convert(datum, default=MISSING)


def range_words(record: Any) -> Sequence[str] | None:
    """Return the words (``min``, ``max``) of the range in *record*, None if there is no range.

    The range is ``range="min:max"`` or, in old queries, ``usage="range:min:max"``.
    """
    if usage := record.get("usage"):
        operation, *words = usage.lower().split(":")
        return words if operation == "range" else None
    if text := record.get("range"):
        return [word for word in ("min", "max") if word in text]
    return None


def called(value: Any) -> Any:
    """Return *value*, or the result of calling it if it is a method, as ZCatalog reads the values of an object."""
    return value() if safe_callable(value) else value


def encode_keys(keys: Iterable[Any]) -> list[str]:
    """Return the distinct text keys of *keys* without those that cannot be indexed.

    Sorted, because the order of *keys* does not change a result, and equal statements share a cache entry.
    """
    return sorted({text for key in keys if (text := encode_key(key)) is not None})


def text_range(column: Column, low: Any, high: Any) -> Condition:
    """Return the condition that the text key in *column* lies from *low* to *high*; see ``text_ends``."""
    ends = text_ends(low, high)
    return NOTHING if ends is None else all_of(compared(column, operator, end) for operator, end in ends)


def text_ends(low: Any, high: Any) -> list[tuple[str, str]] | None:
    """Return (operator, text key) for both ends of the range from *low* to *high*, None if an end cannot be indexed.

    One of them may be None; the range then ends where values of another type begin.
    """
    keys = [None if end is None else encode_key(end) for end in (low, high)]
    ends_with_key = [key for key in keys if key is not None]
    if len(ends_with_key) < (low is not None) + (high is not None):
        return None  # an end that cannot be indexed has no place in the order
    first, last = type_range(ends_with_key[0])
    ends = [(">=", keys[0] or first)]
    if keys[1]:
        ends.append(("<=", keys[1]))
    elif last:
        ends.append(("<", last))
    return ends
