"""A Plone site in this process, on a database of a backend, and requests to it."""

from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from benchmarks.backends import BACKENDS
from benchmarks.connections import Requests
from benchmarks.worker import Progress
from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.request import with_request
from tests.integration.site import load_zope
from typing import Any
from zope.component.hooks import setSite
from zope.globalrequest import clearRequest
from zope.globalrequest import setRequest

import transaction


SITE = "Plone"
ADMIN = "admin"


class PloneSite(Requests):
    """Requests to the site."""

    #: changes a document and commits
    write: Callable[[Any, int], None] = staticmethod(lambda site, n: None)

    def open(self) -> None:
        from Zope2.App.ClassFactory import ClassFactory

        super().open()
        self.db.classFactory = ClassFactory

    # -- requests

    def enter(self, anonymous: bool = False) -> Any:
        """Begin a request; return the site, or the application if there is no site yet."""
        app, context = begin(self.db)
        self.app = app
        login(app, anonymous)
        return context

    def end_request(self) -> None:
        if self.app is not None:
            app, self.app = self.app, None
            end(app)

    def same(self, anonymous: bool) -> Any:
        return self.app[SITE].portal_catalog

    def _write(self) -> None:
        app, site = begin(self.db)
        try:
            login(app)
            self.write(site, self._writes)
            transaction.commit()
        finally:
            end(app)


def opened[Site: PloneSite](options: dict[str, Any], progress: Progress, kind: type[Site]) -> Site:
    """Start Zope; return an object that makes requests to the database of a worker: without a site, or with the stored one."""
    folder = Path(options["folder"])
    progress("starting Zope")
    load_zope(folder)
    place = kind(BACKENDS[options["backend"]], options["dsn"], folder, options["cache_size"])
    if not options.get("kept"):
        make_application(place.db)
        progress("creating the site")
    return place


def begin(db: Any) -> tuple[Any, Any]:
    """Open a connection like a request; return the application and the site (or the application again)."""
    transaction.begin()
    app = with_request(db.open().root()["Application"])
    setRequest(app.REQUEST)
    site = app._getOb(SITE, None)
    setSite(site)
    return app, app if site is None else site


def end(app: Any) -> None:
    """Close the connection, like the end of a request."""
    transaction.abort()
    noSecurityManager()
    setSite(None)
    clearRequest()
    app.REQUEST.close()
    app._p_jar.close()


def login(app: Any, anonymous: bool = False) -> None:
    """Act as the manager of the server, or as anonymous."""
    if anonymous:
        noSecurityManager()
    elif (user := app.acl_users.getUser(ADMIN)) is not None:
        newSecurityManager(None, user.__of__(app.acl_users))


def make_application(db: Any) -> None:
    """Create an empty Zope application with a manager in a new database; commits."""
    from OFS.Application import AppInitializer
    from OFS.Application import Application

    connection = db.open()
    connection.root()["Application"] = Application()
    transaction.commit()
    connection.close()
    app, _ = begin(db)
    AppInitializer(app).initialize()
    app.acl_users._doAddUser(ADMIN, "secret", ["Manager"], [])
    transaction.commit()
    end(app)


def make_site(place: PloneSite) -> None:
    """Create a Plone site with the catalog of the backend; commits."""
    from Products.CMFPlone.factory import addPloneSite

    app = place.enter()
    site = addPloneSite(app, SITE, title="Site", distribution_name="classic", setup_content=False)
    setSite(site)
    place.backend.install(site)
    transaction.commit()
    place.end_request()
