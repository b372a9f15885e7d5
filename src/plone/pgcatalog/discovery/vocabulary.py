"""The words of the texts that a user may see.

They are counted without regard to who may see the texts (``fulltext.term_statistics``).  So whatever is taken from there is checked
against the catalog, in the same snapshot and by the same restrictions as a search: a word that stands only in what the
user may not see is as if it were nowhere.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.fulltext.edits import beginning
from plone.pgcatalog.fulltext.edits import EXACT_PREFIX
from plone.pgcatalog.fulltext.edits import near_beginnings
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.expression import find
from plone.pgcatalog.results.view import Read
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.expression import Statement
from typing import Any

import psycopg


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
SEEN = """(
    candidate.documents > (
        SELECT documents / {frequent} FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s
    ) AND EXISTS (
        SELECT FROM (SELECT * FROM {relation} LIMIT {sample}) AS sample
        WHERE {where} AND {column} @@ ({lexeme})::tsquery
    )
) OR EXISTS (
    WITH holding AS MATERIALIZED (
        SELECT * FROM {relation}
        WHERE {column} @@ ({lexeme})::tsquery
        LIMIT {rows}
    )
    SELECT FROM holding WHERE {where}
)"""
#: By their first letter there is an index in this order.
LIKE = """
SELECT word, documents FROM pgcatalog_words
WHERE catalog = %s AND text_column = %s AND left(word, 1) = %s AND word LIKE %s {more}
ORDER BY documents DESC, word LIMIT {candidates}
"""
#: Up to *limit* of the words that begin so.
BEGINNING = """
WITH candidate AS MATERIALIZED ({candidates}) SELECT word, documents FROM candidate WHERE {seen} LIMIT {limit}
"""
#: ascii(word) > 2: stems are no words.  First those whose end is near as well: an index finds by the beginnings.
NEAR = """
SELECT asked.word AS asked, near.word, near.documents FROM {asked} AS asked (word) CROSS JOIN LATERAL (
    SELECT w.word, w.documents FROM pgcatalog_words w
    WHERE w.catalog = %s AND w.text_column = %s AND ascii(w.word) > 2
        AND ({close}) AND abs(length(w.word) - length(asked.word)) <= %s
    ORDER BY pgcatalog_deletions(reverse(w.word)) && pgcatalog_deletions(reverse(asked.word)) DESC,
        w.documents DESC, w.word LIMIT {neighbours}
) AS near
"""
DELETIONS = "pgcatalog_deletions(w.word) && pgcatalog_deletions(asked.word)"
#: Words that are seen, and those near to the others.  A word that is there has hundreds of neighbours as often as not:
#: nobody asks for them.
THESE_OR_NEAR = """
WITH these AS MATERIALIZED (
    SELECT word, documents, {seen} AS is_seen FROM (
        SELECT asked.word, coalesce(w.documents, 0) FROM unnest(%s::text[]) AS asked (word)
        LEFT JOIN pgcatalog_words w ON w.catalog = %s AND w.text_column = %s AND w.word = asked.word
    ) AS candidate (word, documents)
), candidate AS MATERIALIZED (SELECT word, max(documents) AS documents FROM ({near}) AS near GROUP BY word)
SELECT word, documents FROM these WHERE is_seen
UNION ALL SELECT word, documents FROM candidate WHERE {seen}
"""
NOT_SEEN = "(SELECT word FROM these WHERE NOT is_seen)"


def lexicon_of(tool: Any) -> Any:
    """Return the lexicon of the text index of the catalog *tool*; raises QueryError when there is no such index."""
    return find(tool._core.translator, SOURCE_INDEX).index.getLexicon()


def finds_something(tool: Any, query: Mapping[str, Any]) -> bool:
    """Return whether ``searchResults(**query)`` of the catalog *tool* finds any row.  One statement, without ranking."""
    results = tool.searchResults(**query)
    view = results.catalog.search_view()
    # For one row, PostgreSQL would look through an index of what most rows have, and compare the text of each.
    where = results.condition

    def statement(stored: Stored) -> Statement:
        return bind.select("1", bind.selective_condition(where, stored), stored, "LIMIT 1")

    return bool(view.run("rows", view.binding(statement, where)))


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

    def beginning_with(self, text: str, limit: int) -> Callable[[], list[str]]:
        """Return what will return up to *limit* words that begin with *text*, the most frequent first.

        One statement, in the message of an open batch or then.
        """
        return self._like(text, "", (), limit)

    def nearly_beginning_with(self, text: str, limit: int) -> Callable[[], list[str]]:
        """Return what ``beginning_with`` does, of words that begin with *text* but for one letter."""
        patterns = near_beginnings(text)
        return (
            self._like(text[:EXACT_PREFIX], "AND word LIKE ANY (%s::text[])", (patterns,), limit) if patterns else list
        )

    def near(self, words: Sequence[str], edits: int) -> Callable[[], dict[str, int]]:
        """Return what will return word -> its documents: *words* that are there, and neighbours of the others that are.

        Neighbours are all that may be up to *edits* edits away, and some that are further.  One statement, in the
        message of an open batch or then.
        """
        session, column = self._view.session, (self._catalog.zoid, self._column.name)
        if not session.generations.newest:
            session.read_states()  # tells whether pg_trgm is there

        def read() -> Read:
            near = near_sql(session.generations.trigrams, max(1, NEIGHBOURS // len(words)), NOT_SEEN)
            return self._read(
                lambda seen: THESE_OR_NEAR.format(near=near, seen=seen),
                lambda seen: (*seen, list(words), *column, *column, edits, *seen),
            )

        found = read()

        def there() -> dict[str, int]:
            try:
                return dict(found.rows())
            except (psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName):
                if session.generations.trigrams is None:
                    raise
                session.generations.trigrams = None  # somebody has dropped the extension
                return dict(read().rows())

        return there

    def _like(self, text: str, more: str, params: tuple[Any, ...], limit: int) -> Callable[[], list[str]]:
        candidates = LIKE.format(more=more, candidates=max(CANDIDATES, limit))
        values = (self._catalog.zoid, self._column.name, text[:1], beginning(text), *params)
        found = self._read(
            lambda seen: BEGINNING.format(candidates=candidates, seen=seen, limit=limit), lambda seen: (*values, *seen)
        )
        return lambda: [word for word, _ in sorted(found.rows(), key=lambda counted: (-counted[1], counted[0]))]

    def _read(self, sql: Callable[[str], str], params: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Read:
        """Return what brings the rows of the SQL, and its values, that are made with ``SEEN`` and the values of that."""
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

        return Read(self._view, self._view.binding(statement, self._where))
