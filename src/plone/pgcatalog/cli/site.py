"""Opens a Plone site from a zope.conf for a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.request import opened_at
from Products.CMFCore.interfaces import ISiteRoot
from typing import Any
from ZConfig import ConfigurationError
from zope.component.hooks import setSite

import click
import psycopg


class SiteError(click.UsageError):
    """The site cannot be opened, is not there, or its catalog is not ours."""


#: Folders in folders in which sites are looked for.
DEPTH = 3
FOLDERS = ("Folder", "Folder (Ordered)")


@contextmanager
def open_site(zope_conf: str, path: str, ours: bool | None = True) -> Iterator[Any]:
    """Yield the Plone site at *path* of the Zope that *zope_conf* configures, acting as the system user.

    Its catalog must be ours, for *ours* False another one, for None any.  Aborts what is not committed.  Raises SiteError.
    """
    look_at(zope_conf, ours)
    with open_root(zope_conf) as app:
        portal = app.unrestrictedTraverse(path, None)
        if not ISiteRoot.providedBy(portal):
            there = ", ".join("/".join(site.getPhysicalPath())[1:] for site in sites_of(app)) or "none"
            raise SiteError(f"there is no site {path!r}; there are: {there}")
        setSite(portal)
        if ours is not None and IPGCatalogTool.providedBy(getattr(portal, "portal_catalog", None)) != ours:
            raise SiteError(f"the catalog of {path!r} is {'not' if ours else 'already'} plone.pgcatalog's")
        yield portal


def look_at(zope_conf: str, ours: bool | None) -> None:
    """Raise SiteError for what can be told before Plone is started, which takes its time; *ours* as in ``open_site``.

    That is a configuration that cannot be read, a storage that has no catalog of ours, and a database out of reach.
    """
    main = next((database for database in configured_databases(zope_conf) if database.is_main), None)
    if main is None:
        raise SiteError(f"{zope_conf} has no database for the root")
    if main.dsn is None:
        if ours:
            raise SiteError(f"the storage of {zope_conf} is {main.storage}, and not zodb-pgjsonb")
        return
    with errors_told(zope_conf), connect(main.dsn, "command"):
        pass


@contextmanager
def errors_told(zope_conf: str) -> Iterator[None]:
    """Make an error of the database of *zope_conf* a SiteError."""
    try:
        yield
    except psycopg.Error as error:
        raise SiteError(f"the database of {zope_conf}: {str(error).strip()}") from error


@contextmanager
def open_root(zope_conf: str) -> Iterator[Any]:
    """Yield the root of the Zope that *zope_conf* configures, acting as the system user.

    Aborts what is not committed.  Raises SiteError.
    """
    with opened_at(open_zope(zope_conf), "") as app:
        yield app


def sites_of(folder: Any, depth: int = DEPTH) -> list[Any]:
    """Return the sites in *folder*, and in folders in it."""
    sites = [obj for obj in folder.objectValues() if ISiteRoot.providedBy(obj)]
    for inner in folder.objectValues(FOLDERS) if depth else ():
        sites += sites_of(inner, depth - 1)
    return sites


def open_zope(zope_conf: str) -> Any:
    """Return the ZODB.DB of the Zope that *zope_conf* configures; raises SiteError, also when its database is out of reach."""
    from Zope2.Startup.run import configure_wsgi

    import Zope2

    try:
        with errors_told(zope_conf):
            configure_wsgi(zope_conf)
            Zope2.startup_wsgi()
            return Zope2.DB
    except ConfigurationError as error:
        raise SiteError(f"{zope_conf} cannot be read: {error}") from error
