"""The order of the columns in a catalog's rows."""

from plone.pgcatalog.database.layout import in_row_order
from plone.pgcatalog.database.layout import MOST_QUERIED
from plone.pgcatalog.indexes.base import Column


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
