"""The words that a ZCTextIndex lexicon makes of a text, without writing them into the lexicon.

``Lexicon.sourceToWordIds`` stores every new word in the ZODB.  Here only the elements of its pipeline run (splitter,
normalizer, stop words), so the words are the same.  PostgreSQL stores them in a tsvector, with labels for the words of a
page's title, description and keywords.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from functools import lru_cache
from plone.pgcatalog.fulltext.places import runs
from plone.pgcatalog.fulltext.signs import signed_words
from plone.pgcatalog.fulltext.whole_words import other_words
from plone.pgcatalog.fulltext.whole_words import whole_words
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from Products.CMFPlone.UnicodeSplitter.splitter import I18NNormalizer
from Products.CMFPlone.UnicodeSplitter.splitter import Splitter
from Products.PluginIndexes.util import safe_callable
from typing import Any
from unicodedata import normalize

import re


# -- words and tsvectors


#: First character of a stem in a tsvector.
STEM = "\2"
#: Beginning of a lexeme for a word with signs, which has no positions; see ``signs``.
SIGNED = f"{STEM}+"
#: Beginning of a lexeme with the positions of a word that is no word of the splitter; see ``words_besides``.
BESIDE = f"{STEM}="
#: PostgreSQL cannot store NUL and surrogates, and Plone's splitter fails on surrogates; STEM is reserved for stems.
_UNSTORABLE = re.compile(f"[\0{STEM}\ud800-\udfff]")

#: Limits of PostgreSQL's tsvector (src/include/tsearch/ts_type.h).
MAX_LEXEME_BYTES = 2046
MAX_POSITION = 16383
MAX_POSITIONS = 255
#: Below PostgreSQL's limit of 1 MB for all lexemes and positions of a tsvector.
MAX_TSVECTOR_BYTES = 900_000

#: The two elements that take most of the time for a long text.  The splitter checks each word for a script without spaces;
#: one check of the whole text does instead.  The normalizer treats each word by itself, so distinct words are enough.
_SLOW_SPLITTER = ("Products.CMFPlone.UnicodeSplitter.splitter", "Splitter")
_SLOW_NORMALIZER = ("Products.CMFPlone.UnicodeSplitter.splitter", "I18NNormalizer")
_PLONE_PIPELINE = [_SLOW_SPLITTER, _SLOW_NORMALIZER]

#: Fewest and most characters of a text whose words are cached, and the number of cached texts.
SHORTEST_REMEMBERED, LONGEST_REMEMBERED = 50_000, 1_000_000
REMEMBERED = 2

_ENTRY = re.compile(r"'((?:[^'\\]|''|\\\\)*)'(?::([0-9A-D,]+))?")
_ESCAPED = re.compile(r"''|\\\\")
_WEIGHTS = str.maketrans("", "", "ABCD")


def storable_text(text: str) -> str:
    """Return *text* with spaces for characters that cannot be stored; they separate words, as in every splitter."""
    return _UNSTORABLE.sub(" ", text)


def words(lexicon: Any, texts: Iterable[str]) -> list[str]:
    """Return the words of *texts* in order, as ``lexicon.sourceToWordIds`` stores them."""
    texts = [storable_text(text) for text in texts]
    if [class_name(element) for element in lexicon._pipeline] != _PLONE_PIPELINE:
        return _run(lexicon._pipeline, texts, "process")
    found: list[str] = []
    for text in texts:
        is_long = SHORTEST_REMEMBERED <= len(text) <= LONGEST_REMEMBERED
        found += _words_of_long(text) if is_long else _run(lexicon._pipeline, [text], "process")
    return found


@lru_cache(maxsize=REMEMBERED)
def _words_of_long(text: str) -> tuple[str, ...]:
    """Return the words that Plone's pipeline, which has no state, makes of *text*.

    Cached since each change and each move of an object indexes the text of its file again.
    """
    return tuple(_run((Splitter(), I18NNormalizer()), [text], "process"))


def words_besides(lexicon: Any, texts: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return (start, end, word) of the whole words of *texts* that are stored besides ``words(lexicon, texts)``.

    *start* and *end* are positions in that list, between which the word's pieces are.  See ``whole_words``; [] for a lexicon
    with other elements than Plone's, whose splitter is not known.
    """
    if [class_name(element) for element in lexicon._pipeline] != _PLONE_PIPELINE:
        return []
    found: list[tuple[int, int, str]] = []
    splitter, normalizer = lexicon._pipeline
    text = " ".join(map(storable_text, texts))
    behind = first = last = 0
    for start, end, other in other_words(text):
        if start >= behind:
            first = last + len(_split(text[behind:start], splitter.process))
            last, behind = first + len(_split(text[start:end], splitter.process)), end
        found += [(first, last, word) for word in normalizer.process([other]) if word]
    return found


def whole_forms(lexicon: Any, word: str) -> list[str]:
    """Return the whole words, normalized, that *word* of a text or a query may be found by; see ``words_besides``."""
    if [class_name(element) for element in lexicon._pipeline] != _PLONE_PIPELINE:
        return []
    return [form for form in lexicon._pipeline[1].process(whole_words(word)) if form]


def signed_lexemes(lexicon: Any, texts: Iterable[str], most: int) -> list[str]:
    """Return the lexemes of the first *most* different words with signs of *texts*; [] for a lexicon as in ``words_besides``."""
    if [class_name(element) for element in lexicon._pipeline] != _PLONE_PIPELINE:
        return []
    found = signed_words(map(storable_text, texts), most)
    return list(dict.fromkeys(f"{SIGNED}{word}" for word in lexicon._pipeline[1].process(found)))


def query_words(lexicon: Any, text: str) -> list[str]:
    """Return the words of a search term, with their ``*`` and ``?``, as ``lexicon.parseTerms`` does."""
    return _run(lexicon._pipeline, [storable_text(text)], "processGlob")


def term_words(lexicon: Any, terms: Sequence[str]) -> list[str]:
    """Return the words that ``lexicon.termToWordIds`` looks up for *terms*, words of ``parseTerms``."""
    return _run(lexicon._pipeline, list(terms), "process_post_glob")


def class_name(element: Any) -> tuple[str, str]:
    """Return module and name of the class of *element*, an element of a pipeline."""
    cls = type(element)
    return cls.__module__, cls.__qualname__


def _run(pipeline: Iterable[Any], texts: list[Any], method: str) -> list[str]:
    """Return the words after all elements of *pipeline*, called by *method* if they have it, else by ``process``.

    Elements may return bytes.  Empty words are removed after each element, since Plone's normalizer fails on them.
    """
    for element in pipeline:
        process = getattr(element, method, element.process)
        name = class_name(element)
        if name == _SLOW_SPLITTER and method == "process":
            texts = [word for text in texts for word in _split(text, process)]
        elif name == _SLOW_NORMALIZER:
            unique = list(dict.fromkeys(texts))
            normalized = dict(zip(unique, process(unique), strict=True))
            texts = [normalized[word] for word in texts if normalized[word]]
        else:
            texts = [word for word in process(texts) if word]
    return [word.decode(errors="replace") if isinstance(word, bytes) else word for word in texts]


def _split(text: Any, process: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Return the words of *text* as Plone's splitter does; its *process* is called only for scripts without spaces."""
    if isinstance(text, str):
        normalized = normalize("NFKC", text)
        if rx_all.search(normalized) is None:
            return [word.encode() for word in runs(normalized)]
    return process([text])


def lexeme(word: str) -> str:
    """Return *word*, cut to the longest lexeme that tsvector and tsquery allow."""
    if len(word) * 4 <= MAX_LEXEME_BYTES:
        return word
    return word.encode()[:MAX_LEXEME_BYTES].decode(errors="ignore")


def quoted(word: str) -> str:
    """Return *word* as a quoted lexeme of the text form of tsvector and tsquery."""
    return "'" + lexeme(word).replace("\\", "\\\\").replace("'", "''") + "'"


#: (start, end, label) of a part of a page in a list of words; the label is A, B or C.
Part = tuple[int, int, str]
#: Function from a word to its marked stem and those of its parts.
Stems = Callable[[str], tuple[str, ...]]


def tsvector_literal(
    source: Sequence[str],
    parts: Iterable[Part] = (),
    stems: Stems | None = None,
    besides: Iterable[tuple[int, int, str]] = (),
    signed: Iterable[str] = (),
) -> tuple[str, str | None]:
    """Return the words *source* in the text form of a tsvector, and a message if they were trimmed, else None.

    Positions count from 1; words of *parts* have labels; *stems* get the positions of their words, if there is room.
    *besides* are (start, end, word) of further words, which get the first and the last position of *source* from *start* to
    *end*, if there is room.  *signed* are lexemes without positions, if there is room.
    Limits of PostgreSQL:

    - Very long words are cut, and a very long text after its first words; the message reports both.
    - Words behind position 16,383, and occurrences of a word behind its 255th, have no position: phrases do not find them.
    """
    positions: dict[str, list[int]] = {}
    size = cut = position = 0
    for position, word in enumerate(source, 1):
        if len(word) * 4 > MAX_LEXEME_BYTES and (short := lexeme(word)) != word:
            word = short
            cut += 1
        places = positions.get(word)
        if places is None:
            size += _size(word)
            if size > MAX_TSVECTOR_BYTES:
                position -= 1
                break
            places = positions[word] = []
        if position <= MAX_POSITION and len(places) < MAX_POSITIONS:
            places.append(position)
            size += 2
    for start, end, word in besides:
        inside = [place for place in sorted({start + 1, end}) if place <= MAX_POSITION]
        size += 2 * (_size(word) + 2 * len(inside))
        if size > MAX_TSVECTOR_BYTES:
            break
        word = lexeme(word)
        is_new, known = word not in positions, positions.setdefault(word, [])
        added = [place for place in inside if place not in known][: MAX_POSITIONS - len(known)]
        if is_new or added:
            known[:] = sorted([*known, *added])
            positions[BESIDE + word] = sorted([*positions.get(BESIDE + word, ()), *added])
    without_positions: list[str] = []
    for each in signed:
        size += _size(each)
        if size > MAX_TSVECTOR_BYTES:
            break
        without_positions.append(each)
    if stems is not None:
        _add_stems(positions, stems, size)
    positions.update((each, []) for each in without_positions)
    labels = {place: label for start, end, label in parts for place in range(start + 1, end + 1)}
    text = " ".join(_entry(word, places, labels) for word, places in positions.items())
    return text, _trimmed(len(source), position, cut)


def _size(word: str) -> int:
    return len(word.encode()) + 3  # with padding and number of positions


def _add_stems(positions: dict[str, list[int]], stems: Stems, size: int) -> None:
    """Add the stems of the words in *positions*, a tsvector of *size* bytes so far, up to MAX_TSVECTOR_BYTES."""
    stem_places: dict[str, list[int]] = {}
    marked = (
        (mark, places) for word, places in positions.items() if not word.startswith(BESIDE) for mark in stems(word)
    )
    for mark, places in marked:
        size += 2 * len(places) + (0 if mark in stem_places else _size(mark))
        if size > MAX_TSVECTOR_BYTES:
            break
        stem_places.setdefault(mark, []).extend(places)
    # A position may have a stem twice, of a compound with two equal parts.
    positions.update((mark, sorted(set(places))[:MAX_POSITIONS]) for mark, places in stem_places.items())


def _entry(word: str, places: list[int], labels: dict[int, str]) -> str:
    if not places:
        return quoted(word)
    return f"{quoted(word)}:{','.join(f'{place}{labels.get(place, "")}' for place in places)}"


def _trimmed(total: int, indexed: int, cut: int) -> str | None:
    parts = []
    if indexed < total:
        parts.append(f"the text is too long, only the first {indexed} of its {total} words are searchable")
    if cut:
        parts.append(f"{cut} words longer than {MAX_LEXEME_BYTES} bytes were cut")
    return " and ".join(parts) or None


def tsvector_words(text: str) -> list[str]:
    """Return the words of a tsvector's text form in the order of their positions, the inverse of tsvector_literal.

    A word is repeated for each of its positions; words without one come last.  Stems and whole words are left out.
    """
    placed: list[tuple[int, str]] = []
    beside: set[tuple[int, str]] = set()
    for match in _ENTRY.finditer(text):
        word = _ESCAPED.sub(lambda m: m[0][0], match[1])
        places = (match[2] or str(MAX_POSITION + 1)).translate(_WEIGHTS).split(",")
        if word.startswith(BESIDE):
            beside.update((int(place), word.removeprefix(BESIDE)) for place in places)
        elif not word.startswith(STEM):
            placed += [(int(place), word) for place in places]
    return [word for place, word in sorted(placed) if (place, word) not in beside]


# -- parts of a page


#: Attributes, and the labels of their words in a tsvector.
LABELS = (("Title", "A"), ("Description", "B"), ("Subject", "C"))
#: Most positions at which a part is compared, and most words that are compared: a text may repeat itself for megabytes.
MAX_PLACES = 1000
MAX_WORDS = 500


def find_parts(obj: Any, source: Sequence[str], words: Callable[[list[str]], list[str]]) -> list[Part]:
    """Return the parts (title, description, keywords) of *obj* in *source*, the words of its searchable text.

    *words* converts texts to words.  A part is the first place with all its words in a row behind the parts before, else
    anywhere.  A part that is not found gets no label, so its words count as words of the body.
    """
    labelled: list[Part] = []
    for name, label in LABELS:
        part = words(texts_of(obj, name))[:MAX_WORDS]
        start = _find(source, part, max((end for _, end, _ in labelled), default=0))
        if start is None:
            start = _find(source, part, 0)
        if start is not None and not any(start < end and first < start + len(part) for first, end, _ in labelled):
            labelled.append((start, start + len(part), label))
    return labelled


def texts_of(obj: Any, name: str) -> list[str]:
    """Return the strings in the value of the attribute *name* of *obj*, which is called if it is callable."""
    value = getattr(obj, name, None)
    if value is not None and safe_callable(value):
        value = value()
    values = value if isinstance(value, list | tuple) else (value,)
    return [value for value in values if isinstance(value, str)]


def _find(source: Sequence[str], part: list[str], start: int) -> int | None:
    if not part:
        return None
    for _ in range(MAX_PLACES):
        try:
            start = source.index(part[0], start)
        except ValueError:
            return None
        if source[start : start + len(part)] == part:
            return start
        start += 1
    return None
