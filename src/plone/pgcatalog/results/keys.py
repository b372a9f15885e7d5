"""Reads the keys of an index: the values its rows have."""

from functools import partial
from plone.pgcatalog.database.keywords import with_some_row
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.query import bind
from plone.pgcatalog.results.view import Asked
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import Rows
from typing import Any


def key_counts(view: CatalogView, translator: IndexTranslator, key: str, where: Condition) -> Rows:
    """Return (key, number of rows) of the rows that match *where*; see ``bind.key_counts``."""
    return view.run("keys", view.binding(partial(bind.key_counts, translator.columns(), key, where), where))


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
    return view.run("keys", view.binding(partial(bind.key_rids, translator.columns(), key, where), where))
