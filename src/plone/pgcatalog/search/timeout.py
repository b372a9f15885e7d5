"""The documented import path of ``SearchTimeout`` for code of sites, wherever the class is defined."""

from plone.pgcatalog.database.errors import SearchTimeout


__all__ = ["SearchTimeout"]
