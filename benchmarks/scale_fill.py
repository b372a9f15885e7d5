"""Fills the catalog of a Plone site with made entries: a real rebuild, whose walk brings them."""

from benchmarks.backends import BACKENDS
from benchmarks.backends import OURS
from benchmarks.machine import resident_mb
from benchmarks.scale_rows import folders
from benchmarks.scale_rows import SiteRows
from benchmarks.scale_rows import Tree
from benchmarks.scale_rows import TYPES
from benchmarks.timing import value
from benchmarks.zope_site import make_application
from benchmarks.zope_site import make_site
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from itertools import batched
from pathlib import Path
from plone.pgcatalog.indexing import rebuild_relation as relation
from plone.pgcatalog.indexing.objects import fresh_entry
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild_relation import RebuildTarget
from plone.pgcatalog.indexing.rebuild_worker import Worker
from plone.pgcatalog.indexing.writer import dump
from plone.pgcatalog.protocols import Cursor
from tests.integration.site import load_zope
from time import perf_counter
from typing import Any

import json
import os
import transaction


#: Rows in one transaction of the rebuild.
BATCH = 1000
#: A folder of real documents, which are changed later on.
REAL = "real"
DOCUMENTS = 60
#: Of each there is a real object, which the rows are made of.
KINDS = (*TYPES, "Folder")
WORKFLOW = "simple_publication_workflow"
#: Any objects: the rows need some to belong to.
STORE = (
    "COPY object_state (zoid, tid, class_mod, class_name, state, state_size, idx) FROM STDIN",
    "SELECT max(tid) FROM transaction_log",
)


class MadeRows(Worker):
    """Brings *entries* into the relation, with an object each, and then what is really in the site."""

    def __init__(self, catalog: Any, connection: Any, entries: Iterator[Entry]) -> None:
        super().__init__(catalog, connection)
        self._batches = batched(entries, BATCH)

    def step(self) -> int | None:
        batch = next(self._batches, None)
        if batch is None:
            return super().step()
        with self.connection.transaction(), self.connection.cursor() as cursor:
            target = relation.read(cursor, self.zoid, "FOR KEY SHARE")
            assert target is not None
            self.manager.begin()
            store(cursor, batch)
            self._write(cursor, target, list(batch))
        self.manager.abort()
        return len(batch)


def store(cursor: Cursor, entries: tuple[Entry, ...]) -> None:
    """Store an object for each of *entries*, with its idx, as saving it would have done."""
    copying, newest = STORE
    cursor.execute(newest)
    (tid,) = cursor.fetchone()
    with cursor.copy(copying) as copy:
        for entry in entries:
            state = json.dumps({name: entry.idx.get(name, "") for name in ("Title", "Description")})
            row = [entry.zoid, tid, "plone.dexterity.content", "Item", state, len(state), dump(entry.idx)]
            copy.write_row(row)


class MeasuredRebuild(Rebuild):
    """Keeps the seconds of its parts; *worker* is called with catalog and connection; *paths* as of ``Rebuild``."""

    def __init__(self, catalog: Any, worker: Callable[..., Worker], paths: Sequence[str] | None = None) -> None:
        super().__init__(catalog, paths=paths)
        self.worker = worker(catalog, self.connection)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.seconds[name] = perf_counter() - started

    def _make_indexes(self, target: RebuildTarget) -> RebuildTarget:
        with self._timed("SQL indexes and VACUUM"):
            return super()._make_indexes(target)

    def _swap(self, target: RebuildTarget) -> None:
        with self._timed("the commit that lets the new table take over"):
            super()._swap(target)

    def _count_words(self) -> None:
        with self._timed("words counted"):
            super()._count_words()


def fill(options: dict[str, Any]) -> dict[str, Any]:
    """Make a site with *options* ``rows`` of them in its catalog, in this process; return what that took."""
    place, first = made(options)
    count = options["rows"]
    catalog, rows = rows_of(place, count)
    rebuild = MeasuredRebuild(catalog, partial(MadeRows, entries=rows.entries(first)))
    before, started = resident_mb(), perf_counter()
    for _ in rebuild.steps():
        pass
    rebuild.seconds["in all"] = perf_counter() - started
    grown = resident_mb() - before
    rebuild.close()
    place.leave()
    place.close()
    measures = {f"rebuild: {name}": value(seconds, "s") for name, seconds in rebuild.seconds.items()}
    walk = 2 * rebuild.seconds["in all"] - sum(rebuild.seconds.values())
    return {
        "rebuild: rows written, without taking them from objects": value(count / walk, "rows/s"),
        **measures,
        "rebuild: memory of the process, more at the end": value(grown, "MB"),
    }


def made(options: dict[str, Any]) -> tuple[PloneSite, int]:
    """Make a site with an object of each type; return it, and the first of the oids that are reserved for the rows."""
    place = opened(options)
    make_application(place.db)
    make_site(place)
    make_examples(place.enter())
    place.leave()
    return place, zoids(options["dsn"], options["rows"])


def opened(options: dict[str, Any]) -> PloneSite:
    """Open the database in this process, which only fills it."""
    folder = Path(options["folder"]) / f"filling-{os.getpid()}"
    folder.mkdir()
    load_zope(folder)
    return PloneSite(BACKENDS[OURS], options["dsn"], folder, options["cache_size"])


def rows_of(place: PloneSite, count: int) -> tuple[Any, SiteRows]:
    """Begin a request; return the catalog, and *count* rows for it."""
    site = place.enter()
    real = site[REAL]
    examples = {}
    for kind in KINDS:
        id = example_id(kind)
        examples[kind] = fresh_entry(site.portal_catalog, f"/{SITE}/{REAL}/{id}", real[id])
    rows = SiteRows(site.portal_catalog, Tree(f"/{SITE}", folders(count), ()), examples, count)
    transaction.abort()
    return site.portal_catalog, rows


def zoids(dsn: str, count: int) -> int:
    """Reserve *count* oids and return the first one."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        [(first,)] = connection.execute("SELECT nextval('zoid_seq')").fetchall()
        connection.execute("SELECT setval('zoid_seq', %s)", [first + count])
    return int(first)


def make_examples(site: Any) -> None:
    """Make real objects: one of each type, and documents to be changed."""
    site.portal_workflow.setDefaultChain(WORKFLOW)
    site.invokeFactory("Folder", REAL, title="Real objects")
    real = site[REAL]
    for kind in KINDS:
        real.invokeFactory(kind, example_id(kind), title=f"A {kind}")
    for number in range(DOCUMENTS):
        real.invokeFactory("Document", f"document{number}", title=f"Document {number}", description="To be changed")
    transaction.commit()


def example_id(kind: str) -> str:
    return kind.lower().replace(" ", "-")
