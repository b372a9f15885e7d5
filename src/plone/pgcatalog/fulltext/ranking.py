"""Ranking: the terms of a query, the weights of a site, and the backends that compute a score from them.

The built-in backend is Okapi BM25 in plain SQL, as in ``Products.ZCTextIndex.OkapiIndex``, with weights for parts of a page.

    score(D, Q) = sum over the terms t of Q: IDF(t) * (least * TF(D, t) + more * W(D, t))

    IDF(t)   = ln(1 + N / n)              N documents, n of them with t
    TF(D, t) = f * (K1 + 1) / (f + K)     f occurrences of t in D
    K        = K1 * (1 - B + B * words of D / average words)
    W(D, t)  = 0 ... 1                    1 if t is in the heaviest part of D
    least, more                           the lightest weight, and the heaviest minus the lightest

PostgreSQL has no function that counts the occurrences of a word in a tsvector.  But ``ts_rank`` of one lexeme, with all
weights 1, is (1 + 1/4 + 1/9 + ... + 1/f²) / (π²/6) (``calc_rank_or`` in src/backend/utils/adt/tsrank.c).  The difference of
that series to π²/6 is its tail t = ψ₁(f + 1), t ≈ 1 / (f + 1/2) for large f, which gives f ≈ 1/t - t/12 - 1/2: 0.997 for one
occurrence, 1.999 for two.
"""

from abc import ABC
from abc import abstractmethod
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields
from functools import lru_cache
from plone.pgcatalog.fulltext.lexicon import lexeme
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.settings import weight_body
from plone.pgcatalog.settings import weight_description
from plone.pgcatalog.settings import weight_keywords
from plone.pgcatalog.settings import weight_title
from plone.pgcatalog.sql.expression import Fragment
from typing import Any
from typing import Self


# -- terms, weights and backends


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query that is not excluded; with ``prefix``, all words that begin with it.

    ``related`` are groups of other lexemes that match as well, such as stems.  No position of a text has two lexemes of a
    group.
    """

    word: str
    prefix: bool = False
    related: tuple[tuple[str, ...], ...] = ()

    @property
    def tsquery(self) -> str:
        return quoted(self.word) + (":*" if self.prefix else "")

    @property
    def shape(self) -> "Shape":
        """The properties of the term that the SQL of its score depends on."""
        return self.prefix, tuple(map(len, self.related))


#: Whether a term is a prefix, and the number of lexemes in each of its groups of related lexemes.
Shape = tuple[bool, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of a word in each part of a page; only the proportions matter."""

    title: float = weight_title.default
    description: float = weight_description.default
    keywords: float = weight_keywords.default
    body: float = weight_body.default

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the weights in the *settings* ``weight_title``, ``weight_description`` …, defaults for missing ones."""
        weights = {field.name: settings.get(f"weight_{field.name}") for field in fields(cls)}
        return cls(**{name: max(0.0, float(value)) for name, value in weights.items() if value is not None})

    @property
    def least(self) -> float:
        return min(self._parts)

    @property
    def more(self) -> float:
        """The heaviest weight minus the lightest."""
        return max(self._parts) - min(self._parts)

    @property
    def labels(self) -> list[float]:
        """Return the weights of the labels D, C, B, A of a tsvector, scaled to 0 for the lightest, 1 for the heaviest."""
        least, more = self.least, self.more or 1.0
        return [(weight - least) / more for weight in self._parts]

    @property
    def _parts(self) -> tuple[float, ...]:
        return self.body, self.keywords, self.description, self.title


#: The same weight for all parts.
NEUTRAL = Weights(1.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class RankedText:
    """A text index as SQL: the quoted names of its tsvector column and of the column with the number of words.

    ``catalog`` (zoid of the tool) and ``column`` (unquoted name of the tsvector column) identify its word counts.
    """

    vector: str
    words: str
    column: str
    catalog: int | None = None


class SearchBackend(ABC):
    """Ranks the rows of a text search; it does not select them."""

    @abstractmethod
    def score(self, text: RankedText, terms: Sequence[Term], weights: Weights) -> Fragment | None:
        """Return an SQL number, the higher the better, that scores a row of *text* for *terms*; None if there is no ranking.

        The statement of the search evaluates it for every row it finds, pending ones included.
        """


# -- BM25


K1 = 1.2
B = 0.75
#: Weight of an occurrence of a related lexeme, such as another form of the word, relative to the word itself.
RELATED = 0.5
#: Average number of words in a document, until words have been counted.
AVERAGE_WORDS = 100
#: Size of the cache of scores as SQL; an entry is for a text index, a sequence of shapes, and weights.
SHAPES = 256
#: π²/6, and the tail of its series behind 255 terms: a tsvector stores at most 255 positions of a word.
ZETA_2 = 1.644934
TAIL_255 = 0.003914

ONES = "ARRAY[1, 1, 1, 1]::real[]"
#: The counts of a text index ``all_of``; a word that is not among them is in one document.
OF_TEXT = "FROM pgcatalog_words WHERE text_number = all_of.number"
#: The number of words with a prefix.
SPELLED = "(SELECT count(*) FROM pgcatalog_spelled(%s, %s, %s, %s))"
#: A copy of the tsvector: so it is decompressed once, and not for each ts_rank.  The empty array changes no label.
UNPACKED = "setweight({}, 'D', ARRAY[]::text[])"


class PlainBackend(SearchBackend):
    """BM25 with the counts in pgcatalog_words; needs no extension of PostgreSQL."""

    def score(self, text: RankedText, terms: Sequence[Term], weights: Weights) -> Fragment | None:
        """See SearchBackend."""
        if not terms:
            return None
        score = _score(text, tuple([term.shape for term in terms]), weights)
        return Fragment(score.sql, tuple([each(terms) if callable(each) else each for each in score.params]))


#: Function from the terms to the value of a placeholder.
ValueOfTerms = Callable[[Sequence[Term]], Any]


@lru_cache(maxsize=SHAPES)
def _score(text: RankedText, shapes: Sequence[Shape], weights: Weights) -> Fragment:
    """Return the score for terms of these *shapes*; its params are constants, or ``ValueOfTerms`` if terms matter."""
    parts = [_Part(text, place, shape, weights) for place, shape in enumerate(shapes)]
    average = _average(text)
    columns = [column for part in parts for column in part.columns]
    score = " + ".join(part.score.sql for part in parts)
    vector = UNPACKED.format(text.vector) if len(columns) > 1 else text.vector
    unpacked = f"SELECT {vector} AS v, {text.words} AS n"
    sql = (
        f"(SELECT {score} FROM (SELECT {', '.join(c.sql for c in columns)},"
        f" {K1 * (1 - B):g} + {K1 * B:g} * n / {average.sql} AS k FROM ({unpacked} OFFSET 0) AS doc OFFSET 0) AS tf)"
    )
    # In the order of the placeholders.
    values = [*(p.score for p in parts), *columns, average]
    return Fragment(sql, tuple(param for value in values for param in value.params))


class _Part:
    """The summand of the score for the term at *place*, which has *shape*."""

    def __init__(self, text: RankedText, place: int, shape: Shape, weights: Weights) -> None:
        prefix, sizes = shape
        name = f"t{place}"
        self.columns = [
            _tail(1, f"{name}_0", lambda terms: terms[place].tsquery),
            *(_tail(size, f"{name}_{i}", _lexemes(place, i - 1)) for i, size in enumerate(sizes, 1)),
        ]
        frequencies = [f"greatest(1 / {name}_{i} - {name}_{i} / 12 - 0.5, 0)" for i in range(len(sizes) + 1)]
        frequency = frequencies[0]
        if sizes:
            frequency += f" + {RELATED:g} * ({' + '.join(frequencies[1:])})"
        # f * (K1 + 1) / (f + K), with f only once
        tf = f"{K1 + 1:g} * (1 - k / ({frequency} + k))"
        rarity = _rarity(text, place, prefix)
        if not weights.more:
            self.score = Fragment(f"{rarity.sql} * {tf}", rarity.params)
            return
        self.columns.append(_place(place, sum(sizes), f"{name}_w", weights))
        self.score = Fragment(
            f"{rarity.sql} * (%s::float8 * {tf} + %s::float8 * {name}_w)", (*rarity.params, weights.least, weights.more)
        )


def _lexemes(place: int, group: int) -> ValueOfTerms:
    """Return the value for the related lexemes in *group* of the term at *place*, as a tsquery of alternatives."""
    return lambda terms: " | ".join(map(quoted, terms[place].related[group]))


def _tail(size: int, name: str, lexemes: ValueOfTerms) -> Fragment:
    """Return the column *name*: the tail of the series of ZETA_2 behind the occurrences of *lexemes*, *size* alternatives.

    ``ts_rank`` of alternatives is the mean of their ranks, hence the factor *size*.
    """
    rank = f"ts_rank({ONES}, v, %s::tsquery)"
    return Fragment(f"greatest({ZETA_2} - {ZETA_2 * size:.6f} * {rank}, {TAIL_255}) AS {name}", (lexemes,))


def _place(place: int, size: int, name: str, weights: Weights) -> Fragment:
    """Return the column *name*: W of the term at *place*, 1 if it is in the heaviest part of the page, else less.

    *size* is the number of lexemes related to the term.
    """

    def tsquery(terms: Sequence[Term]) -> str:
        return terms[place].tsquery

    def related(terms: Sequence[Term]) -> str:
        return " | ".join(map(quoted, _flat(terms[place].related)))

    ranks = [Fragment(f"{ZETA_2} * ts_rank(%s::real[], v, %s::tsquery)", (weights.labels, tsquery))]
    if size:
        share = ZETA_2 * size * RELATED
        ranks.append(Fragment(f"{share:g} * ts_rank(%s::real[], v, %s::tsquery)", (weights.labels, related)))
    sql = ranks[0].sql if len(ranks) == 1 else f"greatest({', '.join(r.sql for r in ranks)})"
    return Fragment(f"least({sql}, 1) AS {name}", tuple(p for r in ranks for p in r.params))


def _rarity(text: RankedText, place: int, prefix: bool) -> Fragment:
    """Return the IDF of the term at *place* by the last count of words; without one ln 2, as for a word in all documents."""
    if text.catalog is None:
        return Fragment("ln(2.0::float8)")

    def first(terms: Sequence[Term]) -> str:
        return lexeme(terms[place].word)

    def last(terms: Sequence[Term]) -> str:
        return lexeme(terms[place].word) + "\U0010ffff"

    def lexemes(terms: Sequence[Term]) -> list[str]:
        return [lexeme(terms[place].word), *_flat(terms[place].related)]

    # All words with the prefix: the upper bound is the prefix with the last code point.
    counted = (
        Fragment(
            f"SELECT {SPELLED} + coalesce(sum(documents - 1), 0) {OF_TEXT} AND word >= %s AND word < %s",
            (text.catalog, text.column, first, last, first, last),
        )
        if prefix
        else Fragment(f"SELECT coalesce(sum(documents), 0) {OF_TEXT} AND word = ANY(%s::text[])", (lexemes,))
    )
    return Fragment(
        "coalesce((SELECT ln(1 + all_of.documents / greatest(least(all_of.documents, had.n), 1)::float8)"
        f" FROM pgcatalog_texts all_of CROSS JOIN LATERAL ({counted.sql}) AS had (n)"
        " WHERE all_of.catalog = %s AND all_of.text_column = %s), ln(2.0::float8))",
        (*counted.params, text.catalog, text.column),
    )


def _average(text: RankedText) -> Fragment:
    """Return the SQL of the average number of words in a document."""
    if text.catalog is None:
        return Fragment(f"{AVERAGE_WORDS}::float8")
    return Fragment(
        "coalesce((SELECT nullif(average_words, 0) FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s),"
        f" {AVERAGE_WORDS})",
        (text.catalog, text.column),
    )


def _flat(groups: Iterable[Iterable[str]]) -> list[str]:
    return [word for group in groups for word in group]
