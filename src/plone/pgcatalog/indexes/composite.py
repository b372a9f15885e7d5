"""CompositeIndex: a shortcut for queries that name several indexes, which PostgreSQL does not need."""

from collections.abc import Mapping
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import Values
from typing import Any


class CompositeIndexTranslator(IndexTranslator):
    """Stores nothing and finds nothing: the indexes that are its components answer, as without it."""

    meta_type = "CompositeIndex"
    in_idx = False

    def columns(self) -> tuple[Column, ...]:
        return ()

    def extract(self, obj: Any, report: Report) -> Values | None:
        return None

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        return None

    def key_expression(self) -> str | None:
        return None
