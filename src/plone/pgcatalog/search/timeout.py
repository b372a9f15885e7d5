"""The documented place of ``SearchTimeout``."""

from plone.pgcatalog.database.errors import SearchTimeout


__all__ = ["SearchTimeout"]
