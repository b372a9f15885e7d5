"""Loads objects of the storage together: the objects of a result's rows, and the objects of a process's first page."""

from collections.abc import Iterable
from plone.pgcatalog.database.layout import load_statement
from plone.pgcatalog.database.restored import PROFILE
from plone.pgcatalog.database.restored import waiting_since
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.settings import number
from plone.pgcatalog.storage import connection
from plone.pgcatalog.storage import is_supported
from typing import Any
from ZODB.utils import p64
from ZODB.utils import u64

import logging
import os
import psycopg
import transaction


#: Objects loaded in one statement, unless PGCATALOG_PREFETCH_BATCH of the environment is set; 0 loads each by itself.
DEFAULT_BATCH = 100


def batch_size() -> int:
    """Return how many objects are loaded in one statement."""
    found = number("PGCATALOG_PREFETCH_BATCH", os.environ.get("PGCATALOG_PREFETCH_BATCH"), True)
    return DEFAULT_BATCH if found is None else int(found)


def prefetch(jar: Any, zoids: Iterable[int]) -> None:
    """Load the objects *zoids* that are not in memory into the cache of the storage of *jar*, in one statement.

    Numbers without an object, such as the rid of a further path, are skipped.
    """
    cache = jar._cache
    wanted = [oid for oid in map(p64, zoids) if getattr(cache.get(oid), "_p_changed", None) is None]
    if len(wanted) > 1:
        jar.prefetch(wanted)


logger = logging.getLogger(__name__)

#: The tool that converts texts to HTML.  It has two thousand objects, and the first text of a process needs all of them.
TRANSFORMS = "portal_transforms"
#: The most objects that are read ahead for a site.
MOST_OBJECTS = 10_000
#: The objects that an object refers to, directly or indirectly; references through some excluded objects do not count.
OBJECT_PARTS = load_statement("object_parts")


def warm_up(database: Any) -> None:
    """Read ahead the data that the first page of each site with our catalog in *database*, a ZODB.DB, would read singly.

    Afterwards the storage has cached the objects, and the process the states of the catalogs.
    """
    jar = database.open(transaction.TransactionManager())
    try:
        if is_supported(jar):
            _read(jar, jar.root().get("Application"))
    except psycopg.Error:
        # The first page only takes longer without it.
        logger.warning("The data of the first page could not be read ahead.", exc_info=True)
    finally:
        jar.transaction_manager.abort()
        jar.close()


def _read(jar: Any, root: Any) -> None:
    """Read the states of catalogs, and the objects of the transforms of the sites in *root*, the Zope application."""
    for site in () if root is None else root.objectValues("Plone Site"):
        # Not by getattr: before a site is set, a content object looks up utilities that are missing.
        if not IPGCatalogTool.providedBy(site._getOb("portal_catalog", None)):
            continue
        _report_upgrades(site)
        Session.of(jar).read_states()
        tool = site._getOb(TRANSFORMS, None)
        if tool is not None:
            outside = [u64(each._p_oid) for each in (root, site)]
            found = connection(jar).execute(OBJECT_PARTS, (u64(tool._p_oid), outside, MOST_OBJECTS))
            jar.prefetch([p64(row["zoid"]) for row in found])


def _report_upgrades(site: Any) -> None:
    """Log the upgrade steps of this package that wait in *site*."""
    setup = site._getOb("portal_setup", None)
    titles = waiting_since(setup.getLastVersionForProfile(PROFILE)) if setup is not None else []
    if titles:
        path, names = "/".join(site.getPhysicalPath()), ", ".join(f"“{title}”" for title in titles)
        logger.warning("%s: upgrade steps are pending: %s; run them in Site Setup, Add-ons", path, names)
