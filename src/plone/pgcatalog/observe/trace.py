"""Times one search and reports slow ones: the only module of ``observe`` that runs within a query."""

from Acquisition import aq_base
from bisect import bisect_left
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.observe.record import encode_query
from plone.pgcatalog.observe.record import shape_of
from plone.pgcatalog.observe.record import SlowQuery
from plone.pgcatalog.observe.recorder import Throttle
from plone.pgcatalog.request import request_path
from plone.pgcatalog.settings import slow_query_mask
from plone.pgcatalog.settings import slow_query_ms
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from plone.pgcatalog.storage import is_read_only
from Products.ZCatalog.plan import CatalogPlan
from threading import get_ident
from time import perf_counter
from typing import Any
from typing import TYPE_CHECKING

import logging


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


#: Upper bounds of the buckets, in seconds; a last bucket has no upper bound.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
#: (index, kind of search): the first of these indexes that the query contains decides.
KINDS = (("SearchableText", "text"), ("UID", "uid"), ("path", "path"))
OTHER = "other"

#: (thread, kind, operation) -> [total seconds, statements in each bucket]
_cells: dict[tuple[int, str, str], list[float]] = {}


def kind_of(query: Mapping[str, Any]) -> str:
    """Return the kind of *query*: ``text``, ``uid``, ``path`` or ``other``."""
    for name, kind in KINDS:
        if name in query:
            return kind
    return OTHER


def observe(query: Mapping[str, Any], operation: str, seconds: float) -> None:
    """Count a statement of *operation* (``page``, ``count`` …) for *query* that took *seconds*."""
    key = (get_ident(), kind_of(query), operation)
    cell = _cells.get(key)
    if cell is None:
        cell = _cells[key] = [0.0] * (len(BUCKETS) + 2)
    cell[0] += seconds
    cell[bisect_left(BUCKETS, seconds) + 1] += 1


def totals() -> Iterator[tuple[str, str, float, list[int]]]:
    """Yield (kind, operation, total seconds, statements in each bucket), summed over all threads."""
    sums: dict[tuple[str, str], list[float]] = {}
    for (_thread, kind, operation), cell in list(_cells.items()):
        total = sums.setdefault((kind, operation), [0.0] * len(cell))
        sums[kind, operation] = [a + b for a, b in zip(total, cell, strict=True)]
    for (kind, operation), (seconds, *counts) in sorted(sums.items()):
        yield kind, operation, seconds, [int(n) for n in counts]


class ReportEntry(CatalogPlan):
    """An entry of ZCatalog's query report, grouped by the names in the query, not by their values."""

    def __init__(self, tool: Any, query: Mapping[str, Any], threshold: float, seconds: float) -> None:
        self.cid = tuple(tool.getPhysicalPath())
        self.key = self.make_key(query)
        self.threshold = threshold
        self.init_timer()
        self.duration = seconds

    def valueindexes(self) -> frozenset[str]:
        """Return an empty set: counting the values of every index would make a slow query slower."""
        return frozenset()


def report_slow(tool: Any, query: Mapping[str, Any], seconds: float) -> None:
    """Add *query*, which the catalog *tool* answered in *seconds*, to the query report if it was slow."""
    threshold = slow_query_ms(tool) / 1000
    if 0 < threshold <= seconds:
        ReportEntry(tool, query, threshold, seconds).log()


#: Milliseconds: total, waiting for the embedder, compiling the SQL, executing it, reading the rows.
Times = tuple[float, float, float, float, float]

logger = logging.getLogger(__name__)
#: Limits the lines about slow queries in the log file; the table records all of them.
throttle = Throttle()


class Trace:
    """Times the parts of a search in *catalog*, and reports them.

    - ``compiled``: the SQL is compiled.
    - ``ran``: a statement has run (a page, the total, remaining rows, metadata); each is reported by itself.
    - ``started``: the first rows are read.

    The time to compile and the time within ``embedding`` are added to the first statement.
    """

    __slots__ = ("_catalog", "_compile", "_embed", "_query", "_started", "seconds")

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog
        #: (query, sort, limit, whether the search is ranked)
        self._query: tuple[Mapping[str, Any], Sequence[tuple[str, bool]], Any] = ({}, (), None)
        self._compile = self._embed = 0.0
        #: seconds that the search has taken so far
        self.seconds = 0.0
        self._started = perf_counter()

    @contextmanager
    def embedding(self) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            self._embed += perf_counter() - started

    def compiled(self, query: Mapping[str, Any], sort: Sequence[tuple[str, bool]], limit: Any) -> None:
        """Record the end of compiling *query*, with its *sort* and *limit*."""
        self._query = (query, sort, limit)
        self.seconds = perf_counter() - self._started
        self._compile = self.seconds - self._embed

    def ran(
        self, operation: str, statement: Statement, seconds: float, fetching: float, rows: int, cold: str = ""
    ) -> None:
        """Record that *statement* took *seconds*, *fetching* of them for its rows; *cold*: "process", "connection" or ""."""
        observe(self._query[0], operation, seconds)
        parts = (self._embed, self._compile, seconds - fetching, fetching)
        self._embed = self._compile = 0.0
        self.seconds += seconds
        if 0 < slow_query_ms(self._catalog.tool) <= 1000 * sum(parts):
            embed, compile, execute, decode = (1000 * part for part in parts)
            times = (embed + compile + execute + decode, embed, compile, execute, decode)
            self._record(operation, statement, times, rows, cold)

    def started(self, found: bool) -> None:
        """Report the query, count the words of the search and whether it *found* rows, and schedule regular work."""
        catalog, query = self._catalog, self._query[0]
        report_slow(catalog.tool, query, self.seconds)
        if is_read_only(catalog.jar):
            return
        recorder.tick(dsn_of(catalog.jar))
        if SOURCE_INDEX in query:
            searches.note(catalog, query[SOURCE_INDEX], found)

    def _record(self, operation: str, statement: Statement, times: Times, rows: int, cold: str) -> None:
        catalog = self._catalog
        query, sort, limit = self._query
        indexes = aq_base(catalog.tool)._indexes
        options = {name: getattr(index, "query_options", ()) for name, index in indexes.items()}
        text, left_out = encode_query(query, options, sort, limit, slow_query_mask(catalog.tool), statement.window)
        shape = shape_of(query, options, sort, bool(limit or query.get("b_size")))
        path = "/".join(catalog.tool.getPhysicalPath())
        left_out_lines = throttle.left_out((path, shape))
        if left_out_lines is not None:
            logger.warning(
                "%s of %s took %.1f ms (embed %.1f, compile %.1f, execute %.1f, decode %.1f), %d rows%s: %s",
                operation,
                path,
                *times,
                rows,
                f", and {left_out_lines} more like it since the last line" if left_out_lines else "",
                shape,
            )
        if is_read_only(catalog.jar):
            return
        page = request_path()
        entry = SlowQuery(catalog.zoid, path, operation, shape, text, left_out, *times, rows, statement, page, cold)
        recorder.record(dsn_of(catalog.jar), entry)
