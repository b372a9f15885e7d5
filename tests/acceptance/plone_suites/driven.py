"""Products.ZCatalog's own unit tests on our catalog: what they make with ``Catalog()`` and ``ZCatalog()`` is ours.

They make a catalog without a site or a database.  Ours gets a database of the suite's own, all catalogs in one
connection; nothing is committed, so that all they catalogue is pending, as before the commit of a request.
"""

from functools import cached_property
from tests.acceptance.plone_suites.storage_stack import StorageStack
from typing import Any

import itertools
import transaction


class Drive:
    """Makes catalog tools in a database."""

    def __init__(self, stack: StorageStack) -> None:
        self._stack = stack
        self._numbers = itertools.count()

    @cached_property
    def _root(self) -> Any:
        from plone.pgcatalog.subscribers import register_processors

        import types

        db = self._stack.stack().opened
        register_processors(types.SimpleNamespace(database=db))
        return db.open().root()

    def tool(self, id: str = "Catalog", title: str = "", **_options: Any) -> Any:
        """Return a new, empty tool; what the test before has left is gone."""
        from plone.pgcatalog.catalog import PlonePGCatalogTool

        if not next(self._numbers) % 50:
            transaction.abort()
        tool = PlonePGCatalogTool(id)
        tool.title = title
        self._root._p_jar.add(tool)
        return tool

    def patch(self) -> None:
        """Put our catalog into the place of ZCatalog's for the modules imported from now on."""
        from plone.pgcatalog.compat import _CatalogCompat
        from Products.ZCatalog import Catalog
        from Products.ZCatalog import ZCatalog

        drive = self

        class DrivenCatalog(_CatalogCompat):
            """``Catalog()``: the inside of a tool, which keeps the attributes (a lexicon) that a test sets."""

            def __init__(self) -> None:
                super().__init__(drive.tool())

            def __setattr__(self, name: str, value: Any) -> None:
                if name == "lexicon":
                    setattr(self.tool, name, value)
                super().__setattr__(name, value)

            def __of__(self, parent: Any) -> Any:
                return self

        class DrivenZCatalog:
            """``ZCatalog()``: a tool; the class for what is asked of ZCatalog's."""

            def __new__(cls, *args: Any, **options: Any) -> Any:
                return drive.tool(*args, **options)

        Catalog.Catalog = DrivenCatalog
        ZCatalog.ZCatalog = DrivenZCatalog
