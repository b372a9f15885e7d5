"""Batched look-ups of unique values, such as UIDs, that Plone would search for one by one.

A page of Volto refers to other objects by UID, and Plone sends a search for each.  If the UIDs are announced before, the
first of these searches reads the rows of all UIDs in one statement, with its other conditions, order and user.
Announcements last until the snapshot ends, their rows until the transaction next changes the catalog.  A long script may
hold a snapshot for hours, so the limits below bound the memory.
"""

from array import array
from collections.abc import Hashable
from dataclasses import replace
from itertools import islice
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.predicate import any_value
from plone.pgcatalog.sql.predicate import EQUALS
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any


#: Upper limit: values of one source, and values that one statement looks up.
MOST = 500
#: Upper limits per snapshot: sources, and values of all sources.  Exceeding one discards all earlier announcements.
MOST_SOURCES = 1000
MOST_VALUES = 5000
#: Upper limit: rows that are read with their metadata.  In a damaged site many rows may share a UID.
MOST_ANNOUNCED_ROWS = 2 * MOST
#: Upper limit: groups of searches with the same other conditions.  A search of a further group runs on its own.
MOST_GROUPS = 10

#: Value of a column -> the rids of its rows, and the loader that holds these rows.
FoundRows = dict[str, tuple[array[int], RowLoader]]


class Announced:
    """The values announced for one catalog on one snapshot, and the rows read for them."""

    def __init__(self) -> None:
        #: name of a column -> values, in the order of the page
        self._values: dict[str, dict[str, None]] = {}
        #: (number of pending changes, (column, excluded keys, key of the query without the value)) -> rows by value
        self._found: dict[tuple[int | None, Hashable], FoundRows] = {}
        #: names of the texts and blocks whose UIDs are announced
        self._sources: set[Hashable] = set()

    @classmethod
    def of(cls, session: Any, zoid: int) -> "Announced":
        """Return the announcements of the catalog *zoid* in *session* (``database.session.Session``)."""
        announced: Announced = session.announced.setdefault(zoid, cls())
        return announced

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of sources, values and groups of searches."""
        return len(self._sources), sum(map(len, self._values.values())), len(self._found)

    def forget_rows(self) -> None:
        """Discard the rows, because the transaction changes the catalog."""
        self._found.clear()

    def is_new(self, source: Hashable) -> bool:
        """Register *source*; return True if it was not registered before.  None means no source, and is always new."""
        if source in self._sources:
            return False
        if len(self._sources) >= MOST_SOURCES:
            self._forget()
        if source is not None:
            self._sources.add(source)
        return True

    def add(self, part: Predicate) -> None:
        """Announce searches for each value of *part*, a predicate ``=`` or ``= ANY`` on a column with unique values."""
        values = part.values if part.operator == EQUALS else part.values[0]
        if len(values) + self.counts[1] > MOST_VALUES:
            self._forget()
        self._values.setdefault(part.column.name, {}).update(dict.fromkeys(values))

    def _forget(self) -> None:
        """Discard all announcements and rows."""
        self._values.clear()
        self._sources.clear()
        self._found.clear()

    def find(self, compiled: CompiledQuery, loader: RowLoader) -> tuple[array[int], RowLoader] | None:
        """Return the rids of the rows of *compiled*, and the loader that holds them; None if it must run on its own.

        *loader* is the query's own.  Raises as ``RowsFetch.value``.
        """
        part = compiled.unique
        if part is None or part.operator != EQUALS or compiled.score is not None or compiled.window.size is not None:
            return None
        announced, value = self._values.get(part.column.name, {}), part.values[0]
        if value not in announced:
            return None
        # The answers of two searches that have this key in common differ by the value only.
        others = replace(compiled, where=compiled.where.changed(lambda each: EVERYTHING if each is part else each)).key
        if others is None:
            return None
        kind = part.column.name, tuple(loader.excluded_keys), others
        group = _changes(loader.view), kind
        if group not in self._found and len(self._found) >= MOST_GROUPS:
            return None
        found = self._found.setdefault(group, {})
        if value not in found:
            unread = [value, *(other for other in announced if other not in found and other != value)]
            found.update(_read(compiled, part, list(islice(unread, MOST)), loader))
        return found[value]

    def loader(self, view: CatalogView, rid: int) -> RowLoader | None:
        """Return the loader that holds the row *rid* as *view* sees it; None if no announced search has found it."""
        changes = _changes(view)
        groups = [found for (number, _), found in self._found.items() if number == changes]
        return next((loader for found in groups for rids, loader in found.values() if rid in rids), None)


def _changes(view: CatalogView) -> int | None:
    """Return the number of pending changes in the catalog of *view*; None if the transaction has changed nothing."""
    return None if view.pending is None else view.pending.changes


def _read(compiled: CompiledQuery, part: Predicate, values: list[str], loader: RowLoader) -> FoundRows:
    """Read the rows of *compiled* for all *values*, instead of that of *part*, in one statement; return them by value."""
    view, with_idx = loader.view, not loader.has_most()
    all_values = any_value(part.column, values)
    where = compiled.where.changed(lambda each: all_values if each is part else each)
    compiled = replace(compiled, where=where)
    options = loader.excluded_keys, with_idx, False, part.column, MOST_ANNOUNCED_ROWS
    rows, _ = view.page(compiled, 0, None, *options).value()
    rids: dict[str, array[int]] = {value: array("q") for value in values}
    for row in rows:
        rids[row[-1]].append(row[0])
    together = RowLoader(view, [rid for each in rids.values() for rid in each], loader.excluded_keys)
    stamp = view.stamp()
    if stamp is not None:
        together.share(stamp)
    if rows:
        together.add_rows([row[:-1] for row in rows])
    return {value: (found, together) for value, found in rids.items()}
