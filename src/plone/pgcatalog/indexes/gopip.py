"""GopipIndex: sorts by position in the folder, and stores nothing."""

from plone.pgcatalog.indexes.base import StoresNothing
from plone.pgcatalog.indexes.base import Values
from typing import Any


class GopipIndexTranslator(StoresNothing):
    """The stub ``plone.folder.nogopip.GopipIndex``: finds nothing out itself, sorts the result in Python.

    Positions live in each folder's ordering, where moving one child renumbers its siblings without
    reindexing them; so they are read there when a result is sorted.
    """

    meta_type = "GopipIndex"
    sorts_in_python = True

    def order_by(self) -> tuple[str, ...]:
        """Return no expressions: ``sorts_in_python`` says that the index sorts all the same."""
        return ()

    def entry(self, values: Values) -> list[Any]:
        return []
