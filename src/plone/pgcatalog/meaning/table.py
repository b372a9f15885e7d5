"""The tables with the chunks of a catalog's texts: one for each model that answers, or is to answer.

A table says itself, in its comment, which embedder its vectors are of, and whether it has all texts.  Chunks are known by the
oid of their object, which a rebuild, a clear and a move leave as it is, so none of them embeds anything anew.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from importlib.resources import files
from plone.pgcatalog import settings
from plone.pgcatalog.database import layout
from plone.pgcatalog.database import retirement
from plone.pgcatalog.database.layout import chunks_prefix
from plone.pgcatalog.database.schema import create_chunks_trigger
from plone.pgcatalog.meaning.calibration import Calibration
from plone.pgcatalog.meaning.embedder import Embedder
from plone.pgcatalog.meaning.embedder import Vector
from plone.pgcatalog.meaning.text import Passage
from psycopg import Connection
from psycopg.errors import DuplicateObject
from psycopg.errors import Error
from psycopg.errors import UniqueViolation
from psycopg.sql import Identifier
from psycopg.sql import Literal
from psycopg.sql import SQL
from typing import Any

import json


#: What the operators need.
OLDEST_PGVECTOR = (0, 8)

PGVECTOR = """
SELECT e.extversion, n.nspname::text, has_schema_privilege(n.oid, 'USAGE')
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
HAS_FUNCTION = "SELECT to_regproc('pgcatalog_forget_chunks') IS NOT NULL"
FORGET = SQL("DELETE FROM {chunks} WHERE zoid = %s AND chunk >= %s")
KEEP = SQL("""
INSERT INTO {chunks} (zoid, chunk, start, stop, digest, embedding) VALUES (%s, %s, %s, %s, %s, %s::{halfvec})
ON CONFLICT (zoid, chunk) DO UPDATE
SET (start, stop, digest, embedding) = (EXCLUDED.start, EXCLUDED.stop, EXCLUDED.digest, EXCLUDED.embedding)
""")
MOVE = SQL("UPDATE {chunks} SET (start, stop) = (%s, %s) WHERE zoid = %s AND chunk = %s")
# No commit takes the row away meanwhile.
HOLD_ROW = SQL("SELECT 1 FROM {relation} WHERE zoid = %s FOR KEY SHARE")
KEPT = SQL("SELECT chunk, start, stop, digest, embedding::text FROM {chunks} WHERE zoid = %s ORDER BY chunk")
FORGET_STALE = SQL("DELETE FROM {chunks} AS c WHERE NOT EXISTS (SELECT FROM {relation} AS r WHERE r.zoid = c.zoid)")


class PgvectorMissing(Exception):
    """The database has no pgvector that can be used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """A table of chunks: what a search needs to know to ask for the nearest ones.

    Its columns are zoid, chunk, start, stop, digest, embedding.
    """

    number: int
    #: name of the table
    name: str
    dimension: int
    embedder: Embedder
    #: the name of the model as the embedder gave it
    answers_as: str
    #: False while texts are missing that were there when the table was made
    is_complete: bool
    has_hnsw: bool
    #: chunks, as PostgreSQL guesses; -1 if it knows nothing yet
    chunks: int
    #: the schema of pgvector
    schema: str
    #: least similarity of a chunk that counts as near, which the site has set; 0 for that of the calibration
    least: float = 0.0
    #: True if it is to have texts that anonymous may not see
    of_private: bool = True
    #: None as long as the table was empty when that was looked at
    calibration: Calibration | None = None

    @property
    def table(self) -> Identifier:
        return Identifier(self.name)

    @property
    def halfvec(self) -> SQL:
        """The type of a vector, as SQL."""
        return SQL(f"{quoted(self.schema)}.halfvec")

    @property
    def distance(self) -> SQL:
        """The operator, as SQL, that gives minus the similarity (the cosine) of two vectors, and that HNSW is made for."""
        return SQL(f"OPERATOR({quoted(self.schema)}.<#>)")

    @property
    def about(self) -> dict[str, Any]:
        """What the comment of the table says."""
        names = ("answers_as", "is_complete", "of_private")
        about = asdict(self.embedder) | {name: getattr(self, name) for name in names}
        return about | {"calibration": None if self.calibration is None else self.calibration.as_json()}

    @property
    def wants_hnsw(self) -> bool:
        """True if an index of the neighbours would pay, and is not there."""
        can_have = self.chunks >= layout.HNSW_FROM and self.dimension <= layout.HNSW_DIMENSIONS
        return can_have and not self.has_hnsw

    def is_of(self, embedder: Embedder) -> bool:
        """True if *embedder*, as far as settings tell, gives the vectors of this table: it may stand elsewhere now."""
        mine = self.embedder
        return (mine.model, mine.passage_prefix) == (embedder.model, embedder.passage_prefix)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@cache
def load(name: str) -> str:
    """Return the text of ``meaning/sql/<name>.sql``."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text("utf-8")


def embedder_of(tool: Any) -> Embedder | None:
    """Return the embedder that the site of the catalog *tool* has set, None without one."""
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
    """Return the table of chunks that answers in the snapshot of the catalog *core*; None if there is none.

    Its embedder is the one to ask for the vector of a question.  One statement for all that a snapshot is asked, none for a
    site without an embedder.
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
    """Return the parameters of ``generations.sql`` for the catalog tool with oid *zoid*."""
    return {"pattern": f"^{chunks_prefix(zoid)}[0-9]+$"}


def generations(rows: Iterable[Sequence[Any]]) -> list[Vectors]:
    """Return the tables of chunks that the *rows* of ``generations.sql`` tell of, the oldest first."""
    return [vectors for row in rows if (vectors := _vectors(*row)) is not None]


def _vectors(
    number: int, name: str, dimension: int, comment: str | None, chunks: int, has_hnsw: bool, schema: str
) -> Vectors | None:
    try:
        about = json.loads(comment or "")
        embedder = Embedder(*(str(about[key]) for key in Embedder.__slots__))
        answers_as, is_complete = str(about["answers_as"]), bool(about["is_complete"])
        of_private = bool(about.get("of_private", True))
        calibration = Calibration.from_json(about.get("calibration"), dimension)
    except (ValueError, LookupError, TypeError):
        return None  # somebody else's table, or a comment that somebody has changed
    return Vectors(
        *(number, name, dimension, embedder, answers_as, is_complete, has_hnsw, chunks, schema),
        of_private=of_private,
        calibration=calibration,
    )


def answering(tables: Sequence[Vectors]) -> Vectors | None:
    """Return which of *tables* answers: the newest complete one, else the oldest."""
    complete = [vectors for vectors in tables if vectors.is_complete]
    return complete[-1] if complete else next(iter(tables), None)


# -- what workers do, on an autocommit connection whose rows are tuples


def read(connection: Connection[Any], catalog: int) -> list[Vectors]:
    """Return the tables of chunks of the tool with oid *catalog*, the oldest first."""
    return generations(connection.execute(load("generations"), pattern_of(catalog)).fetchall())


def schema_of_pgvector(connection: Connection[Any]) -> str:
    """Return the schema of pgvector, which is made if that is possible.  Raises PgvectorMissing."""
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
    if version_of(version) < OLDEST_PGVECTOR:
        raise PgvectorMissing(f"pgvector {version} is too old: 0.8 or newer is needed (ALTER EXTENSION vector UPDATE)")
    if not is_usable:
        raise PgvectorMissing(f"the database user may not use the schema {schema}, in which pgvector is")
    return str(schema)


def version_of(version: str) -> tuple[int, ...]:
    """Return the numbers at the beginning of a *version*: (0, 8) of 0.8.1."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def create(
    connection: Connection[Any], catalog: int, relation: str, embedder: Embedder, dimension: int, answers_as: str
) -> Vectors:
    """Make a table of chunks for *embedder*, which none of the catalog's is of, in the transaction of *connection*.

    Those that have never been complete go, but for one that answers.  Raises PgvectorMissing.
    """
    schema = schema_of_pgvector(connection)
    rows = connection.execute(load("generations"), pattern_of(catalog)).fetchall()
    tables = generations(rows)
    kept = answering(tables)
    retire(connection, [vectors for vectors in tables if vectors is not kept])
    # One that waits to be dropped still has its number.
    number = 1 + max((row[0] for row in rows), default=0)
    name = f"{chunks_prefix(catalog)}{number}"
    vectors = Vectors(number, name, dimension, embedder, answers_as, False, False, -1, schema)
    values = {"chunks": vectors.table, "halfvec": vectors.halfvec, "dimension": Literal(dimension)}
    connection.execute(SQL(load("create")).format(about=Literal(json.dumps(vectors.about)), **values))
    connection.execute(load("forget_chunks"))
    keep_chunks_with_rows(connection, relation)
    return vectors


def keep_chunks_with_rows(connection: Connection[Any], relation: str) -> None:
    """Have chunks go with the rows of *relation*, in the transaction of *connection*: create function and trigger, or enable it."""
    if connection.execute(HAS_FUNCTION).fetchone() == (False,):
        connection.execute(load("forget_chunks"))
    create_chunks_trigger(connection.cursor(), relation)


def note(connection: Connection[Any], vectors: Vectors, **changes: Any) -> Vectors:
    """Have the table of *vectors* say so if *changes* of it are any; return it with them."""
    changed = replace(vectors, **changes)
    if changed != vectors:
        comment = SQL("COMMENT ON TABLE {} IS {}").format(vectors.table, Literal(json.dumps(changed.about)))
        connection.execute(comment)
    return changed


def retire(connection: Connection[Any], tables: Iterable[Vectors]) -> None:
    """Have *tables* dropped as soon as no snapshot needs them."""
    for vectors in tables:
        retirement.retire_relation(connection.cursor(), vectors.name)
        # It is none of the catalog's from now on.
        connection.execute(SQL("COMMENT ON TABLE {} IS NULL").format(vectors.table))


#: digest -> (chunk, start, stop, vector as text)
KeptChunks = dict[bytes, tuple[int, int, int, str]]


def kept_chunks(connection: Connection[Any], vectors: Vectors, zoid: int) -> KeptChunks:
    """Return what the table of *vectors* has of the object *zoid*."""
    rows = connection.execute(KEPT.format(chunks=vectors.table), (zoid,)).fetchall()
    return {bytes(digest): (chunk, start, stop, vector) for chunk, start, stop, digest, vector in rows}


def write(
    connection: Connection[Any],
    vectors: Vectors,
    zoid: int,
    passages: Sequence[Passage],
    kept: KeptChunks,
    vectors_by_digest: Mapping[bytes, Vector],
) -> None:
    """Have the *passages* of the object *zoid*, and no more, in the table of *vectors*: what changed of the *kept* ones.

    *vectors_by_digest* are those of passages that were not kept.
    """
    with connection.cursor() as cursor:
        cursor.execute(FORGET.format(chunks=vectors.table), (zoid, len(passages)))
        moved, new = [], []
        for passage in passages:
            place = (passage.chunk, passage.start, passage.stop)
            old = kept.get(passage.digest)
            if old is None or old[0] != passage.chunk:
                vector = literal(vectors_by_digest[passage.digest]) if old is None else old[3]
                new.append((zoid, *place, passage.digest, vector))
            elif old[:3] != place:
                moved.append((*place[1:], zoid, passage.chunk))
        cursor.executemany(KEEP.format(chunks=vectors.table, halfvec=vectors.halfvec), new)
        cursor.executemany(MOVE.format(chunks=vectors.table), moved)


def literal(vector: Vector) -> str:
    """Return *vector* as a parameter of the type halfvec."""
    return "[" + ",".join(f"{value:.6g}" for value in vector) + "]"
