"""Facets: how many of the rows a search found have which value, for many indexes in one statement."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.discovery.facet_groups import Buckets
from plone.pgcatalog.discovery.facet_groups import FacetQuery
from plone.pgcatalog.discovery.facet_groups import Facets
from plone.pgcatalog.discovery.facet_statement import FacetStatement
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.results.cache import FACETS
from plone.pgcatalog.results.cache import Key
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Read
from plone.pgcatalog.settings import RESTRICTIONS
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.values import frozen
from typing import Any


#: Values of one facet, unless the caller says otherwise.
LIMIT = 100
#: Seconds that counting for a page may take; a page without facets is better than none.
FACET_SECONDS = 3.0


def _cache_key(stamp: Stamp | None, text: str, params: Sequence[Any]) -> Key | None:
    """Return the key of an answer in the result cache, None for one that cannot be kept."""
    try:
        return None if stamp is None else (FACETS, stamp, text, frozen(list(params)))
    except TypeError:
        return None


def _size(row: Sequence[Sequence[Any] | None]) -> int:
    """Return about how many bytes *row* and its key take."""
    return 2000 + sum(60 + len(str(value)) for values in row for value in values or ())


def facets(
    results: CatalogSearchResults,
    names: Sequence[str] = (),
    *,
    ranges: Mapping[str, Buckets] | None = None,
    children: Mapping[str, str | Sequence[str]] | None = None,
    chosen: Mapping[str, Expression] | None = None,
    exclude_own: bool = False,
    limit: int | None = LIMIT,
    timeout: float | None = None,
) -> Facets:
    """Count the values of the indexes *names* in all rows that match the search of *results*, its limits aside.

    Returns {name: Facet}, a Facet being value -> number of rows; *limit* is for each of them, None for no limit.  Its
    ``total`` is the number of rows that fulfil all criteria, or None if only ranges were counted, which can be.
    *ranges* are further facets, index name -> {label: (from, up to but without)}, and *children*, path index -> path
    or several: for each path one level below, the rows there and in it.
    With *exclude_own* a facet does not heed the query's own criterion for its index, so that several values can be
    chosen; *chosen* are further criteria, index name -> query object, of which a facet does not heed the one under its
    name.  One statement; *timeout* is its limit in seconds, None for the site's own.

    Raises QueryError for an index that has no facets, LimitExceeded for too many facets, and SearchTimeout.
    """
    what = ranges or {}, exclude_own, limit, children or {}, chosen or {}
    return Counting(results, FacetQuery(results.criteria, results.sort, names, *what), timeout).facets()


class Counting:
    """The counting of *query* for the search of *results*, in *seconds* at most.

    From the cache, or read; in an open batch it goes in the message of that.
    """

    def __init__(self, results: CatalogSearchResults, query: FacetQuery, seconds: float | None) -> None:
        self._made = FacetStatement(results.catalog, query)
        self._view = results.catalog.search_view()
        self._asked: Statement | None = None
        self._read: Read | None = None
        if not self._made.is_empty and (not self._view.session.knows_states() or self._known() is None):
            self._read = Read(self._view, self._statement, seconds)

    def facets(self) -> Facets:
        """Return the counts.  Raises SearchTimeout."""
        return self._made.facets([] if self._made.is_empty else self._row())

    def _row(self) -> Sequence[Any]:
        row = self._known() if self._read is None or self._read.answer is None else None
        if row is None:
            read = self._read or Read(self._view, self._statement)
            row = next(iter(read.rows()), ())
            key = self._key()
            if row and key is not None:
                result_cache().put(key, row, _size(row))
        return row

    def _known(self) -> Sequence[Any] | None:
        """Return the row that the cache has for this snapshot."""
        key = self._key()
        found: Sequence[Any] | None = None if key is None else result_cache().get(key)
        return found

    def _key(self) -> Key | None:
        self._asked = self._asked or self._statement(None)
        return None if self._asked is None else _cache_key(self._view.stamp(), *self._asked)

    def _statement(self, state: CatalogState | None) -> Statement | None:
        return self._view.bound(self._bound, *self._made.conditions, state=state)

    def _bound(self, stored: Stored) -> Statement:
        made = self._made.changed(lambda condition: bind.condition(condition, stored))
        made.where = bind.selective_condition(made.where, stored)
        return made.statement(*stored.source, bind.lists_sql(stored))


def facet_counts(results: CatalogSearchResults) -> dict[str, "FacetFields"]:
    """Return what ``facet_counts`` of *results* is."""
    catalog = results.catalog
    names = [n for n in catalog.indexes if n not in RESTRICTIONS and catalog.translator(n).key_expression() is not None]
    return {"facet_fields": FacetFields(results, tuple(names))}


class FacetFields(Mapping[str, dict[str, int]]):
    """Index name -> {value as text: count}, counted when it is asked for."""

    __allow_access_to_unprotected_subobjects__ = True

    def __init__(self, results: Any, names: tuple[str, ...]) -> None:
        self._results = results
        self._names = names
        self._counted: dict[str, dict[str, int]] = {}

    def __getitem__(self, name: str) -> dict[str, int]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._counted:
            facet = self._results.facets([name], limit=None)[name]
            self._counted[name] = {key if isinstance(key, str) else str(key): n for key, n in facet.items()}
        return self._counted[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
