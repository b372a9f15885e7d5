"""KeywordIndex: any number of values of any type per object."""

from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.keys import decode_key
from plone.pgcatalog.indexes.keys import encode_key
from plone.pgcatalog.indexes.simple import text_key
from plone.pgcatalog.indexes.unindex import encode_keys
from plone.pgcatalog.indexes.unindex import text_ends
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.sql.column import GIN_OPTIONS
from plone.pgcatalog.sql.predicate import contains
from plone.pgcatalog.sql.predicate import ElementBetween
from plone.pgcatalog.sql.predicate import overlaps
from typing import Any


#: Indexes with the same few lists in all rows: the interfaces of an object, and who may see it.
FEW_LISTS = ("object_provides", "allowedRolesAndUsers")


class KeywordIndexTranslator(UnIndexTranslator):
    """A text[] column of sorted, distinct keys (see ``keys``) with a GIN; NULL for no keywords.

    A relation may intern the lists (see ``sql.values``).
    """

    meta_type = "KeywordIndex"

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "text[]", can_be_interned=True, interned_at_first=self.id in FEW_LISTS),)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        index = SQLIndex(
            self.base, f"USING gin ({self.column.quoted}) {GIN_OPTIONS}", lists=self.base, column=self.base
        )
        return (index.without_nulls(),)

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
        return NOTHING if ends is None else ElementBetween(self.column, ends)

    def entry(self, values: Values) -> list[Any]:
        return [decode_key(key) for key in values[0]]

    def key_expression(self) -> str:
        return f"unnest({self.column.quoted})"

    def key(self, value: Any) -> Any:
        return decode_key(value)
