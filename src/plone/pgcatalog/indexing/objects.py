"""Which objects of a site belong into its catalog, and under which path and oid."""

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
from plone.pgcatalog.indexes.cached_attributes import KnownToLack
from plone.pgcatalog.indexes.path import storable_path
from plone.pgcatalog.indexing.pending import Entry
from Products.CMFCore.interfaces import ISiteRoot
from typing import Any
from ZODB.POSException import POSKeyError
from ZODB.utils import u64
from zope.annotation.interfaces import IAnnotations
from zope.component import queryMultiAdapter


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


def is_rid(value: Any) -> bool:
    """True for what can be the record id of a row."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def clean_path(uid: str) -> str:
    """Return *uid* as PostgreSQL can hold it: NUL and lone surrogates become U+FFFD, as in path indexes."""
    return storable_path(uid)


def site_path(tool: Any) -> str | None:
    """Return the path of the site whose portal_catalog *tool* is, None if it is another catalog."""
    parent = aq_parent(aq_inner(tool))
    if tool.getId() != "portal_catalog" or not ISiteRoot.providedBy(parent):
        return None
    return "/".join(parent.getPhysicalPath())


#: Annotation under which plone.app.discussion keeps an object's comments.
CONVERSATION = "plone.app.discussion:conversation"


def content_of(
    catalog: Any,
    on_dangling: Callable[[str], object] = lambda path: None,
    on_gone: Callable[[str], object] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) of everything that belongs into *catalog*, depth first.

    *on_dangling* is told the path of each id that a folder names and has no object for, *on_gone* that of each object which
    the database has no more, or not as a whole, although it refers to it.  Without the latter this raises POSKeyError.
    """
    portal = aq_parent(aq_inner(catalog))
    yield from indexable(portal)
    yield from _below(portal, catalog, on_dangling, on_gone)


def _below(
    container: Any, catalog: Any, on_dangling: Callable[[str], object], on_gone: Callable[[str], object] | None
) -> Iterator[tuple[str, Any]]:
    path = "/".join(container.getPhysicalPath())
    for id in _there(lambda: child_ids(container), path, on_gone):
        for obj in _there(partial(map, partial(child, container), [id]), f"{path}/{id}", on_gone):
            if obj is None:
                on_dangling(f"{path}/{id}")
            elif aq_base(obj) is not aq_base(catalog):
                yield from _there(partial(indexable, obj), f"{path}/{id}", on_gone)
                if is_there(obj):
                    yield from _below(obj, catalog, on_dangling, on_gone)


def _there[T](read: Callable[[], Iterable[T]], path: str, on_gone: Callable[[str], object] | None) -> list[T]:
    """Return what *read* gives of what is at *path*; nothing if it needs an object that is gone, which *on_gone* is told."""
    try:
        return list(read())
    except POSKeyError:
        if on_gone is None:
            raise
        on_gone(path)
        return []


def is_there(obj: Any) -> bool:
    """True unless the database, which refers to *obj*, has it no more."""
    try:
        base_hasattr(obj, "getPhysicalPath")
    except POSKeyError:
        return False
    return True


def indexable(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) of *obj* and its comments when it is content: when it has its own method reindexObject."""
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
    """Return the ids of what *container* contains, none for an object that is no container."""
    if not base_hasattr(container, "objectItems"):
        return []
    if base_hasattr(container, "objectIds"):
        return list(container.objectIds())
    return [id for id, _ in container.objectItems()]


def child(container: Any, id: str) -> Any:
    """Return what *container* contains as *id*, None when it is not there any more, or nothing that can be acquired."""
    if base_hasattr(container, "_getOb"):
        try:
            return container._getOb(id, None)
        except AttributeError as error:
            # A tool of an older Plone, whose class is a plain one in ours until the site is upgraded, has none.
            if error.name != "__of__":
                raise
            return None
    return dict(container.objectItems()).get(id) if base_hasattr(container, "objectItems") else None


def object_at(catalog: Any, path: str) -> Any:
    """Return the object whose physical path is *path*, None when there is none."""
    obj = catalog.unrestrictedTraverse(path, None)
    return obj if obj is not None and "/".join(obj.getPhysicalPath()) == path else None


def fresh_entry(catalog: Any, path: str, obj: Any, lacking: KnownToLack | None = None) -> Entry:
    """Return what cataloguing *obj* under *path* would put into *catalog*; raises what indexers raise.

    *lacking* is that of ``CachedAttributes``.
    """
    indexable = queryMultiAdapter((obj, catalog), IIndexableObject, default=obj)
    entry: Entry = catalog._core.entry(indexable, path, lacking=lacking)
    return entry
