"""Compares a catalog with the content of its site, object by object, and repairs the differences."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import batched
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import content_of
from plone.pgcatalog.indexing.objects import exists
from plone.pgcatalog.indexing.objects import fresh_entry
from plone.pgcatalog.indexing.overlay import ScratchTable
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.writer import dump
from Products.CMFCore.indexing import processQueue
from typing import Any
from ZODB.POSException import POSKeyError

import orjson
import transaction


BATCH = 200
#: Differences repaired in one transaction.
COMMIT_BATCH = 500


@dataclass(frozen=True)
class Difference:
    """A difference at *path*, of one of these kinds:

    - ``missing``: an object without a row
    - ``orphaned``: a row without an object
    - ``different``: row and object differ in the columns or idx keys *names*
    - ``dangling``: a folder's order contains an id without an object (a fault of the content)
    - ``gone``: the database refers to the object, or a part of it, but does not have it (a fault of the content)
    """

    path: str
    kind: str
    names: tuple[str, ...] = ()

    @property
    def can_be_repaired(self) -> bool:
        """True if cataloguing or uncataloguing the path repairs the difference."""
        return self.kind not in ("dangling", "gone")

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}" + (f" ({', '.join(self.names)})" if self.names else "")


class Verifier:
    """Verifies *catalog*, the wrapped tool, as seen by the running transaction.

    ``checked`` is the number of compared objects; *progress* is called with it after each batch.
    """

    def __init__(self, catalog: Any, progress: Callable[[int], None] = lambda checked: None) -> None:
        self.catalog = catalog
        self.core = catalog._core
        self.progress = progress
        self.checked = 0
        #: paths of objects that the database lacks, wholly or in part
        self._missing: set[str] = set()

    def differences(self) -> Iterator[Difference]:
        """Yield each difference between rows and content; the object cache is reduced after each batch."""
        processQueue()
        unmet = {path for (path,) in self.core.view().select("path").value()}
        dangling: list[str] = []
        self._missing.clear()
        for batch in batched(content_of(self.catalog, dangling.append, self._missing.add), BATCH):
            unmet.difference_update(clean_path(path) for path, _ in batch)
            yield from self._compare(batch)
            self.progress(self.checked)
            self.core.jar.cacheGC()
        yield from (Difference(path, "dangling") for path in dangling)
        for path in sorted(unmet):
            yield from self._judge(path)
        yield from (Difference(path, "gone") for path in sorted(self._missing))

    def repair_all(
        self, differences: Iterable[Difference], progress: Callable[[int], None] = lambda done: None
    ) -> None:
        """Repair those of *differences* that can be repaired; commit after every COMMIT_BATCH repairs and at the end.

        *progress* is called after each full batch, with the number of repairs so far.
        """
        for number, difference in enumerate((d for d in differences if d.can_be_repaired), 1):
            self.repair(difference)
            if number % COMMIT_BATCH == 0:
                transaction.commit()
                progress(number)
        transaction.commit()

    def repair(self, difference: Difference) -> None:
        """Catalogue or uncatalogue the path of *difference* in the running transaction."""
        obj = self.catalog.unrestrictedTraverse(difference.path, None)
        if difference.kind == "orphaned" or obj is None:
            self.catalog.uncatalog_object(difference.path)
        else:
            self.catalog.catalog_object(obj, difference.path)

    def _judge(self, path: str) -> Iterator[Difference]:
        """Compare a row that the walk did not reach: its object may have been catalogued by hand."""
        obj = self.catalog.unrestrictedTraverse(path, None)
        if obj is None or not exists(obj) or clean_path("/".join(obj.getPhysicalPath())) != path:
            yield Difference(path, "orphaned")
        else:
            yield from self._compare([(path, obj)])

    def _compare(self, batch: Iterable[tuple[str, Any]]) -> Iterator[Difference]:
        entries = []
        for path, obj in batch:
            self.checked += 1
            try:
                entries.append(fresh_entry(self.catalog, path, obj))
            except POSKeyError:
                self._missing.add(path)
        different = self._different_columns(entries)
        idx = self.core.view().idx([rid for rid, _ in different.values()]).value()
        keys = self._idx_keys()
        for entry in entries:
            if entry.path not in different:
                yield Difference(entry.path, "missing")
                continue
            rid, columns = different[entry.path]
            stored = {key: value for key, value in idx.get(rid, {}).items() if key in keys}
            names = dict.fromkeys(columns + different_keys(stored, entry.idx))
            if names:
                yield Difference(entry.path, "different", tuple(names))

    def _idx_keys(self) -> set[str]:
        """Return the idx keys of the configured indexes and columns; rows may still have keys of removed ones."""
        translators = self.core.indexes.values()
        return {*self.core.names, *(t.id for t in translators if t.in_idx and t.columns())}

    def _different_columns(self, entries: list[Entry]) -> dict[str, tuple[int, tuple[str, ...]]]:
        """Return path -> (rid, columns whose stored value differs from the fresh one), for the entries that have a row."""
        view = self.core.view()
        names = view.layout.names
        snapshot = view.snapshot()
        if snapshot is None:
            return {}
        layout = view.layout.with_interned(view.layout.interned(snapshot.state))
        fresh = ScratchTable(view.session, f"pgcatalog_verify_{view.zoid:x}", layout)
        fresh.create()
        fresh.clear()
        fresh.insert(entries)
        flags = ", ".join(f'catalog."{n}" IS DISTINCT FROM fresh."{n}"' for n in names)
        relation, params = snapshot.stored.source
        relation = relation if relation.endswith(" AS catalog") else f"{relation} AS catalog"
        rows = view.session.execute(
            f"SELECT catalog.path, catalog.rid, {flags} FROM {relation} JOIN {fresh.name} AS fresh USING (path)", params
        )
        return {
            path: (rid, tuple(n for n, differs in zip(names, flags, strict=True) if differs))
            for path, rid, *flags in rows
        }


def different_keys(stored: dict[str, Any], fresh: dict[str, Any]) -> tuple[str, ...]:
    """Return the idx keys in which *stored* and *fresh* differ; *fresh* is compared in its JSON form."""
    fresh = orjson.loads(dump(fresh))
    return tuple(k for k in sorted(stored.keys() | fresh.keys()) if not same_value(stored.get(k), fresh.get(k)))


def same_value(one: Any, other: Any) -> bool:
    """Return True if two JSON values decode to equal values.

    The same date may be stored in two ways: with an offset of 0, or with the zone UTC of pytz.
    """
    return bool(one == other or decode(one) == decode(other))
