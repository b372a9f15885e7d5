"""PostgreSQL servers for single tests."""

from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS

import psycopg


def fetch(dsn, query):
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchone()[0]


def execute(dsn, *queries):
    with psycopg.connect(dsn, autocommit=True) as connection:
        for query in queries:
            connection.execute(query)


def server(data_dir=None, **keywords):
    return EmbeddedPostgres(data_dir, settings=TEST_SETTINGS, **keywords)
