"""What is a BTree in a ZCatalog, and the trees of its indexes, read from PostgreSQL."""

from abc import abstractmethod
from BTrees.IIBTree import IISet
from collections.abc import Iterator
from collections.abc import Mapping
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.results.keys import key_rids
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.predicate import equals
from typing import Any

import psycopg


class Tree(Mapping[Any, Any]):
    """A mapping in the order of its keys, with the methods of a BTree; a subclass says what there is."""

    @abstractmethod
    def _sorted(self, low: Any = None, high: Any = None) -> list[Any]:
        """Return the keys from *low* to *high*, both included, in order; None is an open end."""

    @abstractmethod
    def _pairs(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """Return (key, value) pairs of the same."""

    def _ends(self, low: Any = None, high: Any = None) -> tuple[Any, ...]:
        """Return the first and the last key from *low* to *high*; nothing if there is none."""
        found = self._sorted(low, high)
        return (found[0], found[-1]) if found else ()

    def _end(self, which: int, low: Any = None, high: Any = None) -> Any:
        found = self._ends(low, high)
        if not found:
            raise ValueError("empty tree" if not len(self) else "no key satisfies the conditions")
        return found[which]

    def minKey(self, key: Any = None) -> Any:
        """Return the first key, from *key* on; raises ValueError if there is none."""
        return self._end(0, low=key)

    def maxKey(self, key: Any = None) -> Any:
        """Return the last key, up to *key*; raises ValueError if there is none."""
        return self._end(1, high=key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._sorted())

    def __len__(self) -> int:
        return len(self._sorted())

    def has_key(self, key: Any) -> bool:
        return key in self

    # As in a BTree, to exclude an end that is open excludes the outermost key.

    def keys(self, min: Any = None, max: Any = None, excludemin: Any = False, excludemax: Any = False) -> Any:
        found = self._sorted(min, max)
        start = bool(excludemin and found and (min is None or found[0] == min))
        stop = len(found) - bool(excludemax and found and (max is None or found[-1] == max))
        return found[start:stop]

    def items(self, min: Any = None, max: Any = None, excludemin: Any = False, excludemax: Any = False) -> Any:
        found = self._pairs(min, max)
        start = bool(excludemin and found and (min is None or found[0][0] == min))
        stop = len(found) - bool(excludemax and found and (max is None or found[-1][0] == max))
        return found[start:stop]

    def values(self, min: Any = None, max: Any = None, excludemin: Any = False, excludemax: Any = False) -> Any:
        return [value for _, value in self.items(min, max, excludemin, excludemax)]

    def iterkeys(self, *args: Any, **kw: Any) -> Iterator[Any]:
        return iter(self.keys(*args, **kw))

    def itervalues(self, *args: Any, **kw: Any) -> Iterator[Any]:
        return iter(self.values(*args, **kw))

    def iteritems(self, *args: Any, **kw: Any) -> Iterator[Any]:
        return iter(self.items(*args, **kw))


def between(keys: Any, low: Any, high: Any, key: Any = lambda found: found) -> list[Any]:
    """Return those of *keys* that lie from *low* to *high*; raises TypeError for an end that cannot be compared."""
    return [each for each in keys if (low is None or key(each) >= low) and (high is None or key(each) <= high)]


class Keys(Tree):
    """``index._index``: key to the rids that have it, the rid itself for a UUIDIndex."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self._single = index.meta_type == "UUIDIndex"

    def __getitem__(self, key: Any) -> Any:
        try:
            if self._single and isinstance(key, str):
                found = self._index._pg_rid(key)
            else:
                found = self._index._pg_rids(self._index._pg_translator().match_key(key))
        except (TypeError, ValueError, AttributeError, psycopg.DataError):
            found = ()  # a value of another type than the keys
        if not found:
            raise KeyError(key)
        return found[0] if self._single else found

    def _sorted(self, low: Any = None, high: Any = None) -> list[Any]:
        return between(self._index.uniqueValues(), low, high)

    def _pairs(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        index = self._index
        translator = index._pg_translator()
        expression = translator.key_expression()
        if expression is None:
            return []
        view = index._pg_catalog().search_view()
        pairs = key_rids(view, translator, expression, index._pg_has_value())
        return grouped(((translator.key(key), rid) for key, rid in pairs), low, high, self._single)


class ColumnKeys(Tree):
    """A tree of an index whose keys are the texts in one of its columns."""

    def __init__(self, index: Any, column: Column, single: bool = False) -> None:
        self._index = index
        self._column = column
        self._single = single

    def __getitem__(self, key: Any) -> Any:
        found = self._index._pg_rids(equals(self._column, clean_path(key))) if isinstance(key, str) else None
        if not found:
            raise KeyError(key)
        return found[-1] if self._single else found

    def _select(self, expressions: str, low: Any, high: Any, tail: str) -> list[Any]:
        where = Condition(f"{self._column.quoted} IS NOT NULL")
        for end, operator in ((low, ">="), (high, "<=")):
            if end is not None and not isinstance(end, str):
                raise TypeError(f"{end!r} is no key")
            if end is not None:
                where &= Condition(f"{self._column.quoted} {operator} %s", (clean_path(end),))
        rows: list[Any] = self._index._pg_select(expressions, where, tail)
        return rows

    def _sorted(self, low: Any = None, high: Any = None) -> list[Any]:
        name = self._column.quoted
        return [key for (key,) in self._select(f"DISTINCT {name}", low, high, f"ORDER BY {name}")]

    def _pairs(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        name = self._column.quoted
        return grouped(self._select(f"{name}, rid", low, high, f"ORDER BY {name}, rid"), single=self._single)


def grouped(pairs: Any, low: Any = None, high: Any = None, single: bool = False) -> list[tuple[Any, Any]]:
    """Return (key, rids) for the keys of (key, rid) *pairs* that lie from *low* to *high*; one rid each for *single* ones."""
    found: dict[Any, list[int]] = {}
    for key, rid in between(pairs, low, high, lambda pair: pair[0]):
        found.setdefault(key, []).append(rid)
    return [(key, rids[-1] if single else IISet(rids)) for key, rids in found.items()]
