"""Suggestions from the site's own words: completions of a word that is being typed, and corrections of a mistyped text."""

from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cached_property
from functools import partial
from plone.pgcatalog.discovery.spelling import as_typed
from plone.pgcatalog.discovery.spelling import letter_classes
from plone.pgcatalog.discovery.spelling import single_word
from plone.pgcatalog.discovery.spelling import SPELLED
from plone.pgcatalog.discovery.spelling import SPELLED_FORMS
from plone.pgcatalog.discovery.spelling import SPELLED_LENGTH
from plone.pgcatalog.discovery.spelling import SPELLED_PAGES
from plone.pgcatalog.discovery.spelling import SPELLED_WORDS
from plone.pgcatalog.discovery.spelling import spelling
from plone.pgcatalog.discovery.spelling import spellings_in
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.places import written_words
from plone.pgcatalog.fulltext.site import visitors_tuning
from plone.pgcatalog.fulltext.tsquery import as_word
from plone.pgcatalog.fulltext.tsquery import KEYWORDS
from plone.pgcatalog.fulltext.tuning import Words
from plone.pgcatalog.fulltext.typed import wanted_text
from plone.pgcatalog.fulltext.typing_errors import unlikelihood
from plone.pgcatalog.fulltext.word_lookup import allowed_edits
from plone.pgcatalog.fulltext.word_lookup import beginning
from plone.pgcatalog.fulltext.word_lookup import distance
from plone.pgcatalog.fulltext.word_lookup import EXACT_PREFIX
from plone.pgcatalog.fulltext.word_lookup import LAST
from plone.pgcatalog.fulltext.word_lookup import near_beginnings
from plone.pgcatalog.fulltext.word_lookup import near_pattern
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.meaning.question import is_hybrid
from plone.pgcatalog.meaning.text import source_column
from plone.pgcatalog.observe.searches import PEOPLE
from plone.pgcatalog.observe.searches import SUGGESTED_DAYS
from plone.pgcatalog.observe.searches import words_of
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
from plone.pgcatalog.settings import suggest_searches
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.values import whole
from typing import Any

import psycopg


#: (start, end, word of the lexicon) of a word in a text.
Token = tuple[int, int, str]

#: Most suggestions, by default.
LIMIT = 10
#: Most characters of a text that are read, and most words of it.
MAX_TEXT, MAX_WORDS = 1000, 10
#: With fewer suggestions than these, words that begin with the typed letters but for one edit are suggested as well.
FEW_SUGGESTIONS = 3

#: Most words that are examined for suggestions, and most rows that are read for each of them: a word whose first rows are
#: all hidden is left out.
CANDIDATES, ROWS = 50, 1000
#: Most neighbours that are compared with a word, and with all words of a text.
NEIGHBOURS_OF_WORD, NEIGHBOURS = 20, 200

#: The SQL of a word as tsquery; see ``lexicon.quoted``.
LEXEME = r"'''' || replace(replace({word}, '\', '\\'), '''', '''''') || ''''"
#: A word in more than 1/FREQUENT of the texts is frequent; it is looked up in SAMPLE rows first.
FREQUENT, SAMPLE = 20, 200
#: SQL condition: *candidate*, a word with its number of documents, is in a row that the user may see.
#: - A frequent word is in some of the first rows, so the list of all its rows is not needed.
#: - Other words are looked up in two steps: the MATERIALIZED part is planned for all its rows, by the GIN index, but only
#:   read until one is visible.
SEEN = read_statement("discovery", "word_seen")
#: Returns SEEN, formatted, for a word or, with its SQL as the argument, for another tsquery.
Seen = Callable[..., str]
#: Searches of others that begin with a text; up to SEARCH_CANDIDATES of them are examined.
SEARCHES = read_statement("discovery", "searches_beginning")
SEARCH_CANDIDATES = 20
#: The most frequent words with a prefix.
TYPED = read_statement("discovery", "words_typed")
#: Up to *limit* words with the prefix.
BEGINNING = """
WITH candidate AS MATERIALIZED ({candidates}) SELECT word, documents, 0 FROM candidate WHERE {seen} LIMIT {limit}
"""
#: The same, followed by words that nearly begin with the prefix, if there are fewer than *few* words.
BEGINNING_OR_NEAR = read_statement("discovery", "words_beginning")
NEARLY = "AND word LIKE ANY (%s::text[]) AND (SELECT count(*) FROM begun) < {few}"
#: The SQL index finds words with near beginnings; those with the same end, and about as many letters, come first.
NEAR = read_statement("discovery", "words_near")
SIMILAR_WORDS = read_statement("discovery", "words_similar")
#: The words that the user may see, and neighbours of the others only: a word of the site often has hundreds of neighbours.
THESE_OR_NEAR = read_statement("discovery", "words_or_near")
NOT_SEEN = "word IN (SELECT word FROM these WHERE NOT is_seen)"
#: The first of some rows, by a plan for all of them, which only reads these.
FIRST_ROWS = "WITH found AS MATERIALIZED ({rows}) SELECT * FROM found LIMIT {limit}"


def suggest(tool: Any, text: str, limit: int = LIMIT, query: Mapping[str, Any] | None = None) -> list[str]:
    """Return the value of ``fetch_suggestions``."""
    return fetch_suggestions(tool, text, limit, query).value()


def fetch_suggestions(
    tool: Any, text: str, limit: int = LIMIT, query: Mapping[str, Any] | None = None
) -> Fetch[list[str]]:
    """Return a fetch of up to *limit* words that begin with the last word of *text*, the most frequent first.

    Each is in some result of ``searchResults(**query)`` of the catalog *tool*, together with the other words of *text*.  If
    there are few, words that begin with the last word but for one edit follow.  If the site suggests searches, searches that
    begin with *text* come first, from the last word of *text* on: half of the suggestions at most.  One statement.
    """
    typed = storable_text(wanted_text(text[-MAX_TEXT:]))
    tokens = [typed[start:end] for start, end in written_words(typed)]
    lexicon = lexicon_of(tool)
    limit = whole("limit", limit, LARGEST_WINDOW)
    prefix = single_word(lexicon, tokens[-1]) if tokens and limit > 0 else None
    if prefix is None:
        return Fetch.of([])
    stop_words = stop_words_of(tool, query or {})
    others = [
        as_word(token)
        for token in tokens[:-1][-MAX_WORDS:]
        if (parts := words(lexicon, [token])) and tuple(parts) not in stop_words
    ]
    vocabulary = Vocabulary(tool, {**(query or {}), **({SOURCE_INDEX: " ".join(others)} if others else {})})
    searched = words_of(typed) if suggest_searches(tool) else ""
    return vocabulary.beginning_with(prefix, limit, searched)


def stop_words_of(tool: Any, query: Mapping[str, Any]) -> Container[Words]:
    """Return the stop words that apply to a search of the catalog *tool* by *query*."""
    tuning = tool._core.configuration.tuning
    if AS_SITE in query:
        tuning = visitors_tuning(tuning, tool)
    return () if tuning is None else tuning.stop_words(lexicon_of(tool), query)


def did_you_mean(tool: Any, text: str, query: Mapping[str, Any] | None = None) -> str | None:
    """Return *text* with words of the site in place of unknown ones; None without a correction.

    The words are in results of ``searchResults(**query)`` of the catalog *tool*, and the corrected text finds some of these.
    Two statements, one if nothing is corrected; up to four if no page has all the new words in these very forms.
    """

    def with_hits(better: Correction | None) -> str | None:
        if better is None:
            return None
        # A page with the new words themselves has their spelling, too.
        texts = (better.exact_text, better.text)
        found = next(filter(None, (_found_texts(tool, {**(query or {}), SOURCE_INDEX: each}) for each in texts)), [])
        return better.spelled(found) if found else None

    return correct(tool, text, query).then(with_hits).value()


def correct(tool: Any, text: str, query: Mapping[str, Any] | None = None) -> "Fetch[Correction | None]":
    """Return a fetch of the correction of *text* by words in results of ``searchResults(**query)``; None without one.

    The corrected text may find nothing, since its words may be in different pages.  One statement.
    """
    text = storable_text(text)
    tokens = _plain_words(lexicon_of(tool), text)
    words = sorted({word for *_, word in tokens})
    if not words:
        return Fetch.of(None)
    near = Vocabulary(tool, query or {}).near(words, max(map(allowed_edits, words)))

    def correction(nearby: Mapping[str, int]) -> Correction | None:
        better = Correction(tool, query or {}, text, tokens, _corrections(nearby, words))
        return None if better.text == text else better

    return near.then(correction)


@dataclass(frozen=True)
class Correction:
    """A correction of the text *typed*.

    - *tokens*: (start, end, word of the lexicon) of words in the text.
    - *better*: unknown word -> a word of the lexicon in its place, from results of ``searchResults(**query)`` of *tool*.
    """

    tool: Any
    query: Mapping[str, Any]
    typed: str
    tokens: Sequence[Token]
    better: Mapping[str, str]

    @cached_property
    def text(self) -> str:
        """The corrected text in words of the lexicon."""
        return self._with({})

    @property
    def exact_text(self) -> str:
        """``text`` with its new words in quotes, which excludes their other forms."""
        return self._with({}, '"{}"')

    def spelled(self, texts: Iterable[str]) -> str:
        """Return ``text`` with its new words spelled as in *texts*: ``Bücher`` for ``bucher``.

        The spelling of words that are not in *texts* is looked up in texts of pages.  At most one statement.
        """
        words, lexicon = set(self.better.values()), lexicon_of(self.tool)
        forms = spellings_in(lexicon, words, texts)
        if missing := words.difference(forms):
            any_word = " OR ".join(f'"{word}"' for word in sorted(missing))
            found = _found_texts(self.tool, {**self.query, SOURCE_INDEX: any_word}, len(missing))
            forms |= spellings_in(lexicon, missing, found)
        return self._with(forms)

    def _with(self, forms: Mapping[str, str], form: str = "{}") -> str:
        corrected = self.typed
        for start, end, word in reversed(self.tokens):
            if word in self.better:
                better = self.better[word]
                better = as_typed(forms.get(better, better), self.typed[start:end])
                corrected = corrected[:start] + form.format(better) + corrected[end:]
        return corrected


def titles_of(brains: Iterable[Any]) -> list[str]:
    """Return the titles and descriptions of *brains*."""
    columns = (getattr(brain, name, None) for brain in brains for name in ("Title", "Description"))
    return [text for text in columns if isinstance(text, str)]


def _plain_words(lexicon: Any, text: str) -> list[Token]:
    """Return (start, end, word of *lexicon*) for the first words of *text* without operators that may be corrected."""
    tokens: list[Token] = []
    text, last, behind = text[:MAX_TEXT], "", 0
    for start, end in written_words(text):
        token, gap = text[start:end], text[behind:start]
        is_excluded = last == "NOT" and gap.isspace()
        has_sign = gap.endswith(("-", "*", "?")) or text.startswith(("*", "?"), end)
        last, behind = token, end
        if not (is_excluded or has_sign) and token.upper() not in KEYWORDS:
            word = single_word(lexicon, token)
            if word is not None and allowed_edits(word):
                tokens.append((start, end, word))
    return tokens[:MAX_WORDS]


def _corrections(nearby: Mapping[str, int], words: Sequence[str]) -> dict[str, str]:
    """Return the best correction in *nearby*, a result of ``Vocabulary.near``, for each of *words* that is not in it."""
    best = {}
    for word in set(words).difference(nearby):
        near = [
            (unlikelihood(word, other, documents), other)
            for other, documents in nearby.items()
            if other.upper() not in KEYWORDS and distance(word, other, allowed_edits(word)) is not None
        ]
        if near:
            best[word] = min(near)[-1]
    return best


def lexicon_of(tool: Any) -> Any:
    """Return the lexicon of SearchableText in the catalog *tool*.  Raises QueryError if there is no such index."""
    return find(tool._core.context, SOURCE_INDEX).index.getLexicon()


def finds_something(tool: Any, query: Mapping[str, Any]) -> bool:
    """Return whether ``searchResults(**query)`` of the catalog *tool* finds a row by words.  One statement, not ranked."""
    return bool(_found_texts(tool, query))


def _found_texts(tool: Any, query: Mapping[str, Any], rows: int = 1) -> list[str]:
    """Return the stored texts of up to *rows* rows that ``searchResults(**query)`` of the catalog *tool* finds by words.

    One statement, without ranking.
    """
    if is_hybrid(query, tool._core.indexes):
        query = {**query, RANK: WORDS}
    results = tool.searchResults(**query)
    found = _some_rows(results, results.condition, source_column(results.catalog), rows)
    return [text or "" for (text,) in found.value()]


def by_meaning_alone(results: CatalogSearchResults) -> Fetch[bool]:
    """Return a fetch of True if all rows of *results* are found by meaning only, so that its words may be mistyped.

    One statement; for a search by words none, and False.
    """
    where = without_near(results.condition)
    return Fetch.of(False) if where is results.condition else _some_rows(results, where).then(lambda rows: not rows)


def _some_rows(results: CatalogSearchResults, where: Condition, columns: str = "1", rows: int = 1) -> RowsFetch:
    view = results.catalog.search_view()

    def statement(stored: Stored) -> Statement:
        # With LIMIT, the planner would scan an unselective index and compare the text of each row.
        every = bind.select(columns, bind.selective_condition(where, stored), stored)
        return replace(every, sql=FIRST_ROWS.format(rows=every.sql, limit=whole("rows", rows, LARGEST_WINDOW)))

    return view.fetch(statement, where)


def typed_values(catalog: int, column: str, text: str, more: Any = None) -> tuple[Any, ...]:
    """Return the values of TYPED for words that begin with *text*; *more* is the value of its further condition."""
    further = () if more is None else (more,)
    return (catalog, column, text[:1], beginning(text), *further, catalog, column, text, text + LAST, *further)


def near_sql(trigrams: str | None, neighbours: int = NEIGHBOURS, requested: str = "true") -> str:
    """Return the SQL of ``(requested, word, documents)``: up to *neighbours* words near to each given word.

    - They include all words one edit away, unless there are too many, and words with at most one edit among their first six
      letters.
    - With *trigrams*, the quoted schema of pg_trgm, they include more.
    - *requested* is a condition for given words; others are left out.
    - The values are those of ``near_values``.
    """
    similar = "" if trigrams is None else SIMILAR_WORDS.format(schema=trigrams)
    return NEAR.format(requested=requested, similar=similar, neighbours=neighbours)


def near_values(trigrams: str | None, words: Sequence[str], catalog: int, column: str, edits: int) -> tuple[Any, ...]:
    """Return the values of ``near_sql``: *words*, the zoid of a catalog, a column, and the most difference in length."""
    index = catalog, column, edits
    return (list(words), [near_pattern(word) for word in words], *index, *(() if trigrams is None else index))


class Vocabulary:
    """The words in the results of ``searchResults(**query)`` of the catalog *tool*, which must have SearchableText."""

    def __init__(self, tool: Any, query: Mapping[str, Any]) -> None:
        results = tool.searchResults(**query)
        self._catalog = results.catalog
        self._where: Condition = results.condition
        self._view = self._catalog.search_view()
        self._column = self._catalog.translator(SOURCE_INDEX).column

    def beginning_with(self, text: str, limit: int, searched: str = "") -> Fetch[list[str]]:
        """Return a fetch of up to *limit* words that begin with *text*, the most frequent first.

        If there are few, words that begin with *text* but for one edit follow.  Before all, the ends of searches that begin
        with *searched*, if it is not empty, from its last word on.  One statement.
        """
        column, candidates = (self._catalog.zoid, self._column.name), max(CANDIDATES, limit)
        near = near_beginnings(text) if len(text) > EXACT_PREFIX + 1 else ()

        def sql(seen: Seen) -> str:
            begun = BEGINNING.format(candidates=TYPED.format(more="", candidates=candidates), seen=seen(), limit=limit)
            if not near:
                return begun
            nearly = TYPED.format(more=NEARLY.format(few=min(FEW_SUGGESTIONS, limit)), candidates=candidates)
            return BEGINNING_OR_NEAR.format(beginning=begun, candidates=nearly, seen=seen(), limit=limit)

        def params(seen: tuple[Any, ...]) -> tuple[Any, ...]:
            begun = (*typed_values(*column, text), *seen)
            return (*begun, *typed_values(*column, text[:EXACT_PREFIX], list(near)), *seen) if near else begun

        def with_searches(seen: Seen) -> str:
            terms = SEARCHES.format(
                seen=seen("candidate.tsquery"), candidates=SEARCH_CANDIDATES, limit=max(1, limit // 2)
            )
            return f"({terms}) UNION ALL (SELECT * FROM ({sql(seen)}) AS words)"

        def search_params(seen: tuple[Any, ...]) -> tuple[Any, ...]:
            of_searches = (self._catalog.zoid, beginning(searched), SUGGESTED_DAYS, PEOPLE, PEOPLE)
            return (*of_searches, *seen, *params(seen))

        suggested = (with_searches, search_params) if searched else (sql, params)
        rows = self._fetch(*suggested, is_spelled=True)
        lexicon = self._catalog.translator(SOURCE_INDEX).index.getLexicon()
        # The number of letters of the searches before the last typed word.
        before = len(searched) - len(searched.rpartition(" ")[2])

        def suggestions(rows: Sequence[tuple[str, int, int, list[str]]]) -> list[str]:
            ordered = sorted(rows, key=lambda row: (row[2], -row[1], row[0]))
            spelled = (
                word[before:] if kind < 0 else spelling(lexicon, word, spellings)
                for word, _, kind, spellings in ordered
            )
            # A search and a word may differ in capitals only.
            return list({text.casefold(): text for text in reversed([*spelled])}.values())[::-1][:limit]

        return rows.then(suggestions)

    def near(self, words: Sequence[str], edits: int) -> Fetch[dict[str, int]]:
        """Return a fetch of word -> number of documents: those of *words* that are found, and neighbours of the others.

        *edits* is the most difference in length; some neighbours are more edits away.  One statement.
        """
        self._view.session.read_states()  # sets ``generations.trigrams``
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
        trigrams, column = self._view.session.generations.trigrams, (self._catalog.zoid, self._column.name)
        near = near_sql(trigrams, min(NEIGHBOURS_OF_WORD, max(1, NEIGHBOURS // len(words))), NOT_SEEN)
        values = near_values(trigrams, words, *column, edits)
        return self._fetch(
            lambda seen: THESE_OR_NEAR.format(near=near, seen=seen()),
            lambda seen: (*seen, list(words), *column, *values, *seen),
        )

    def _fetch(
        self,
        sql: Callable[[Seen], str],
        params: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        is_spelled: bool = False,
    ) -> RowsFetch:
        """Return a fetch of the rows of *sql* with *params*: functions of ``SEEN``, as a Seen, and of its values.

        With *is_spelled*, each row has the spellings of its word, too.
        """
        texts = (self._catalog.zoid, self._column.name)

        def statement(stored: Stored) -> Statement:
            relation, source_params = stored.source
            where = bind.condition(self._where, stored)

            def seen(lexeme: str = LEXEME.format(word="candidate.word")) -> str:
                return SEEN.format(
                    relation=relation,
                    column=self._column.quoted,
                    frequent=FREQUENT,
                    sample=SAMPLE,
                    rows=ROWS,
                    lexeme=lexeme,
                    where=where.sql,
                )

            restricted = (*source_params, *where.params)
            text, values = sql(seen), params((*texts, *restricted, *restricted))
            if is_spelled:
                text = SPELLED.format(
                    suggested=text,
                    words=SPELLED_WORDS,
                    pages=SPELLED_PAGES,
                    length=SPELLED_LENGTH,
                    forms=SPELLED_FORMS,
                    source=source_column(self._catalog),
                    relation=relation,
                    column=self._column.quoted,
                    frequent=FREQUENT,
                    sample=SAMPLE,
                    rows=ROWS,
                    lexeme=LEXEME.format(word="candidate.word"),
                    where=where.sql,
                )
                values = (*values, *letter_classes(), *texts, *source_params, *source_params, *where.params)
            # Not costly, even if the restriction is, since a scan stops at the first row with the word.
            return Statement(text, values, is_costly=False)

        fetch: RowsFetch = self._view.fetch(statement, self._where)
        return fetch
