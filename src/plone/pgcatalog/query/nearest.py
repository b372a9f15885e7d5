"""Rows whose text means what was asked: those with the chunks that are nearest to the vector of a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.query.ranked import Stages
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.expression import Structure
from typing import Any

import hashlib


#: The key of a query dict that says how hits are ranked, and its values.
RANK = "rank"
HYBRID, WORDS = "hybrid", "words"
#: The key of a query dict that says that a visitor searches on a search page of the site, with its stop words.
AS_SITE = "as_site"

#: Rows that a question finds by its meaning at most, and how many of the nearest chunks are looked at for them: with 300 a walk of
#: HNSW takes three times as long.
MOST_ROWS, MOST_CHUNKS = 100, 150
#: How much less similar than the nearest row another one may be.  Models differ in how similar they find texts at all, but what
#: is far behind the best is hardly meant: of 120 questions as many find their page with it as without, among a third of the hits.
MARGIN = 0.03
#: Where no more rows than these are allowed, all their chunks are compared; HNSW would walk over most of what it reads.
FEW = 10_000
#: The same as a share of all chunks, for smaller sites: with two chunks a row a walk pays where two of five rows are allowed.
FEW_OF_CHUNKS = 0.2
#: How many candidates a walk of HNSW keeps at a time (``hnsw.ef_search``): enough for MOST_CHUNKS where anonymous sees three of four
#: rows, since going on takes longer than the beginning.
EFFORT = 200


def few_of(chunks: int) -> int:
    """Return the number of rows up to which their chunks are compared one by one, in a table of so many *chunks*, as PostgreSQL guesses.

    In thousands, so that a guess that moves a little makes no other statement.
    """
    return min(FEW, max(1, round(chunks * FEW_OF_CHUNKS / 1000)) * 1000)


def sql_of(name: str) -> str:
    """Return the SQL in the file of that *name* in one line, without its comments."""
    lines = (files(__package__) / f"{name}.sql").read_text("utf-8").splitlines()
    return " ".join(" ".join(line for line in lines if not line.startswith("--")).split())


#: Names that no column of a catalog has: record id, and the part of its kept text.
CHUNK_COLUMNS = ('"chunk rid"', '"chunk start"', '"chunk stop"')
#: The similarity of that chunk to the question.
SIMILARITY = '"chunk similarity"'
#: The SQL of whether a row is near, of its similarity and a threshold.
IS_NEAR = f"similarity >= greatest(%s::float8, max(similarity) OVER () - {MARGIN})"

#: The setting in which a transaction notes the rows that are near: 32 characters that name the question, and an array of rids.
NOTED = "pgcatalog.near"

EXACT, INDEXED = sql_of("nearest_exact"), sql_of("nearest_indexed")


@dataclass(frozen=True, slots=True)
class Question:
    """A question by its meaning: an SQL *vector*, and the table of *chunks* it is compared with, a quoted name.

    *distance* is the SQL operator that gives minus the similarity of two vectors of length 1.  A row without the words needs
    *threshold*, a similarity from 0 to 1.  *is_indexed*: the chunks have an HNSW index for that operator.  Where no more than *few*
    rows are allowed, it is not used.
    """

    chunks: str
    vector: Fragment
    distance: str
    threshold: float
    is_indexed: bool = False
    few: int = FEW

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from other questions, shorter than the vector."""
        vector = hashlib.sha256(repr((self.vector.sql, self.vector.params)).encode()).hexdigest()
        return self.chunks, vector, self.threshold, self.is_indexed, self.few

    def nearest(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of (rid, similarity, start, stop) of the nearest chunks of the rows of *source* that match *among*."""
        relation, values = source
        sql = (INDEXED if self.is_indexed else EXACT).format(
            source=relation,
            among=among.sql,
            distance=f"embedding {self.distance} {self.vector.sql}",
            chunks=self.chunks,
            most=MOST_CHUNKS,
            few=self.few,
            effort=EFFORT,
        )
        rows, vector = (*values, *among.params), self.vector.params
        return Fragment(sql, (*rows, *vector, *vector, *rows) if self.is_indexed else (*rows, *vector))

    def nearest_rows(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of (rid, similarity, place, is_near) of the nearest rows, the first place being 1."""
        chunks = self.nearest(source, among)
        rows = f"SELECT rid, max(similarity) AS similarity FROM ({chunks.sql}) AS chunk GROUP BY rid"
        place = "row_number() OVER (ORDER BY similarity DESC, rid DESC) AS place"
        return Fragment(
            f"SELECT rid, similarity, {place}, {IS_NEAR} AS is_near FROM ({rows}) AS each_row ORDER BY place LIMIT {MOST_ROWS:d}",
            (self.threshold, *chunks.params),
        )

    def near_chunks(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of CHUNK_COLUMNS and SIMILARITY of the nearest chunk of each row that is near."""
        chunks = self.nearest(source, among)
        rid, start, stop = CHUNK_COLUMNS
        each = f"SELECT DISTINCT ON (rid) rid, start, stop, similarity FROM ({chunks.sql}) AS chunk ORDER BY rid, similarity DESC, start"
        rows = f"SELECT each_row.*, {IS_NEAR} AS is_near FROM ({each}) AS each_row"
        return Fragment(
            f"SELECT rid AS {rid}, start AS {start}, stop AS {stop}, similarity AS {SIMILARITY} FROM ({rows}) AS near_row WHERE is_near",
            (self.threshold, *chunks.params),
        )

    def nearest_of_each(self, source: Source, among: Condition) -> Fragment:
        """Return the SELECT of CHUNK_COLUMNS, the nearest chunk of each row of *source* that matches *among*, if it has any."""
        chunks = self.nearest(source, among)
        rid, start, stop = CHUNK_COLUMNS
        return Fragment(
            f"SELECT DISTINCT ON (rid) rid AS {rid}, start AS {start}, stop AS {stop} FROM ({chunks.sql}) AS each_chunk"
            " ORDER BY rid, similarity DESC, start",
            chunks.params,
        )


class Near(Structure):
    """Rows that mean what *question* asks for, of those that match *among*: the other conditions of the same search.

    Whatever *among* leaves out has no influence.  The SQL names the question only; ``bound`` has the one to send.
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
        """Return what is near of the rows that match *condition*, too: at least those that are near here and match it."""
        return Near(self.question, self.among & condition)

    def bound(self, source: Source, among: Condition, is_noted: bool) -> Condition:
        """Return it for the rows of *source*, with *among* as they are stored.

        With *is_noted* they are looked for once in a transaction: by the first of its statements that asks for the same.
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
        """Return the expression that notes the rows of *relation*, as ``chosen``, for ``bound`` of *source* and *among*."""
        rids = f"ARRAY(SELECT rid FROM {relation} WHERE is_near)::text"
        return Fragment(f"set_config('{NOTED}', %s || {rids}, true)", (self._name(source, among), *params))

    def _name(self, source: Source, among: Condition) -> str:
        """Return what tells its rows, of those of *source* that match *among*, from others: 32 characters."""
        parts = sorted((part.sql, repr(part.params)) for part in among.conjuncts())
        return hashlib.sha256(repr((self.question.key, source, parts)).encode()).hexdigest()[:32]

    def chosen(self, relation: str, params: Sequence[Any] = ()) -> Condition:
        """Return the condition for the rows of *relation*, ``nearest_rows``, that are near enough; *params* are its values."""
        return Condition(
            f"rid = ANY(ARRAY(SELECT rid FROM {relation} WHERE is_near))", tuple(params), None, self.is_costly
        )


def near_in(where: Condition) -> Near | None:
    """Return the part of *where* that is about meaning, None for none."""
    return next(iter(where.leaves(Near)), None)


def without_near(where: Condition) -> Condition:
    """Return *where* without the part that is about meaning, the same object if there is none."""
    return where.changed(lambda part: NOTHING if isinstance(part, Near) else part)


#: The constant of the formula: the higher, the less a first place counts more than the next ones.
SMOOTHING = 60
#: No ranking gives a row more, but pins do (``indexes.base.HIGHEST_SCORE``).
HIGHEST = "1e12"
FUSED = sql_of("fused")
#: What the fused rows are joined as: names that no column of a catalog has.
HIT, SCORE = '"fused hit"', '"fused score"'


class Fusion(Fragment):
    """The score of a hybrid search: that of its *words*, for rows with *found*, the condition of a search for words, and *near*.

    As SQL it is the score of the words; with the condition of the search, that tells it from others.
    """

    __slots__ = ("found", "near", "words")

    def __init__(self, words: Fragment, found: Condition, near: Near) -> None:
        super().__init__(words.sql, words.params)
        self.words = words
        self.found = found
        self.near = near


@dataclass(frozen=True)
class FusedRows:
    """The rows of a Fusion as SQL: of *source*, with its conditions *found* and *among* as they are stored.

    *stages* are those of the ranking by words, None if all hits are ranked.  With *is_noted* other statements of the transaction
    need not look for what is near once more.
    """

    fusion: Fusion
    source: Source
    found: Condition
    among: Condition
    stages: Stages | None
    is_noted: bool = False

    @property
    def first(self) -> Fragment:
        """The WITH clause: ``nearest``, ``words`` with their places, and ``fused``: hit, score, is_alone (without the words)."""
        nearest = self.fusion.near.question.nearest_rows(self.source, self.among)
        parts = [Fragment(f"nearest AS MATERIALIZED ({nearest.sql})", nearest.params)]
        relation, values = self.source
        where = self.found
        if self.stages is not None:
            parts.append(self.stages.ctes)
            # Only of what is near nobody knows yet whether it has the words, and that where not all hits are ranked.
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
        """Return the statement for (rid, place by words, place by meaning, similarity) of those of *rids* that are fused."""
        first = self.first
        return Statement(
            f"{first.sql}SELECT hit, words.place, nearest.place, nearest.similarity FROM fused"
            " LEFT JOIN words ON words.rid = hit LEFT JOIN nearest ON nearest.rid = hit WHERE hit = ANY(%s::bigint[])",
            (*first.params, list(rids)),
            is_costly=True,
        )

    def page(self, start: int, size: int) -> str:
        """Return the relation of the rows ``[start:start + size]``, if these are fused."""
        rows = f"SELECT hit AS {HIT}, score AS {SCORE} FROM fused ORDER BY score DESC, hit DESC LIMIT {size:d} OFFSET {start:d}"
        return f"({rows}) AS fused_page JOIN {self.source[0]} ON rid = {HIT}"

    @property
    def all_rows(self) -> str:
        """The relation of all rows of the source, with the score of those that are fused."""
        return (
            f"{self.source[0]} LEFT JOIN (SELECT hit AS {HIT}, score AS {SCORE} FROM fused) AS fused_all ON rid = {HIT}"
        )

    def total(self, count: Statement | None) -> Fragment:
        """Return the number of hits as an expression; NULL if it costs something and there is no *count*, which counts them."""
        if self.stages is None:
            return Fragment("(SELECT count(*) FROM fused)")
        free = "(SELECT total + (SELECT count(*) FROM fused WHERE is_alone) FROM found)"
        return Fragment(free) if count is None else Fragment(f"coalesce({free}, ({count.sql}))", count.params)
