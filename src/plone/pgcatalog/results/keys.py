"""Reads the keys of an index: the values its rows have."""

from dataclasses import replace
from plone.pgcatalog.database.keywords import with_some_row
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.results.view import Asked
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import Rows
from typing import Any


def key_counts(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> Rows:
    """Return (key, number of rows) of the rows that match *where*, in the order of the keys.

    *key* is the translator's expression of a key.  A list that is interned is taken apart once; others in each row, which is
    faster than comparing them with each other.
    """
    return view.run("keys", lambda state: counts_statement(view, translator, key, where, state))


def counts_statement(
    view: CatalogView, translator: IndexTranslator, key: str, where: Condition, state: CatalogState | None
) -> Asked:
    """Return the statement of ``key_counts``."""
    columns = translator.columns()
    if view.stored(state).numbered.keys().isdisjoint(c.name for c in columns):
        return view.statement(f"{key} AS key, count(*)", where, "GROUP BY 1 ORDER BY 1", state=state)
    names = ", ".join(c.quoted for c in columns)
    groups = view.statement(f"{names}, count(*) AS n", where, f"GROUP BY {names}", state=state)
    if groups is None:
        return None
    values = f"SELECT {view.lists(columns, state)}, n FROM ({groups.sql}) AS grouped"
    keys = f"SELECT {key} AS key, n FROM ({values}) AS listed"
    return replace(groups, sql=f"SELECT key, sum(n)::bigint FROM ({keys}) AS keys GROUP BY key ORDER BY key")


def collected_keys(view: CatalogView, translator: IndexTranslator, key: str) -> list[Any] | None:
    """Return the keys of ``key_counts`` in their order, found by looking up those that there may be.

    None where they are not known, or reading all rows takes no longer.
    """
    column = next(iter(translator.columns()), None)
    if column is None or not column.can_be_interned or key != f"unnest({column.quoted})" or not view.is_committed:
        return None
    is_known = False

    def statement(state: CatalogState | None) -> Asked:
        nonlocal is_known
        state = state or view.read_state()
        known = view.session.generations.sets
        if state is not None and known.newest < state.newest_set:
            known = view.session.known_sets()
        keywords = known.elements(column.name)
        asked = None
        if state is not None and column.name in state.collected and keywords is not None:
            asked = with_some_row(state, column, keywords)
        is_known = asked is not None
        return asked

    # Where they are not known in the newest state either, nobody waits for a second message.
    if statement(view.session.generations.newest.get(view.zoid)) is None:
        return None
    rows = view.run("keys", statement)
    return [row[0] for row in rows] if is_known else None


def key_rids(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> Rows:
    """Return (key, rid) of the rows that match *where*, in this order; *key* is the translator's expression of a key."""

    def statement(state: CatalogState | None) -> Asked:
        found = view.statement(f"{view.lists(translator.columns(), state)}, rid", where, state=state)
        return found and replace(found, sql=f"SELECT {key} AS key, rid FROM ({found.sql}) AS found ORDER BY 1, 2")

    return view.run("keys", statement)
