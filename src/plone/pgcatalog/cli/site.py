"""Opens a Plone site from a zope.conf for a command."""

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def open_site(zope_conf: str, path: str, ours: bool = True) -> Iterator[Any]:
    """Yield the Plone site at *path* of the Zope that *zope_conf* configures, acting as the system user.

    Its catalog must be ours, or for *ours* False another one.  Aborts what is not committed.  Raises SiteError.
    """
    with opened_at(open_zope(zope_conf), "") as app:
        portal = app.unrestrictedTraverse(path, None)
        if not ISiteRoot.providedBy(portal):
            raise SiteError(f"there is no site {path!r}")
        setSite(portal)
        if IPGCatalogTool.providedBy(getattr(portal, "portal_catalog", None)) != ours:
            raise SiteError(f"the catalog of {path!r} is {'not' if ours else 'already'} plone.pgcatalog's")
        yield portal


def open_zope(zope_conf: str) -> Any:
    """Return the ZODB.DB of the Zope that *zope_conf* configures; raises SiteError, also when its database is out of reach."""
    from Zope2.Startup.run import configure_wsgi

    import Zope2

    try:
        configure_wsgi(zope_conf)
        Zope2.startup_wsgi()
        return Zope2.DB
    except ConfigurationError as error:
        raise SiteError(f"{zope_conf} cannot be read: {error}") from error
    except psycopg.Error as error:
        raise SiteError(f"the database of {zope_conf}: {str(error).strip()}") from error
