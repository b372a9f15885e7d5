"""Follows one search, and reports what was slow: the only part of this room on the way of a query."""

from Acquisition import aq_base
from collections.abc import Sequence
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.counters import observe
from plone.pgcatalog.observe.record import keep
from plone.pgcatalog.observe.record import SlowQuery
from plone.pgcatalog.observe.shape import shape_of
from plone.pgcatalog.observe.throttle import Throttle
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.request import asking_path
from plone.pgcatalog.settings import slow_query_mask
from plone.pgcatalog.settings import slow_query_ms
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from time import perf_counter
from typing import Any

import logging


logger = logging.getLogger(__name__)
#: All slow queries are recorded, but in the log a site with many of them would find nothing else any more.
throttle = Throttle()


class Trace:
    """Times the parts of a search in *catalog* for a query, its sort and its limit.

    ``compiled`` is called when the SQL is there, ``ran`` after each statement.  A result runs its statements when
    somebody asks it, so each counts by itself: a page, the total, the remaining rows, metadata.  Making the SQL
    counts with the first.
    """

    __slots__ = ("_catalog", "_compile", "_query", "_started", "seconds")

    def __init__(self, catalog: Catalog, query: Any, sort: Sequence[tuple[str, bool]], limit: Any) -> None:
        self._catalog = catalog
        self._query = (query, sort, limit)
        self._compile = 0.0
        #: so long the search has taken until now
        self.seconds = 0.0
        self._started = perf_counter()

    def compiled(self) -> None:
        """Note that the statement is made."""
        self._compile = self.seconds = perf_counter() - self._started

    def ran(
        self, operation: str, statement: Statement, seconds: float, fetching: float, rows: int, cold: str = ""
    ) -> None:
        """Note that *statement* took *seconds*, *fetching* of them to read its rows; for *cold* see ``Session.coldness``."""
        observe(self._query[0], operation, seconds)
        compiling, self._compile = self._compile, 0.0
        self.seconds += seconds
        if 0 < slow_query_ms(self._catalog.tool) <= (compiling + seconds) * 1000:
            times = (1000 * (compiling + seconds), 1000 * compiling, 1000 * (seconds - fetching), 1000 * fetching)
            self._record(operation, statement, times, rows, cold)

    def _record(
        self, operation: str, statement: Statement, times: tuple[float, float, float, float], rows: int, cold: str
    ) -> None:
        catalog = self._catalog
        query, sort, limit = self._query
        indexes = aq_base(catalog.tool)._indexes
        options = {name: getattr(index, "query_options", ()) for name, index in indexes.items()}
        text, left_out = keep(query, options, sort, limit, slow_query_mask(catalog.tool), statement.window)
        shape = shape_of(query, options, sort, bool(limit or query.get("b_size")))
        path = "/".join(catalog.tool.getPhysicalPath())
        left_out_lines = throttle.left_out((path, shape))
        if left_out_lines is not None:
            logger.warning(
                "%s of %s took %.1f ms (compile %.1f, execute %.1f, decode %.1f), %d rows%s: %s",
                operation,
                path,
                *times,
                rows,
                f", and {left_out_lines} more like it since the last line" if left_out_lines else "",
                shape,
            )
        if catalog.jar.isReadOnly():
            return
        page = asking_path()
        entry = SlowQuery(catalog.zoid, path, operation, shape, text, left_out, *times, rows, statement, page, cold)
        recorder.record(dsn_of(catalog.jar), entry)
