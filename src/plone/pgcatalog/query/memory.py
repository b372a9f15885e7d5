"""A configuration's cache of compiled queries, bounded by their number; the least recently used goes first."""

from collections import OrderedDict
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.sql.frozen import frozen
from typing import Any


#: Queries that one configuration keeps.
SIZE = 300


class CompiledQueries:
    """The queries that were compiled last for a catalog with the same settings, by ``query_key``."""

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


def query_key(
    query: Mapping[str, Any],
    translators: Mapping[str, IndexTranslator],
    lexicons: Mapping[str, Any],
    sort: Sequence[tuple[str, bool]],
    limit: Any,
) -> Hashable:
    """Return the cache key of a query to a catalog with these *translators* and *lexicons*.

    None when a value has no stable key.  Values an index treats as equal share a key (``IndexTranslator.cache_key``).
    """
    try:
        asked = tuple([_asked(name, value, translators) for name, value in query.items()])
        words = tuple([pipeline(lexicon) for name, lexicon in lexicons.items() if name in query])
        hash(words)
        return asked, words, tuple(sort), frozen(limit)
    except (TypeError, RecursionError):
        return None


def pipeline(lexicon: Any) -> tuple[Any, ...]:
    """Return what *lexicon* makes words of a text with, the same objects as long as it has not changed.

    Raises TypeError for one of another kind.
    """
    found = getattr(lexicon, "_pipeline", None)
    if not isinstance(found, tuple):
        raise TypeError("nobody knows what the words of this lexicon depend on")
    return found


def _asked(name: str, value: Any, translators: Mapping[str, IndexTranslator]) -> Hashable:
    translator = None if type(value) is str else translators.get(name)
    return name, frozen(value) if translator is None else translator.cache_key(translator.index, value)
