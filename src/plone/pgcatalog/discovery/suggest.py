"""Suggestions from the site's own words: what a word that is being typed may become, and what a mistyped one may mean."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from functools import partial
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.discovery.highlight import source_column
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.site import visitors_tuning
from plone.pgcatalog.fulltext.tsquery import as_word
from plone.pgcatalog.fulltext.tsquery import KEYWORDS
from plone.pgcatalog.fulltext.tuning import Words
from plone.pgcatalog.fulltext.typed import wanted_text
from plone.pgcatalog.fulltext.word_lookup import allowed_edits
from plone.pgcatalog.fulltext.word_lookup import beginning
from plone.pgcatalog.fulltext.word_lookup import distance
from plone.pgcatalog.fulltext.word_lookup import EXACT_PREFIX
from plone.pgcatalog.fulltext.word_lookup import near_beginnings
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.meaning.question import is_hybrid
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.query.expression import find
from plone.pgcatalog.query.nearest import AS_SITE
from plone.pgcatalog.query.nearest import RANK
from plone.pgcatalog.query.nearest import without_near
from plone.pgcatalog.query.nearest import WORDS
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.values import whole
from typing import Any

import psycopg
import re


LIMIT = 10
#: Characters of a text that are looked at, and words of it; longer words are taken as they are.
MAX_TEXT, MAX_WORDS, MAX_LENGTH = 1000, 10, 40
#: Letters by which a word of the lexicon may be longer than it is written: ``strasse`` for ``Straße``.
LONGER = 3
#: With fewer suggestions than these the word that is being typed may have a typo.
FEW_SUGGESTIONS = 3

#: Words that are looked at to find as many as are wanted, and rows that each is looked for in: a word that stands in
#: more rows, the first of which are all hidden, is left out.
CANDIDATES, ROWS = 50, 1000
#: Words that are compared with all that may be mistyped.
NEIGHBOURS = 200

#: The SQL of a word as tsquery; see ``lexicon.quoted``.
LEXEME = r"'''' || replace(replace({word}, '\', '\\'), '''', '''''') || ''''"
#: A word is frequent that stands in more than the FREQUENT-th part of the texts; it is looked for in SAMPLE rows first.
FREQUENT, SAMPLE = 20, 200
#: Whether a *candidate*, a word with its number of documents, stands in what the user may see.
#: Frequent words stand in some of the first rows that there are: no need for the list of all theirs.
#: Others are looked up in two steps: what is MATERIALIZED is planned for all its rows, by the GIN index, and then read until
#: one is visible.
SEEN = load_sql("word_seen")
#: By their first letter there is an index in this order.
LIKE = """
SELECT word, documents FROM pgcatalog_words
WHERE catalog = %s AND text_column = %s AND left(word, 1) = %s AND word LIKE %s {more}
ORDER BY documents DESC, word LIMIT {candidates}
"""
#: Up to *limit* of the words that begin so.
BEGINNING = """
WITH candidate AS MATERIALIZED ({candidates}) SELECT word, documents, 0 FROM candidate WHERE {seen} LIMIT {limit}
"""
#: The same, and words that nearly begin so, if there are fewer than *few*.
BEGINNING_OR_NEAR = """
WITH begun (word, documents, nearness) AS MATERIALIZED ({beginning}),
candidate AS MATERIALIZED ({candidates})
SELECT * FROM begun UNION ALL
(SELECT word, documents, 1 FROM candidate WHERE word NOT IN (SELECT word FROM begun) AND ({seen}) LIMIT {limit})
"""
NEARLY = "AND word LIKE ANY (%s::text[]) AND (SELECT count(*) FROM begun) < {few}"
#: ascii(word) > 2: stems are no words.  First those whose end is near as well: an index finds by the beginnings.
NEAR = load_sql("words_near")
DELETIONS = "pgcatalog_deletions(w.word) && pgcatalog_deletions(asked.word)"
#: Words that are seen, and those near to the others.  A word that is there has hundreds of neighbours as often as not:
#: nobody asks for them.
THESE_OR_NEAR = load_sql("words_or_near")
NOT_SEEN = "(SELECT word FROM these WHERE NOT is_seen)"

_RUN = re.compile(r"\w+")
#: A word with what may make it more than a plain one: a sign of exclusion, wildcards.
_TOKEN = re.compile(r"(?:\bNOT\s+|-)?[\w*?]+")


def suggest(tool: Any, text: str, limit: int = LIMIT, query: Mapping[str, Any] | None = None) -> Fetch[list[str]]:
    """Return a fetch of up to *limit* words that begin with the last word of *text*, the most frequent first.

    They stand in what ``searchResults(**query)`` of the catalog *tool* finds, together with the other words of *text*.
    When there are few, words follow that begin alike but for one letter.  One statement.
    """
    runs = _RUN.findall(storable_text(wanted_text(text[-MAX_TEXT:])))
    lexicon = lexicon_of(tool)
    limit = whole("limit", limit, LARGEST_WINDOW)
    prefix = _single(lexicon, runs[-1]) if runs and limit > 0 else None
    if prefix is None:
        return Fetch.of([])
    stop_words = stop_words_of(tool, query or {})
    others = [
        as_word(run)
        for run in runs[:-1][-MAX_WORDS:]
        if (parts := words(lexicon, [run])) and tuple(parts) not in stop_words
    ]
    vocabulary = Vocabulary(tool, {**(query or {}), **({SOURCE_INDEX: " ".join(others)} if others else {})})
    return vocabulary.beginning_with(prefix, limit)


def stop_words_of(tool: Any, query: Mapping[str, Any]) -> Container[Words]:
    """Return the words that a search of the catalog *tool* by *query* does not need."""
    tuning = tool._core.configuration.tuning
    if AS_SITE in query:
        tuning = visitors_tuning(tuning, tool)
    return () if tuning is None else tuning.stop_words(lexicon_of(tool), query)


def _single(lexicon: Any, run: str) -> str | None:
    """Return the one word that *lexicon* makes of *run*; None when it is no word, a long one, or several (Chinese, say)."""
    parts = words(lexicon, [run])
    return parts[0] if len(parts) == 1 and len(parts[0]) <= MAX_LENGTH else None


def did_you_mean(tool: Any, text: str, query: Mapping[str, Any] | None = None) -> Fetch[str | None]:
    """Return a fetch of *text* with words of the site in place of unknown ones, None when nothing better is known.

    The words stand in what ``searchResults(**query)`` of the catalog *tool* finds, and the whole text finds some of it.
    Two statements, one when nothing is corrected.
    """

    def with_hits(better: Correction | None) -> str | None:
        found = [] if better is None else _found_texts(tool, {**(query or {}), SOURCE_INDEX: better.text})
        return better.spelled(found) if better is not None and found else None

    return correct(tool, text, query).then(with_hits)


def correct(tool: Any, text: str, query: Mapping[str, Any] | None = None) -> "Fetch[Correction | None]":
    """Return a fetch of the correction of *text* in what ``searchResults(**query)`` finds, None when nothing better is known.

    The corrected text may find nothing: its words may stand in different pages.  One statement.
    """
    text = storable_text(text)
    tokens = _plain_words(lexicon_of(tool), text)
    words = sorted({word for _, word in tokens})
    if not words:
        return Fetch.of(None)
    near = Vocabulary(tool, query or {}).near(words, max(map(allowed_edits, words)))

    def correction(there: Mapping[str, int]) -> Correction | None:
        better = Correction(tool, query or {}, text, tokens, _corrections(there, words))
        return None if better.text == text else better

    return near.then(correction)


@dataclass(frozen=True)
class Correction:
    """The text *typed* with words of the site in place of unknown ones.

    *tokens* are the words of the text and where they stand, *better* a word of the lexicon for each unknown one, which
    stands in what ``searchResults(**query)`` of the catalog *tool* finds.
    """

    tool: Any
    query: Mapping[str, Any]
    typed: str
    tokens: Sequence[tuple[re.Match[str], str]]
    better: Mapping[str, str]

    @cached_property
    def text(self) -> str:
        """The corrected text in words of the lexicon."""
        return self._with({})

    def spelled(self, texts: Iterable[str]) -> str:
        """Return ``text`` with its new words as they are written in *texts*: ``Bücher`` for ``bucher``.

        Words that are not in *texts* are looked up in the texts of pages.  One statement, or none.
        """
        words = set(self.better.values())
        forms = _forms(lexicon_of(self.tool), words, texts)
        if missing := words.difference(forms):
            any_word = " OR ".join(f'"{word}"' for word in sorted(missing))
            kept = _found_texts(self.tool, {**self.query, SOURCE_INDEX: any_word}, len(missing))
            forms |= _forms(lexicon_of(self.tool), missing, kept)
        return self._with(forms)

    def _with(self, forms: Mapping[str, str]) -> str:
        corrected = self.typed
        for token, word in reversed(self.tokens):
            if word in self.better:
                better = self.better[word]
                better = _as_typed(forms.get(better, better), token[0])
                corrected = corrected[: token.start()] + better + corrected[token.end() :]
        return corrected


def titles_of(brains: Iterable[Any]) -> list[str]:
    """Return the titles and descriptions of *brains*."""
    columns = (getattr(brain, name, None) for brain in brains for name in ("Title", "Description"))
    return [text for text in columns if isinstance(text, str)]


def _forms(lexicon: Any, words: Collection[str], texts: Iterable[str]) -> dict[str, str]:
    """Return for each of *words*, of *lexicon*, how it is written in *texts*, in small letters, if it stands there."""
    forms: dict[str, str] = {}
    lengths = {len(word) - less for word in words for less in range(LONGER + 1)}
    for run in dict.fromkeys(run.lower() for text in texts for run in _RUN.findall(text) if len(run) in lengths):
        word = _single(lexicon, run)
        if word is not None and word in words:
            forms.setdefault(word, run)
    return forms


def _plain_words(lexicon: Any, text: str) -> list[tuple[re.Match[str], str]]:
    """Return where in *text* its first words stand that are searched for as they are, and what *lexicon* makes of them."""
    tokens = []
    for token in _TOKEN.finditer(text, 0, MAX_TEXT):
        if token[0].upper() not in KEYWORDS and _RUN.fullmatch(token[0]):
            word = _single(lexicon, token[0])
            if word is not None and allowed_edits(word):
                tokens.append((token, word))
    return tokens[:MAX_WORDS]


def _corrections(there: Mapping[str, int], words: Sequence[str]) -> dict[str, str]:
    """Return the best of the words that are *there* (``Vocabulary.near``) for each of *words* that is not."""
    best = {}
    for word in set(words).difference(there):
        near = [
            (edits, word[0] != other[0], -documents, other)
            for other, documents in there.items()
            if other.upper() not in KEYWORDS and (edits := distance(word, other, allowed_edits(word))) is not None
        ]
        if near:
            best[word] = min(near)[-1]
    return best


def _as_typed(word: str, token: str) -> str:
    """Return *word* with capitals where *token*, in whose place it comes, has them."""
    if len(token) > 1 and token.isupper():
        return word.upper()
    return word.capitalize() if token[0].isupper() else word


def lexicon_of(tool: Any) -> Any:
    """Return the lexicon of the text index of the catalog *tool*; raises QueryError when there is no such index."""
    return find(tool._core.context, SOURCE_INDEX).index.getLexicon()


def finds_something(tool: Any, query: Mapping[str, Any]) -> bool:
    """Return whether ``searchResults(**query)`` of the catalog *tool* finds any row by words.  One statement, without ranking."""
    return bool(_found_texts(tool, query))


def _found_texts(tool: Any, query: Mapping[str, Any], rows: int = 1) -> list[str]:
    """Return the kept texts of up to *rows* rows that ``searchResults(**query)`` of the catalog *tool* finds by words.

    One statement, without ranking.
    """
    if is_hybrid(query, tool._core.indexes):
        query = {**query, RANK: WORDS}
    results = tool.searchResults(**query)
    found = _some_rows(results, results.condition, source_column(results.catalog), rows)
    return [text or "" for (text,) in found.value()]


def by_meaning_alone(results: CatalogSearchResults) -> Fetch[bool]:
    """Return a fetch of True if no row of *results* has the words of the search, so that they may be mistyped.

    One statement; none for a search that does not ask by meaning, whose value is False.
    """
    where = without_near(results.condition)
    return Fetch.of(False) if where is results.condition else _some_rows(results, where).then(lambda rows: not rows)


def _some_rows(results: CatalogSearchResults, where: Condition, columns: str = "1", rows: int = 1) -> RowsFetch:
    view = results.catalog.search_view()

    def statement(stored: Stored) -> Statement:
        # For one row, PostgreSQL would look through an index of what most rows have, and compare the text of each.
        return bind.select(columns, bind.selective_condition(where, stored), stored, f"LIMIT {rows:d}")

    return view.fetch(statement, where)


def near_sql(trigrams: str | None, neighbours: int = NEIGHBOURS, asked: str = "unnest(%s::text[])") -> str:
    """Return the SQL of (asked, word, documents): up to *neighbours* words that are near to each of *asked*, SQL.

    All that are one edit away are among them, if there are not too many, and many that are two; more with *trigrams*,
    the quoted schema of pg_trgm.  Its values are those of *asked* (the words), the catalog's zoid, the column, and by how
    many letters they may differ.
    """
    close = DELETIONS if trigrams is None else f"{DELETIONS} OR w.word OPERATOR({trigrams}.%%) asked.word"
    return NEAR.format(asked=asked, close=close, neighbours=neighbours)


class Vocabulary:
    """The words of what ``searchResults(**query)`` of the catalog *tool*, which has the text index, finds."""

    def __init__(self, tool: Any, query: Mapping[str, Any]) -> None:
        results = tool.searchResults(**query)
        self._catalog = results.catalog
        self._where: Condition = results.condition
        self._view = self._catalog.search_view()
        self._column = self._catalog.translator(SOURCE_INDEX).column

    def beginning_with(self, text: str, limit: int) -> Fetch[list[str]]:
        """Return a fetch of up to *limit* words that begin with *text*, the most frequent first.

        When there are few, words follow that begin with *text* but for one letter.  One statement.
        """
        column, candidates = (self._catalog.zoid, self._column.name, text[:1]), max(CANDIDATES, limit)
        near = near_beginnings(text) if len(text) > EXACT_PREFIX + 1 else ()

        def sql(seen: str) -> str:
            begun = BEGINNING.format(candidates=LIKE.format(more="", candidates=candidates), seen=seen, limit=limit)
            if not near:
                return begun
            nearly = LIKE.format(more=NEARLY.format(few=min(FEW_SUGGESTIONS, limit)), candidates=candidates)
            return BEGINNING_OR_NEAR.format(beginning=begun, candidates=nearly, seen=seen, limit=limit)

        def params(seen: tuple[Any, ...]) -> tuple[Any, ...]:
            begun = (*column, beginning(text), *seen)
            return (*begun, *column, beginning(text[:EXACT_PREFIX]), list(near), *seen) if near else begun

        rows = self._fetch(sql, params)
        return rows.then(
            lambda rows: [word for word, *_ in sorted(rows, key=lambda row: (row[2], -row[1], row[0]))][:limit]
        )

    def near(self, words: Sequence[str], edits: int) -> Fetch[dict[str, int]]:
        """Return a fetch of word -> its documents: *words* that are there, and neighbours of the others that are.

        Neighbours are all that may be up to *edits* edits away, and some that are further.  One statement.
        """
        self._view.session.read_states()  # tells whether pg_trgm is there
        return Fetch(partial(self._near_words, self._words_or_near(words, edits), words, edits))

    def _near_words(self, rows: RowsFetch, words: Sequence[str], edits: int) -> dict[str, int]:
        generations = self._view.session.generations
        try:
            return dict(rows.value())
        except (psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName):
            if generations.trigrams is None:
                raise
            generations.trigrams = None  # the extension was dropped
            return dict(self._words_or_near(words, edits).value())

    def _words_or_near(self, words: Sequence[str], edits: int) -> RowsFetch:
        near = near_sql(self._view.session.generations.trigrams, max(1, NEIGHBOURS // len(words)), NOT_SEEN)
        column = self._catalog.zoid, self._column.name
        return self._fetch(
            lambda seen: THESE_OR_NEAR.format(near=near, seen=seen),
            lambda seen: (*seen, list(words), *column, *column, edits, *seen),
        )

    def _fetch(self, sql: Callable[[str], str], params: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> RowsFetch:
        """Return a fetch of the rows of *sql* with *params*, both made of ``SEEN`` and its values."""
        texts = (self._catalog.zoid, self._column.name)

        def statement(stored: Stored) -> Statement:
            relation, source_params = stored.source
            where = bind.condition(self._where, stored)
            seen = SEEN.format(
                relation=relation,
                column=self._column.quoted,
                frequent=FREQUENT,
                sample=SAMPLE,
                rows=ROWS,
                lexeme=LEXEME.format(word="candidate.word"),
                where=where.sql,
            )
            restricted = (*source_params, *where.params)
            # Not costly, even if the restriction is: a scan stops at the first row that has a word.
            return Statement(sql(seen), params((*texts, *restricted, *restricted)), is_costly=False)

        fetch: RowsFetch = self._view.fetch(statement, self._where)
        return fetch
