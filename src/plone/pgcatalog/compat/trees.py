"""Stand-ins for the BTrees and lexicons of a ZCatalog's indexes, read from PostgreSQL."""

from abc import abstractmethod
from Acquisition import aq_base
from BTrees.IIBTree import IISet
from BTrees.IOBTree import IOBTree
from BTrees.OIBTree import OIBTree
from collections.abc import Iterator
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from plone.pgcatalog.fulltext.lexicon import BESIDE
from plone.pgcatalog.fulltext.lexicon import STEM
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.results.view import key_rids
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.predicate import equals
from typing import Any

import psycopg


class Tree(Mapping[Any, Any]):
    """A read-only mapping ordered by key, with the methods of a BTree; subclasses read the data."""

    @abstractmethod
    def _sorted(self, low: Any = None, high: Any = None) -> list[Any]:
        """Return the keys from *low* to *high*, both included, in order; None means unbounded."""

    @abstractmethod
    def _pairs(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """Return (key, value) pairs of the keys of ``_sorted``."""

    def _ends(self, low: Any = None, high: Any = None) -> tuple[Any, ...]:
        """Return (first, last) of the keys from *low* to *high*; () if there are none."""
        found = self._sorted(low, high)
        return (found[0], found[-1]) if found else ()

    def _end(self, which: int, low: Any = None, high: Any = None) -> Any:
        found = self._ends(low, high)
        if not found:
            raise ValueError("empty tree" if not len(self) else "no key satisfies the conditions")
        return found[which]

    def minKey(self, key: Any = None) -> Any:
        """Return the first key, not before *key*; raises ValueError if there is none."""
        return self._end(0, low=key)

    def maxKey(self, key: Any = None) -> Any:
        """Return the last key, not after *key*; raises ValueError if there is none."""
        return self._end(1, high=key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._sorted())

    def __len__(self) -> int:
        return len(self._sorted())

    def has_key(self, key: Any) -> bool:
        return key in self

    # As in a BTree, excluding an end without a bound excludes the outermost key.

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
    """Return the *keys* from *low* to *high*; raises TypeError for a bound that cannot be compared."""
    return [each for each in keys if (low is None or key(each) >= low) and (high is None or key(each) <= high)]


class Keys(Tree):
    """``index._index``: key -> rids of its rows; for a UUIDIndex key -> rid."""

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
            found = ()  # a value whose type differs from the keys'
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
        view = index._pg_catalog().core.search_view()
        pairs = key_rids(view, translator, expression, index._pg_has_value()).value()
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
                raise TypeError(f"{end!r} is not a key")
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
    """Return (key, rids) for (key, rid) *pairs* with a key from *low* to *high*; (key, last rid) if *single*."""
    found: dict[Any, list[int]] = {}
    for key, rid in between(pairs, low, high, lambda pair: pair[0]):
        found.setdefault(key, []).append(rid)
    return [(key, rids[-1] if single else IISet(rids)) for key, rids in found.items()]


class WordId(int):
    """The id of a word; it carries the word, so a lexicon need not search for it."""

    word: str


def word_id(word: str) -> WordId:
    """Return the id of *word*: a hash, the same in all processes, from 1 to 2**31 - 1."""
    number = int.from_bytes(blake2b(word.encode(errors="surrogatepass"), digest_size=4).digest()) >> 1
    found = WordId(number or 1)
    found.word = word
    return found


def words_of(index: Any) -> tuple[str, ...]:
    """Return the distinct words of the text *index*, a proxy, sorted; cached until the catalog changes."""

    def read(view: Any) -> tuple[str, ...]:
        vector = index._pg_translator().column.quoted
        placed = f"SELECT lexeme, positions FROM unnest({vector})"
        # Whole words are none of Plone's splitter.
        beside = f"SELECT substr(lexeme, 3), positions FROM unnest({vector}) WHERE starts_with(lexeme, '{BESIDE}')"
        rows = view.select(f"DISTINCT unnest(ARRAY(SELECT lexeme FROM ({placed} EXCEPT {beside}) AS word))").value()
        return tuple(sorted(word for (word,) in rows if not word.startswith(STEM)))

    return index._pg_remembered(("words",), read) or ()


class InnerIndex:
    """Stand-in for ``ZCTextIndex.index`` of *index*, the proxy of a text index."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def length(self) -> int:
        """Return the number of different words."""
        return len(words_of(self._index))

    def document_count(self) -> int:
        """Return the number of rows with a text."""
        count: int = self._index.numObjects()
        return count

    def has_doc(self, docid: int) -> bool:
        """Return whether the row *docid* has a text."""
        return self._index.getEntryForObject(docid, None) is not None

    def get_words(self, docid: int) -> list[int]:
        """Return the ids of the words of the row *docid*, in their order; raises KeyError if it has no text."""
        found = self._index.getEntryForObject(docid, None)
        if found is None:
            raise KeyError(docid)
        return [word_id(word) for word in found]


class LexiconProxy:
    """Mixin for a real lexicon class: reads the words from the indexed texts."""

    _pg_indexes: tuple[Any, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set the attribute here and on the persistent lexicon of the tool, which stores the settings."""
        if name.startswith(("_p_", "_v_")):
            super().__setattr__(name, value)
        else:
            setattr(self.__dict__["_pg_real"], name, value)
            self.__dict__[name] = value

    def words(self) -> list[str]:
        """Return the words of all texts, in order."""
        return sorted({word for index in self._pg_indexes for word in words_of(index)})

    def length(self) -> int:
        """Return the number of words."""
        return len(self.words())

    def get_word(self, wid: int) -> str:
        """Return the word with the id *wid*; raises KeyError if there is none."""
        return wid.word if isinstance(wid, WordId) else self._words[wid]

    def sourceToWordIds(self, text: Any) -> list[int]:
        """Return the ids of the words of *text*, including words that no indexed text contains."""
        last = [text] if isinstance(text, str) else text
        for element in self._pipeline:  # type: ignore[attr-defined]  # the real class's
            last = element.process(last)
        return [word_id(word) for word in last]

    @property
    def _wids(self) -> Any:
        return OIBTree({word: word_id(word) for word in self.words()})

    @property
    def _words(self) -> Any:
        return IOBTree({word_id(word): word for word in self.words()})


@cache
def lexicon_class(cls: type) -> type:
    """Return the subclass of the lexicon class *cls* that reads its words from the texts; it has the same name."""
    return type(cls)(cls.__name__, (LexiconProxy, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def lexicon_of(index: Any, real: Any) -> Any:
    """Return a proxy of *real*, the lexicon of the text index *index*, with the words of all indexes that use it."""
    real._p_activate()
    cls: Any = lexicon_class(real.__class__)
    proxy = cls.__new__(cls)
    settings = {name: value for name, value in real.__dict__.items() if name not in ("length", "_wids", "_words")}
    same = (
        each for each in index._pg_catalog().indexes.values() if getattr(each, "lexicon_id", None) == index.lexicon_id
    )
    proxy.__dict__.update(settings, _pg_real=real, _pg_indexes=tuple(same))
    return proxy.__of__(aq_base(index._pg_catalog().tool))
