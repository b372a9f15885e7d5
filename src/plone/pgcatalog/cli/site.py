"""Opens a Plone site from a zope.conf for a command."""

from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from AccessControl.users import system
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.request import with_request
from Products.CMFCore.interfaces import ISiteRoot
from typing import Any
from ZConfig import ConfigurationError
from zope.component.hooks import setSite
from zope.globalrequest import clearRequest
from zope.globalrequest import setRequest

import psycopg
import transaction


class SiteError(RuntimeError):
    """The site cannot be opened, is not there, or its catalog is not ours."""


@contextmanager
def open_site(zope_conf: str, path: str, ours: bool = True) -> Iterator[Any]:
    """Yield the Plone site at *path* of the Zope that *zope_conf* configures, acting as the system user.

    Its catalog must be ours, or for *ours* False another one.  Aborts what is not committed.  Raises SiteError.
    """
    app = with_request(open_zope(zope_conf))
    setRequest(app.REQUEST)
    newSecurityManager(None, system)
    try:
        portal = app.unrestrictedTraverse(path, None)
        if not ISiteRoot.providedBy(portal):
            raise SiteError(f"there is no site {path!r}")
        setSite(portal)
        if IPGCatalogTool.providedBy(getattr(portal, "portal_catalog", None)) != ours:
            raise SiteError(f"the catalog of {path!r} is {'not' if ours else 'already'} plone.pgcatalog's")
        yield portal
    finally:
        transaction.abort()
        noSecurityManager()
        setSite(None)
        clearRequest()
        app._p_jar.close()


def open_zope(zope_conf: str) -> Any:
    """Return the root of the Zope that *zope_conf* configures; raises SiteError, also when its database is out of reach."""
    from Zope2.Startup.run import configure_wsgi

    import Zope2

    try:
        configure_wsgi(zope_conf)
        return Zope2.app()
    except ConfigurationError as error:
        raise SiteError(f"{zope_conf} cannot be read: {error}") from error
    except psycopg.Error as error:
        raise SiteError(f"the database of {zope_conf}: {str(error).strip()}") from error
