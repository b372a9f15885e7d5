"""The documented place of ``SearchTimeout``."""

from plone.pgcatalog.database.time_limit import SearchTimeout


__all__ = ["SearchTimeout"]
