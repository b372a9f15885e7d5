"""The words of a ZCTextIndex lexicon, without writing a word into it.

``Lexicon.sourceToWordIds`` stores every new word in the ZODB.  Here only the elements of its pipeline run (splitter,
normalizer, stop words), so the words are the same, and PostgreSQL keeps them in a tsvector.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import re


#: Neither has a place in PostgreSQL's UTF-8, and Plone's splitter fails on the second.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

#: Limits of PostgreSQL's tsvector (src/include/tsearch/ts_type.h).
MAX_LEXEME_BYTES = 2046
MAX_POSITION = 16383
MAX_POSITIONS = 255
#: PostgreSQL's own limit for all lexemes and positions of a tsvector is 1 MB.
MAX_TSVECTOR_BYTES = 900_000

#: Most of the time of a long text goes into this; it looks at each word by itself, so once per word is enough.
_SLOW_NORMALIZER = ("Products.CMFPlone.UnicodeSplitter.splitter", "I18NNormalizer")

_ENTRY = re.compile(r"'((?:[^'\\]|''|\\\\)*)'(?::([0-9A-D,]+))?")
_ESCAPED = re.compile(r"''|\\\\")
_WEIGHTS = str.maketrans("", "", "ABCD")


def storable(text: str) -> str:
    """Return *text* with spaces for what cannot be stored: such characters part words, as in every splitter."""
    return _UNSTORABLE.sub(" ", text)


def words(lexicon: Any, texts: Iterable[str]) -> list[str]:
    """Return the words of *texts* in order, as ``lexicon.sourceToWordIds`` stores them."""
    return _run(lexicon, [storable(text) for text in texts], "process")


def query_words(lexicon: Any, text: str) -> list[str]:
    """Return the words of a search term, which may have ``*`` and ``?`` in them, as ``lexicon.parseTerms``."""
    return _run(lexicon, [storable(text)], "processGlob")


def term_words(lexicon: Any, terms: Sequence[str]) -> list[str]:
    """Return the words that ``lexicon.termToWordIds`` looks up for *terms*, words of ``parseTerms``."""
    return _run(lexicon, list(terms), "process_post_glob")


def _run(lexicon: Any, texts: list[Any], method: str) -> list[str]:
    """Run the pipeline, with *method* of those elements that have it.

    Elements may return bytes.  Empty words are left out at once: Plone's normalizer fails on them.
    """
    for element in lexicon._pipeline:
        process = getattr(element, method, element.process)
        cls = type(element)
        if (cls.__module__, cls.__qualname__) == _SLOW_NORMALIZER:
            unique = list(dict.fromkeys(texts))
            normalized = dict(zip(unique, process(unique), strict=True))
            texts = [normalized[word] for word in texts if normalized[word]]
        else:
            texts = [word for word in process(texts) if word]
    return [word.decode(errors="replace") if isinstance(word, bytes) else word for word in texts]


def lexeme(word: str) -> str:
    """Return *word* as tsvector and tsquery can hold it: the beginning of a very long one."""
    if len(word) * 4 <= MAX_LEXEME_BYTES:
        return word
    return word.encode()[:MAX_LEXEME_BYTES].decode(errors="ignore")


def quoted(word: str) -> str:
    """Return *word* as a quoted lexeme of the text form of tsvector and tsquery."""
    return "'" + lexeme(word).replace("\\", "\\\\").replace("'", "''") + "'"


def tsvector_literal(source: Sequence[str]) -> tuple[str, str | None]:
    """Return the words *source* in the text form of a tsvector, and a sentence on what had to be trimmed.

    Positions count from 1.  The limits of PostgreSQL are kept: very long words are cut; of a very long text the
    first words are kept; words beyond position 16,383 and occurrences of a word beyond the 255th have no
    position, so only phrases cannot be found there (this is not reported).
    """
    positions: dict[str, list[str]] = {}
    size = cut = kept = 0
    for kept, word in enumerate(source, 1):
        if len(word) * 4 > MAX_LEXEME_BYTES and (short := lexeme(word)) != word:
            word = short
            cut += 1
        places = positions.get(word)
        if places is None:
            size += len(word.encode()) + 3  # with padding and number of positions
            if size > MAX_TSVECTOR_BYTES:
                kept -= 1
                break
            places = positions[word] = []
        if kept <= MAX_POSITION and len(places) < MAX_POSITIONS:
            places.append(str(kept))
            size += 2
    text = " ".join(quoted(w) + (":" + ",".join(places) if places else "") for w, places in positions.items())
    return text, _trimmed(len(source), kept, cut)


def _trimmed(total: int, kept: int, cut: int) -> str | None:
    parts = []
    if kept < total:
        parts.append(f"the text is too long, only the first {kept} of its {total} words are searchable")
    if cut:
        parts.append(f"{cut} words longer than {MAX_LEXEME_BYTES} bytes were cut")
    return " and ".join(parts) or None


def tsvector_words(text: str) -> list[str]:
    """Return the words of a tsvector's text form in the order of their positions, the inverse of tsvector_literal.

    A word stands once at each of its positions, and those without position once at the end.
    """
    placed: list[tuple[int, str]] = []
    for match in _ENTRY.finditer(text):
        word = _ESCAPED.sub(lambda m: m[0][0], match[1])
        places = (match[2] or str(MAX_POSITION + 1)).translate(_WEIGHTS)
        placed += [(int(place), word) for place in places.split(",")]
    return [word for _, word in sorted(placed)]
