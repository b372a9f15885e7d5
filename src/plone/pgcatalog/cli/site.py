"""Opens a Plone site from a zope.conf, for commands."""

from Acquisition import aq_base
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.findings import ERROR
from plone.pgcatalog.database.findings import Finding
from plone.pgcatalog.database.findings import WARNING
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.migration.tools import refused_names
from plone.pgcatalog.migration.tools import unknown_indexes
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.storage import is_supported
from Products.CMFCore.interfaces import ISiteRoot
from Products.ZCatalog.Catalog import CatalogError
from Products.ZCatalog.ZCatalog import ZCatalog
from typing import Any
from ZConfig import ConfigurationError
from zope.component import queryMultiAdapter
from zope.component.hooks import setSite

import click
import psycopg


class SiteError(click.UsageError):
    """The site does not exist or cannot be opened, or its catalog is not the expected one."""


#: Depth of nested folders in which sites are searched.
DEPTH = 3
FOLDER_TYPES = ("Folder", "Folder (Ordered)")


@contextmanager
def open_site(zope_conf: str, path: str, ours: bool | None = True) -> Iterator[Any]:
    """Yield the Plone site at *path* of the Zope that *zope_conf* configures, acting as the system user.

    Its catalog must be plone.pgcatalog's, with *ours* False another one, with None any.  Uncommitted changes are aborted.
    Raises SiteError.
    """
    check_database(zope_conf, ours)
    with open_root(zope_conf) as app:
        portal = app.unrestrictedTraverse(path, None)
        if not ISiteRoot.providedBy(portal):
            listed = ", ".join("/".join(site.getPhysicalPath())[1:] for site in sites_of(app)) or "none"
            raise SiteError(f"there is no site {path!r}; the sites are: {listed}")
        setSite(portal)
        if ours is not None and IPGCatalogTool.providedBy(getattr(portal, "portal_catalog", None)) != ours:
            raise SiteError(f"the catalog of {path!r} is {'not' if ours else 'already'} plone.pgcatalog's")
        yield portal


def check_database(zope_conf: str, ours: bool | None) -> None:
    """Raise SiteError for errors that can be found without Plone, whose start takes long; *ours* as in ``open_site``.

    They are an unreadable configuration, an unsupported storage, and a database out of reach.
    """
    main = next((database for database in configured_databases(zope_conf) if database.is_main), None)
    if main is None:
        raise SiteError(f"{zope_conf} has no database for the root")
    if main.dsn is None:
        if ours:
            raise SiteError(f"the storage of {zope_conf} is {main.storage}, and not zodb-pgjsonb")
        return
    with site_errors(zope_conf), connect(main.dsn, "command"):
        pass


@contextmanager
def site_errors(zope_conf: str) -> Iterator[None]:
    """Turn an error of the database of *zope_conf* into a SiteError."""
    try:
        yield
    except psycopg.Error as error:
        raise SiteError(f"the database of {zope_conf}: {str(error).strip()}") from error


@contextmanager
def open_root(zope_conf: str) -> Iterator[Any]:
    """Yield the root of the Zope that *zope_conf* configures, acting as the system user.

    Uncommitted changes are aborted.  Raises SiteError.
    """
    with opened_at(open_zope(zope_conf), "") as app:
        yield app


def sites_of(folder: Any, depth: int = DEPTH) -> list[Any]:
    """Return the sites in *folder* and, down to *depth*, in its folders."""
    sites = [obj for obj in folder.objectValues() if ISiteRoot.providedBy(obj)]
    for inner in folder.objectValues(FOLDER_TYPES) if depth else ():
        sites += sites_of(inner, depth - 1)
    return sites


def open_zope(zope_conf: str) -> Any:
    """Return the ZODB.DB of the Zope that *zope_conf* configures; raises SiteError, also if its database is out of reach."""
    from Zope2.Startup.run import configure_wsgi

    import Zope2

    try:
        with site_errors(zope_conf):
            configure_wsgi(zope_conf)
            Zope2.startup_wsgi()
            return Zope2.DB
    except ConfigurationError as error:
        raise SiteError(f"{zope_conf} cannot be read: {error}") from error


# -- the findings of ``pgcatalog check``

#: An address that belongs to no network: reserved for documentation (RFC 5737).
STRANGER = "203.0.113.1"


def site_findings(zope_conf: str, path: str | None) -> Iterator[Finding]:
    """Yield findings about the catalogs of the site at *path*, or of all sites; a missing site is a finding, too."""
    try:
        with open_root(zope_conf) as app:
            sites = sites_of(app)
            names = {"/".join(site.getPhysicalPath()): site for site in sites}
            if path is not None and f"/{path.strip('/')}" not in names:
                listed = ", ".join(sorted(names)) or "none"
                yield Finding(ERROR, "site", f"there is no site {path!r}", f"The sites are: {listed}.")
                return
            yield from metrics_findings(app)
            for name, site in sorted(names.items()):
                if path is None or name == f"/{path.strip('/')}":
                    setSite(site)
                    yield from catalog_findings(name, getattr(site, "portal_catalog", None))
    except SiteError as error:
        yield Finding(ERROR, "site", error.message, "Correct the configuration, and check again.")


def metrics_findings(app: Any) -> Iterator[Finding]:
    """Yield a finding if plone.observability serves its metrics to any client that can reach *app*, the Zope root."""
    if find_spec("plone.observability") is None:
        return
    from plone.observability.metrics.access import is_allowed
    from plone.observability.metrics.view import MetricsView

    view = queryMultiAdapter((app, app.REQUEST), name="metrics")
    # A site may have registered the view with a permission.
    if isinstance(view, MetricsView) and getattr(view, "__roles__", None) is None and is_allowed(STRANGER, {}):
        yield Finding(
            WARNING,
            "metrics",
            "@@metrics of plone.observability is public, and includes the numbers of private objects",
            "Set PLONE_OBSERVABILITY_METRICS_ALLOWLIST, for this command, too; see docs/how-to/monitor.md.",
        )


def catalog_findings(site: str, tool: Any) -> Iterator[Finding]:
    """Yield findings about *tool*, the catalog of *site*: plone.pgcatalog's, or a ZCatalog to be replaced by it."""
    if IPGCatalogTool.providedBy(tool):
        yield from own_findings(site, tool)
    elif isinstance(aq_base(tool), ZCatalog):
        for name, meta_type in unknown_indexes(tool):
            text = f"{site}: the index {name} has the type {meta_type}, which is not supported"
            yield Finding(ERROR, "index", text, "Remove it, or register an IPGIndexTranslator for its type.")
        for reason in refused_names(tool):
            yield Finding(ERROR, "index", f"{site}: {reason}", "Remove the index, and add it under another name.")
    else:
        text = f"{site}: portal_catalog has the class {type(aq_base(tool)).__name__}, which is not supported"
        yield Finding(ERROR, "catalog", text, "Install the package of this class, or remove the tool.")


def own_findings(site: str, tool: Any) -> Iterator[Finding]:
    """Yield findings about *tool*, plone.pgcatalog's; lost parts of its table are found by ``database_findings``."""
    core = tool._core
    if not is_supported(tool._p_jar):
        text = f"{site}: the catalog needs the storage zodb-pgjsonb, but the objects are in another one"
        yield Finding(ERROR, "storage", text, "Open the site on zodb-pgjsonb, or uninstall the catalog there first.")
        return
    try:
        layout = core.layout()
    except CatalogError as error:
        yield Finding(
            ERROR, "index", f"{site}: {error}", "Install the package that translates it, or remove the index."
        )
        return
    state = core.session.read_states().get(core.zoid)
    missing = [] if state is None else [name for name in layout.names if name not in state.columns]
    if missing:
        text = f"{site}: the table has no column {', '.join(missing)} yet, so these indexes are outdated"
        yield Finding(WARNING, "index", text, "Run pgcatalog rebuild to fill them.")
