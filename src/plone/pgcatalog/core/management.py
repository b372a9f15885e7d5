"""Indexes and metadata columns: which names they may have, added to a catalog, and removed."""

from Acquisition import aq_base
from collections.abc import Container
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.indexing.objects import is_storable
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.settings import RESTRICTIONS
from plone.pgcatalog.sql.names import columns_of
from Products.ZCatalog.Catalog import CatalogError
from typing import Any


def add_column(catalog: Catalog, name: str, default: Any = None) -> None:
    """Add the metadata column *name* to *catalog*.

    Rows have the *default*, or Missing.Value, until they are reindexed.  Raises CatalogError as ZCatalog does for a taken
    or refused name.
    """
    name = name.strip()
    tool = aq_base(catalog.tool)
    if name in tool._columns:
        raise CatalogError(f"The column {name} already exists")
    if name[0] == "_":
        raise CatalogError('Cannot cache fields beginning with "_"')
    if not is_storable(name):
        raise CatalogError(f"{name!a} has characters that PostgreSQL cannot hold")
    tool._columns = (*tool._columns, name)
    if default not in (None, ""):
        idx = {name: encode(default)}
        for path, zoid in catalog.view().select("path, zoid"):
            catalog.change().put(Entry(path, zoid=zoid, idx=idx))


def delete_column(catalog: Catalog, name: str) -> None:
    """Remove the metadata column *name*; raises ValueError when there is none."""
    tool = aq_base(catalog.tool)
    names = list(tool._columns)
    del names[names.index(name)]
    tool._columns = tuple(names)


def add_index(catalog: Catalog, name: str, index: Any) -> None:
    """Add the *index* object; its column appears with the commit.

    Raises CatalogError for a bad or taken name, or an index type nobody can translate.
    """
    name = name.strip()
    tool = aq_base(catalog.tool)
    check_index_name(name, tool._indexes)
    if isinstance(index, str):
        raise TypeError("addIndex takes an index object; resolve its type first")
    cls = translator_class(index.meta_type)
    if cls is None:
        raise CatalogError(f"indexes of type {index.meta_type!r} cannot be kept in PostgreSQL ({name})")
    if not tool._indexes:
        catalog.change().is_whole = True
    settings = settings_of(aq_base(index))
    tool._index_columns[name] = free_columns(catalog, name, cls, settings)
    tool._indexes[name] = settings
    tool._p_changed = True
    catalog.change().layout_changed = True


def free_columns(catalog: Catalog, name: str, cls: type[IndexTranslator], index: Any) -> str:
    """Return the base name for columns of *index* that no other index uses, nor ever used with another type."""
    tool = aq_base(catalog.tool)
    used = set(catalog.layout().names)
    taken = set(tool._index_columns.values())
    while True:
        base = columns_of(name, taken)
        columns = cls(index, base).columns()
        if not any(c.name in used or tool._old_columns.get(c.name, c.type) != c.type for c in columns):
            return base
        taken.add(base)


def delete_index(catalog: Catalog, name: str) -> None:
    """Remove the index *name*; raises CatalogError when there is none."""
    tool = aq_base(catalog.tool)
    if name not in tool._indexes:
        raise CatalogError(f"The index {name} does not exist")
    columns = catalog.translator(name).columns()
    pending = catalog.change()
    pending.clear_columns(frozenset(c.name for c in columns))
    tool._old_columns = tool._old_columns | {c.name: c.type for c in columns}
    del tool._indexes[name]
    del tool._index_columns[name]
    tool._p_changed = True
    pending.layout_changed = True


#: The words that say something else in a query dict than which index is asked: ZCatalog's, Plone's and our own.
QUERY_WORDS = frozenset(
    {
        "b_size",
        "b_start",
        "show_inactive",
        "sort-limit",
        "sort-on",
        "sort-order",
        "sort_limit",
        "sort_on",
        "sort_order",
        WHERE,
    }
)
#: How the options begin that a restricted search removes from what its caller asks.
REMOVED = tuple(f"{name}_" for name in RESTRICTIONS)


def check_index_name(name: str, taken: Container[str] = ()) -> None:
    """Raise CatalogError for a *name* that no index can have, or that is *taken*.

    ZCatalog refuses the same, except for words of the query dict: there every search that uses such a word asks the index
    of that name, too, and finds nothing.
    """
    if name in taken:
        raise CatalogError(f"The index {name} already exists")
    if name.startswith("_"):
        raise CatalogError('Cannot index fields beginning with "_"')
    if not name:
        raise CatalogError("Name of index is empty")
    if not is_storable(name):
        raise CatalogError(f"{name!a} has characters that PostgreSQL cannot hold")
    if name in QUERY_WORDS:
        raise CatalogError(f"An index cannot have the name {name!r}: the word has another meaning in queries")
    if name.startswith(REMOVED):
        raise CatalogError(f"An index cannot have the name {name!r}: restricted searches remove it from queries")
