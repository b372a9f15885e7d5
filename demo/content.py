"""Creates the objects of the plan in a Plone site, in batches, each with a separate commit."""

from collections.abc import Callable
from collections.abc import Iterable
from DateTime import DateTime
from datetime import datetime
from demo.words import Item
from demo.words import LANGUAGE_CODES
from plone.app.textfield.value import RichTextValue
from plone.dexterity.utils import createContent
from plone.event.utils import pydt
from plone.namedfile.file import NamedBlobFile
from plone.namedfile.file import NamedBlobImage
from typing import Any
from z3c.relationfield import RelationValue
from z3c.relationfield.event import updateRelations
from zope.component import getUtility
from zope.event import notify
from zope.intid.interfaces import IIntIds
from zope.lifecycleevent import ObjectCreatedEvent

import itertools
import pytz
import transaction


BATCH = 100
TRANSITIONS = {"published": "publish", "pending": "submit"}
BLOBS = {"file": NamedBlobFile, "image": NamedBlobImage}


def write(site: Any, items: Iterable[Item], advance: Callable[[], None]) -> None:
    """Create the missing objects of the plan; commit every hundred objects."""
    for batch in itertools.batched(items, BATCH):
        for item in batch:
            parent, _, name = item.path.rpartition("/")
            container = site.unrestrictedTraverse(parent) if parent else site
            # An interrupted run continues where it was.
            if name not in container:
                write_item(site, container, name, item)
            advance()
        commit(site)


def commit(site: Any) -> None:
    """Commit, and release the objects, so that memory use is constant."""
    transaction.commit()
    site._p_jar.cacheMinimize()


def write_item(site: Any, container: Any, name: str, item: Item) -> None:
    """Create one object, with the state and the dates of the plan."""
    content = createContent(
        item.portal_type,
        id=name,
        title=item.title,
        description=item.description,
        language=LANGUAGE_CODES[item.language],
        subject=item.subjects,
        creators=(item.creator,),
    )
    content.exclude_from_nav = item.exclude_from_nav
    for field, value in item.fields.items():
        setattr(content, field, field_value(field, value))
    content.creation_date = DateTime(item.created)
    notify(ObjectCreatedEvent(content))
    container._setObject(name, content)
    content = container[name]
    for user, roles in (*item.local_roles, (item.creator, ("Owner",))):
        content.manage_setLocalRoles(user, sorted({*content.get_local_roles_for_userid(user), *roles}))
    content.reindexObjectSecurity()
    if transition := TRANSITIONS.get(item.state or ""):
        site.portal_workflow.doActionFor(content, transition)
    relate(site, content, item)
    # Last, since events and transitions set these dates, too.
    content.effective_date = DateTime(item.effective) if item.effective else None
    content.expiration_date = DateTime(item.expires) if item.expires else None
    content.setModificationDate(DateTime(item.modified))
    content.reindexObject(idxs=["effective", "effectiveRange", "expires", "modified"])


def field_value(name: str, value: Any) -> Any:
    """Return a value of the plan as Plone's own forms would store it."""
    if name == "text":
        return RichTextValue(value, "text/html", "text/x-html-safe")
    if name in BLOBS:
        data, content_type, filename = value
        return BLOBS[name](data=data, contentType=content_type, filename=filename)
    if isinstance(value, datetime):
        # Plone's events use zones of pytz.
        return pydt(value.astimezone(pytz.timezone(str(value.tzinfo))))
    return value


def relate(site: Any, content: Any, item: Item) -> None:
    """Relate the object to others of the plan that have not been moved."""
    targets = (site.unrestrictedTraverse(path, None) for path in item.related)
    ids = getUtility(IIntIds)
    relations = [RelationValue(ids.getId(target)) for target in targets if target]
    if relations:
        content.relatedItems = relations
        updateRelations(content, None)
        content.reindexObject(idxs=["getRawRelatedItems"])


def live(site: Any, items: list[Item]) -> None:
    """Change the content as editors do: rename, move, copy, delete, retract, sort, share.

    The number of objects does not change.  The caller commits.
    """
    # The fullest folder that the tour does not visit; no object is changed twice.
    visited = ("news", "news/climate", "news/climate/water", "events", "internal")
    folders = [
        item for item in items if item.portal_type == "Folder" and item.path.partition("/")[2] not in ("", *visited)
    ]
    folder = max(folders, key=lambda item: _below(item, items))
    pages = [item for item in items if item.portal_type == "Document" and not item.path.startswith(f"{folder.path}/")]
    moved, copied, deleted, retracted = pages[:4]
    for item in (moved, copied, deleted):
        parent, _, name = item.path.rpartition("/")
        container, target = site.unrestrictedTraverse(parent), site[item.language]
        if item is moved:
            target.manage_pasteObjects(container.manage_cutObjects([name]))
        elif item is copied:
            target.manage_pasteObjects(container.manage_copyObjects([name]))
        else:
            container.manage_delObjects([name])
    parent, _, name = folder.path.rpartition("/")
    site.unrestrictedTraverse(parent).manage_renameObject(name, f"{name}-renamed")
    page = site.unrestrictedTraverse(retracted.path)
    before = site.portal_workflow.getInfoFor(page, "review_state")
    transition = {"published": "retract", "pending": "publish"}.get(before, "publish")
    site.portal_workflow.doActionFor(page, transition)
    root = site[folder.language]
    root.moveObjectsToTop([root.objectIds()[-1]])
    site.plone_utils.reindexOnReorder(root)
    internal = root["internal"]
    internal.manage_setLocalRoles("emil", ["Reader"])
    internal.reindexObjectSecurity()


def _below(folder: Item, items: list[Item]) -> int:
    return sum(item.path.startswith(f"{folder.path}/") for item in items)
