"""Search by meaning: finds the rows with the text chunks nearest to the vector of a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.query.ranked import Stages
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.expression import Structure
from plone.pgcatalog.sql.files import read_statement
from typing import Any

import hashlib


#: The key of a query dict for the ranking of hits, and its values.
RANK = "rank"
HYBRID, WORDS = "hybrid", "words"
#: The key of a query dict that marks a search on a search page of the site, to which its stop words apply.
AS_SITE = "as_site"
#: The key of such a query for the path of the page on which the visitor searches, if pins depend on it.
SECTION = "search_section"

#: Upper limits of rows that a question finds by meaning, and of nearest chunks to select them from with HNSW: more chunks
#: make such a search slower.
MOST_ROWS, MOST_CHUNKS = 100, 150
#: Largest difference in similarity between the nearest row and another near row.  Similarities differ between models, but
#: rows far behind the best one are rarely relevant: with the margin, a question has far fewer hits,
#: and finds its page as often (``make bench-meaning MEANING_ARGS=quality``).
MARGIN = 0.03
#: Up to this many allowed rows, all their chunks are compared: HNSW would discard most of the chunks that it visits.
FEW = 10_000
#: The same limit as a share of all chunks, for smaller sites, in which HNSW is faster for fewer rows.
FEW_OF_CHUNKS = 0.2
#: Number of candidates in a scan of HNSW (``hnsw.ef_search``): enough for MOST_CHUNKS if Anonymous may see three of four
#: rows.  Continuing a scan takes longer than its beginning.
EFFORT = 200


def few_of(chunks: int) -> int:
    """Return the number of allowed rows up to which all chunks are compared, for a table with *chunks* rows (an estimate).

    Rounded to thousands, so that a small change of the estimate does not change the statement.
    """
    return min(FEW, max(1, round(chunks * FEW_OF_CHUNKS / 1000)) * 1000)


#: Names that no column of a catalog has: record id, start and end of the chunk in the stored text.
CHUNK_COLUMNS = ('"chunk rid"', '"chunk start"', '"chunk stop"')
#: The similarity of that chunk to the question.
SIMILARITY = '"chunk similarity"'
#: The SQL that is true for a near row: of its similarity, and of a threshold as placeholder.
IS_NEAR = f"similarity >= greatest(%s::float8, max(similarity) OVER () - {MARGIN})"

#: The setting in which a transaction caches the near rows: 32 characters that identify them, then an array of rids.
NOTED = "pgcatalog.near"

ALLOWED = (
    "WITH question AS MATERIALIZED (SELECT {vector} AS vector),"
    " allowed AS MATERIALIZED (SELECT rid, zoid FROM {source} WHERE {among}) "
)
COMPARED, INDEXED = read_statement("query", "nearest_compared"), read_statement("query", "nearest_indexed")
#: The bias of long texts, to be subtracted from a similarity: with more chunks, the nearest one is more similar by chance.
#: For the group of all chunks of a page, and for a chunk found by HNSW.
LENGTH_BIAS = " - %s * ln(count(*))"
WALKED_BIAS = " - %s * ln((SELECT max(chunk) + 1 FROM {chunks} AS whole WHERE whole.zoid = walked.zoid))"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, searched by its meaning.

    - *chunks*: the quoted name of the table of chunks
    - *vector*: the embedding of the question, as SQL
    - *distance*: the SQL operator that returns minus the similarity of two vectors of length 1
    - *threshold*: the least similarity, 0 to 1, of a row without the words
    - *is_indexed*: the chunks have an HNSW index for *distance*; it is used if more than *few* rows are allowed
    - *length_bias*: see ``meaning.calibration``; it is subtracted from the similarities of the nearest chunks
    """

    chunks: str
    vector: Fragment
    distance: str
    threshold: float
    is_indexed: bool = False
    few: int = FEW
    length_bias: float = 0.0

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable key that identifies the question, shorter than the vector."""
        vector = hashlib.sha256(repr((self.vector.sql, self.vector.params)).encode()).hexdigest()
        return self.chunks, vector, self.threshold, self.is_indexed, self.few, self.length_bias

    def nearest(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of (rid, similarity, start, stop): the nearest chunk of each of the nearest *source* rows.

        The rows match *among*.  If HNSW finds them, one may have several chunks.
        """
        relation, values = source
        rows = (*values, *among.params)
        bias = (self.length_bias,) if self.length_bias else ()
        names = {"chunks": self.chunks, "distance": f"embedding {self.distance} (SELECT vector FROM question)"}
        compared = COMPARED.format(bias=LENGTH_BIAS if bias else "", rows=MOST_ROWS, **names)
        names |= {"vector": self.vector.sql, "source": relation, "among": among.sql}
        if not self.is_indexed:
            return Fragment(ALLOWED.format(**names) + compared, (*self.vector.params, *rows, *bias))
        sql = INDEXED.format(
            compared=compared,
            bias=WALKED_BIAS.format(chunks=self.chunks) if bias else "",
            most=MOST_CHUNKS,
            few=self.few,
            effort=EFFORT,
            **names,
        )
        return Fragment(sql, (*self.vector.params, *rows, *bias, *bias, *rows))

    def nearest_rows(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of (rid, similarity, place, is_near) of the nearest rows; places count from 1."""
        chunks = self.nearest(source, among)
        rows = f"SELECT rid, max(similarity) AS similarity FROM ({chunks.sql}) AS chunk GROUP BY rid"
        place = "row_number() OVER (ORDER BY similarity DESC, rid DESC) AS place"
        return Fragment(
            f"SELECT rid, similarity, {place}, {IS_NEAR} AS is_near FROM ({rows}) AS each_row ORDER BY place LIMIT {MOST_ROWS:d}",
            (self.threshold, *chunks.params),
        )

    def near_chunks(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of CHUNK_COLUMNS and SIMILARITY of the nearest chunk of each near row."""
        chunks = self.nearest(source, among)
        rid, start, stop = CHUNK_COLUMNS
        each = f"SELECT DISTINCT ON (rid) rid, start, stop, similarity FROM ({chunks.sql}) AS chunk ORDER BY rid, similarity DESC, start"
        rows = f"SELECT each_row.*, {IS_NEAR} AS is_near FROM ({each}) AS each_row"
        return Fragment(
            f"SELECT rid AS {rid}, start AS {start}, stop AS {stop}, similarity AS {SIMILARITY} FROM ({rows}) AS near_row WHERE is_near",
            (self.threshold, *chunks.params),
        )

    def nearest_of_each(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of CHUNK_COLUMNS: the nearest chunk of each row of *source* that matches *among*."""
        chunks = self.nearest(source, among)
        rid, start, stop = CHUNK_COLUMNS
        return Fragment(
            f"SELECT DISTINCT ON (rid) rid AS {rid}, start AS {start}, stop AS {stop} FROM ({chunks.sql}) AS each_chunk"
            " ORDER BY rid, similarity DESC, start",
            chunks.params,
        )


class Near(Structure):
    """Matches the rows that are near *question*, out of the rows that match *among*, the other conditions of the search.

    Rows that do not match *among* have no influence.  Its own SQL only identifies the question; ``bound`` returns real SQL.
    """

    __slots__ = ("among", "question")

    def __init__(self, question: Question, among: Condition) -> None:
        self.question = question
        self.among = among

    def _render(self) -> tuple[str, tuple[Any, ...]]:
        return "NEAR %s", (self.question.key,)

    def _parts(self) -> tuple[Condition, ...]:
        return (self.among,)

    def within(self, condition: Condition) -> "Near":
        """Return a Near for the rows that also match *condition*; rows near here that match it are near there, too."""
        return Near(self.question, self.among & condition)

    def bound(self, source: Source, among: Condition, is_noted: bool) -> Condition:
        """Return the condition for the rows of *source*; *among* is bound to them.

        With *is_noted* the near rows are found once per transaction, by the first statement that needs them.
        """
        near = self.question.nearest_rows(source, among)
        if not is_noted:
            return self.chosen(f"({near.sql}) AS near", near.params)
        name, note = self._name(source, among), self.noting(f"({near.sql}) AS near", near.params, source, among)
        noted = f"CASE WHEN starts_with(current_setting('{NOTED}', true), %s) THEN current_setting('{NOTED}') ELSE {note.sql} END"
        return Condition(
            f"rid = ANY(ARRAY(SELECT unnest(substr({noted}, {len(name) + 1})::bigint[])))",
            (name, *note.params),
            None,
            self.is_costly,
        )

    def noting(self, relation: str, params: Sequence[Any], source: Source, among: Condition) -> Fragment:
        """Return the SQL that caches the near rows of *relation*, as in ``chosen``, for ``bound(source, among)``."""
        rids = f"ARRAY(SELECT rid FROM {relation} WHERE is_near)::text"
        return Fragment(f"set_config('{NOTED}', %s || {rids}, true)", (self._name(source, among), *params))

    def _name(self, source: Source, among: Condition) -> str:
        """Return 32 characters that identify the near rows out of the rows of *source* that match *among*."""
        parts = sorted((part.sql, repr(part.params)) for part in among.conjuncts())
        return hashlib.sha256(repr((self.question.key, source, parts)).encode()).hexdigest()[:32]

    def chosen(self, relation: str, params: Sequence[Any] = ()) -> Condition:
        """Return the condition for the near rows of *relation*, SQL of ``nearest_rows`` with the values *params*."""
        return Condition(
            f"rid = ANY(ARRAY(SELECT rid FROM {relation} WHERE is_near))", tuple(params), None, self.is_costly
        )


def near_in(where: Condition) -> Near | None:
    """Return the Near of *where*, None if there is none."""
    return next(iter(where.leaves(Near)), None)


def without_near(where: Condition) -> Condition:
    """Return *where* with NOTHING in place of its Near; the same object if there is no Near."""
    return where.changed(lambda part: NOTHING if isinstance(part, Near) else part)


#: The constant k of reciprocal rank fusion: the higher, the smaller the advantage of the first places.
SMOOTHING = 60
#: The highest score by a ranking; only pins have a higher one (``indexes.base.HIGHEST_SCORE``).
HIGHEST = "1e12"
FUSED = read_statement("query", "fused")
#: Names of the columns of fused rows in a join; no column of a catalog has them.
HIT, SCORE = '"fused hit"', '"fused score"'


class Fusion(Fragment):
    """The score of a hybrid search: the score by *words* of the rows that match *found*, fused with the places of *near*.

    Its own SQL is the score by words; together with the condition of the search, it identifies the ranking.
    """

    __slots__ = ("found", "near", "words")

    def __init__(self, words: Fragment, found: Condition, near: Near) -> None:
        super().__init__(words.sql, words.params)
        self.words = words
        self.found = found
        self.near = near


@dataclass(frozen=True)
class FusedRows:
    """SQL for the rows of a Fusion in *source*; its conditions *found* and *among* are bound.

    *stages* are the stages of the ranking by words, None if all hits are ranked.  With *is_noted* the near rows are cached
    for further statements of the transaction.
    """

    fusion: Fusion
    source: Source
    found: Condition
    among: Condition
    stages: Stages | None
    is_noted: bool = False

    @property
    def first(self) -> Fragment:
        """The WITH clause: ``nearest``, ``words`` with places, ``fused`` with hit, score and is_alone (without words)."""
        nearest = self.fusion.near.question.nearest_rows(self.source, self.among)
        parts = [Fragment(f"nearest AS MATERIALIZED ({nearest.sql})", nearest.params)]
        relation, values = self.source
        where = self.found
        if self.stages is not None:
            parts.append(self.stages.ctes)
            # If not all hits are ranked, a nearest row may have the words, and still not be in ``ranked``.
            near = "SELECT rid FROM nearest WHERE (SELECT is_much FROM found)"
            rids = f"rid = ANY(ARRAY(SELECT rid FROM ranked UNION {near}))"
            where = Condition(f"{rids} AND (rid IN (SELECT rid FROM ranked) OR ({where.sql}))", where.params)
        score = self.fusion.words
        scored = f"SELECT rid, {score.sql} AS score FROM {relation} WHERE {where.sql}"
        place = "row_number() OVER (ORDER BY score DESC NULLS LAST, rid DESC) AS place"
        parts.append(
            Fragment(
                f"words AS MATERIALIZED (SELECT rid, score, {place} FROM ({scored}) AS scored)",
                (*score.params, *values, *where.params),
            )
        )
        note = Fragment("TRUE")
        if self.is_noted:
            note = self.fusion.near.noting("nearest", (), self.source, self.among)
        parts.append(Fragment(FUSED.format(smoothing=SMOOTHING, highest=HIGHEST, note=note.sql), note.params))
        return Fragment(
            f"WITH {', '.join(part.sql for part in parts)} ", tuple(value for part in parts for value in part.params)
        )

    def places(self, rids: Sequence[int]) -> Statement:
        """Return the statement for (rid, place by words, place by meaning, similarity) of the fused rows among *rids*."""
        first = self.first
        return Statement(
            f"{first.sql}SELECT hit, words.place, nearest.place, nearest.similarity FROM fused"
            " LEFT JOIN words ON words.rid = hit LEFT JOIN nearest ON nearest.rid = hit WHERE hit = ANY(%s::bigint[])",
            (*first.params, list(rids)),
            is_costly=True,
        )

    def page(self, start: int, size: int) -> str:
        """Return the FROM item of the fused rows ``[start:start + size]``."""
        rows = f"SELECT hit AS {HIT}, score AS {SCORE} FROM fused ORDER BY score DESC, hit DESC LIMIT {size:d} OFFSET {start:d}"
        return f"({rows}) AS fused_page JOIN {self.source[0]} ON rid = {HIT}"

    @property
    def all_rows(self) -> str:
        """The FROM item of all rows of the source, with the score of fused rows, else NULL."""
        return (
            f"{self.source[0]} LEFT JOIN (SELECT hit AS {HIT}, score AS {SCORE} FROM fused) AS fused_all ON rid = {HIT}"
        )

    def total(self, count: Statement | None) -> Fragment:
        """Return SQL for the number of hits: if it is not known from the stages, by the statement *count*, else NULL."""
        if self.stages is None:
            return Fragment("(SELECT count(*) FROM fused)")
        free = "(SELECT total + (SELECT count(*) FROM fused WHERE is_alone) FROM found)"
        return Fragment(free) if count is None else Fragment(f"coalesce({free}, ({count.sql}))", count.params)
