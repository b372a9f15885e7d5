"""Remembers compiled queries: who asks the same again does not wait for the compiler."""

from collections import OrderedDict
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.frozen import frozen
from typing import Any


#: Queries that a catalog tool in one ZODB connection remembers.
SIZE = 300


class CompiledQueries:
    """The queries to a catalog that were compiled last; to be forgotten when its settings change."""

    def __init__(self) -> None:
        self._queries: OrderedDict[Hashable, CompiledQuery] = OrderedDict()

    def get(self, key: Hashable) -> CompiledQuery | None:
        """Return the query of *key*; None for an unknown one, and for no key."""
        found = None if key is None else self._queries.get(key)
        if found is not None:
            self._queries.move_to_end(key)
        return found

    def put(self, key: Hashable, query: CompiledQuery) -> None:
        """Remember *query*, if it would come out the same again."""
        if key is not None and query.is_stable:
            self._queries[key] = query
            if len(self._queries) > SIZE:
                self._queries.popitem(last=False)


def question(
    query: Mapping[str, Any], indexes: Mapping[str, Any], sort: Sequence[tuple[str, bool]], limit: Any
) -> Hashable:
    """Return what a query asks, as the arguments of ``compile_query`` say it; None if they say too little.

    *indexes* are the catalog's index objects by name: what they take for the same is the same.
    """
    try:
        asked = [_asked(name, value, indexes.get(name)) for name, value in query.items()]
        return tuple(asked), tuple([(name, reverse, _state(indexes[name])) for name, reverse in sort]), frozen(limit)
    except TypeError:
        return None


def _asked(name: str, value: Any, index: Any) -> Hashable:
    if index is None:
        return name, frozen(value)
    state = _state(index)
    cls = None if type(value) is str else translator_class(index.meta_type)
    return name, state, frozen(value) if cls is None else cls.meaning(index, value)


def _state(index: Any) -> Hashable:
    """Return what names the settings of *index*; raises TypeError when they are not saved."""
    index._p_activate()
    if index._p_changed or index._p_jar is None:
        raise TypeError("the settings of the index have no name yet")
    serial: Hashable = index._p_serial
    return serial
