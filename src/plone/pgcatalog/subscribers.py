"""Subscribers to the opening of a storage, the start of a process and the phases of a request."""

from plone.pgcatalog.compat.zcatalog import log_patches
from plone.pgcatalog.core import cataloguer
from plone.pgcatalog.database import direct
from plone.pgcatalog.database import pool
from plone.pgcatalog.database.prefetch import warm_up
from plone.pgcatalog.database.session import connection_of
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.distribution import refuse_mixture
from plone.pgcatalog.files import texts
from plone.pgcatalog.indexing import processor
from plone.pgcatalog.observe import searches
from plone.pgcatalog.queue import worker
from plone.pgcatalog.storage import is_supported
from plone.pgcatalog.storage.publisher import begin_requests_once
from plone.pgcatalog.storage.snapshots import publishing
from typing import Any

import Zope2


def register_processors(event: Any) -> None:
    """Register the catalog's hooks with every zodb-pgjsonb storage of the opened database, and make packs safe; idempotent.

    Raises MixedDistributions or UnknownStorage, which ends the start of Zope.
    """
    refuse_mixture()
    log_patches()
    direct.pack_directly()
    texts.hide_transforms()
    begin_requests_once()
    databases = getattr(event.database, "databases", None) or {"main": event.database}
    for database in databases.values():
        if processor.register(database):
            direct.adapt_to_pooler(database)
            pool.close_at_exit(database)


def read_ahead(event: Any) -> None:
    """Load the data that the first pages of the process need (IProcessStarting)."""
    warm_up(Zope2.DB)


def start_workers(event: Any) -> None:
    """Start the threads that do jobs in this process, for each writable database (IProcessStarting)."""
    worker.start_threads(Zope2.DB)


def begin_snapshot(site: Any, event: Any) -> None:
    """Make sure that a request to *site* reads no object of a history that the database has lost (IBeforeTraverseEvent)."""
    jar = connection_of(site)
    if is_supported(jar):
        Session.begin(jar)


def end_request(event: Any) -> None:
    """Mark the end of the request; its snapshot lasts until the connection is closed (IPubBeforeCommit, IPubBeforeAbort)."""
    publishing.end()


def release_connection(event: Any) -> None:
    """Return the request's connection to the pool (IPubEnd)."""
    pool.release_request_connection()


def count_search(event: Any) -> None:
    """Count the words that the request has searched for (IPubSuccess)."""
    searches.count_noted(event.request)


def drop_catalog(tool: Any, event: Any) -> None:
    """Drop the relation of a catalog tool that is being deleted, alone or with its site."""
    cataloguer.drop(tool._core)
