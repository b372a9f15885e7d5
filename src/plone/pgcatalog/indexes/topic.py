"""TopicIndex: which of a few expressions are true for the object."""

from BTrees.OOBTree import OOBTree
from collections.abc import Iterable
from collections.abc import Mapping
from hashlib import sha256
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.cached_attributes import original
from plone.pgcatalog.indexes.keys import encode_key
from plone.pgcatalog.indexes.stripped import strip_data
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.sql.column import GIN_OPTIONS
from plone.pgcatalog.sql.predicate import contains
from plone.pgcatalog.sql.predicate import overlaps
from RestrictedPython.Eval import RestrictionCapableEval
from typing import Any
from ZODB.POSException import ConflictError


class TopicIndexTranslator(IndexTranslator):
    """A text[] column with the keys of the filtered sets the object belongs to, and a GIN.

    The key of a set contains its expression, so that nothing is left in a set whose expression has changed.
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
        """See IndexTranslator: the sets are objects of their own."""
        return False

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "text[]"),)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        return (SQLIndex(self.base, f"USING gin ({self.column.quoted}) {GIN_OPTIONS}"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        """See IndexTranslator; an object that makes an expression fail is not in its set, reported."""
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

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        """See IndexTranslator; unknown sets do not count, whatever the operator."""
        record = parse(self.index, query)
        if record.keys is None:
            return None
        keys = self.set_keys(key for key in record.keys if isinstance(key, str))
        match = contains if record.operator == "and" else overlaps
        return match(self.column, keys) if keys else NOTHING

    def set_keys(self, ids: Iterable[str]) -> list[str]:
        """Return the keys of those of the sets *ids* that exist."""
        sets = self.index.filteredSets
        return [set_key(id, sets[id]) for id in ids if id in sets]

    def entry(self, values: Values) -> list[str]:
        """Return the ids of the sets, in the index's order."""
        return [id for id, filtered in self.index.filteredSets.items() if set_key(id, filtered) in values[0]]

    def key_expression(self) -> str:
        return f"unnest({self.column.quoted})"


def set_key(id: str, filtered: Any) -> str:
    """Return the key of the *filtered* set *id*: its id and a short hash of its expression."""
    return f"{encode_key(id)} {sha256(repr(filtered.getExpression()).encode()).hexdigest()[:8]}"
