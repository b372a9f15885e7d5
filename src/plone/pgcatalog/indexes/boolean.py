"""BooleanIndex: whether the object's value is true."""

from collections.abc import Mapping
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.unindex import MISSING
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.sql.predicate import is_flag
from typing import Any


class BooleanIndexTranslator(IndexTranslator):
    """A boolean column; NULL for an object without the attribute, while None counts as false."""

    meta_type = "BooleanIndex"
    constant_keys = (True, False)

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "boolean"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        datum = MISSING
        # Each attribute is indexed over the one before: the last one counts.
        for name in self.index.getIndexSourceNames():
            datum = self.index._get_object_datum(obj, name)
        return None if datum is MISSING else (bool(datum),)

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        """Return the condition for the truth of the first value in *query*; no value finds nothing."""
        record = parse(self.index, query)
        if record.keys is None:
            return None
        for key in record.keys:
            return is_flag(self.column, bool(key))
        return NOTHING

    def order_by(self) -> tuple[str, ...]:
        return (self.column.quoted,)

    def entry(self, values: Values) -> int:
        return int(values[0])

    def key(self, value: Any) -> bool:
        return bool(value)
