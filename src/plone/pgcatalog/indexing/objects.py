"""Which object, and which path, the catalog is told to index."""

from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from plone.pgcatalog.indexes.path_columns import storable_path
from plone.pgcatalog.indexes.path_columns import UNSTORABLE
from plone.pgcatalog.protocols import CatalogTool
from Products.CMFCore.interfaces import ISiteRoot
from typing import Any
from ZODB.utils import u64


def oid_of(obj: Any, jar: Any) -> int | None:
    """Return the oid of the content object behind *obj*, giving a new one its oid.

    None for an object that is not persistent, stands in no container, or belongs to another connection than
    *jar*: the catalog keeps such an entry without reference to an object.
    """
    real = unwrap_indexable(obj)
    base = aq_base(real)
    if not hasattr(base, "_p_oid") or not hasattr(base, "_p_jar"):
        return None
    if base._p_jar is None and aq_parent(real) is not None:
        jar.add(base)
    return u64(base._p_oid) if base._p_jar is jar and base._p_oid is not None else None


def unwrap_indexable(obj: Any) -> Any:
    """Return the content object behind plone.indexer's or CMFCore's indexable wrapper."""
    wrapped = getattr(type(obj), "_getWrappedObject", None)
    if wrapped is not None:
        return obj._getWrappedObject()
    return getattr(obj, "_IndexableObjectWrapper__ob", obj)


def is_storable(text: str) -> bool:
    """True for a text without NUL and lone surrogates, which PostgreSQL cannot hold."""
    return UNSTORABLE.search(text) is None


def is_rid(value: Any) -> bool:
    """True for what can be the record id of a row."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def clean_path(uid: str) -> str:
    """Return *uid* as PostgreSQL can hold it: NUL and lone surrogates become U+FFFD, as in path indexes."""
    return storable_path(uid)


def site_path(tool: CatalogTool) -> str | None:
    """Return the path of the site whose portal_catalog *tool* is, None if it is another catalog."""
    parent = aq_parent(aq_inner(tool))
    if tool.getId() != "portal_catalog" or not ISiteRoot.providedBy(parent):
        return None
    return "/".join(parent.getPhysicalPath())
