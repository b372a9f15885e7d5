"""CompositeIndex: a shortcut for queries that name several indexes, which PostgreSQL does not need."""

from plone.pgcatalog.indexes.base import StoresNothing


class CompositeIndexTranslator(StoresNothing):
    """Stores nothing and finds nothing: the indexes that are its components answer, as without it."""

    meta_type = "CompositeIndex"
