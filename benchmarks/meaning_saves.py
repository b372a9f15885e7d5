"""The cost of a save with an embedder and without: documents are created in turn, in one site, without a worker.

The queue waits for vectors, not the save: with an embedder, a save only adds one more job.  After the documents of a turn,
pages without a text search are measured: an embedder must not slow them down.
"""

from benchmarks import content
from benchmarks.backends import BACKENDS
from benchmarks.backends import OURS
from benchmarks.documents import Document
from benchmarks.documents import documents
from benchmarks.meaning_latency import make_table
from benchmarks.meaning_latency import use
from benchmarks.text_search import uncached
from benchmarks.texts import folder_titles
from benchmarks.timing import timed
from benchmarks.zope_site import make_application
from benchmarks.zope_site import make_site
from benchmarks.zope_site import PloneSite
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import batched
from itertools import cycle
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from statistics import median
from tempfile import TemporaryDirectory
from tests.integration.embedders import serving
from tests.integration.site import load_zope
from typing import Any

import psycopg


#: Documents in a turn; the ratio is the median of the ratios of two consecutive turns.
TURN = 10
CACHE_SIZE = 30_000
#: Pages in a turn, and their query.
PAGES = 20
NEWEST = {"portal_type": "Document", "sort_on": "modified", "sort_order": "reverse", "b_size": 25}


def measured(server: EmbeddedPostgres, options: Any) -> dict[str, Any]:
    """Return the figures of *options* ``saves`` documents with an embedder, and as many without."""
    with TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(of_saves, server.createdb("saves"), Path(folder), options.saves).result()


def of_saves(dsn: str, folder: Path, saves: int) -> dict[str, Any]:
    load_zope(folder)
    place = PloneSite(BACKENDS[OURS], dsn, folder, CACHE_SIZE)
    make_application(place.db)
    make_site(place)
    content.make_folders(place, folder_titles(2 * saves))
    with serving() as answers:
        use(place, answers.url)
        with psycopg.connect(dsn, autocommit=True) as connection:
            make_table(connection, place.request()._core)
        turns = [turn(place, batch, url) for batch, url in zip(batches(saves), cycle(("", answers.url)), strict=False)]
    place.close()
    saved, shown = zip(*turns, strict=True)
    return {"saves": saves} | compared("", saved) | compared("a page without text search, ", shown)


def compared(prefix: str, turns: Sequence[float]) -> dict[str, float]:
    """Return the figures of *what* from the seconds of *turns*, alternately without an embedder and with one."""
    off, on = turns[::2], turns[1::2]
    return {
        f"{prefix}without an embedder, ms": round(1000 * median(off), 2),
        f"{prefix}with one, ms": round(1000 * median(on), 2),
        f"{prefix}with / without": round(
            median(with_one / without for with_one, without in zip(on, off, strict=True)), 3
        ),
    }


def batches(saves: int) -> Iterator[tuple[Document, ...]]:
    """Yield the documents of each turn; the number of turns is even."""
    return batched(islice(documents(2 * saves), saves // TURN * 2 * TURN), TURN)


def turn(place: PloneSite, batch: Iterable[Document], url: str) -> tuple[float, float]:
    """Return the median seconds for saving each of *batch* with the embedder *url*, and for PAGES pages.

    The first one of each is ignored.
    """
    use(place, url)
    author = content.Author(place)
    for document in batch:
        author.create(document)
    return median(author.seconds[1:]), median([page_seconds(place) for _ in range(1 + PAGES)][1:])


def page_seconds(place: PloneSite) -> float:
    """Return the seconds for an uncached page of the newest documents."""
    catalog = uncached(place)
    return timed(lambda: [brain.Title for brain in catalog(**NEWEST)])
