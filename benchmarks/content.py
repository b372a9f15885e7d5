"""Documents in a Plone site: created one by one like an editor does, or filled in."""

from benchmarks.documents import Document
from benchmarks.documents import documents
from benchmarks.documents import TAGS
from benchmarks.kept import filled
from benchmarks.scenarios import Place
from benchmarks.texts import folder_titles
from benchmarks.texts import GENERATED
from benchmarks.texts import Texts
from benchmarks.timing import summary
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import make_site
from benchmarks.zope_site import opened
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from DateTime import DateTime
from itertools import batched
from statistics import median
from time import perf_counter
from typing import Any

import transaction


BATCH = 250
TRANSITIONS = {"published": "publish", "pending": "submit"}
WORKFLOW = "simple_publication_workflow"
#: While a site is filled its cache is large, because otherwise ZCatalog would load its trees again for each batch.
FILL_CACHE = 30_000


def without_texts(count: int) -> Texts:
    """Return *count* documents without texts."""
    return Texts([*documents(count)], folder_titles(count), GENERATED)


def filled_site[Site: PloneSite](
    options: dict[str, Any],
    progress: Progress,
    kind: type[Site],
    generated: Callable[[int], Texts] = without_texts,
) -> Site:
    """Return a site with all of its documents filled in, according to the *options* of a worker; or the stored one."""
    place, texts = opened(options, progress, kind), site_texts(options, generated)

    def make() -> dict[str, Any]:
        make_site(place)
        make_folders(place, texts.folders, texts.languages)
        fill(place, texts.documents, options["docs"], progress)
        return {}

    filled(place, options, progress, make)
    place.place = Place(f"/{SITE}", len(texts.folders), ())
    return place


def site_texts(options: dict[str, Any], generated: Callable[[int], Texts]) -> Texts:
    """Return the texts of a site according to the *options* of a worker; those of *generated* unless others are named."""
    from benchmarks.debian import debian_texts

    return (debian_texts if options.get("texts") else generated)(options["docs"])


def make_folders(place: PloneSite, titles: Sequence[str], languages: Sequence[str] = ()) -> None:
    """Create folders with *titles* and set the workflow and the *languages* of the site, in a separate commit."""
    site = place.enter()
    site.portal_workflow.setDefaultChain(WORKFLOW)
    if languages:
        site.portal_registry["plone.available_languages"] = list(languages)
    for number, title in enumerate(titles):
        site.invokeFactory("Folder", f"folder{number}", title=title)
    transaction.commit()
    place.end_request()


class Author:
    """Creates documents through Plone, each in a separate request and commit, and records the times."""

    def __init__(self, place: PloneSite, catalogued: bool = True) -> None:
        self.place = place
        self.catalogued = catalogued
        self.seconds: list[float] = []
        self.commits: list[float] = []
        #: (whether it was the first one of its folder, number of stored objects) of each document
        self.stores: list[tuple[bool, int]] = []

    def create(self, document: Document) -> None:
        """Create one document."""
        self.place.end_request()
        site = self.place.enter()
        first = not len(site[document.folder])
        with counted_stores(site) as stores, switched(self.catalogued):
            started = perf_counter()
            create(site, document)
            before = perf_counter()
            transaction.commit()
            ended = perf_counter()
        self.seconds.append(ended - started)
        self.commits.append(ended - before)
        self.stores.append((first, len(stores)))

    def measures(self) -> dict[str, Any]:
        """Return the figures of all created documents."""
        self.place.end_request()
        share = sum(self.commits) / sum(self.seconds)
        # The first document of a folder also creates the objects that a folder needs for documents.
        stores = [count for first, count in self.stores if not first] or [count for _, count in self.stores]
        return {
            "creation of a document": summary(self.seconds),
            "commit's share of creation": value(share * 100, "%"),
            # The median: sometimes a folder's own tree splits, with any catalog.
            "store() calls per document": value(median(stores), ""),
        }


@contextmanager
def counted_stores(site: Any) -> Iterator[list[bytes]]:
    """Yield a list to which the oid of each stored object is appended."""
    storage = site._p_jar._normal_storage
    stored: list[bytes] = []
    original = storage.store

    def store(oid: bytes, *arguments: Any) -> Any:
        stored.append(oid)
        return original(oid, *arguments)

    storage.store = store
    try:
        yield stored
    finally:
        storage.store = original


@contextmanager
def switched(catalogued: bool) -> Iterator[None]:
    """Disable cataloguing inside the block, unless *catalogued*."""
    from Products.CMFCore.indexing import PortalCatalogProcessor
    from Products.CMFCore.interfaces import IPortalCatalogQueueProcessor
    from zope.component import getGlobalSiteManager

    registry = getGlobalSiteManager()
    found = [
        registration
        for registration in registry.registeredUtilities()
        if isinstance(registration.component, PortalCatalogProcessor) and not catalogued
    ]
    for registration in found:
        registry.unregisterUtility(registration.component, registration.provided, registration.name)
    try:
        yield
    finally:
        for registration in found:
            registry.registerUtility(registration.component, IPortalCatalogQueueProcessor, registration.name)


def create(site: Any, document: Document) -> None:
    """Create one document with metadata and a state; does not commit."""
    container = site[document.folder]
    container.invokeFactory("Document", document.id, title=document.title, subject=document.tags)
    content = container[document.id]
    content.description = document.description
    content.creators = (document.creator,)
    content.creation_date = DateTime(document.created)
    if transition := TRANSITIONS.get(document.state):
        site.portal_workflow.doActionFor(content, transition)
    content.reindexObject()


def modify(site: Any, document: Document) -> None:
    """Change one document and commit."""
    content = site[document.folder][document.id]
    content.title = f"{document.title} again"
    content.subject = (*document.tags, TAGS[document.number % len(TAGS)])
    content.reindexObject()
    transaction.commit()


def fill(place: PloneSite, wanted: Iterable[Document], count: int, progress: Progress) -> None:
    """Add *wanted* to the site without its events: real documents, catalogued by ``catalog_object``, in batches.

    They have the same UUID, workflow state and permissions as documents created through Plone, but no versions, and
    relations only if their texts refer to each other.
    """
    site = place.enter()
    site._p_jar._cache.cache_size = FILL_CACHE
    done = 0
    for batch in batched(wanted, BATCH):
        for document in batch:
            content = add(site, document)
            site.portal_catalog.catalog_object(content, "/".join(content.getPhysicalPath()))
        transaction.commit()
        site._p_jar.cacheGC()
        done += len(batch)
        progress(f"filling in documents: {done} of {count}")
    site._p_jar._cache.cache_size = place.cache_size
    place.end_request()


def add(site: Any, document: Document) -> Any:
    """Add one document without events; return it in its acquisition context."""
    from plone.dexterity.utils import createContent
    from plone.uuid.interfaces import ATTRIBUTE_NAME

    content = createContent(
        "Document",
        id=document.id,
        title=document.title,
        description=document.description,
        subject=document.tags,
        creators=(document.creator,),
        **rich_text(document),
        **({"language": document.language} if document.language else {}),
    )
    setattr(content, ATTRIBUTE_NAME, document.uid)
    content.creation_date = content.modification_date = DateTime(document.created)
    container = site[document.folder]
    container._setOb(document.id, content)
    content = container[document.id]
    set_state(site.portal_workflow, content, document)
    if document.related:
        relate(content, [site.unrestrictedTraverse(path) for path in document.related])
    return content


def relate(content: Any, targets: list[Any]) -> None:
    """Set the related items of *content*, which has no event that would catalogue them as relations."""
    from tests.integration.volto_pages import related_to
    from z3c.relationfield.event import updateRelations

    [own, *relations] = related_to([content, *targets])
    assert own.to_object is not None
    content.relatedItems = relations
    updateRelations(content, None)


def rich_text(document: Document) -> dict[str, Any]:
    """Return the text of *document* as the field of a document; an empty dict if there is no text."""
    from plone.app.textfield.value import RichTextValue

    if not document.text:
        return {}
    return {"text": RichTextValue(f"<p>{document.text}</p>", "text/html", "text/x-html-safe")}


def set_state(workflows: Any, content: Any, document: Document) -> None:
    """Set the workflow state of *content* and the permissions of that state."""
    if document.state == "published":
        content.effective_date = DateTime(document.created)
    status = {
        "action": TRANSITIONS.get(document.state),
        "actor": document.creator,
        "comments": "",
        "review_state": document.state,
        "time": DateTime(document.created),
    }
    workflows.setStatusOf(WORKFLOW, content, status)
    workflows[WORKFLOW].updateRoleMappingsFor(content)
