"""Which names an index may have."""

from collections.abc import Container
from plone.pgcatalog.indexing.objects import is_storable
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.settings import RESTRICTIONS
from Products.ZCatalog.Catalog import CatalogError


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
