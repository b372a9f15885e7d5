"""The table of jobs, and a kind of job that records its requests."""

from collections.abc import Iterator
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.worker import IJobKind
from typing import Any
from zope.component import getGlobalSiteManager
from zope.interface import implementer

import psycopg
import pytest


@implementer(IJobKind)
class Recorded:
    """A kind of job that records its requests and runs *does*, which may return long work as a function, as ``work`` may."""

    is_ready = True

    def __init__(self) -> None:
        self.zoids: list[int] = []
        self.does: Any = lambda job: None

    def needed(self, jobs: Any) -> list[int]:
        return []

    def work(self, database: Any, job: Job) -> Any:
        self.zoids.append(job.zoid)
        rest = self.does(job)
        return rest if callable(rest) else None


@pytest.fixture
def kind(app: Any) -> Iterator[Recorded]:
    kind = Recorded()
    getGlobalSiteManager().registerUtility(kind, IJobKind, name="test")
    yield kind
    getGlobalSiteManager().unregisterUtility(kind, IJobKind, name="test")


@pytest.fixture
def queue(dsn: str, db: Any) -> Iterator[psycopg.Connection[Any]]:
    """An autocommit connection to the table of jobs, which is empty."""
    with connect(dsn, "test") as connection:
        yield connection


def put(queue: Any, *zoids: int, catalog: int = 1) -> None:
    with queue.transaction(), queue.cursor() as cursor:
        table.put(cursor, "test", catalog, zoids)
