"""KeywordIndex: any number of values of any type per object."""

from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.field import text_key
from plone.pgcatalog.indexes.keys import decode_key
from plone.pgcatalog.indexes.keys import encode_key
from plone.pgcatalog.indexes.unindex import encode_keys
from plone.pgcatalog.indexes.unindex import text_ends
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.sql.predicate import contains
from plone.pgcatalog.sql.predicate import overlaps
from typing import Any


#: Indexes with long lists of long values: the interfaces of an object.
LONG_KEYWORDS = ("object_provides",)
#: Indexes whose values are in many rows, independently of each other: who may see an object.
COMMON_KEYWORDS = ("allowedRolesAndUsers",)


class KeywordIndexTranslator(UnIndexTranslator):
    """A text[] column of sorted, distinct keys (see ``keys``) with a GIN; NULL for no keywords."""

    meta_type = "KeywordIndex"

    def columns(self) -> tuple[Column, ...]:
        is_long = self.id in LONG_KEYWORDS
        return (Column(self.base, "text[]", is_long, has_common_elements=self.id in COMMON_KEYWORDS),)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        return (SQLIndex(self.base, f"USING gin ({self.column.quoted})"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        keywords: tuple[Any, ...] = ()
        # Each attribute is indexed over the one before: the last one counts.
        for name in self.index.getIndexSourceNames():
            keywords = self.index._get_object_keywords(obj, name)
        texts = (text_key(keyword, report) for keyword in keywords)
        keys = sorted({text for text in texts if text is not None})
        return (keys,) if keys else None

    def match_any(self, keys: list[Any]) -> Condition:
        texts = encode_keys(keys)
        # && and not `= ANY(column)`, which no GIN can answer.
        return overlaps(self.column, texts) if texts else NOTHING

    def match_all(self, keys: list[Any]) -> Condition:
        if any(encode_key(key) is None for key in keys):
            return NOTHING
        return contains(self.column, encode_keys(keys))

    def match_range(self, low: Any, high: Any) -> Condition:
        ends = text_ends(low, high)
        if ends is None:
            return NOTHING
        inside = all_of(Condition(f'keyword COLLATE "C" {operator} %s', (end,)) for operator, end in ends)
        keywords = f"SELECT FROM unnest({self.column.quoted}) AS keyword WHERE {inside.sql}"
        return Condition(f"EXISTS ({keywords})", inside.params, self.columns())

    def entry(self, values: Values) -> list[Any]:
        return [decode_key(key) for key in values[0]]

    def key_expression(self) -> str:
        return f"unnest({self.column.quoted})"

    def key(self, value: Any) -> Any:
        return decode_key(value)
