"""Sites with vectors: their embedder settings, worker and tables."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.meaning import table
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.embedders import MODEL
from typing import Any
from zope.component import getUtility

import pytest
import transaction


@pytest.fixture
def site(site_template: str, postgres: Any) -> Iterator[Any]:
    """(portal, worker, dsn) of a site of its own."""
    with sites.opened(sites.clone(postgres, site_template)) as db, sites.inside(db) as portal:
        dsn = database_dsn(db)
        assert dsn is not None
        yield portal, Worker(db, dsn), dsn


def needs_pgvector(portal: Any) -> None:
    """Skip the test if the server of the site has no pgvector, which only vectors need."""
    dsn = database_dsn(portal._p_jar.db())
    assert dsn is not None
    with connect(dsn, "test") as connection:
        if not connection.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'").fetchall():
            pytest.skip("the server has no pgvector")


def set_embedder(portal: Any, url: str, model: str = MODEL, meaning_threshold: float = 0.8, **settings: Any) -> None:
    needs_pgvector(portal)
    registry = getUtility(IRegistry)
    settings |= {"embedder_url": url, "embedder_model": model, "meaning_threshold": meaning_threshold}
    for name, value in settings.items():
        registry[f"plone.pgcatalog.{name}"] = value
    transaction.commit()


def work(site: Any, rounds: int = 10) -> None:
    """Have the worker do all waiting jobs, and those that they add, in a thread of its own, and another one the long jobs.

    After each of the *rounds*, which end with an empty queue, all jobs are due.
    """
    _, worker, dsn = site
    long = Worker(worker.database, dsn, is_long=True)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(rounds):
            pool.submit(worker.run_until_empty).result()
            pool.submit(long.run_until_empty).result()
            with connect(dsn, "test") as connection:
                if not connection.execute(
                    "UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity' RETURNING 1"
                ).fetchall():
                    break
    transaction.begin()


def current_vectors(portal: Any) -> table.Vectors:
    transaction.begin()
    found = table.vectors_of(portal.portal_catalog._core)
    assert found is not None
    return found


def chunks(site: Any, page: Any = None) -> list[Any]:
    portal, _, dsn = site
    with connect(dsn, "test") as connection:
        where = "" if page is None else f" WHERE zoid = {int.from_bytes(page._p_oid)}"
        return connection.execute(
            f"SELECT zoid, chunk, start, stop FROM {current_vectors(portal).name}{where}"
        ).fetchall()
