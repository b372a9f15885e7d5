"""GopipIndex: sorts by position in the folder, and stores nothing."""

from collections.abc import Mapping
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import Values
from typing import Any


class GopipIndexTranslator(IndexTranslator):
    """The stub ``plone.folder.nogopip.GopipIndex``: finds nothing out itself, sorts the result in Python.

    Positions live in each folder's ordering, where moving one child renumbers its siblings without
    reindexing them; so they are read there when a result is sorted.
    """

    meta_type = "GopipIndex"
    in_idx = False
    sorts_in_python = True

    def columns(self) -> tuple[Column, ...]:
        return ()

    def extract(self, obj: Any, report: Report) -> Values | None:
        return None

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        return None

    def order_by(self) -> tuple[str, ...]:
        """Return no expressions: ``sorts_in_python`` says that the index sorts all the same."""
        return ()

    def entry(self, values: Values) -> list[Any]:
        return []

    def key_expression(self) -> str | None:
        return None
