"""Jobs of the kind ``embed``: for a page, which updates its vectors; for a catalog tool, which updates the catalog's tables.

The job for a catalog tool

- creates the table for a new embedder, and queues all pages for it,
- marks the table as complete when no page waits any more, so that searches use it,
- puts the job of the kind ``hnsw``, which builds the HNSW index.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog import settings
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.fulltext.text_index import HEADINGS
from plone.pgcatalog.meaning import table
from plone.pgcatalog.meaning.calibration import calibrated
from plone.pgcatalog.meaning.calibration import general_questions
from plone.pgcatalog.meaning.calibration import language_directions
from plone.pgcatalog.meaning.calibration import threshold_of
from plone.pgcatalog.meaning.embedder import Embedder
from plone.pgcatalog.meaning.embedder import EmbedderError
from plone.pgcatalog.meaning.embedder import is_installed
from plone.pgcatalog.meaning.embedder import PROBE
from plone.pgcatalog.meaning.embedder import Vector
from plone.pgcatalog.meaning.table import PgvectorMissing
from plone.pgcatalog.meaning.table import Vectors
from plone.pgcatalog.meaning.text import passages_of
from plone.pgcatalog.meaning.text import TextChunk
from plone.pgcatalog.meaning.text import WHO_MAY_SEE
from plone.pgcatalog.query.nearest import MOST_CHUNKS
from plone.pgcatalog.queue import table as queue
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.kind import LongKind
from plone.pgcatalog.queue.kind import ShortKind
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.worker import tool_path
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql import locks
from plone.pgcatalog.storage import writable_dsn_of
from psycopg import Connection
from psycopg.sql import Identifier
from psycopg.sql import SQL
from time import monotonic
from typing import Any
from zope.interface import implementer


#: Names of the kinds of jobs.
KIND, HNSW = "embed", "hnsw"
#: The settings that the tables of a catalog depend on.
OF_TABLES = (
    *(settings.embedder_url.name, settings.embedder_model.name),
    *(settings.embedder_question_prefix.name, settings.embedder_passage_prefix.name),
)
OF_PRIVATE = settings.meaning_of_private
#: Seconds until a table that is being filled is checked again.
RETRY_SECONDS = 5.0
#: Seconds until a database without pgvector is checked again.
NO_PGVECTOR = 300.0

RELATION = "SELECT relation FROM pgcatalog_state WHERE catalog = %s"
OBJECTS = SQL("SELECT DISTINCT zoid FROM {relation} WHERE zoid IS NOT NULL")
IS_ANY_WAITING = (
    "SELECT EXISTS (SELECT FROM pgcatalog_queue"
    " WHERE kind = %s AND catalog = %s AND subject <> catalog AND due < 'infinity')"
)
#: Most chunks that are counted; above, PostgreSQL's estimate is used.
COUNT_LIMIT = 2_000
HAS_CHUNKS = SQL("SELECT count(*) FROM (SELECT FROM {chunks} LIMIT %s) AS counted")
COUNT = SQL("SELECT count(*) FROM {chunks}")
#: The similarity of a question to the nearest of the candidates, without the bias of long texts.
NEAREST = SQL(
    "SELECT max(similarity - %(length_bias)s * ln((SELECT max(chunk) + 1 FROM {chunks} AS whole WHERE whole.zoid = near.zoid)))"
    " FROM (SELECT zoid, -(embedding {distance} %(vector)s::{halfvec}) AS similarity FROM {chunks}"
    " ORDER BY embedding {distance} %(vector)s::{halfvec} LIMIT %(candidates)s) AS near"
)
#: The mean vectors of the texts in each language, of at least LEAST_OF_LANGUAGE chunks in a sample; the largest ones first.
MEANS = SQL(
    "SELECT {schema}.avg(embedding)::real[] FROM {chunks} TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (0)"
    " JOIN object_state USING (zoid) GROUP BY coalesce(state ->> 'language', '') HAVING count(*) >= %(least)s"
    " ORDER BY count(*) DESC LIMIT %(most)s"
)
#: Chunks in the sample of length_bias.sql, most of its pages, and the least number of pages with which its slope is no chance.
LENGTH_SAMPLE, MOST_PAGES, LEAST_PAGES = 1000, 500, 20
#: Chunks in the sample of MEANS; least chunks of a language; most languages, each of which costs a kilobyte in a request by meaning.
SAMPLE, LEAST_OF_LANGUAGE, MOST_LANGUAGES = 10_000, 20, 12
IS_CREATING_INDEX = "SELECT FROM pg_stat_progress_create_index WHERE relid = to_regclass(%s)"
LOCK = "SELECT pg_advisory_xact_lock(%s, %s)"
DROP_INDEX = SQL("DROP INDEX CONCURRENTLY IF EXISTS {index}")
CREATE_INDEX = SQL("CREATE INDEX CONCURRENTLY {index} ON {chunks} USING hnsw (embedding {schema}.halfvec_ip_ops)")


def jobs_for(catalog: Any, names: Any) -> dict[str, frozenset[str]]:
    """Return the kinds of jobs that an object may need if *catalog* indexes it again in the indexes *names*.

    Each kind has the names of its columns: an object needs the job only if one of them changes.
    """
    if not settings.embedder_url(catalog.tool):
        return {}
    about = {*HEADINGS, SOURCE_INDEX}
    if not OF_PRIVATE(catalog.tool):
        about.add(WHO_MAY_SEE)
    used = about.intersection(names)
    translators = catalog.indexes
    return {KIND: frozenset(c.name for name in used for c in translators[name].columns())} if used else {}


def settings_changed(tool: Any, former: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Queue, with the commit, the job for the tables of the catalog *tool* if they depend on a setting that has changed.

    *former* and *now* are the settings of its site.
    """
    changed = {name for name in OF_TABLES if (former.get(name) or "") != (now.get(name) or "")}
    of_private = [values.get(OF_PRIVATE.name, OF_PRIVATE.default) for values in (former, now)]
    if now.get(settings.embedder_url.name) and of_private[0] != of_private[1]:
        changed.add(OF_PRIVATE.name)
    if changed and tool._p_jar is not None:
        change = tool._core.change()
        change.own_jobs |= {KIND}


@implementer(IJobKind)
class Embedding(ShortKind):
    """The kind of jobs that update the vectors of an object or, for a catalog tool, the tables of its catalog."""

    def __init__(self) -> None:
        #: monotonic time until which no jobs are done, after the embedder was down
        self._paused_until = 0.0

    @property
    def is_ready(self) -> bool:
        return is_installed() and monotonic() >= self._paused_until

    def needed(self, jobs: NeededJobs) -> list[int]:
        """Return the zoids of the pages without vectors, and of the catalog tool if its tables need a job.

        They do if the table of chunks is missing or not complete, and no job is queued for it.
        """
        if not jobs.embedder:
            return []
        chunks = jobs.table()
        pages = [] if chunks is None else jobs.pages()
        is_current = jobs.has_table_job or (chunks is not None and chunks["is_complete"])
        return pages if is_current else [*pages, jobs.catalog]

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """Do *job*.  Raises JobFailed and database errors."""
        path = tool_path(database, job.catalog)
        if path is None:
            return
        with opened_at(database, path) as tool:
            embedder, of_private = table.embedder_of(tool), OF_PRIVATE(tool)
            dsn = writable_dsn_of(tool._p_jar)
            is_page = job.subject != job.catalog
            passages = passages_of(tool._core, job.subject, of_private) if is_page else []
        try:
            if not is_page:
                update_tables(dsn, job.catalog, embedder, of_private)
            elif embedder is not None:
                store_chunks(dsn, job.catalog, job.subject, embedder, passages)
        except EmbedderError as error:
            if error.is_down:
                self._paused_until = monotonic() + error.pause
            raise JobFailed(str(error), error.is_about_text, error.pause if error.is_down else None) from error
        except PgvectorMissing as error:
            raise JobFailed(str(error), False, NO_PGVECTOR) from error


@implementer(IJobKind)
class HnswIndex(LongKind):
    """The kind of jobs that build the HNSW index of a catalog's vectors."""

    is_one_statement = True

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """See IJobKind."""
        connection = progress.connection
        for vectors in table.read(connection, job.catalog):
            if vectors.is_complete and vectors.wants_hnsw:
                create_index(connection, vectors)


# -- pages


def store_chunks(dsn: str, catalog: int, zoid: int, embedder: Embedder, passages: list[TextChunk]) -> None:
    """Store the vectors of *passages*, all of the object *zoid*, in the table of *embedder*; only new ones are requested.

    Without *passages*, delete the chunks of the object from all tables.  Raises EmbedderError.
    """
    with connect(dsn, "vectors", 0) as connection:
        tables = table.read(connection, catalog)
        mine = next((vectors for vectors in reversed(tables) if vectors.is_of(embedder)), None)
        if not passages:
            for vectors in tables:
                connection.execute(table.FORGET.format(chunks=vectors.table), (zoid, 0))
            return
        if mine is None:
            put_table_job(connection, catalog)  # it queues all pages
            return
        stored = table.stored_chunks(connection, mine, zoid)
        new = {passage.digest: passage for passage in passages if passage.digest not in stored}
        try:
            new_vectors = vectors_of_model(embedder, mine, [passage.text for passage in new.values()])
        except AnotherModel:
            put_table_job(connection, catalog)
            raise
        relation = relation_of(connection, catalog)
        if relation is None:
            return
        with connection.transaction():
            if connection.execute(table.HOLD_ROW.format(relation=Identifier(relation)), (zoid,)).fetchone():
                table.write(connection, mine, zoid, passages, stored, dict(zip(new, new_vectors, strict=True)))
        if mine.is_complete and (mine.wants_hnsw or has_grown(connection, mine)):
            put_table_job(connection, catalog)


class AnotherModel(EmbedderError):
    """The vectors of an embedder cannot be compared with its earlier ones."""


def vectors_of_model(embedder: Embedder, mine: Vectors, texts: list[str]) -> list[Vector]:
    """Return the vectors of *texts*.  Raises EmbedderError; AnotherModel if the table *mine* is of another model."""
    found, name = embedder.embed_passages(texts) if texts else ([], mine.answers_as)
    if any(len(vector) != mine.dimension for vector in found) or name != mine.answers_as:
        raise AnotherModel(f"the embedder is another model now: {name}, {len(found[0])} dimensions", is_down=True)
    return found


# -- catalogs


def update_tables(dsn: str, catalog: int, embedder: Embedder | None, of_private: bool) -> None:
    """Update the tables of *catalog* for *embedder*, of its site; retire them all without an embedder.

    - All pages are queued if a table is created, or *of_private* (include texts that Anonymous may not see) has changed.
    - The job that builds the HNSW index is queued if it is due.
    - Raises EmbedderError, PgvectorMissing, and JobFailed while pages wait or the index is being built.
    """
    with connect(dsn, "vectors", 0) as connection:
        relation = relation_of(connection, catalog)
        if embedder is None or relation is None:
            with connection.transaction():
                table.retire(connection, catalog, [vectors.name for vectors in table.read(connection, catalog)])
            return
        [vector], name = embedder.embed_passages([PROBE])
        with connection.transaction():
            connection.execute(LOCK, locks.of_catalog(locks.CHUNKS, catalog))
            tables = table.read(connection, catalog)
            fitting = [v for v in tables if v.is_of(embedder) and (v.dimension, v.answers_as) == (len(vector), name)]
            if not fitting:
                vectors = table.create(connection, catalog, relation, embedder, len(vector), name)
            elif connection.execute(IS_CREATING_INDEX, (fitting[-1].name,)).fetchone() is not None:
                # ANALYZE would block this worker until the index is built.
                raise JobFailed("", False, RETRY_SECONDS)
            else:
                vectors = fitting[-1]
            if not fitting or vectors.of_private != of_private:
                put_all(connection, catalog)
            mine = table.note(connection, vectors, embedder=embedder, of_private=of_private)
            table.ensure_chunks_trigger(connection, relation)
            # Pages for which no commit has queued a job, as after a rebuild or a partial loss of the table.
            pages = NeededJobs(executing(connection), catalog).pages(mine.name)
            queue.put(connection.cursor(), KIND, catalog, pages, is_backfill=True)
        [(is_any_waiting,)] = connection.execute(IS_ANY_WAITING, (KIND, catalog)).fetchall()
        if not fitting or is_any_waiting:
            # Searches by meaning begin before all pages have vectors.
            if has_grown(connection, mine):
                calibrate(connection, mine)
            raise JobFailed("", False, RETRY_SECONDS)
        with connection.transaction():
            mine = table.note(connection, mine, embedder=embedder, is_complete=True)
            table.retire(connection, catalog, [vectors.name for vectors in tables if vectors.name != mine.name])
            connection.execute(table.FORGET_STALE.format(chunks=mine.table, relation=Identifier(relation)))
        connection.execute(SQL("ANALYZE {}").format(mine.table))
        calibrate(connection, mine)
        mine = next((v for v in table.read(connection, catalog) if v.name == mine.name), mine)
        if mine.wants_hnsw:
            with connection.transaction(), connection.cursor() as cursor:
                queue.put(cursor, HNSW, catalog, [catalog], is_backfill=True)


def has_grown(connection: Connection[Any], mine: Vectors) -> bool:
    """Return whether the table *mine* has at least twice as many chunks as at its last calibration, or has had none."""
    if mine.calibration is None:
        return True
    wanted = 2 * mine.calibration.chunks
    if wanted > COUNT_LIMIT:
        return mine.chunks >= wanted
    return connection.execute(HAS_CHUNKS.format(chunks=mine.table), (wanted,)).fetchone() == (wanted,)


def calibrate(connection: Connection[Any], mine: Vectors) -> None:
    """Calibrate the model to the chunks of the table *mine*, if there are any; store it there.  Raises EmbedderError."""
    [(chunks,)] = connection.execute(COUNT.format(chunks=mine.table)).fetchall()
    if not chunks:
        return
    vectors = mine.embedder.embed_questions(general_questions())
    values = {"percent": min(100, 100 * SAMPLE / chunks), "least": LEAST_OF_LANGUAGE, "most": MOST_LANGUAGES}
    means = connection.execute(MEANS.format(chunks=mine.table, schema=Identifier(mine.schema)), values).fetchall()
    found = replace(calibrated(vectors), languages=language_directions([mean for (mean,) in means]))
    centred = [table.literal(found.centred(vector)) for vector in vectors]
    found = replace(found, chunks=chunks, length_bias=length_bias(connection, mine, centred, chunks))
    nearest = NEAREST.format(chunks=mine.table, halfvec=mine.halfvec, distance=mine.distance)
    values = {"length_bias": found.length_bias, "candidates": MOST_CHUNKS}
    similarities = [connection.execute(nearest, values | {"vector": vector}).fetchall()[0][0] for vector in centred]
    table.note(connection, mine, calibration=replace(found, threshold=threshold_of(similarities)))


def length_bias(connection: Connection[Any], mine: Vectors, questions: Sequence[str], chunks: int) -> float:
    """Return the ``length_bias`` of the table *mine* with so many *chunks*, for the vectors of *questions*, as text.

    It is 0 if there are too few pages for a slope.
    """
    statement = SQL(table.load("length_bias")).format(chunks=mine.table, halfvec=mine.halfvec, distance=mine.distance)
    values = {"vectors": list(questions), "percent": min(100, 100 * LENGTH_SAMPLE / chunks), "pages": MOST_PAGES}
    [(pages, slope)] = connection.execute(statement, values).fetchall()
    return max(0.0, slope) if pages >= LEAST_PAGES and slope is not None else 0.0


def create_index(connection: Connection[Any], vectors: Vectors) -> None:
    """Build the HNSW index of *vectors* without blocking reads and writes; an unfinished one is dropped first."""
    index = Identifier(f"{vectors.name}_hnsw")
    connection.execute(DROP_INDEX.format(index=index))
    schema = Identifier(vectors.schema)
    connection.execute(CREATE_INDEX.format(index=index, chunks=vectors.table, schema=schema))


def relation_of(connection: Connection[Any], catalog: int) -> str | None:
    """Return the name of the relation of *catalog*; None without one."""
    row = connection.execute(RELATION, (catalog,)).fetchone()
    return None if row is None else str(row[0])


def put_table_job(connection: Connection[Any], catalog: int) -> None:
    """Queue the job for the tables of *catalog*, on the autocommit *connection*."""
    with connection.transaction(), connection.cursor() as cursor:
        queue.put(cursor, KIND, catalog, [catalog], is_backfill=True)


def put_all(connection: Connection[Any], catalog: int) -> int:
    """Queue a job for each object of *catalog*, and for its tables; return the number of objects."""
    relation = relation_of(connection, catalog)
    if relation is None:
        return 0
    zoids = [zoid for (zoid,) in connection.execute(OBJECTS.format(relation=Identifier(relation))).fetchall()]
    with connection.transaction(), connection.cursor() as cursor:
        queue.put(cursor, KIND, catalog, [*zoids, catalog], is_backfill=True)
    return len(zoids)
