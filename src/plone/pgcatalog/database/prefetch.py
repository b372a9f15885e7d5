"""Objects that the storage loads together: those of a result's rows, and what a starting process reads ahead."""

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


#: Objects loaded together, unless the environment's PGCATALOG_PREFETCH_BATCH says otherwise; 0 loads each by itself.
DEFAULT_BATCH = 100


def batch_size() -> int:
    """Return how many objects are loaded together."""
    found = number("PGCATALOG_PREFETCH_BATCH", os.environ.get("PGCATALOG_PREFETCH_BATCH"), True)
    return DEFAULT_BATCH if found is None else int(found)


def prefetch(jar: Any, zoids: Iterable[int]) -> None:
    """Have the storage of *jar* load those of the objects *zoids* that are not in memory, in one statement.

    What is no object, as the rid of a further path, is left out.
    """
    cache = jar._cache
    wanted = [oid for oid in map(p64, zoids) if getattr(cache.get(oid), "_p_changed", None) is None]
    if len(wanted) > 1:
        jar.prefetch(wanted)


logger = logging.getLogger(__name__)

#: The tool that turns texts into HTML.  It has two thousand objects, and the first text of a process needs them all.
TRANSFORMS = "portal_transforms"
#: No more objects are read than this, of any site.
MOST = 10_000
#: The objects that an object refers to, directly or not; some are left out, and what only they refer to.
PARTS = load_statement("object_parts")


def warm_up(database: Any) -> None:
    """Read what the first page of each site with our catalog in *database*, a ZODB.DB, would read singly.

    The storage has the objects then, and the process the states of the catalogs.
    """
    jar = database.open(transaction.TransactionManager())
    try:
        if is_supported(jar):
            _read(jar, jar.root().get("Application"))
    except psycopg.Error:
        # It only takes longer without.
        logger.warning("Nothing was read ahead of the first page.", exc_info=True)
    finally:
        jar.transaction_manager.abort()
        jar.close()


def _read(jar: Any, root: Any) -> None:
    """Read the states of catalogs, and the objects of the transforms of the sites in *root*, the Zope application."""
    for site in () if root is None else root.objectValues("Plone Site"):
        # Not by getattr: as long as no site is set, a content object asks utilities that are not there.
        if not IPGCatalogTool.providedBy(site._getOb("portal_catalog", None)):
            continue
        _report_upgrades(site)
        Session.of(jar).read_states()
        tool = site._getOb(TRANSFORMS, None)
        if tool is not None:
            outside = [u64(each._p_oid) for each in (root, site)]
            found = connection(jar).execute(PARTS, (u64(tool._p_oid), outside, MOST))
            jar.prefetch([p64(row["zoid"]) for row in found])


def _report_upgrades(site: Any) -> None:
    """Log it when upgrade steps of ours wait in *site*."""
    setup = site._getOb("portal_setup", None)
    titles = waiting_since(setup.getLastVersionForProfile(PROFILE)) if setup is not None else []
    if titles:
        path, names = "/".join(site.getPhysicalPath()), ", ".join(f"“{title}”" for title in titles)
        logger.warning("%s: upgrade steps wait: %s; Site Setup, Add-ons, runs them", path, names)
