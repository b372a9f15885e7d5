"""A Plone site in this process, on a database of a backend, and requests to it."""

from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from benchmarks.backends import Backend
from benchmarks.backends import close_db
from benchmarks.backends import open_db
from benchmarks.scenarios import Place
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from plone.pgcatalog.request import with_request
from typing import Any
from zope.component.hooks import setSite
from zope.globalrequest import clearRequest
from zope.globalrequest import setRequest

import transaction


SITE = "Plone"
ADMIN = "admin"


class PloneSite:
    """Requests to the site in the database of *backend*: one connection at a time in each thread."""

    place: Place

    def __init__(self, backend: Backend, dsn: str, folder: Path, cache_size: int) -> None:
        self.backend = backend
        self.dsn = dsn
        self.folder = folder
        self.cache_size = cache_size
        self.app: Any = None
        #: Changes a document and commits; a thread of its own stands for somebody else.
        self.write: Callable[[Any, int], None] = lambda site, n: None
        self._writes = 0
        self._writer = ThreadPoolExecutor(1)
        self.open()

    def open(self) -> None:
        """Open the database: nothing of it is in memory then."""
        from Zope2.App.ClassFactory import ClassFactory

        self.db = open_db(self.backend, self.dsn, self.folder, self.cache_size)
        self.db.classFactory = ClassFactory

    def close(self) -> None:
        """End the request and close the database."""
        self.leave()
        close_db(self.db)

    # -- requests

    def enter(self, anonymous: bool = False) -> Any:
        """Begin a request; return the site, or the application when there is no site yet."""
        app, context = begin(self.db)
        self.app = app
        login(app, anonymous)
        return context

    def leave(self) -> None:
        """End the running request, if there is one."""
        if self.app is not None:
            app, self.app = self.app, None
            end(app)

    def request(self, anonymous: bool = False) -> Any:
        self.leave()
        return self.enter(anonymous).portal_catalog

    def same(self, anonymous: bool) -> Any:
        return self.app[SITE].portal_catalog

    def after_write(self, anonymous: bool) -> Any:
        self.leave()
        self._writes += 1
        self._writer.submit(self._write).result()
        return self.request(anonymous)

    def cold(self, anonymous: bool) -> Any:
        self.close()
        self.open()
        return self.request(anonymous)

    def forget_results(self) -> None:
        self.backend.forget_results()

    def _write(self) -> None:
        app, site = begin(self.db)
        try:
            login(app)
            self.write(site, self._writes)
            transaction.commit()
        finally:
            end(app)


def begin(db: Any) -> tuple[Any, Any]:
    """Open a connection as a request does; return the application and the site (or the application again)."""
    transaction.begin()
    app = with_request(db.open().root()["Application"])
    setRequest(app.REQUEST)
    site = app._getOb(SITE, None)
    setSite(site)
    return app, app if site is None else site


def end(app: Any) -> None:
    """Give the connection back, as the end of a request does."""
    transaction.abort()
    noSecurityManager()
    setSite(None)
    clearRequest()
    app.REQUEST.close()
    app._p_jar.close()


def login(app: Any, anonymous: bool = False) -> None:
    """Act as the manager of the server, or as nobody."""
    if anonymous:
        noSecurityManager()
    elif (user := app.acl_users.getUser(ADMIN)) is not None:
        newSecurityManager(None, user.__of__(app.acl_users))


def make_application(db: Any) -> None:
    """Put an empty Zope application with a manager into a new database; commits."""
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
    place.leave()
