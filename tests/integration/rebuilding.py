"""Rebuilds that tests step through, and the observations before and after."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.dexterity.content import ASSIGNABLE_CACHE_KEY
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.storage import database_dsn
from tests.integration.waiting import until
from typing import Any
from zope.component.hooks import getSite
from zope.component.hooks import setSite
from zope.globalrequest import getRequest

import psycopg
import transaction


@contextmanager
def second_site(db: Any, id: str = "plone") -> Iterator[Any]:
    """Yield the site as another process sees it: with a connection and transactions of its own."""
    from plone.pgcatalog.request import with_request

    manager = transaction.TransactionManager()
    connection = db.open(manager)
    try:
        yield with_request(connection.root()["Application"])[id]
    finally:
        manager.abort()
        connection.close()


@contextmanager
def inside(site: Any) -> Iterator[None]:
    before = getSite()
    setSite(site)
    try:
        yield
    finally:
        setSite(before)
        # Dexterity caches objects of any connection on the request.
        getattr(getRequest(), "__dict__", {}).pop(ASSIGNABLE_CACHE_KEY, None)


class Steps:
    """Drives a rebuild step by step, in a connection of its own."""

    def __init__(self, site: Any, **options: Any) -> None:
        self.site = site
        self.rebuild = Rebuild(site.portal_catalog, **options)
        self._steps = self.rebuild.steps()
        self.phase = ""

    def step(self) -> str:
        with inside(self.site):
            self.phase = next(self._steps).phase
        return self.phase

    def run(self, until: str = "done") -> "Steps":
        while self.phase != until:
            self.step()
        return self

    def kill(self) -> None:
        """End as a killed process does, until the server has noticed: the connection is gone, nothing is cleaned up."""
        if self.rebuild.connection.closed:
            return
        pid = self.rebuild.connection.info.backend_pid
        self.rebuild.close()
        with psycopg.connect(database_dsn(self.site._p_jar.db()) or "", autocommit=True) as others:
            until(lambda: not others.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall())


@contextmanager
def rebuilding(db: Any, id: str = "plone", **options: Any) -> Iterator[Steps]:
    with second_site(db, id) as site:
        steps = Steps(site, **options)
        try:
            yield steps
        finally:
            steps.kill()


def rebuild(db: Any, **options: Any) -> None:
    with rebuilding(db, **options) as steps:
        steps.run()


def differences(portal: Any) -> list[str]:
    transaction.begin()
    return [str(d) for d in Verifier(portal.portal_catalog).differences()]


def everything(portal: Any) -> Any:
    """Return the catalog's (metadata, indexed values) of every path."""
    catalog = portal.portal_catalog
    return {
        path: (catalog.getMetadataForRID(rid), catalog.getIndexDataForRID(rid))
        for path, rid in catalog._catalog.uids.items()
    }


def tables(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            r"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^pgcatalog_[0-9a-f]+(_|$)'"
        )
        return {name for (name,) in rows if not name.startswith(("pgcatalog_rebuild", "pgcatalog_changes"))}


def sql(dsn: str, statement: str) -> list[Any]:
    """Run *statement* directly, outside of any site's connection; {} stands for the live relation."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        cursor = connection.execute(statement.format(f'"{relation}"'))
        return cursor.fetchall() if cursor.description else []
