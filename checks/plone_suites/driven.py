"""Products.ZCatalog's own unit tests on our catalog, created instead of ``Catalog()`` and ``ZCatalog()``.

The tests create a catalog without a site or a database.  Ours gets a database of the suite's own, with all catalogs in one
connection; nothing is committed, so that all rows are pending, as before the commit of a request.
"""

from functools import cached_property
from plone.pgcatalog.testing.stack import StorageStack
from types import SimpleNamespace
from typing import Any


class Drive:
    """Creates catalog tools in a database."""

    def __init__(self, stack: StorageStack) -> None:
        self._stack = stack

    @cached_property
    def _connection(self) -> Any:
        from plone.pgcatalog.subscribers import register_processors

        db = self._stack.stack().opened
        assert db is not None
        register_processors(SimpleNamespace(database=db))
        return db.open()

    def add(self, tool: Any) -> None:
        """Store *tool* in the database for the duration of the transaction."""
        self._connection.add(tool)

    def patch(self) -> None:
        """Replace ZCatalog's catalog by ours for the modules imported from now on."""
        from plone.pgcatalog.catalog import PlonePGCatalogTool
        from plone.pgcatalog.compat.catalog import _CatalogCompat
        from Products.ZCatalog import Catalog
        from Products.ZCatalog import ZCatalog

        drive = self

        class DrivenZCatalog(PlonePGCatalogTool):
            """Replacement of ``ZCatalog()``: a tool."""

            def __init__(self, id: str = "Catalog", title: str = "") -> None:
                super().__init__(id)
                self.title = title
                drive.add(self)

        class DrivenCatalog(_CatalogCompat):
            """Replacement of ``Catalog()``: the inner catalog of a tool, which stores the lexicon set by a test."""

            def __init__(self) -> None:
                super().__init__(DrivenZCatalog())

            def __setattr__(self, name: str, value: Any) -> None:
                if name == "lexicon":
                    setattr(self.tool, name, value)
                super().__setattr__(name, value)

            def __of__(self, parent: Any) -> Any:
                return self

        Catalog.Catalog = DrivenCatalog
        ZCatalog.ZCatalog = DrivenZCatalog
