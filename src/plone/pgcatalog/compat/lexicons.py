"""The inside of text indexes: the inner index and the lexicon, whose words are those that stand in the texts now."""

from Acquisition import aq_base
from BTrees.IOBTree import IOBTree
from BTrees.OIBTree import OIBTree
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from plone.pgcatalog.fulltext.lexicon import STEM
from typing import Any


class WordId(int):
    """The number of a word, by which a lexicon finds the word again without reading all of them."""

    word: str


def word_id(word: str) -> WordId:
    """Return the number of *word*: the same everywhere and always, more than 0 and less than 2**31."""
    number = int.from_bytes(blake2b(word.encode(errors="surrogatepass"), digest_size=4).digest()) >> 1
    found = WordId(number or 1)
    found.word = word
    return found


def words_of(index: Any) -> tuple[str, ...]:
    """Return the different words in the texts of the text *index*, a proxy, in order; kept while the catalog does not change."""

    def read(view: Any) -> tuple[str, ...]:
        vector = index._pg_translator().column.quoted
        rows = view.select(f"DISTINCT unnest(tsvector_to_array({vector}))")
        return tuple(sorted(word for (word,) in rows if not word.startswith(STEM)))

    return index._pg_remembered(("words",), read) or ()


class InnerIndex:
    """What ``ZCTextIndex.index`` tells of the texts of *index*, the proxy of a text index."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def length(self) -> int:
        """Return the number of different words."""
        return len(words_of(self._index))

    def document_count(self) -> int:
        """Return the number of rows that have a text."""
        count: int = self._index.numObjects()
        return count

    def has_doc(self, docid: int) -> bool:
        """Return whether the row *docid* has a text."""
        return self._index.getEntryForObject(docid, None) is not None

    def get_words(self, docid: int) -> list[int]:
        """Return the numbers of the words of the row *docid*, in their order; raises KeyError for one without a text."""
        found = self._index.getEntryForObject(docid, None)
        if found is None:
            raise KeyError(docid)
        return [word_id(word) for word in found]


class LexiconProxy:
    """What a lexicon does differently from the real class that it is mixed into: its trees are made of the texts."""

    _pg_indexes: tuple[Any, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings belong to the persistent lexicon that the tool keeps."""
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
        """Return the word whose number is *wid*; raises KeyError."""
        return wid.word if isinstance(wid, WordId) else self._words[wid]

    def sourceToWordIds(self, text: Any) -> list[int]:
        """Return the numbers of the words of *text*, also of those that no text has."""
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
    """Return the subclass of the lexicon class *cls* whose words are those of texts, under the same name."""
    return type(cls)(cls.__name__, (LexiconProxy, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def lexicon_of(index: Any, real: Any) -> Any:
    """Return the lexicon *real* of *index*, a text index of a catalog, with the words of all its indexes that use it."""
    real._p_activate()
    cls: Any = lexicon_class(real.__class__)
    proxy = cls.__new__(cls)
    settings = {name: value for name, value in real.__dict__.items() if name not in ("length", "_wids", "_words")}
    proxy.__dict__.update(settings, _pg_real=real, _pg_indexes=tuple(sharing(index)))
    return proxy.__of__(aq_base(index._pg_catalog().tool))


def sharing(index: Any) -> Iterator[Any]:
    """Yield the text indexes of the catalog of *index* that have the same lexicon."""
    for other in index._pg_catalog().indexes.values():
        if getattr(other, "lexicon_id", None) == index.lexicon_id:
            yield other
