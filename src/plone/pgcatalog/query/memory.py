"""Remembers compiled queries: who asks the same again does not wait for the compiler."""

from collections import OrderedDict
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.fulltext import text_index  # noqa: F401  adds itself to the index types that are built in
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.sql.frozen import frozen
from typing import Any


#: Queries that a catalog tool in one ZODB connection remembers.
SIZE = 300


class CompiledQueries:
    """The queries to a catalog that were compiled last."""

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


def question(query: Mapping[str, Any], tool: Any, sort: Sequence[tuple[str, bool]], limit: Any) -> Hashable:
    """Return what a query asks of *tool*, an unwrapped catalog tool; None if its values say too little, or the settings
    it depends on are not saved yet.

    What an index takes for the same is the same.
    """
    try:
        return (
            _state(tool),
            tuple([_asked(name, value, tool) for name, value in query.items()]),
            tuple([(name, reverse, _state(tool._indexes[name])) for name, reverse in sort]),
            frozen(limit),
        )
    except TypeError:
        return None


def _asked(name: str, value: Any, tool: Any) -> Hashable:
    index = tool._indexes.get(name)
    if index is None:
        return name, frozen(value)
    lexicon = getattr(tool, getattr(index, "lexicon_id", ""), None)
    cls = None if type(value) is str else translator_class(index.meta_type)
    meaning = frozen(value) if cls is None else cls.meaning(index, value)
    return name, _state(index), None if lexicon is None else _state(lexicon), meaning


def _state(persistent: Any) -> Hashable:
    """Return what names the state of a *persistent* object; raises TypeError when it is not saved."""
    persistent._p_activate()
    if persistent._p_changed or persistent._p_jar is None:
        raise TypeError("the settings are not saved yet")
    serial: Hashable = persistent._p_serial
    return serial
