"""DateRangeIndex: the period in which an object is valid, such as Plone's effectiveRange.

And DateRangeInRangeIndex of the add-on Products.DateRangeInRangeIndex: periods that lie, in part, between two dates.
"""

from collections.abc import Hashable
from collections.abc import Mapping
from DateTime import DateTime
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import StoresNothing
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.date import PARSE_ERRORS
from plone.pgcatalog.indexes.unindex import called
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.sql.predicate import compared
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.values import frozen
from Products.PluginIndexes.util import MAX32
from typing import Any


#: Open ends, so that no query needs an OR; the real index's own limits for other values.
ALWAYS_SINCE = -MAX32
ALWAYS_UNTIL = MAX32


class DateRangeIndexTranslator(IndexTranslator):
    """Two integer columns, ``<base>_since`` and ``<base>_until``, in minutes since 1970."""

    meta_type = "DateRangeIndex"

    @classmethod
    def cache_key(cls, index: Any, value: Any) -> Hashable:
        """Return the key of *value*; all times within a minute share one."""
        return (DateTime, index._convertDateTime(value)) if type(value) is DateTime else frozen(value)

    def columns(self) -> tuple[Column, ...]:
        return (
            Column(f"{self.base}_since", "integer", is_period=True),
            Column(f"{self.base}_until", "integer", is_period=True),
        )

    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return both ends; an object without dates is always valid, as in ZCatalog."""
        if self.index._since_field is None:
            return None
        since = self._end(obj, self.index._since_field, report)
        until = self._end(obj, self.index._until_field, report)
        return (
            ALWAYS_SINCE if since is None else since,
            ALWAYS_UNTIL if until is None else until,
        )

    def _end(self, obj: Any, field: str, report: Report) -> int | None:
        value = called(getattr(obj, field, None))
        try:
            minutes = self.index._convertDateTime(value)
        except PARSE_ERRORS:
            report(f"{field} is not a date or out of range, and counts as an open end")
            return None
        return None if minutes is None else int(minutes)

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for ranges around the first date in *query*.

        A date outside the index's floor and ceiling finds every object.  Raises IndexError for an empty list,
        OverflowError for a date beyond 32 bits, and the exceptions of ``DateTime`` for text that is no date.
        """
        record = parse(self.index, query)
        if record.keys is None:
            return None
        since, until = self.columns()
        minutes = self.index._convertDateTime(record.keys[0])
        if minutes is None:
            return has_value(since)
        return compared(since, "<=", minutes) & compared(until, ">=", minutes)

    def order_by(self) -> tuple[str, ...]:
        return tuple(column.quoted for column in self.columns())

    def entry(self, values: Values) -> tuple[int | None, int | None]:
        since, until = values
        return (
            None if since == ALWAYS_SINCE else since,
            None if until == ALWAYS_UNTIL else until,
        )

    def key_expression(self) -> str | None:
        """Return None: the real index has keys only under the names of its fields."""
        return None


class DateRangeInRangeIndexTranslator(StoresNothing):
    """Stores nothing: answers from the two date indexes that it names."""

    meta_type = "DateRangeInRangeIndex"

    @classmethod
    def settings(cls, index: Any) -> Any:
        """Return a copy of *index* without ``caller``, the catalog it belongs to."""
        copy = super().settings(index)
        copy.caller = None
        return copy

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for rows that begin, end or both between the query's ``start`` and ``end``, or include both.

        Raises KeyError if one of the two date indexes is missing.
        """
        record = parse(self.index, query)
        if record.keys is None:
            return None
        start, end = record.get("start"), record.get("end")
        if start is None or end is None:
            return NOTHING

        def reaches(name: str, date: Any, side: str) -> Condition:
            return self.other(name).where({name: {"query": date, "range": side}}, context) or NOTHING

        first, last = self.index.startindex, self.index.endindex
        return any_of(
            (
                reaches(first, start, "max") & reaches(last, end, "min"),
                reaches(last, start, "min") & reaches(last, end, "max"),
                reaches(first, start, "min") & reaches(first, end, "max"),
            )
        )
