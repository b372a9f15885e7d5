"""The table of jobs, and a kind of job that records its requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.table import Job
from typing import Any
from zope.component import getGlobalSiteManager
from zope.interface import implementer

import psycopg
import pytest


@implementer(IJobKind)
class Recorded:
    """A kind of job that records its requests, and calls *does* with the job and its progress."""

    is_ready = True
    is_one_statement = False

    def __init__(self, is_long: bool = False) -> None:
        self.is_long = is_long
        self.subjects: list[int] = []
        self.does: Any = lambda job, progress: None

    def needed(self, jobs: Any) -> list[int]:
        return []

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        self.subjects.append(job.subject)
        self.does(job, progress)


@pytest.fixture
def kind(app: Any) -> Iterator[Recorded]:
    with registered(Recorded(), "test") as kind:
        yield kind


@contextmanager
def registered(kind: Recorded, name: str) -> Iterator[Recorded]:
    """Have *kind*, in place of another kind with this *name*, do the jobs of this process."""
    sites = getGlobalSiteManager()
    former = sites.queryUtility(IJobKind, name)
    sites.registerUtility(kind, IJobKind, name)
    try:
        yield kind
    finally:
        sites.unregisterUtility(kind, IJobKind, name)
        if former is not None:
            sites.registerUtility(former, IJobKind, name)


@pytest.fixture
def queue(dsn: str, db: Any) -> Iterator[psycopg.Connection[Any]]:
    """An autocommit connection to the table of jobs, which is empty."""
    with connect(dsn, "test") as connection:
        yield connection


def put(queue: Any, *subjects: int, catalog: int = 1) -> None:
    with queue.transaction(), queue.cursor() as cursor:
        table.put(cursor, "test", catalog, subjects)
