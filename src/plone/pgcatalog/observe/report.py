"""ZCatalog's query report, for code that asks ``getCatalogReport``: the slow searches of this process."""

from collections.abc import Mapping
from plone.pgcatalog.protocols import CatalogTool
from plone.pgcatalog.settings import slow_query_ms
from Products.ZCatalog.plan import CatalogPlan
from typing import Any


class ReportEntry(CatalogPlan):
    """One entry of the report; grouped by the names in the query, not by their values."""

    def __init__(self, tool: CatalogTool, query: Mapping[str, Any], threshold: float, seconds: float) -> None:
        self.cid = tuple(tool.getPhysicalPath())
        self.key = self.make_key(query)
        self.threshold = threshold
        self.init_timer()
        self.duration = seconds

    def valueindexes(self) -> frozenset[str]:
        """Return nothing: counting the values of every index would make a slow query slower."""
        return frozenset()


def report_slow(tool: CatalogTool, query: Mapping[str, Any], seconds: float) -> None:
    """Put *query*, answered by the catalog *tool* in *seconds*, into the report if it was slow."""
    threshold = slow_query_ms(tool) / 1000
    if 0 < threshold <= seconds:
        ReportEntry(tool, query, threshold, seconds).log()
