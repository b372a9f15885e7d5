"""Layers for the tests of add-ons, like those of plone.app.testing, on a site whose catalog is in PostgreSQL.

Use ``PGCATALOG_FIXTURE`` in place of ``PLONE_FIXTURE``.  A layer stacked on it has a copy of its database, so tests are
isolated as in plone.app.testing: integration tests are aborted, functional tests have their own copy.

The server is the one of ``PGCATALOG_TEST_DSN``, a superuser's connection string; databases named ``pgcatalog_test_…`` are
created and dropped there.  Without the variable a server is started.  Needs the extra ``testing``.
"""

from collections.abc import Callable
from contextlib import ExitStack
from io import BytesIO
from plone.app.testing import applyProfile
from plone.app.testing import FunctionalTesting
from plone.app.testing import IntegrationTesting
from plone.app.testing import PloneFixture
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.stack import Databases
from plone.pgcatalog.testing.stack import StackedDB
from plone.pgcatalog.testing.stack import StorageStack
from plone.testing import zodb
from plone.testing import zope
from typing import Any
from unittest import mock
from zope.component.hooks import site
from zope.configuration import xmlconfig
from zope.dottedname.resolve import resolve

import os
import transaction


PACKAGE = "plone.pgcatalog"
PROFILE = f"{PACKAGE}:default"
DSN_VARIABLE = "PGCATALOG_TEST_DSN"


class PGCatalogFixture(PloneFixture):
    """Plone's fixture, with its site on zodb-pgjsonb and this package installed.

    The resource ``postgresDSN`` is the connection string of the server.
    """

    def setUp(self) -> None:
        self._ending = ExitStack()
        try:
            self["postgresDSN"] = self._server()
            databases = Databases(self["postgresDSN"], f"pgcatalog_test_{os.getpid()}_")
            self._ending.callback(databases.close)
            self._stack = StorageStack(databases)
            self._ending.enter_context(mock.patch.object(zodb, "stackDemoStorage", self._stacking()))
            super().setUp()
        except BaseException:  # also an interrupted set-up must not leave a server behind; it is raised again
            self._ending.close()
            raise

    def tearDown(self) -> None:
        with self._ending:
            super().tearDown()
        del self["postgresDSN"]

    def _server(self) -> str:
        if dsn := os.environ.get(DSN_VARIABLE):
            return dsn
        return self._ending.enter_context(EmbeddedPostgres(settings=TEST_SETTINGS)).dsn()

    def _stacking(self) -> Callable[..., Any]:
        """Return the replacement of ``stackDemoStorage`` while this layer is set up."""
        stack_demo_storage = zodb.stackDemoStorage
        below = self.get("zodbDB")

        def stack(db: Any = None, name: str | None = None) -> Any:
            if isinstance(db, StackedDB):
                return self._stack.stack(db)
            if db is not below or name != "PloneFixture":
                # Layers of other packages, on a site with another catalog.
                return stack_demo_storage(db, name)
            bottom = self._stack.stack()
            copy_application(db, bottom)
            return bottom

        return stack

    def setUpZCML(self) -> None:
        super().setUpZCML()
        context = self["configurationContext"]
        package = resolve(PACKAGE)
        xmlconfig.file("configure.zcml", package, context=context)
        xmlconfig.includeOverrides(context, "overrides.zcml", package)
        context.execute_actions()
        self._stack.announce_from_now_on(self["zodbDB"])

    def tearDownZCML(self) -> None:
        self._stack.stop_announcing()
        super().tearDownZCML()

    def setUpDefaultContent(self, app: Any) -> None:
        super().setUpDefaultContent(app)
        transaction.commit()
        zope.installProduct(app, PACKAGE, quiet=True, multiinit=True)
        with site(app["plone"]):
            applyProfile(app["plone"], PROFILE)
        transaction.commit()


def copy_application(source: Any, target: Any) -> None:
    """Copy the Zope application of *source* to *target*, both ZODB.DB."""
    with source.transaction() as old, target.transaction() as new:
        exported = old.exportFile(old.root()["Application"]._p_oid, BytesIO())
        exported.seek(0)
        new.root()["Application"] = new.importFile(exported)


PGCATALOG_FIXTURE = PGCatalogFixture()
PGCATALOG_INTEGRATION_TESTING = IntegrationTesting(bases=(PGCATALOG_FIXTURE,), name="PGCatalog:Integration")
PGCATALOG_FUNCTIONAL_TESTING = FunctionalTesting(bases=(PGCATALOG_FIXTURE,), name="PGCatalog:Functional")
PGCATALOG_ACCEPTANCE_TESTING = FunctionalTesting(
    bases=(PGCATALOG_FIXTURE, zope.WSGI_SERVER_FIXTURE), name="PGCatalog:Acceptance"
)
