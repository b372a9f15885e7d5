"""After an undo the catalog answers as the restored content does.

What a transaction changed in a catalog is not part of any object, so the storage cannot undo it.  The writer
logs the paths (history-preserving storages only); when the undo is committed, a transaction of its own
catalogues those paths anew, or forgets them.
"""

from Acquisition import aq_base
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.protocols import Cursor
from plone.pgcatalog.request import application
from typing import Any
from ZODB.POSException import ConflictError
from ZODB.utils import p64
from zope.component.hooks import setSite

import logging
import transaction


logger = logging.getLogger(__name__)

ATTEMPTS = 5
#: Stands for every path, in the log of a transaction that cleared the catalog.
WHOLE_CATALOG = ""


def follow_undo(database: Any, cursor: Cursor, tid: int) -> None:
    """Have the changes of *tid* followed when the undo that is running with *cursor* is committed."""
    cursor.execute("SELECT catalog, path FROM pgcatalog_changes WHERE tid = %s", [tid])
    changes: dict[int, list[str]] = {}
    for row in cursor.fetchall():
        changes.setdefault(row["catalog"], []).append(row["path"])
    if changes:
        transaction.get().addAfterCommitHook(_committed, (database, changes))


def _committed(success: bool, database: Any, changes: dict[int, list[str]]) -> None:
    """Catalogue the undone paths in a transaction of its own; a conflict is tried again."""
    if not success:
        return
    manager = transaction.TransactionManager()
    for attempt in range(ATTEMPTS):
        try:
            with application(database, manager) as app:
                for zoid, paths in changes.items():
                    _catalogue(app, zoid, paths)
                manager.get().note("catalog follows an undo")
                manager.commit()
                return
        except ConflictError:
            logger.info("conflict while following an undo, attempt %s", attempt + 1)
    logger.error("the catalog could not follow an undo: run pgcatalog verify --repair")


def _catalogue(app: Any, zoid: int, paths: list[str]) -> None:
    catalog = find_catalog(app, zoid, paths)
    if catalog is None:
        return
    setSite(catalog.aq_parent)
    if WHOLE_CATALOG in paths:
        catalog._core.change().is_whole = True
        verifier = Verifier(catalog)
        for difference in list(verifier.differences()):
            verifier.repair(difference)
        return
    for path in paths:
        obj = app.unrestrictedTraverse(path, None)
        if obj is not None and "/".join(obj.getPhysicalPath()) == path:
            catalog.catalog_object(obj, path)
        elif catalog._core.view().select("1", Condition("path = %s", (clean_path(path),))):
            catalog.uncatalog_object(path)


def find_catalog(app: Any, zoid: int, paths: list[str]) -> Any:
    """Return the catalog tool with oid *zoid*, wrapped in the site that the *paths* lead through; None if it is gone."""
    oid = p64(zoid)
    for path in paths:
        container = app
        for name in path.strip("/").split("/"):
            container = container.unrestrictedTraverse(name, None)
            tool = None if container is None else aq_base(container).__dict__.get("portal_catalog")
            if tool is not None and aq_base(tool)._p_oid == oid:
                return container.portal_catalog
            if container is None:
                break
    for site in app.objectValues("Plone Site"):
        if aq_base(site.portal_catalog)._p_oid == oid:
            return site.portal_catalog
    return None
