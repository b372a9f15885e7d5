"""Workers that visit the objects of a site for a rebuild, one transaction per batch; processes share the visits."""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from configparser import ConfigParser
from configparser import Error
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.sets import save
from plone.pgcatalog.database.sets import Sets
from plone.pgcatalog.indexing import rebuild_relation as relation
from plone.pgcatalog.indexing.extract import MissingAttributeCache
from plone.pgcatalog.indexing.objects import child
from plone.pgcatalog.indexing.objects import child_ids
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import fresh_entry
from plone.pgcatalog.indexing.objects import indexable
from plone.pgcatalog.indexing.objects import object_at
from plone.pgcatalog.indexing.objects import site_path
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.rebuild_relation import RebuildTarget
from plone.pgcatalog.indexing.rebuild_relation import RowWriter
from plone.pgcatalog.storage import writable_dsn_of
from psycopg import Connection
from psycopg import Cursor
from typing import Any
from ZODB.POSException import ConflictError

import logging
import os
import psycopg
import subprocess
import sys
import time


logger = logging.getLogger(__name__)

#: Minimum number of objects per transaction, if there are enough visits; a visit has up to a hundred ids.
BATCH = 100
ATTEMPTS = 5
#: Seconds to wait for visits that other workers have locked.
PAUSE = 0.05
#: Errors that a worker at the same object, or a pack, may cause; the batch is repeated.
TRANSIENT = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.ForeignKeyViolation,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
VISITING = ("walk", "rest")


class BrokenObject(RuntimeError):
    """An object cannot be catalogued."""


class StartOver(Exception):
    """The catalog's indexes have changed, or it was cleared: the rebuilt rows cannot be used."""


class RebuildGone(RuntimeError):
    """The rebuild was ended by another process, or the catalog has been removed."""


def rebuild_connection(catalog: Any) -> psycopg.Connection[Any]:
    """Return a new connection to the database of *catalog* for the rebuild's own writes; rows are tuples."""
    # Commits need not be durable: a crash of the server loses a batch together with its visits, and so the batch is
    # repeated.
    return connect_directly(writable_dsn_of(catalog._core.jar), "rebuild", 0, durable=False, prepare_threshold=5)


def entries_of(
    catalog: Any,
    path: str,
    found: Callable[[], Iterable[tuple[str, Any]]],
    skip_broken: bool,
    missing: MissingAttributeCache,
) -> list[Entry]:
    """Return the entries of the (path, object) pairs that *found* returns.

    - *path*: the visited path, for messages
    - *skip_broken*: log an exception and return no entries; otherwise BrokenObject is raised
    - *missing*: the cache of the transaction
    """
    try:
        return [fresh_entry(catalog, uid, obj, missing) for uid, obj in found()]
    except (ConflictError, psycopg.Error):
        raise
    except Exception as error:
        if not skip_broken:
            raise BrokenObject(f"{path}: {type(error).__name__}: {error}") from error
        logger.error("%s: left out of the rebuilt catalog: %s: %s", path, type(error).__name__, error)
        return []


class SetSaver:
    """Saves lists for the rebuild of *catalog*, each once, in short transactions of their own.

    Saved in the transaction of a batch, they would block all other transactions that add lists, until the batch ends.
    """

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog
        self._relation = ""
        self._saved: set[int] = set()

    def begin(self, target: RebuildTarget) -> None:
        """Clear the cache of saved lists if *target* has a new relation: they may have been deleted with the former one."""
        if target.relation != self._relation:
            self._relation = target.relation
            self._saved.clear()

    def __call__(self, sets: Sets) -> None:
        new = {number: sets[number] for number in sorted(sets.keys() - self._saved)}
        if new:
            with rebuild_connection(self._catalog) as connection, connection.transaction():
                save(connection.cursor(), new)
            self._saved.update(new)


class RebuildWorker:
    """Does the visits of the rebuild of *catalog*, a wrapped tool; *connection* is from ``rebuild_connection``."""

    def __init__(self, catalog: Any, connection: Connection[Any], skip_broken: bool = False) -> None:
        self.catalog = catalog
        self.core = catalog._core
        self.zoid = self.core.zoid
        self.manager = self.core.jar.transaction_manager
        self.connection = connection
        self.skip_broken = skip_broken
        self.save_sets = SetSaver(catalog)
        self.missing = MissingAttributeCache()

    def run(self) -> None:
        """Visit objects until no visit is left, neither free nor in work."""
        while True:
            if self.step() is None:
                with self.connection.cursor() as cursor:
                    target = relation.read(cursor, self.zoid)
                if target is None or target.phase not in VISITING:
                    return
                time.sleep(PAUSE)

    def step(self) -> int | None:
        """Visit a batch of objects in one transaction and return their number, None if no visit is free.

        Raises BrokenObject, StartOver, RebuildGone.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self.connection.transaction(), self.connection.cursor() as cursor:
                    return self._step(cursor)
            except TRANSIENT as error:
                if attempt == ATTEMPTS:
                    raise
                logger.info("a batch of the rebuild is tried again: %s", error)
            finally:
                self.manager.abort()
                self.core.jar.cacheGC()
        raise AssertionError("unreachable")

    def _step(self, cursor: Cursor[Any]) -> int | None:
        target = relation.read(cursor, self.zoid, "FOR KEY SHARE")
        if target is None:
            raise RebuildGone(RebuildGone.__doc__)
        self.manager.begin()
        self.missing = MissingAttributeCache()
        entries: list[Entry] = []
        visited = None
        while (visited or 0) < BATCH:
            visit = relation.take_visit(cursor, self.zoid)
            if visit is None:
                break
            container, names = visit
            visited = (visited or 0) + len(names)
            found = self._at(names) if container is None else self._in(cursor, container, names)
            for batch in found:
                entries += batch
        if visited is not None:
            self._write(cursor, target, entries)
        return visited

    def _write(self, cursor: Cursor[Any], target: RebuildTarget, entries: list[Entry]) -> None:
        self.save_sets.begin(target)
        rows_of(self.catalog, cursor, target, self.save_sets).replace(entries)
        relation.advance(cursor, target, len(entries))

    def _at(self, paths: list[str]) -> Iterator[list[Entry]]:
        """Yield the entries of the objects at *paths*, without visiting their children."""
        for path in paths:
            yield entries_of(self.catalog, path, partial(found_at, self.catalog, path), self.skip_broken, self.missing)

    def _in(self, cursor: Cursor[Any], container: str, ids: list[str]) -> Iterator[list[Entry]]:
        """Yield the entries of the objects *ids* in *container*, and add visits of their children."""
        parent = walk_to(self.catalog.getPhysicalRoot(), container)
        if parent is None:
            return
        for id in ids:
            path = f"{container}/{id}"
            visit = partial(self._visit, cursor, parent, id, path)
            yield entries_of(self.catalog, path, visit, self.skip_broken, self.missing)

    def _visit(self, cursor: Cursor[Any], parent: Any, id: str, path: str) -> Iterator[tuple[str, Any]]:
        obj = child(parent, id)
        if obj is None or aq_base(obj) is aq_base(self.catalog):
            return
        relation.add_visits(cursor, self.zoid, path, child_ids(obj))
        yield from indexable(obj)


def walk_to(root: Any, path: str) -> Any:
    """Return the container at *path*, reached from *root* id by id as in the walk; None if it no longer exists."""
    obj = root
    for id in path.split("/")[1:]:
        obj = None if obj is None else child(obj, id)
    return obj


def found_at(catalog: Any, path: str) -> list[tuple[str, Any]]:
    """Return the pair of *path* and its object in a list, which is empty if there is no such object."""
    obj = object_at(catalog, path)
    return [] if obj is None else [(path, obj)]


def rows_of(catalog: Any, cursor: Cursor[Any], target: RebuildTarget, save_sets: Callable[[Sets], None]) -> RowWriter:
    """Return a writer of rows for *catalog*; raises StartOver if *target* does not have the columns for them."""
    core = catalog._core
    layout = core.layout()
    if layout.signature != target.signature:
        raise StartOver(StartOver.__doc__)
    pending = CatalogPending(catalog, core.zoid)
    pending.site_path = site_path(catalog)
    return RowWriter(cursor, target, layout, pending, core.session.new_rid, save_sets)


def follow_log(
    catalog: Any,
    cursor: Cursor[Any],
    target: RebuildTarget,
    skip_broken: bool,
    limit: int,
    save_sets: Callable[[Sets], None],
) -> Callable[[], int]:
    """Read up to *limit* log entries; return a function that applies them to *target*, to be called with a newer snapshot.

    The function returns the number of entries.  Both raise StartOver.
    """
    ids, paths = relation.read_log(cursor, target, limit)
    if "" in paths:
        raise StartOver(StartOver.__doc__)

    def follow() -> int:
        missing = MissingAttributeCache()
        wanted = relation.live_paths(cursor, target, paths) | relation.sibling_paths(cursor, target, paths)
        entries = [
            entry
            for path in sorted(wanted)
            for entry in entries_of(catalog, path, partial(found_at, catalog, path), skip_broken, missing)
            if clean_path(entry.path) == path
        ]
        rows_of(catalog, cursor, target, save_sets).replace(entries, paths)
        relation.forget_log(cursor, ids)
        return len(ids)

    return follow


#: Number of objects that can be visited in the time that a Zope process takes to start.
FEW_OBJECTS = 2000


def default_workers(objects: int | None) -> int:
    """Return the number of processes to visit *objects* (None: unknown): one for few objects, else one per usable core."""
    return len(os.sched_getaffinity(0)) if objects is None or objects > FEW_OBJECTS else 1


def own_zope_conf() -> str | None:
    """Return the path of the zope.conf of this process, None if its command line does not name it.

    The command line names the file itself, or the ini file of a WSGI server that refers to it.
    """
    for argument in sys.argv[1:]:
        path = Path(argument)
        if path.suffix == ".conf" and path.is_file():
            return str(path.resolve())
        if path.suffix == ".ini" and path.is_file():
            found = _zope_conf_of(path.resolve())
            if found is not None:
                return found
    return None


def _zope_conf_of(ini: Path) -> str | None:
    parser = ConfigParser(defaults={"here": str(ini.parent)})
    try:
        parser.read(ini, "utf-8")
        names = [parser[section]["zope_conf"] for section in parser.sections() if "zope_conf" in parser[section]]
    except (Error, UnicodeDecodeError):
        return None
    files = [ini.parent / name for name in names]
    return next((str(file) for file in files if file.is_file()), None)


@contextmanager
def helpers(count: int, zope_conf: str, site: str, skip_broken: bool) -> Iterator[None]:
    """Run *count* more processes that visit objects, inside of the context; they end when no visit is left."""
    command = [sys.executable, "-m", "plone.pgcatalog.cli", "rebuild", zope_conf, "--site", site, "--worker"]
    if skip_broken:
        command.append("--skip-broken")
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait()
