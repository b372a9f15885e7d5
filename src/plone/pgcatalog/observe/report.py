"""ZCatalog's query report: searches that took longer than the tool's ``long_query_time``."""

from Acquisition import aq_base
from collections.abc import Mapping
from Products.ZCatalog.plan import CatalogPlan
from typing import Any


class SlowQuery(CatalogPlan):  # type: ignore[misc]
    """One entry of the report; grouped by the names in the query, not by their values."""

    def valueindexes(self) -> frozenset[str]:
        """Return nothing: counting the values of every index would make a slow query slower."""
        return frozenset()


def report_slow(catalog: Any, query: Mapping[str, Any], seconds: float) -> None:
    """Put *query*, answered by *catalog* in so many *seconds*, into the report if it was slow."""
    threshold = getattr(aq_base(catalog.tool), "long_query_time", None)
    if threshold is None or seconds < threshold:
        return
    entry = SlowQuery(catalog, query, threshold)
    entry.duration = seconds
    entry.log()
