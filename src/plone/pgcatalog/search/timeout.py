"""The documented place of ``SearchTimeout``."""

from plone.pgcatalog.database.timeout import SearchTimeout


__all__ = ["SearchTimeout"]
