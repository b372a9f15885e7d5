"""Which objects of a site belong into its catalog: what ``clearFindAndRebuild`` would catalogue."""

from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from collections.abc import Iterator
from plone.base.utils import base_hasattr
from plone.base.utils import safe_callable
from typing import Any
from zope.annotation.interfaces import IAnnotations


#: Annotation under which plone.app.discussion keeps an object's comments.
CONVERSATION = "plone.app.discussion:conversation"


def content_of(catalog: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) of everything that belongs into *catalog*, depth first."""
    portal = aq_parent(aq_inner(catalog))
    yield from _indexable(portal, catalog)
    yield from _below(portal, catalog)


def _below(container: Any, catalog: Any) -> Iterator[tuple[str, Any]]:
    if not base_hasattr(container, "objectItems"):
        return
    for _, obj in container.objectItems():
        if aq_base(obj) is not aq_base(catalog):
            yield from _indexable(obj, catalog)
            yield from _below(obj, catalog)


def _indexable(obj: Any, catalog: Any) -> Iterator[tuple[str, Any]]:
    """Yield *obj* and its comments when it is content: when it has a method reindexObject of its own."""
    if not (base_hasattr(obj, "reindexObject") and safe_callable(obj.reindexObject)):
        return
    if base_hasattr(obj, "manage_catalogClear"):
        return
    yield "/".join(obj.getPhysicalPath()), obj
    conversation = IAnnotations(obj, {}).get(CONVERSATION)
    if conversation is not None:
        for comment in conversation.__of__(obj).getComments():
            yield "/".join(comment.getPhysicalPath()), comment
