"""Compounds without a dictionary: ``Urlaubsantrag`` is found by ``Antrag``, since its parts are words of the site.

A word is split where all parts are words that enough pages have, with linking elements between them; of several splits the
one with the highest geometric mean of these numbers is used (Koehn and Knight 2003, Empirical Methods for Compound
Splitting).  With a short part, the word stays whole if more pages have it than that mean.  A text stores the stems of the parts beside the compound, as it stores the stem of a word.

The words that may be parts are stored with the catalog tool, and renewed when a rebuild begins.  So the parts of a text
depend on the text and the tool alone, and a rebuild changes all texts together.
"""

from Acquisition import aq_base
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import lru_cache
from math import log
from persistent import Persistent
from plone.pgcatalog.fulltext.stemming import code
from plone.pgcatalog.fulltext.stemming import has_stemmer
from plone.pgcatalog.fulltext.stemming import is_plain
from plone.pgcatalog.fulltext.stemming import Split
from plone.pgcatalog.fulltext.stemming import stem
from plone.pgcatalog.fulltext.tuning import listed_stop_words
from plone.pgcatalog.fulltext.tuning import normal_words
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.files import read_statement
from psycopg import Connection
from psycopg.rows import tuple_row
from typing import Any


#: Languages that write compounds as one word -> the elements that may link two parts.
LINKS = {
    "de": ("", "s", "es", "n", "en", "er", "e", "ns"),
    "nl": ("", "s", "e", "en", "er"),
    "sv": ("", "s", "e", "o", "u"),
    **dict.fromkeys(("da", "nb", "nn", "no"), ("", "s", "e", "er")),
    "fi": ("", "n", "en"),
}
#: Words that are no first or middle part of a compound, also not with a linking element, besides the stop words of the
#: language: particles and adverbs before verbs.
NOT_FIRST = {
    "de": """
    aneinander aufeinander auseinander bekannt bereit bereits dahinter dar darunter davor dazwischen durcheinander eins empor
    entgegen entlang fehl fern fest fort frei gegenüber gleich heim her herab heran herauf heraus herbei herein herum herunter
    hervor hin hinab hinauf hinaus hinein hinweg hinzu irgend irre kund los miss nieder offen raus rein statt überein umher voran
    voraus vorbei vorher vorüber weg weit weiter wider wieder wohl zugrunde zurecht zurück zusammen zustande
    """
}
#: Words that are no last part: endings of participles, verbs, adjectives and adverbs.
NOT_LAST = {
    "de": """
    alt alten artig artige artigen bar bare baren einander end ende endem enden endend endende ender endes endet fach fache fachen
    falls haft heit keit lich los mals maßen mäßig net ständig voll volle vollen weise
    """
}
#: Fewest and most letters of a compound, and fewest of a part.
SHORTEST, LONGEST, SHORTEST_PART = 8, 60, 3
#: Most parts of a compound.
MOST_PARTS = 5
#: Most letters of a part that may stand in a simple word by chance.
SHORT = 4
#: Fewest documents with a part of six letters, of fewer and of more letters, and with one that is a stem and no word: Schul|amt.
FEWEST_BY_LENGTH = {3: 3, 4: 3, 5: 3, 6: 2}
FEWEST_LONG, FEWEST_OF_STEM = 1, 8
#: Fewest letters of a part that is a stem and no word, and of one that is as frequent as all words with its stem.
SHORTEST_STEM, OWN_STEM = 5, 6
#: An affix begins or ends more different words, for each of its documents and of its letters but two, than this: ver-, -bar.
MOST_WORDS = 2.0
#: A word of four or five letters is a first part, too, if it goes on with known parts in so many words, and in this share of them.
FEWEST_WORDS, SHARE = 3, 0.5
#: Most words of a catalog that are read, and most parts that are stored: the most frequent ones.
MOST_READ, MOST_STORED = 500_000, 50_000
#: Number of words whose parts are cached, for each of the vocabularies that a process shares among its connections.
REMEMBERED, MOST_SPLITTERS = 50_000, 8
#: The attribute of the tool with its CompoundWords.
ATTRIBUTE = "_compound_words"
#: The last code point.
LAST = "\U0010ffff"

#: word -> weight as a part; None for a word that is no part.
Weights = Mapping[str, float | None]


class CompoundWords(Persistent):
    """The words that may be parts of compounds, in the languages of a site.

    *parts*: language -> two texts of ``word:documents`` entries, of the words that may be the first or a middle part, and of
    those that may be the last one.  A word with the number 0 is no part.
    """

    def __init__(self, parts: dict[str, tuple[str, str]]) -> None:
        self.parts = parts

    @property
    def splits(self) -> Mapping[str, Split]:
        """Language -> function that splits its compounds."""
        splits: dict[str, Split] | None = getattr(self, "_v_splits", None)
        if splits is None:
            splits = self._v_splits = {language: splitter(language, *texts) for language, texts in self.parts.items()}
        return splits


def splits_of(tool: Any) -> Mapping[str, Split]:
    """Return language -> function that splits its compounds, of the catalog *tool*; empty before its first rebuild."""
    words = getattr(aq_base(tool), ATTRIBUTE, None)
    return {} if words is None else words.splits


# -- splitting


@lru_cache(maxsize=MOST_SPLITTERS)
def splitter(language: str, beginnings: str, ends: str) -> Split:
    """Return the function that splits compounds of *language*, shared by the connections of the process; see CompoundWords."""
    first, last = (
        {word: log(int(number)) if number != "0" else None for word, _, number in _entries(text)}
        for text in (beginnings, ends)
    )
    starts = frozenset(word[:SHORTEST_PART] for word in first)

    @lru_cache(maxsize=REMEMBERED)
    def split(word: str) -> tuple[str, ...]:
        return tuple(stem(language, part) for part in best_split(word, language, first, last)) if is_plain(word) else ()

    # The cache has possible compounds only.
    return lambda word: split(word) if SHORTEST <= len(word) <= LONGEST and word[:SHORTEST_PART] in starts else ()


def best_split(word: str, language: str, first: Weights, last: Weights) -> tuple[str, ...]:
    """Return the parts of *word* with the highest mean weight, without linking elements; () if there is no split.

    *first* and *last*: the weights of words that may be a part before the last one, and of those that may be the last one, also
    in another form.
    """
    size = len(word)
    # (end, number of parts) -> (weight, parts) of the best split up to there
    best: dict[tuple[int, int], tuple[float, tuple[str, ...]]] = {(0, 0): (0.0, ())}
    for start in range(size - SHORTEST_PART + 1):
        before = [(number, *best[start, number]) for number in range(MOST_PARTS) if (start, number) in best]
        if not before:
            continue
        for end in range(start + SHORTEST_PART, size - SHORTEST_PART + 1):
            weight = first.get(word[start:end])
            if weight is not None:
                nexts = [
                    end + len(link)
                    for link in LINKS[language]
                    if word.startswith(link, end) and first.get(word[start : end + len(link)], weight) is not None
                ]
                _extend(best, before, word[start:end], weight, nexts)
        weight = last.get(word[start:], last.get(stem(language, word[start:]))) if start else None
        if weight is not None:
            _extend(best, before, word[start:], weight, [size])
    # A short part may stand in a simple word by chance: then its own documents count, too.
    whole = [(weight / number, parts) for (end, number), (weight, parts) in best.items() if end == size]
    weight, parts = max(whole, default=(0.0, ()))
    own = max(last.get(word) or 0.0, last.get(stem(language, word)) or 0.0)
    return () if own > weight and any(len(part) <= SHORT for part in parts) else parts


def _extend(
    best: dict[tuple[int, int], tuple[float, tuple[str, ...]]],
    before: Sequence[tuple[int, float, tuple[str, ...]]],
    part: str,
    weight: float,
    ends: Sequence[int],
) -> None:
    """Add to *best* the splits *before*, followed by *part*, which is followed by linking elements up to one of *ends*."""
    for number, sum_before, parts in before:
        for end in ends:
            key = end, number + 1
            if key not in best or best[key][0] < sum_before + weight:
                best[key] = sum_before + weight, (*parts, part)


# -- the words that may be parts


def with_compounds(languages: Iterable[str]) -> list[str]:
    """Return the codes of those of *languages* that write compounds as one word."""
    return [language for language in dict.fromkeys(map(code, languages)) if language in LINKS and has_stemmer(language)]


def renew(tool: Any, connection: Connection[Any], languages: Sequence[str]) -> None:
    """Store with the catalog *tool* the words of its last count that may be parts of compounds; *connection* reads them.

    *languages* are those of the site.  Without counted words, as in a copied site, the former ones stay.  Raises psycopg.Error.
    """
    translator = tool._core.translator(SOURCE_INDEX)
    with connection.cursor(row_factory=tuple_row) as cursor:
        values = {"catalog": tool._core.zoid, "column": translator.column.name, "most": MOST_READ}
        counts: dict[str, int] = dict(
            cursor.execute(read_statement("fulltext", "words_of_compounds"), values).fetchall()
        )
    if not counts:
        return
    lexicon = translator.index.getLexicon()
    parts, stop_words = {}, listed_stop_words()
    for language in with_compounds(languages):
        excluded = [
            {
                word
                for text in (*stop_words.get(language, ()), more.get(language, ""))
                for word in normal_words(lexicon, text)
            }
            for more in (NOT_FIRST, NOT_LAST)
        ]
        parts[language] = find_parts(counts, language, *excluded)
    setattr(aq_base(tool), ATTRIBUTE, CompoundWords(parts))


def find_parts(
    counts: Mapping[str, int], language: str, not_first: Collection[str], not_last: Collection[str]
) -> tuple[str, str]:
    """Return the texts of CompoundWords for *language*.

    - *counts*: word of a lexicon -> documents
    - *not_first*, *not_last*: words that are no part before the last one, and no last part
    """
    plain = {word: number for word, number in counts.items() if is_plain(word)}
    known = {word: number for word, number in plain.items() if number >= FEWEST_BY_LENGTH.get(len(word), FEWEST_LONG)}
    of_stem: Counter[str] = Counter()
    for word, number in known.items():
        of_stem[stem(language, word)] += number
    forwards, backwards = sorted(plain), sorted(word[::-1] for word in plain)
    first, last = dict.fromkeys(not_first, 0), dict.fromkeys(not_last, 0)
    for word, number in known.items():
        of_all = of_stem[stem(language, word)]
        documents = of_all if len(word) >= OWN_STEM else number
        if word not in first and _is_few(word, documents, forwards):
            first[word] = of_all
        if word not in last and _is_few(word[::-1], documents, backwards):
            last[word] = of_all
    bare_excluded = {stem(language, word) for word in not_first}
    for bare, number in of_stem.items():
        is_stem = number >= FEWEST_OF_STEM and len(bare) >= SHORTEST_STEM and bare not in plain
        if is_stem and bare not in bare_excluded and _is_few(bare, number, forwards):
            first[bare] = number
    for word, number in plain.items():
        if SHORTEST_PART < len(word) < OWN_STEM and word not in first and _is_first(word, language, last, forwards):
            first[word] = number
    return _text(first), _text(last)


def _is_first(beginning: str, language: str, last: Mapping[str, int], words: list[str]) -> bool:
    """Return whether enough of the sorted *words* that start with *beginning* go on with one of the parts *last*."""
    begun = words[bisect_left(words, beginning) + 1 : bisect_left(words, beginning + LAST)]
    rests = [word[len(beginning) :] for word in begun if len(word) > len(beginning) + SHORTEST_PART]
    number = sum(
        any(
            rest.startswith(link) and (last.get(rest[len(link) :]) or last.get(stem(language, rest[len(link) :])))
            for link in LINKS[language]
        )
        for rest in rests
    )
    return number >= FEWEST_WORDS and number >= SHARE * len(rests)


def _is_few(beginning: str, documents: int, words: list[str]) -> bool:
    """Return whether *beginning*, a word with *documents*, is no affix: it begins few of the sorted *words*."""
    number = bisect_left(words, beginning + LAST) - bisect_left(words, beginning)
    return number <= MOST_WORDS * documents * (len(beginning) - 2)


def _text(parts: Mapping[str, int]) -> str:
    # Words with the number 0, which are few, come first.
    frequent = sorted(parts.items(), key=lambda item: (item[1] > 0, -item[1], item[0]))[:MOST_STORED]
    return " ".join(f"{word}:{number}" for word, number in frequent)


def _entries(text: str) -> Iterator[tuple[str, str, str]]:
    return (entry.partition(":") for entry in text.split())
