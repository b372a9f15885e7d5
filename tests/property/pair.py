"""A Plone site with both catalogs over the same content: ours, and a real ZCatalog.

The ZCatalog is an attribute of the site, stored in the same database: commit, abort and savepoints apply to it as to the
content, and a second connection sees it as it sees ours.  The indexing queue feeds both.
"""

from AccessControl.SecurityManagement import getSecurityManager
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from AccessControl.SecurityManagement import setSecurityManager
from Acquisition import aq_base
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tests.integration import site as sites
from tests.integration.oracle import make_oracle
from tests.property.content import extend_catalog
from tests.property.content import populate
from typing import Any

import transaction


ORACLE = "oracle_catalog"


@dataclass
class Pair:
    """Both catalogs, as seen by one connection."""

    app: Any

    @property
    def portal(self) -> Any:
        return self.app.plone

    @property
    def ours(self) -> Any:
        return self.portal.portal_catalog

    @property
    def oracle(self) -> Any:
        return getattr(self.portal, ORACLE)

    def begin(self) -> None:
        """Begin a new transaction, which sees the commits of others."""
        self.app._p_jar.transaction_manager.begin()

    @contextmanager
    def acting_as(self, user: str) -> Iterator[None]:
        """Search as *user*; "" is anonymous."""
        before = getSecurityManager()
        users = self.app.acl_users if user == "admin" else self.portal.acl_users
        if user:
            newSecurityManager(None, users.getUserById(user).__of__(users))
        else:
            noSecurityManager()
        try:
            yield
        finally:
            setSecurityManager(before)


class OracleProcessor:
    """An indexing queue processor that feeds the ZCatalog of the site an object is in."""

    def _oracle(self, obj: Any) -> Any:
        from zope.component.hooks import getSite

        site = getSite()
        return getattr(site, ORACLE) if hasattr(aq_base(site), ORACLE) else None

    def index(self, obj: Any, attributes: Any = None) -> None:
        if (oracle := self._oracle(obj)) is not None:
            oracle._indexObject(obj)

    def reindex(self, obj: Any, attributes: Any = None, update_metadata: Any = 1) -> None:
        if (oracle := self._oracle(obj)) is not None:
            oracle._reindexObject(obj, idxs=attributes, update_metadata=update_metadata)

    def unindex(self, obj: Any) -> None:
        if (oracle := self._oracle(obj)) is not None:
            oracle._unindexObject(obj)

    def begin(self) -> None:
        pass

    commit = abort = begin


@contextmanager
def feeding_the_oracle() -> Iterator[None]:
    """Let the indexing queue feed the ZCatalog too."""
    from Products.CMFCore.interfaces import IIndexQueueProcessor
    from zope.component import getGlobalSiteManager
    from zope.interface import alsoProvides

    processor = OracleProcessor()
    alsoProvides(processor, IIndexQueueProcessor)
    manager = getGlobalSiteManager()
    manager.registerUtility(processor, IIndexQueueProcessor, name="oracle")
    try:
        yield
    finally:
        manager.unregisterUtility(processor, IIndexQueueProcessor, name="oracle")


@contextmanager
def opened_pair(dsn: str, seed: int) -> Iterator[tuple[Pair, Pair]]:
    """Fill the site in the database *dsn* and yield it, and the same site as seen by a second connection."""
    from plone.registry.interfaces import IRegistry
    from zope.component import getUtility
    from zope.component.hooks import setSite

    with sites.opened(dsn) as db, feeding_the_oracle():
        db.setCacheSize(100_000)
        manager = transaction.TransactionManager()
        with sites.application(db) as app:
            sites.login(app)
            setSite(app.plone)
            # Stemming finds more than ZCatalog; see tests/integration/test_ranking.py.
            getUtility(IRegistry)["plone.pgcatalog.stemming"] = False
            extend_catalog(app.plone.portal_catalog)
            populate(app.plone, seed)
            setattr(app.plone, ORACLE, aq_base(make_oracle(app.plone)))
            transaction.commit()
            with second_connection(db, manager) as other:
                yield Pair(app), Pair(other)


@contextmanager
def second_connection(db: Any, manager: Any) -> Iterator[Any]:
    """Yield the application as seen by another connection with transactions of its own."""
    from Testing.makerequest import makerequest

    connection = db.open(manager)
    try:
        yield makerequest(connection.root()["Application"])
    finally:
        manager.abort()
        connection.close()
