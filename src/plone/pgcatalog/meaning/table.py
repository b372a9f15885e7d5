"""The tables with the chunks of a catalog's texts: one for each model, in use or being filled.

A row of pgcatalog_vectors records the embedder of its vectors, and whether the table is complete.  The key of a chunk is the
oid of its object, which survives a rebuild, a clear and a move, so none of these requests new vectors.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog import settings
from plone.pgcatalog.database import layout
from plone.pgcatalog.database import retirement
from plone.pgcatalog.database.layout import chunks_prefix
from plone.pgcatalog.database.schema import create_chunks_trigger
from plone.pgcatalog.distribution import numbers_of
from plone.pgcatalog.meaning.calibration import Calibration
from plone.pgcatalog.meaning.embedder import Embedder
from plone.pgcatalog.meaning.embedder import Vector
from plone.pgcatalog.meaning.text import TextChunk
from plone.pgcatalog.queue import table as queue
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.files import read_sql
from plone.pgcatalog.sql.files import read_statement
from psycopg import Connection
from psycopg.errors import DuplicateObject
from psycopg.errors import Error
from psycopg.errors import UniqueViolation
from psycopg.sql import Identifier
from psycopg.sql import Literal
from psycopg.sql import SQL
from psycopg.types.json import Jsonb
from typing import Any


#: The least version of pgvector that has the operators of the searches.
OLDEST_PGVECTOR = (0, 8)

PGVECTOR = """
SELECT e.extversion, n.nspname::text, has_schema_privilege(n.oid, 'USAGE')
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
HAS_FUNCTION = "SELECT to_regproc('pgcatalog_forget_chunks') IS NOT NULL"
FORGET = SQL("DELETE FROM {chunks} WHERE zoid = %s AND chunk >= %s")
STORE = SQL("""
INSERT INTO {chunks} (zoid, chunk, start, stop, digest, embedding) VALUES (%s, %s, %s, %s, %s, %s::{halfvec})
ON CONFLICT (zoid, chunk) DO UPDATE
SET (start, stop, digest, embedding) = (EXCLUDED.start, EXCLUDED.stop, EXCLUDED.digest, EXCLUDED.embedding)
""")
MOVE = SQL("UPDATE {chunks} SET (start, stop) = (%s, %s) WHERE zoid = %s AND chunk = %s")
# Locks the row, so that no commit deletes it meanwhile.
HOLD_ROW = SQL("SELECT 1 FROM {relation} WHERE zoid = %s FOR KEY SHARE")
STORED = SQL("SELECT chunk, start, stop, digest, embedding::text FROM {chunks} WHERE zoid = %s ORDER BY chunk")
FORGET_SETTINGS = "DELETE FROM pgcatalog_vectors WHERE relation = ANY(%s::text[])"
FORGET_STALE = SQL("DELETE FROM {chunks} AS c WHERE NOT EXISTS (SELECT FROM {relation} AS r WHERE r.zoid = c.zoid)")


class PgvectorMissing(Exception):
    """The database has no usable pgvector; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """A table of chunks, with all properties that a search for the nearest chunks needs.

    Its columns are zoid, chunk, start, stop, digest, embedding.
    """

    number: int
    #: name of the table
    name: str
    dimension: int
    embedder: Embedder
    #: the name of the model in the embedder's responses
    answers_as: str
    #: False until all texts that existed when the table was created have their chunks
    is_complete: bool
    has_hnsw: bool
    #: number of chunks as estimated by PostgreSQL; -1 before its first estimate
    chunks: int
    #: the schema of pgvector
    schema: str
    #: least similarity of a near chunk, as set by the site; 0: use the threshold of the calibration
    least: float = 0.0
    #: True if the table includes texts that Anonymous may not see
    of_private: bool = True
    #: None until the table has chunks to calibrate with
    calibration: Calibration | None = None

    @property
    def table(self) -> Identifier:
        return Identifier(self.name)

    @property
    def halfvec(self) -> SQL:
        """The SQL type of a vector."""
        return SQL(f"{quote(self.schema)}.halfvec")

    @property
    def distance(self) -> SQL:
        """The SQL operator for minus the similarity (cosine) of two vectors; the HNSW index is for this operator."""
        return SQL(f"OPERATOR({quote(self.schema)}.<#>)")

    @property
    def of_questions(self) -> Calibration | None:
        """The calibration of questions; None before the first one, and if the site has set a least similarity."""
        return None if self.least else self.calibration

    @property
    def about(self) -> dict[str, Any]:
        """The settings of the table in pgcatalog_vectors, by column, as values for JSON."""
        names = ("answers_as", "is_complete", "of_private")
        about = asdict(self.embedder) | {name: getattr(self, name) for name in names}
        return about | {"calibration": None if self.calibration is None else self.calibration.as_json()}

    @property
    def row(self) -> dict[str, Any]:
        """The settings, with name and number of the table, as parameters of a statement."""
        about = self.about
        calibration = None if about["calibration"] is None else Jsonb(about["calibration"])
        return about | {"name": self.name, "number": self.number, "calibration": calibration}

    @property
    def wants_hnsw(self) -> bool:
        """True if an HNSW index is missing, possible with this dimension, and worth it for the number of chunks."""
        can_have = self.chunks >= layout.HNSW_FROM and self.dimension <= layout.HNSW_DIMENSIONS
        return can_have and not self.has_hnsw

    def is_of(self, embedder: Embedder) -> bool:
        """True if *embedder* has the model and the passage prefix of this table; its URL may differ."""
        mine = self.embedder
        return (mine.model, mine.passage_prefix) == (embedder.model, embedder.passage_prefix)


def load(name: str) -> str:
    """Return the text of ``meaning/sql/<name>.sql``."""
    return read_sql("meaning", name)


def embedder_of(tool: Any) -> Embedder | None:
    """Return the embedder in the settings of the site of the catalog *tool*; None without one."""
    url = settings.embedder_url(tool).strip()
    if not url:
        return None
    return Embedder(
        url,
        settings.embedder_model(tool).strip(),
        settings.embedder_question_prefix(tool),
        settings.embedder_passage_prefix(tool),
    )


def vectors_of(core: Any) -> Vectors | None:
    """Return the table of chunks to search in, in the snapshot of the catalog *core*; None if there is none.

    Questions need the vectors of its ``embedder``.  One statement per snapshot, none for a site without an embedder.
    """
    if embedder_of(core.tool) is None:
        return None
    answers = core.session.vectors
    if core.zoid not in answers:
        rows = core.session.execute(load("generations"), pattern_of(core.zoid))
        answers[core.zoid] = answering(generations(rows))
    found: Vectors | None = answers[core.zoid]
    return None if found is None else replace(found, least=settings.meaning_threshold(core.tool))


def pattern_of(zoid: int) -> dict[str, str]:
    """Return the parameters of ``generations.sql`` for the catalog tool with the oid *zoid*."""
    return {"pattern": f"^{chunks_prefix(zoid)}[0-9]+$"}


def generations(rows: Iterable[Sequence[Any]]) -> list[Vectors]:
    """Return the tables of chunks in *rows* of ``generations.sql``, the oldest first."""
    return [_vectors(*row) for row in rows if row[-2] is not None]


def _vectors(
    number: int, name: str, dimension: int, chunks: int, has_hnsw: bool, schema: str, *settings: Any
) -> Vectors:
    *embedder, answers_as, is_complete, of_private, calibration = settings
    return Vectors(
        *(number, name, dimension, Embedder(*embedder), answers_as, is_complete, has_hnsw, chunks, schema),
        of_private=of_private,
        calibration=Calibration.from_json(calibration, dimension),
    )


def answering(tables: Sequence[Vectors]) -> Vectors | None:
    """Return the table of *tables* to search in: the newest complete one, else the oldest; None if there are none."""
    complete = [vectors for vectors in tables if vectors.is_complete]
    return complete[-1] if complete else next(iter(tables), None)


# -- operations of workers, on an autocommit connection whose rows are tuples


def read(connection: Connection[Any], catalog: int) -> list[Vectors]:
    """Return the tables of chunks of the catalog tool with the oid *catalog*, the oldest first."""
    return generations(connection.execute(load("generations"), pattern_of(catalog)).fetchall())


def schema_of_pgvector(connection: Connection[Any]) -> str:
    """Return the schema of the extension pgvector, which is created if possible.  Raises PgvectorMissing."""
    row = connection.execute(PGVECTOR).fetchone()
    if row is None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except (DuplicateObject, UniqueViolation):
            pass  # another worker was faster
        except Error as error:
            raise PgvectorMissing(
                "pgvector is missing: install it on the server (Debian: postgresql-17-pgvector), and have a superuser run"
                f" CREATE EXTENSION vector in this database ({error.diag.message_primary or error})"
            ) from error
        row = connection.execute(PGVECTOR).fetchone()
    if row is None:
        raise PgvectorMissing("pgvector is missing")
    version, schema, is_usable = row
    if numbers_of(version) < OLDEST_PGVECTOR:
        raise PgvectorMissing(f"pgvector {version} is too old: 0.8 or newer is needed (ALTER EXTENSION vector UPDATE)")
    if not is_usable:
        raise PgvectorMissing(f"the database user has no USAGE privilege on {schema}, the schema of pgvector")
    return str(schema)


def create(
    connection: Connection[Any], catalog: int, relation: str, embedder: Embedder, dimension: int, answers_as: str
) -> Vectors:
    """Create a table of chunks for *embedder*, in the transaction of *connection*.

    Retires all other tables but the one that searches use now, also tables without settings, as after a partial restore.
    Raises PgvectorMissing.
    """
    schema = schema_of_pgvector(connection)
    rows = connection.execute(load("generations"), pattern_of(catalog)).fetchall()
    answers = answering(generations(rows))
    retire(connection, catalog, [row[1] for row in rows if answers is None or row[1] != answers.name])
    # Retired tables that are not dropped yet still occupy their numbers.
    number = 1 + max((row[0] for row in rows), default=0)
    name = f"{chunks_prefix(catalog)}{number}"
    vectors = Vectors(number, name, dimension, embedder, answers_as, False, False, -1, schema)
    values = {"chunks": vectors.table, "halfvec": vectors.halfvec, "dimension": Literal(dimension)}
    connection.execute(SQL(load("create")).format(**values))
    connection.execute(read_statement("meaning", "save"), vectors.row | {"catalog": catalog})
    connection.execute(load("forget_chunks"))
    ensure_chunks_trigger(connection, relation)
    return vectors


def ensure_chunks_trigger(connection: Connection[Any], relation: str) -> None:
    """Create or enable the trigger that deletes chunks with the rows of *relation*, and its function if it is missing.

    In the transaction of *connection*.
    """
    if connection.execute(HAS_FUNCTION).fetchone() == (False,):
        connection.execute(load("forget_chunks"))
    create_chunks_trigger(connection.cursor(), relation)


def note(connection: Connection[Any], vectors: Vectors, **changes: Any) -> Vectors:
    """Return *vectors* with *changes*; save the settings of the table if they change anything."""
    changed = replace(vectors, **changes)
    if changed != vectors:
        connection.execute(read_statement("meaning", "change"), changed.row)
    return changed


def retire(connection: Connection[Any], catalog: int, names: Iterable[str]) -> None:
    """Mark the tables *names* of *catalog* to be dropped as soon as no snapshot needs them, and delete their settings."""
    names = list(names)
    if names:
        queue.put(connection.cursor(), retirement.KIND, catalog, [catalog], is_backfill=True)
    for name in names:
        retirement.retire_relation(connection.cursor(), name)
    connection.execute(FORGET_SETTINGS, [names])


#: digest -> (chunk, start, stop, vector as text)
StoredChunks = dict[bytes, tuple[int, int, int, str]]


def stored_chunks(connection: Connection[Any], vectors: Vectors, zoid: int) -> StoredChunks:
    """Return the chunks of the object *zoid* in the table of *vectors*, by digest."""
    rows = connection.execute(STORED.format(chunks=vectors.table), (zoid,)).fetchall()
    return {bytes(digest): (chunk, start, stop, vector) for chunk, start, stop, digest, vector in rows}


def write(
    connection: Connection[Any],
    vectors: Vectors,
    zoid: int,
    passages: Sequence[TextChunk],
    stored: StoredChunks,
    vectors_by_digest: Mapping[bytes, Vector],
) -> None:
    """Make *passages* the chunks of the object *zoid* in the table of *vectors*, by writing only the differences.

    ``stored`` are its present chunks, *vectors_by_digest* the vectors of passages that are not among them.
    """
    with connection.cursor() as cursor:
        cursor.execute(FORGET.format(chunks=vectors.table), (zoid, len(passages)))
        moved, new = [], []
        for passage in passages:
            place = (passage.chunk, passage.start, passage.stop)
            old = stored.get(passage.digest)
            if old is None or old[0] != passage.chunk:
                vector = literal(vectors_by_digest[passage.digest]) if old is None else old[3]
                new.append((zoid, *place, passage.digest, vector))
            elif old[:3] != place:
                moved.append((*place[1:], zoid, passage.chunk))
        cursor.executemany(STORE.format(chunks=vectors.table, halfvec=vectors.halfvec), new)
        cursor.executemany(MOVE.format(chunks=vectors.table), moved)


def literal(vector: Vector) -> str:
    """Return *vector* as the text of a parameter of the type halfvec."""
    return "[" + ",".join(f"{value:.6g}" for value in vector) + "]"
