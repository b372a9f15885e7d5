"""The transition of a catalog's relation at a commit, for each state of catalog and changes; the order of its columns."""

from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import in_row_order
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.layout import MOST_QUERIED
from plone.pgcatalog.indexing import transition
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.sql.column import Column
from types import SimpleNamespace
from typing import Any

import pytest


PATH, TITLE = Column("path_value", "text"), Column("title", "text")
LAYOUT = Layout((PATH, TITLE), ())
WHOLE = CatalogState("pgcatalog_1_3", 3, frozenset(LAYOUT.names), 7)
NARROW = CatalogState("pgcatalog_1_3", 3, frozenset({"path_value"}), 7)


def pending(has_indexes: bool = True, **values: Any) -> CatalogPending:
    """Return a stub of a catalog's pending changes *values*, with or without indexes."""
    tool = SimpleNamespace(_indexes={"Title": object()} if has_indexes else {})
    made = CatalogPending(tool, 1)
    for name, value in values.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("changes", "version"),
    [(pending(is_whole=True, changes=2), 1), (pending(has_indexes=False, changes=2), 1), (pending(changes=2), 0)],
)
def test_a_catalog_without_a_relation_gets_its_first(changes: CatalogPending, version: int) -> None:
    assert transition.transition_of(changes, LAYOUT, None) == transition.NewRelation(version, 2)


def test_first_relation_has_a_generation_even_without_changes() -> None:
    assert transition.transition_of(pending(is_whole=True), LAYOUT, None) == transition.NewRelation(1, 1)


def test_a_cleared_catalog_gets_the_next_relation() -> None:
    assert transition.transition_of(pending(cleared=True), LAYOUT, NARROW) == transition.NewRelation(
        4, 7, former="pgcatalog_1_3"
    )


def test_finished_rebuild_precedes_everything_else() -> None:
    changes = pending(cleared=True, layout_changed=True, replacement=lambda cursor, state: state)
    assert transition.transition_of(changes, LAYOUT, NARROW) == transition.Replacement(NARROW)


def test_a_relation_gets_the_columns_that_it_lacks() -> None:
    assert transition.transition_of(pending(), LAYOUT, NARROW) == transition.Extension(NARROW, (TITLE,))


def test_a_new_index_that_has_columns_already_may_lack_an_sql_index() -> None:
    assert transition.transition_of(pending(layout_changed=True), LAYOUT, WHOLE) == transition.Extension(WHOLE, ())


def test_a_relation_with_all_columns_stays() -> None:
    assert transition.transition_of(pending(), LAYOUT, WHOLE) == transition.NoTransition(WHOLE)


# -- the order of the columns


def test_frequently_read_and_short_columns_come_first() -> None:
    columns = [
        Column("body", "tsvector", is_last=True),
        Column("body_words", "integer", is_last=True),
        Column("body_source", "text", is_last=True),
        Column("subject", "text[]"),
        Column("creator", "text"),
        Column("modified", "timestamptz"),
        Column("portal_type", "text"),
        Column("allowed_roles", "text[]"),
    ]
    names = [column.name for column in in_row_order(columns)]
    assert names == [
        *("allowed_roles", "portal_type", "modified", "creator", "subject", "body", "body_words", "body_source")
    ]
    assert names[:2] == [name for name in MOST_QUERIED if name in names]


def test_catalog_without_texts_has_an_order() -> None:
    columns = [Column("subject", "text[]"), Column("is_folderish", "boolean")]
    assert in_row_order(columns) == columns[::-1]
