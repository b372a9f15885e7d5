"""The documented place of ``SearchTimeout``: code of sites imports it from here, whatever room it is in."""

from plone.pgcatalog.database.errors import SearchTimeout


__all__ = ["SearchTimeout"]
