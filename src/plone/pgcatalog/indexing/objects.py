"""Selects the objects of a site that belong in its catalog, and their paths and oids."""

from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from functools import partial
from plone.base.utils import base_hasattr
from plone.base.utils import safe_callable
from plone.indexer.interfaces import IIndexableObject
from plone.pgcatalog.indexes.cached_attributes import MissingAttributes
from plone.pgcatalog.indexes.path import storable_path
from plone.pgcatalog.indexing.pending import Entry
from Products.CMFCore.interfaces import ISiteRoot
from typing import Any
from ZODB.POSException import POSKeyError
from ZODB.utils import u64
from zope.annotation.interfaces import IAnnotations
from zope.component import queryMultiAdapter


def oid_of(obj: Any, jar: Any) -> int | None:
    """Return the oid of the content object behind *obj*; a new object is assigned an oid.

    None for an object that is not persistent, has no container, or belongs to another connection than *jar*: the
    catalog stores such an entry without a reference to an object.
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


def is_rid(value: Any) -> bool:
    """Return True if *value* is possible as a record id: a signed integer of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def clean_path(uid: str) -> str:
    """Return *uid* as PostgreSQL can store it: NUL and lone surrogates become U+FFFD, and a long path is cut."""
    return storable_path(uid)


def site_path(tool: Any) -> str | None:
    """Return the path of the site whose portal_catalog is *tool*, None for another catalog."""
    parent = aq_parent(aq_inner(tool))
    if tool.getId() != "portal_catalog" or not ISiteRoot.providedBy(parent):
        return None
    return "/".join(parent.getPhysicalPath())


#: Annotation key of an object's comments, from plone.app.discussion.
CONVERSATION = "plone.app.discussion:conversation"


def content_of(
    catalog: Any,
    on_dangling: Callable[[str], object] = lambda path: None,
    on_missing: Callable[[str], object] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) for each object that belongs in *catalog*, depth first.

    - *on_dangling*: called with the path of each id that a folder lists without having an object for it
    - *on_missing*: called with the path of each object that the database refers to but lacks, wholly or in part; if None,
      POSKeyError is raised
    """
    portal = aq_parent(aq_inner(catalog))
    yield from indexable(portal)
    yield from _below(portal, catalog, on_dangling, on_missing)


def _below(
    container: Any, catalog: Any, on_dangling: Callable[[str], object], on_missing: Callable[[str], object] | None
) -> Iterator[tuple[str, Any]]:
    path = "/".join(container.getPhysicalPath())
    for id in _items(lambda: child_ids(container), path, on_missing):
        for obj in _items(partial(map, partial(child, container), [id]), f"{path}/{id}", on_missing):
            if obj is None:
                on_dangling(f"{path}/{id}")
            elif aq_base(obj) is not aq_base(catalog):
                yield from _items(partial(indexable, obj), f"{path}/{id}", on_missing)
                if exists(obj):
                    yield from _below(obj, catalog, on_dangling, on_missing)


def _items[T](read: Callable[[], Iterable[T]], path: str, on_missing: Callable[[str], object] | None) -> list[T]:
    """Return the items that *read* returns for *path*; if an object is gone, call *on_missing* and return no items."""
    try:
        return list(read())
    except POSKeyError:
        if on_missing is None:
            raise
        on_missing(path)
        return []


def exists(obj: Any) -> bool:
    """Return False if the database refers to *obj* but does not have it."""
    try:
        base_hasattr(obj, "getPhysicalPath")
    except POSKeyError:
        return False
    return True


def indexable(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) of *obj* and its comments if *obj* is content: if it has its own method reindexObject."""
    if not (base_hasattr(obj, "reindexObject") and safe_callable(obj.reindexObject)):
        return
    if base_hasattr(obj, "manage_catalogClear"):
        return
    yield "/".join(obj.getPhysicalPath()), obj
    conversation = IAnnotations(obj, {}).get(CONVERSATION)
    if conversation is not None:
        for comment in conversation.__of__(obj).getComments():
            yield "/".join(comment.getPhysicalPath()), comment


def child_ids(container: Any) -> list[str]:
    """Return the ids of the children of *container*, an empty list for an object that is not a container."""
    if not base_hasattr(container, "objectItems"):
        return []
    if base_hasattr(container, "objectIds"):
        return list(container.objectIds())
    return [id for id, _ in container.objectItems()]


def child(container: Any, id: str) -> Any:
    """Return the child *id* of *container*, None if it does not exist; never an acquired object."""
    if base_hasattr(container, "_getOb"):
        try:
            return container._getOb(id, None)
        except AttributeError as error:
            # Until a site is upgraded, a tool of an older Plone may have a class without acquisition in the installed
            # Plone.
            if error.name != "__of__":
                raise
            return None
    return dict(container.objectItems()).get(id) if base_hasattr(container, "objectItems") else None


def object_at(catalog: Any, path: str) -> Any:
    """Return the object whose physical path is *path*, None if there is no such object."""
    obj = catalog.unrestrictedTraverse(path, None)
    return obj if obj is not None and "/".join(obj.getPhysicalPath()) == path else None


def fresh_entry(catalog: Any, path: str, obj: Any, missing: MissingAttributes | None = None) -> Entry:
    """Return the entry that cataloguing *obj* under *path* adds to *catalog*; exceptions of indexers propagate.

    *missing* is passed to ``CachedAttributes``.
    """
    indexable = queryMultiAdapter((obj, catalog), IIndexableObject, default=obj)
    entry: Entry = catalog._core.entry(indexable, path, missing=missing)
    return entry
