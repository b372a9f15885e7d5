"""Rows whose text means what was asked: those with the chunks that are nearest to the vector of a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import Structure
from typing import Any

import hashlib


#: The key of a query dict that says how hits are ranked, and its values.
RANK = "rank"
HYBRID, WORDS = "hybrid", "words"

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

EXACT, INDEXED = sql_of("nearest_exact"), sql_of("nearest_indexed")


@dataclass(frozen=True, slots=True)
class Asked:
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
        is_near = f"similarity >= greatest(%s::float8, max(similarity) OVER () - {MARGIN}) AS is_near"
        return Fragment(
            f"SELECT rid, similarity, {place}, {is_near} FROM ({rows}) AS each_row ORDER BY place LIMIT {MOST_ROWS:d}",
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
    """Rows that mean what is *asked*, of those that match *among*: the other conditions of the same search.

    Whatever *among* leaves out has no influence.  The SQL names the question only; ``bound`` has the one to send.
    """

    __slots__ = ("among", "asked")

    def __init__(self, asked: Asked, among: Condition) -> None:
        self.asked = asked
        self.among = among

    def _render(self) -> tuple[str, tuple[Any, ...]]:
        return "NEAR %s", (self.asked.key,)

    def _parts(self) -> tuple[Condition, ...]:
        return (self.among,)

    def within(self, condition: Condition) -> "Near":
        """Return what is near of the rows that match *condition*, too: at least those that are near here and match it."""
        return Near(self.asked, self.among & condition)

    def bound(self, source: Source, among: Condition) -> Condition:
        """Return it for the rows of *source*, with *among* as they are stored."""
        near = self.asked.nearest_rows(source, among)
        return self.chosen(f"({near.sql}) AS near", near.params)

    def chosen(self, relation: str, params: Sequence[Any] = ()) -> Condition:
        """Return the condition for the rows of *relation*, ``nearest_rows``, that are near enough; *params* are its values."""
        return Condition(
            f"rid = ANY(ARRAY(SELECT rid FROM {relation} WHERE is_near))", tuple(params), None, self.is_costly
        )


def near_in(where: Condition) -> Near | None:
    """Return the part of *where* that is about meaning, None for none."""
    return next(iter(where.leaves(Near)), None)
