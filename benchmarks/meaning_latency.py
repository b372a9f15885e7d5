"""The time of a search by meaning in a site of 20,000 and of 200,000 chunks, and the recall of HNSW.

The rows are those of ``benchmarks.scale``, each with CHUNKS chunks whose vectors form clusters; some rows have a type, a
role and a path that a given share of all rows has.  The embedder selects the cluster of a text by its checksum.
"""

from benchmarks import scale
from benchmarks.backends import BACKENDS
from benchmarks.backends import OURS
from benchmarks.scale import noted
from benchmarks.scale import SiteRows
from benchmarks.scale import word
from benchmarks.text_search import uncached
from benchmarks.texts import USUAL
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import batched
from multiprocessing import get_context
from pathlib import Path
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.meaning import table
from plone.pgcatalog.meaning.job import create_index
from plone.pgcatalog.meaning.job import relation_of
from plone.pgcatalog.meaning.question import question_in
from plone.pgcatalog.meaning.question import vector_of
from plone.pgcatalog.meaning.table import Vectors
from plone.pgcatalog.observe import plan
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.nearest import near_in
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.registry.interfaces import IRegistry
from statistics import fmean
from tempfile import TemporaryDirectory
from tests.integration.embedders import serving
from typing import Any
from zlib import crc32
from zope.component import getUtility

import json
import numpy
import psycopg
import transaction


SEED = 31
MODEL = "clusters"
DIMENSION = 384
#: Chunks of a row.
CHUNKS = 2
#: Rows of a cluster, and the weights that determine the distances.  As with multilingual-e5-small's vectors of the labelled
#: pages, the similarity of two vectors is about 0.8 in different clusters, and about 0.9 in one.
ROWS_OF_A_CLUSTER = 50
COMMON, TOPIC, NOISE = 0.9, 0.3, 0.3
#: Percent of the rows that a filter leaves -> interval of these rows.
SHARES = {10: 10, 1: 100, 0.1: 1000}
QUESTIONS, ROUNDS, TOP = 60, 3, 10
PAGE = 25
COPY = "COPY {chunks} (zoid, chunk, start, stop, digest, embedding) FROM STDIN"


class SharedRows(SiteRows):
    """Rows of which some have the type, the reader and the path of a share."""

    def _entry(self, rng: Any, number: int, zoid: int, kind: str, state: str, path: str) -> Entry:
        share = next((share for share, every in reversed(SHARES.items()) if number % every == 1), None)
        if share is None:
            return super()._entry(rng, number, zoid, kind, state, path)
        entry = super()._entry(rng, number, zoid, kind, state, f"{path_of(share)}/doc{number}")
        roles = sorted([*entry.columns["allowed_roles"], reader(share)])
        return replace(entry, columns=entry.columns | {"portal_type": f"Type {share}", "allowed_roles": roles})


def path_of(share: float) -> str:
    return f"/{SITE}/share-{share}"


def reader(share: float) -> str:
    return f"user:reader-{share}"


#: filter -> its part of the query for a share
FILTERS: dict[str, Callable[[float], dict[str, Any]]] = {
    "roles": lambda share: {"allowedRolesAndUsers": [reader(share)]},
    "path": lambda share: {"path": path_of(share)},
    "portal_type": lambda share: {"portal_type": f"Type {share}"},
}


class Clusters:
    """Vectors of length 1 for the chunks of *rows* rows, in clusters; the same ones each time."""

    def __init__(self, rows: int) -> None:
        self.random = numpy.random.default_rng(SEED)
        topics = self.random.normal(0, TOPIC, (max(1, rows // ROWS_OF_A_CLUSTER), DIMENSION)) / DIMENSION**0.5
        common = self.random.normal(0, 1, DIMENSION)
        self.centres = topics + COMMON * common / numpy.linalg.norm(common)

    def some(self, size: int) -> Any:
        """Return *size* vectors of randomly chosen clusters."""
        return self.around(self.centres[self.random.integers(len(self.centres), size=size)])

    def around(self, centres: Any) -> Any:
        found = centres + self.random.normal(0, NOISE, centres.shape) / DIMENSION**0.5
        return found / numpy.linalg.norm(found, axis=1, keepdims=True)

    def embed(self, request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Answer like an embedder: the checksum of a text determines its cluster."""
        numbers = [crc32(text.encode()) % len(self.centres) for text in request["input"]]
        found = self.around(self.centres[numbers])
        data = [{"index": number, "embedding": vector.tolist()} for number, vector in enumerate(found)]
        return 200, {}, json.dumps({"model": MODEL, "data": data}).encode()


def measured(server: EmbeddedPostgres, options: Any) -> dict[str, Any]:
    """Return the figures of each size in *options* ``chunks``, each measured in a separate process."""
    found = {}
    for count in options.chunks:
        with TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as pool:
            dsn = server.createdb(f"chunks_{count}")
            found[f"{count:,} chunks"] = pool.submit(of_size, dsn, count, Path(folder)).result()
        server.dropdb(f"chunks_{count}")
    return found


def of_size(dsn: str, count: int, folder: Path) -> dict[str, Any]:
    """Fill the database *dsn* with *count* chunks; return the times of searches."""
    options = {"dsn": dsn, "rows": count // CHUNKS, "folder": folder, "cache_size": 30_000}
    scale.fill(options, SharedRows)
    place = PloneSite(BACKENDS[OURS], dsn, folder, 30_000)
    clusters = Clusters(count // CHUNKS)
    with serving(clusters.embed) as answers:
        use(place, answers.url)
        found = filled(place, dsn, clusters)
        found |= searched(place, dsn)
    place.close()
    return found


def use(place: PloneSite, url: str) -> None:
    """Set the embedder of the site to *url*; "" for none."""
    place.end_request()
    place.enter()
    registry = getUtility(IRegistry)
    registry["plone.pgcatalog.embedder_url"], registry["plone.pgcatalog.embedder_model"] = url, MODEL
    # The chunks are created by SQL, without a calibration by a worker.
    registry["plone.pgcatalog.meaning_threshold"] = 0.8
    transaction.commit()
    place.end_request()


def make_table(connection: Any, core: Any) -> tuple[Vectors, str]:
    """Create an empty table of chunks for the catalog *core*, as the queue does; return it, and the catalog's relation."""
    relation, embedder = relation_of(connection, core.zoid), table.embedder_of(core.tool)
    assert relation is not None
    assert embedder is not None
    with connection.transaction():
        vectors = table.create(connection, core.zoid, relation, embedder, DIMENSION, MODEL)
        return table.note(connection, vectors, is_complete=True), relation


def filled(place: PloneSite, dsn: str, clusters: Clusters) -> dict[str, Any]:
    """Fill a table of chunks; return its size, and the cost of its index."""
    core = place.enter().portal_catalog._core
    with psycopg.connect(dsn, autocommit=True) as connection:
        vectors, relation = make_table(connection, core)
        # There must be no idle transaction while the table is filled.
        catalog = core.zoid
        place.end_request()
        zoids = [zoid for (zoid,) in connection.execute(f"SELECT zoid FROM {relation} ORDER BY rid").fetchall()]
        with connection.cursor() as cursor, cursor.copy(COPY.format(chunks=vectors.name)) as copy:
            for batch in batched(zoids, 1000):
                for number, vector in enumerate(clusters.some(CHUNKS * len(batch))):
                    place_of = batch[number // CHUNKS], number % CHUNKS
                    copy.write_row((*place_of, 0, 100, b"d" * 16, table.literal(vector.tolist())))
        connection.execute("DELETE FROM pgcatalog_queue")
        connection.execute(f"VACUUM (ANALYZE) {vectors.name}")
        connection.execute(f"VACUUM (ANALYZE) {relation}")
        # Like autovacuum on a site: without statistics the counts of two words of a question take 5 ms.
        connection.execute("VACUUM (ANALYZE) pgcatalog_words, pgcatalog_spellings")
        [vectors] = table.read(connection, catalog)
        [(bytes_of_table,)] = connection.execute("SELECT pg_total_relation_size(%s)", (vectors.name,)).fetchall()
        found = {"chunks": vectors.chunks, "bytes a chunk": round(bytes_of_table / vectors.chunks)}
        if vectors.wants_hnsw:
            found["HNSW, s"] = round(timed(create_index, connection, vectors), 1)
            [(size,)] = connection.execute("SELECT pg_relation_size(%s)", (f"{vectors.name}_hnsw",)).fetchall()
            found["HNSW, bytes a chunk"] = round(size / vectors.chunks)
    return found


def searched(place: PloneSite, dsn: str) -> dict[str, Any]:
    """Return the times of pages, and the recall of HNSW, if there is an index."""
    texts = [f"{word(USUAL, n)} {word(USUAL, 7 * n + 3)}" for n in range(QUESTIONS)]
    vectors = table.vectors_of(place.request()._core)
    assert vectors is not None
    for text in texts:
        while vector_of(vectors, question_in(text)) is None:
            pass
    found: dict[str, Any] = {"all": page_figures(place, dsn, texts, {})}
    for share in SHARES:
        for name, of_share in FILTERS.items():
            found[f"{name}, {share} %"] = page_figures(place, dsn, texts, of_share(share))
    return found


def page_figures(place: PloneSite, dsn: str, texts: list[str], query: dict[str, Any]) -> dict[str, Any]:
    """Return the times of a page of a hybrid search: of its statement in the server, and of the page in the process."""
    in_process, in_server, recalls, hits = [], [], [], []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in texts * ROUNDS:
            catalog = uncached(place)
            in_process.append(timed(shown, catalog, text, query))
        for text in texts:
            catalog = uncached(place)
            with noted() as sent:
                hits.append(shown(catalog, text, query))
            in_server += [sum(server_seconds(connection, statement) for statement in sent) for _ in range(ROUNDS)]
            recalls.append(recall(catalog, text, query))
    return {
        "in the server, ms": times(in_server),
        "in the process, ms": times(in_process),
        "hits": round(fmean(hits)),
        "recall@10": round(fmean(recalls), 4),
    }


def times(seconds: list[float]) -> dict[str, float]:
    figures = summary(seconds)
    return {"p50": round(figures["median"], 2), "p95": round(figures["p95"], 2)}


def shown(catalog: Any, text: str, query: dict[str, Any]) -> int:
    """Render a page of the hits, and return the number of hits."""
    results = catalog.unrestrictedSearchResults(SearchableText=text, rank="hybrid", b_size=PAGE, **query)
    for brain in results[:PAGE]:
        brain.getURL(), brain.Title, brain.Description
    return int(results.actual_result_count)


def server_seconds(connection: Any, statement: Statement) -> float:
    """Return the time for planning and running *statement* in the server."""
    [([found],)] = plan.explain_rows(connection, statement, "ANALYZE, TIMING OFF, FORMAT JSON")
    return float(found["Planning Time"] + found["Execution Time"]) / 1000


def recall(catalog: Any, text: str, query: dict[str, Any]) -> float:
    """Return the share of the nearest ten rows, by a full comparison, that a search finds."""
    results = catalog.unrestrictedSearchResults(SearchableText=text, rank="hybrid", **query)
    near = near_in(results.condition)
    assert near is not None, "the embedder has not answered in time"
    found, exact = (nearest(results, near, is_indexed) for is_indexed in (near.question.is_indexed, False))
    return len(found & exact) / len(exact)


def nearest(results: Any, near: Near, is_indexed: bool) -> set[int]:
    view, question = results.catalog.view(), replace(near.question, is_indexed=is_indexed)

    def statement(stored: Any) -> Statement:
        rows = question.nearest_rows(stored.source, bind.condition(near.among, stored))
        return Statement(f"SELECT rid FROM ({rows.sql}) AS near WHERE place <= {TOP}", rows.params)

    return {rid for (rid,) in view.fetch(statement, near.among).value()}
