"""Ranks by the server's extension pg_textsearch, where an administrator has built an index of it.

Only the order is the extension's; what is found is decided by the catalog's own condition, as always.  Scores are made
row by row: ``column <@> to_bm25query(words, index)`` of each row that is found.  PostgreSQL could also read rows in the
order of the index.  That is faster, but it leaves out rows without the very words of the query (other forms of a word,
synonyms), and rows whose texts were changed may be lost between its batches: then a page would miss what is found.

Where the extension cannot rank, the built-in backend does: rows that a transaction has changed are not in the index,
an index can be missing or broken, and the words of a query may be none of those that the extension makes of a text.
"""

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from plone.pgcatalog.fulltext.bm25 import PlainBackend
from plone.pgcatalog.fulltext.ranking import RankedText
from plone.pgcatalog.fulltext.ranking import Score
from plone.pgcatalog.fulltext.ranking import SearchBackend
from plone.pgcatalog.fulltext.ranking import Term
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.fragment import Fragment

import logging


logger = logging.getLogger(__name__)

Change = Callable[[Fragment], Fragment]


@dataclass(frozen=True, eq=False)
class IndexedScore(Score):
    """The built-in score; and with an index of the extension, *words* looked for in *column*.

    *change* is what the site's tuning makes of either.
    """

    words: str = field(kw_only=True)
    column: Column = field(kw_only=True)
    change: Change | None = None

    @property
    def plain(self) -> Score:
        """The score for any server."""
        return Score(self.sql, self.params, self.preferred)

    def by(self, index: str) -> Score:
        """Return the score of the extension, by the *index* of that name; its own are negative, the best the lowest."""
        score = Fragment(f"(-({self.column.quoted} <@> to_bm25query(%s::text, %s::text)))", (self.words, index))
        changed = score if self.change is None else self.change(score)
        return Score(changed.sql, changed.params, self.preferred)

    def changed(self, change: Change) -> "IndexedScore":
        """Return the scores as *change* makes them."""
        plain = change(self.plain)
        return replace(self, sql=plain.sql, params=plain.params, change=change)


class TextSearchBackend(SearchBackend):
    """BM25 of pg_textsearch where it has an index that can rank, else the built-in one."""

    def __init__(self, otherwise: SearchBackend | None = None) -> None:
        self.otherwise = otherwise or PlainBackend()

    def score(self, text: RankedText, terms: Sequence[Term], weights: Weights) -> Fragment | None:
        """See SearchBackend."""
        plain = self.otherwise.score(text, terms, weights)
        if plain is None or text.source is None:
            return plain
        words = words_of(terms) if text.asked.isascii() else None
        if words is None:
            logger.debug("ranked without pg_textsearch: there are words that are others in a text")
            return plain
        return IndexedScore(plain.sql, plain.params, words=words, column=text.source)


def words_of(terms: Sequence[Term]) -> str | None:
    """Return *terms* as a text for the extension; None if it does not make the same words of texts.

    Words of a lexicon have lost their accents, and a Chinese sentence has been cut; the text in the index is as
    somebody wrote it, so only words of ASCII letters and digits are looked for, that were written so.
    """
    words = [term.word for term in terms]
    if not words or not all(word.isascii() and word.isalnum() for word in words):
        return None
    return " ".join(words)
