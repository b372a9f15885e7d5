"""Simple index types: FieldIndex, UUIDIndex, KeywordIndex, BooleanIndex, TopicIndex, GopipIndex and CompositeIndex."""

from BTrees.OOBTree import OOBTree
from collections.abc import Mapping
from hashlib import sha256
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import StoresNothing
from plone.pgcatalog.indexes.base import strip_data
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.cached_attributes import original
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.keys import decode_key
from plone.pgcatalog.indexes.keys import encode_key
from plone.pgcatalog.indexes.keys import is_truncated
from plone.pgcatalog.indexes.unindex import encode_keys
from plone.pgcatalog.indexes.unindex import MISSING
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.indexes.unindex import text_ends
from plone.pgcatalog.indexes.unindex import text_range
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.sql.column import GIN_OPTIONS
from plone.pgcatalog.sql.predicate import contains
from plone.pgcatalog.sql.predicate import ElementBetween
from plone.pgcatalog.sql.predicate import equal_to_any
from plone.pgcatalog.sql.predicate import is_flag
from plone.pgcatalog.sql.predicate import overlaps
from RestrictedPython.Eval import RestrictionCapableEval
from typing import Any
from ZODB.POSException import ConflictError


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
        # A key that cannot be indexed is in no row, and no row has two different keys.
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
    """Return the key of an object's *value*, None if it has no key; *report* what is lost."""
    key = encode_key(value)
    if key is None:
        report(f"a value of type {type(value).__name__} has no order and is ignored")
    elif is_truncated(key):
        report("a long value is sorted by its beginning only")
    return key


class UUIDIndexTranslator(FieldIndexTranslator):
    """As a FieldIndex; the real index's ``_get_object_datum`` makes sure that the value is never acquired.

    ZCatalog finds only the first of several objects that share a value; here each is found.
    """

    meta_type = "UUIDIndex"

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "text", is_unique=True),)


#: Indexes with few different lists in all rows: the interfaces of an object, and the users and roles that may see it.
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
        # Each attribute replaces the one before: the last one counts.
        for name in self.index.getIndexSourceNames():
            keywords = self.index._get_object_keywords(obj, name)
        texts = (text_key(keyword, report) for keyword in keywords)
        keys = sorted({text for text in texts if text is not None})
        return (keys,) if keys else None

    def match_any(self, keys: list[Any]) -> Condition:
        texts = encode_keys(keys)
        # && and not `= ANY(column)`, for which no GIN can be used.
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


class BooleanIndexTranslator(IndexTranslator):
    """A boolean column; NULL for an object without the attribute, while None counts as false."""

    meta_type = "BooleanIndex"
    constant_keys = (True, False)

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "boolean"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        datum = MISSING
        # Each attribute replaces the one before: the last one counts.
        for name in self.index.getIndexSourceNames():
            datum = self.index._get_object_datum(obj, name)
        return None if datum is MISSING else (bool(datum),)

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
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


class TopicIndexTranslator(IndexTranslator):
    """A text[] column with the keys of the filtered sets that contain the object, and a GIN.

    The key of a set contains its expression, so that a set is empty after its expression has changed.
    """

    meta_type = "TopicIndex"

    @classmethod
    def settings(cls, index: Any) -> Any:
        copy = strip_data(index)
        copy.filteredSets = OOBTree({id: strip_data(s) for id, s in index.filteredSets.items()})
        for filtered in copy.filteredSets.values():
            filtered.clear()
        return copy

    @property
    def is_stable(self) -> bool:
        """False: the sets are separate objects."""
        return False

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "text[]"),)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        return (SQLIndex(self.base, f"USING gin ({self.column.quoted}) {GIN_OPTIONS}"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return the keys of the sets that contain *obj*; report an expression that fails, and leave out its set."""
        keys = []
        obj = original(obj)
        for id, filtered in self.index.filteredSets.items():
            try:
                if RestrictionCapableEval(filtered.getExpression()).eval({"o": obj}):
                    keys.append(set_key(id, filtered))
            except ConflictError:
                raise
            except Exception as error:  # noqa: BLE001  an expression can raise anything, as in the real index
                report(f"the expression of {id!r} failed: {error!r}")
        return (keys,) if keys else None

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for *query*; unknown sets are ignored, whatever the operator."""
        record = parse(self.index, query)
        if record.keys is None:
            return None
        sets = self.index.filteredSets
        keys = [set_key(id, sets[id]) for id in record.keys if isinstance(id, str) and id in sets]
        match = contains if record.operator == "and" else overlaps
        return match(self.column, keys) if keys else NOTHING

    def entry(self, values: Values) -> list[str]:
        """Return the ids of the sets, in the index's order."""
        return [id for id, filtered in self.index.filteredSets.items() if set_key(id, filtered) in values[0]]

    def key_expression(self) -> str:
        return f"unnest({self.column.quoted})"


def set_key(id: str, filtered: Any) -> str:
    """Return the key of the *filtered* set *id*: its id and a short hash of its expression."""
    return f"{encode_key(id)} {sha256(repr(filtered.getExpression()).encode()).hexdigest()[:8]}"


class GopipIndexTranslator(StoresNothing):
    """The stub ``plone.folder.nogopip.GopipIndex``: finds no rows, and sorts results in Python.

    Positions are stored in each folder's ordering, where moving one child renumbers its siblings without reindexing
    them; so they are read there when a result is sorted.
    """

    meta_type = "GopipIndex"

    def order_by(self) -> tuple[str, ...]:
        return ()

    def entry(self, values: Values) -> list[Any]:
        return []


class CompositeIndexTranslator(StoresNothing):
    """Stores nothing and finds nothing: its component indexes answer, as they do without it."""

    meta_type = "CompositeIndex"
