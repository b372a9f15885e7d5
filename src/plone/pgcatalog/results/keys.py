"""Reads the keys of an index: the values its rows have."""

from dataclasses import replace
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.results.view import Asked
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import Rows


def key_counts(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> Rows:
    """Return (key, number of rows) of the rows that match *where*, in the order of the keys.

    *key* is the translator's expression of a key.  A list that is interned is taken apart once; others in each row, which is
    faster than comparing them with each other.
    """
    columns = translator.columns()

    def statement(state: CatalogState | None) -> Asked:
        if view.stored(state).numbered.keys().isdisjoint(c.name for c in columns):
            return view.statement(f"{key} AS key, count(*)", where, "GROUP BY 1 ORDER BY 1", state=state)
        names = ", ".join(c.quoted for c in columns)
        groups = view.statement(f"{names}, count(*) AS n", where, f"GROUP BY {names}", state=state)
        if groups is None:
            return None
        values = f"SELECT {view.lists(columns, state)}, n FROM ({groups.sql}) AS grouped"
        keys = f"SELECT {key} AS key, n FROM ({values}) AS listed"
        return replace(groups, sql=f"SELECT key, sum(n)::bigint FROM ({keys}) AS keys GROUP BY key ORDER BY key")

    return view.run("keys", statement)


def key_rids(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> Rows:
    """Return (key, rid) of the rows that match *where*, in this order; *key* is the translator's expression of a key."""

    def statement(state: CatalogState | None) -> Asked:
        found = view.statement(f"{view.lists(translator.columns(), state)}, rid", where, state=state)
        return found and replace(found, sql=f"SELECT {key} AS key, rid FROM ({found.sql}) AS found ORDER BY 1, 2")

    return view.run("keys", statement)
