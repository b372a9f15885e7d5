"""DateRangeInRangeIndex of the add-on Products.DateRangeInRangeIndex: what lies, in part, between two dates."""

from collections.abc import Mapping
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import StoresNothing
from plone.pgcatalog.indexes.unindex import parse
from typing import Any


class DateRangeInRangeIndexTranslator(StoresNothing):
    """Stores nothing: the two date indexes that it names answer."""

    meta_type = "DateRangeInRangeIndex"

    @classmethod
    def settings(cls, index: Any) -> Any:
        """Return a copy of *index* without ``caller``, the catalog it belongs to."""
        copy = super().settings(index)
        copy.caller = None
        return copy

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        """Return the condition for rows that begin, end or both between the query's ``start`` and ``end``, or span both.

        Raises KeyError when one of the two date indexes is missing.
        """
        record = parse(self.index, query)
        if record.keys is None:
            return None
        start, end = record.get("start"), record.get("end")
        if start is None or end is None:
            return NOTHING

        def reaches(name: str, date: Any, side: str) -> Condition:
            return self.other(name).where({name: {"query": date, "range": side}}) or NOTHING

        first, last = self.index.startindex, self.index.endindex
        return any_of(
            (
                reaches(first, start, "max") & reaches(last, end, "min"),
                reaches(last, start, "min") & reaches(last, end, "max"),
                reaches(first, start, "min") & reaches(first, end, "max"),
            )
        )
