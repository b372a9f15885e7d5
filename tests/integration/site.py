"""A real Plone site on zodb-pgjsonb for each test: cloned from a template database."""

from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextlib import contextmanager
from functools import cache
from plone.pgcatalog import settings
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from psycopg import sql
from typing import Any

import gc
import itertools
import pathlib
import psycopg
import tempfile
import transaction


#: Options of all storages.
STORAGE: dict[str, Any] = {"cache_warm_pct": 0}
TEMPLATE = "plone_template"
STOCK_TEMPLATE = "plone_stock"
_numbers = itertools.count(1)
#: A server and the name of a database there.
Clone = tuple[EmbeddedPostgres, str]
#: The clones of each fixture that is being set up (innermost last), and the clones of fixtures that have ended.
_collected: list[list[Clone]] = []
_ended: list[Clone] = []

ZOPE_CONF = """\
%define INSTANCE {instance}
instancehome $INSTANCE
debug-mode off
<zodb_db main>
  {storage}
  mount-point /
</zodb_db>
"""
NO_STORAGE = """<mappingstorage>
    name main
  </mappingstorage>"""
SITE_ZCML = """\
<configure xmlns="http://namespaces.zope.org/zope" xmlns:five="http://namespaces.zope.org/five">
  <include package="Zope2.App" />
  <five:loadProducts file="meta.zcml" />
  <five:loadProducts />
  <include package="plone.pgcatalog" />
  <five:loadProductsOverrides />
</configure>
"""


def override_settings(monkeypatch: Any, **values: Any) -> None:
    """Apply these settings to all sites of this process, until *monkeypatch* is undone."""
    read = settings.site_setting
    monkeypatch.setattr(
        settings, "site_setting", lambda tool, name: values[name] if name in values else read(tool, name)
    )


@cache
def start_zope() -> None:
    """Load Zope, Plone and our ZCML into this process, once."""
    load_zope(pathlib.Path(tempfile.mkdtemp(prefix="pgcatalog-zope-")))
    # Objects that live until the end of the process need not be scanned by each collection.
    gc.collect()
    gc.freeze()


def load_zope(instance: pathlib.Path, storage: str = NO_STORAGE) -> None:
    """Load Zope, Plone and our ZCML into this process, configured in *instance*, with the section *storage* for its database."""
    from Zope2.Startup.run import configure_wsgi

    import Zope2

    (instance / "etc").mkdir(parents=True)
    (instance / "etc" / "site.zcml").write_text(SITE_ZCML)
    (instance / "etc" / "zope.conf").write_text(ZOPE_CONF.format(instance=instance, storage=storage))
    configure_wsgi(str(instance / "etc" / "zope.conf"))
    Zope2.startup_wsgi()


def opened(dsn: str, **options: Any) -> AbstractContextManager[Any]:
    """Return the context of a ZODB.DB on a new PGJsonbStorage."""
    from zodb_pgjsonb.storage import PGJsonbStorage

    return opened_on(PGJsonbStorage(dsn=dsn, **STORAGE, **options))


def opened_in_file(folder: pathlib.Path) -> AbstractContextManager[Any]:
    """Return the context of a ZODB.DB on the Data.fs in *folder*."""
    from ZODB.FileStorage import FileStorage

    return opened_on(FileStorage(f"{folder}/Data.fs", blob_dir=f"{folder}/blobs"))


@contextmanager
def opened_on(storage: Any) -> Iterator[Any]:
    """Yield a ZODB.DB on *storage*, announced as Zope does at start-up."""
    from ZODB.DB import DB
    from zope.event import notify
    from zope.processlifetime import DatabaseOpenedWithRoot
    from Zope2.App.ClassFactory import ClassFactory

    # As in zope.conf: references to objects by a path (five.intid) contain the name of the database.
    db = DB(storage, database_name="main")
    db.classFactory = ClassFactory
    notify(DatabaseOpenedWithRoot(db))
    try:
        yield db
    finally:
        db.close()


@contextmanager
def application(db: Any, manager: Any = None) -> Iterator[Any]:
    """Yield the Zope application of a new connection to *db*, with a request; aborts at the end."""
    from Testing.makerequest import makerequest
    from zope.component.hooks import setSite
    from zope.globalrequest import clearRequest
    from zope.globalrequest import setRequest

    connection = db.open(manager)
    app = makerequest(connection.root()["Application"])
    setRequest(app.REQUEST)
    try:
        yield app
    finally:
        (manager or transaction.manager).abort()
        noSecurityManager()
        setSite(None)
        clearRequest()
        connection.close()


@contextmanager
def inside(db: Any, id: str = "plone") -> Iterator[Any]:
    """Yield the site of *db*, as admin."""
    from zope.component.hooks import setSite

    with application(db) as app:
        login(app)
        setSite(app[id])
        yield app[id]


def return_to(portal: Any) -> None:
    """Act as admin in the site *portal* again, which is still open, whatever other tests did."""
    from zope.component.hooks import setSite
    from zope.globalrequest import setRequest

    login(portal.getPhysicalRoot())
    setSite(portal)
    setRequest(portal.REQUEST)


@contextmanager
def rolled_back(portal: Any) -> Iterator[Any]:
    """Act as admin in the site *portal*, which is still open; its changes are rolled back at the end."""
    return_to(portal)
    transaction.begin()
    yield portal
    transaction.abort()


def login(app: Any, user_id: str = "admin", folder: Any = None) -> None:
    """Act as *user_id* of the user *folder* (the root's by default)."""
    users = app.acl_users if folder is None else folder
    newSecurityManager(None, users.getUser(user_id).__of__(users))


def create_site(dsn: str, id: str = "plone", profiles: tuple[str, ...] = ()) -> None:
    """Create a Plone site in the database *dsn* and commit."""
    with opened(dsn) as db:
        create_site_in(db, id, profiles)


def create_site_in(db: Any, id: str = "plone", profiles: tuple[str, ...] = ()) -> None:
    """Create a Plone site in the ZODB.DB *db* and commit."""
    from OFS.Application import AppInitializer
    from OFS.Application import Application
    from Products.CMFPlone.factory import addPloneSite
    from zope.component.hooks import setSite

    connection = db.open()
    root = connection.root()
    if "Application" not in root:
        root["Application"] = Application()
        transaction.commit()
    connection.close()
    with application(db) as app:
        if "acl_users" not in app.objectIds() or not app.acl_users.getUser("admin"):
            AppInitializer(app).initialize()
            app.acl_users._doAddUser("admin", "secret", ["Manager"], [])
        login(app)
        site = addPloneSite(
            app,
            id,
            title="Test",
            setup_content=False,
            default_language="en",
            extension_ids=("plone.app.contenttypes:default", "plonetheme.barceloneta:default"),
        )
        transaction.commit()
        setSite(site)
        for profile in profiles:
            site.portal_setup.runAllImportStepsFromProfile(f"profile-{profile}")
            transaction.commit()


def clone(postgres: EmbeddedPostgres, template: str) -> str:
    """Return the DSN of a new copy of the database *template*; it is dropped at the end of the fixture that created it."""
    name = f"site_{next(_numbers)}"
    dsn = postgres.createdb(name, template=template)
    if _collected:
        _collected[-1].append((postgres, name))
    return dsn


@contextmanager
def collecting_clones() -> Iterator[list[Clone]]:
    """Collect the databases created by ``clone`` within the context, except those of an inner context."""
    clones: list[Clone] = []
    _collected.append(clones)
    try:
        yield clones
    finally:
        _collected.pop()


def drop_clones(clones: list[Clone]) -> None:
    """Drop *clones*, and clones of earlier calls that were still in use: in memory they would fill the machine."""
    if not clones:
        return
    _ended.extend(clones)
    left = []
    for postgres, name in _ended:
        try:
            with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
                # PostgreSQL would wait five seconds for the end of a session.
                if connection.execute("SELECT 1 FROM pg_stat_activity WHERE datname = %s", [name]).fetchone():
                    left.append((postgres, name))
                else:
                    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
        except psycopg.OperationalError:
            pass  # the server was stopped, or a thread has just connected
    _ended[:] = left
