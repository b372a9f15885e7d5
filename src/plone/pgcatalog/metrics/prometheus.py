"""The figures of a database in Prometheus' format; needs prometheus-client (the extra ``metrics``)."""

from collections.abc import Iterable
from collections.abc import Iterator
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.metrics.database import database_metrics
from plone.pgcatalog.metrics.database import gauge
from plone.pgcatalog.metrics.database import Metric
from prometheus_client import CollectorRegistry
from prometheus_client import generate_latest
from prometheus_client import start_http_server
from prometheus_client.core import GaugeMetricFamily
from psycopg.rows import dict_row

import logging
import psycopg


logger = logging.getLogger(__name__)


class DatabaseCollector:
    """Reads the figures of the database *dsn* for each scrape."""

    def __init__(self, dsn: str, check: bool = False) -> None:
        self.dsn = dsn
        self.check = check

    def describe(self) -> list[GaugeMetricFamily]:
        """Return []: the metrics are only known when they are collected."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the figures; only ``pgcatalog_up`` with 0 if the database does not answer."""
        try:
            with connect(self.dsn, "metrics", 0, read_only=True, row_factory=dict_row) as connection:
                figures = list(database_metrics(connection, self.check))
        except psycopg.Error as error:
            logger.warning("no metrics: %s", error)
            figures = []
        up = gauge("pgcatalog_up", int(bool(figures)), "1 if the database is available and has catalogs")
        yield from families([up, *figures])


def families(metrics: Iterable[Metric]) -> Iterator[GaugeMetricFamily]:
    groups: dict[str, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(metric.name, []).append(metric)
    for name, members in groups.items():
        family = GaugeMetricFamily(name, members[0].help, labels=list(members[0].labels))
        for member in members:
            family.add_metric(list(member.labels.values()), member.value)
        yield family


def registry(dsn: str, check: bool = False) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(DatabaseCollector(dsn, check))
    return registry


def text(dsn: str, check: bool = False) -> str:
    return str(generate_latest(registry(dsn, check)), "utf-8")


def serve(dsn: str, host: str, port: int, check: bool = False) -> tuple[object, object]:
    """Serve the figures over HTTP; return the server and its thread.  Raises OSError if the port is in use."""
    server, thread = start_http_server(port, host, registry(dsn, check))
    return server, thread
