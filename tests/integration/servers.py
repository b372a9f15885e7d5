"""PostgreSQL servers for single tests."""

from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from typing import Any

import psycopg


def fetch(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn) as connection:
        [(value,)] = connection.execute(query).fetchall()
        return value


def execute(dsn: str, *queries: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for query in queries:
            connection.execute(query)


def server(data_dir: Path | None = None, **keywords: Any) -> EmbeddedPostgres:
    return EmbeddedPostgres(data_dir, settings=TEST_SETTINGS, **keywords)
