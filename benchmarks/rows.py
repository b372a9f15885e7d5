"""A catalog without Plone: only the tool in an application, filled with objects that only have values."""

from benchmarks.backends import Backend
from benchmarks.connections import Requests
from benchmarks.documents import Document
from benchmarks.documents import folders
from benchmarks.scenarios import Place
from benchmarks.worker import Progress
from collections.abc import Iterable
from DateTime import DateTime
from functools import partial
from itertools import batched
from pathlib import Path
from plone.pgcatalog.request import with_request
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
from Products.ZCTextIndex.Lexicon import CaseNormalizer
from Products.ZCTextIndex.Lexicon import Splitter
from Products.ZCTextIndex.ZCTextIndex import PLexicon
from Products.ZCTextIndex.ZCTextIndex import ZCTextIndex
from types import SimpleNamespace
from typing import Any

import transaction


BATCH = 1000
FILL_CACHE = 200_000
ROOT = "/site"
EVERYBODY = ["Anonymous"]
MANAGER = ["Anonymous", "Authenticated", "Manager", "user:admin"]
ROLES = {
    "published": ["Anonymous"],
    "private": ["Editor", "Manager", "Owner", "Reader"],
    "pending": ["Editor", "Manager", "Owner", "Reader", "Reviewer"],
}
NEVER = DateTime("2499/12/31")
FIELDS = ("portal_type", "review_state", "Creator", "sortable_title", "getId")
KEYWORDS = ("Subject", "allowedRolesAndUsers")
DATES = ("created", "modified", "effective", "expires")
METADATA = (
    *("Title", "Description", "portal_type", "review_state", "Subject", "Creator", "UID", "getId"),
    *("created", "modified", "effective", "expires"),
)


class Row:
    """The catalogued values of a document: those of a page in Plone."""

    portal_type = "Document"
    expires = NEVER

    def __init__(self, document: Document, changes: int = 0) -> None:
        self.getId = document.id
        self.Title = document.title if not changes else f"{document.title} changed {changes}"
        self.Description = document.description
        self.sortable_title = self.Title.lower()
        self.SearchableText = f"{document.id} {self.Title} {document.description}"
        self.Subject = document.tags
        self.Creator = document.creator
        self.review_state = document.state
        self.allowedRolesAndUsers = [*ROLES[document.state], f"user:{document.creator}"]
        self.UID = document.uid
        self.created = self.modified = self.effective = DateTime(document.created)
        self._path = (*ROOT.split("/"), document.folder, document.id)

    def getPhysicalPath(self) -> tuple[str, ...]:
        return self._path


def add_indexes(tool: Any) -> None:
    """Add Plone's most frequently used indexes and columns to *tool*, in its place."""
    tool._setObject("lexicon", PLexicon("lexicon", "", Splitter(), CaseNormalizer()))
    text = SimpleNamespace(lexicon_id="lexicon", index_type="Okapi BM25 Rank", doc_attr="SearchableText")
    indexes = [
        *(FieldIndex(name) for name in FIELDS),
        *(KeywordIndex(name) for name in KEYWORDS),
        *(DateIndex(name) for name in DATES),
        DateRangeIndex("effectiveRange", extra=SimpleNamespace(since_field="effective", until_field="expires")),
        UUIDIndex("UID"),
        ExtendedPathIndex("path"),
        ZCTextIndex("SearchableText", text, tool),
    ]
    for index in indexes:
        tool._catalog.addIndex(index.getId(), index)
    for name in METADATA:
        tool._catalog.addColumn(name)


class Rows(Requests):
    """Requests to that catalog, which gets *count* rows."""

    def __init__(self, backend: Backend, dsn: str, folder: Path, cache_size: int, count: int) -> None:
        super().__init__(backend, dsn, folder, cache_size)
        self.place = Place(ROOT, folders(count), [])
        #: the documents that concurrent writes change
        self.changed: list[Document] = []

    def make(self) -> None:
        """Create the application and the catalog; commits."""
        from OFS.Application import Application

        connection = self.db.open()
        connection.root()["Application"] = Application()
        transaction.commit()
        connection.close()
        app = self.enter()
        app._setObject("portal_catalog", self.backend.make_catalog())
        add_indexes(app.portal_catalog)
        transaction.commit()
        self.end_request()

    def fill(self, wanted: Iterable[Document], count: int, progress: Progress) -> None:
        """Catalogue *wanted*, *count* documents, in batches."""
        app = self.enter()
        app._p_jar._cache.cache_size = FILL_CACHE
        done = 0
        for batch in batched(wanted, BATCH):
            for document in batch:
                row = Row(document)
                app.portal_catalog.catalog_object(row, "/".join(row.getPhysicalPath()))
            transaction.commit()
            app._p_jar.cacheGC()
            done += len(batch)
            progress(f"filling in rows: {done} of {count}")
        app._p_jar._cache.cache_size = self.cache_size
        self.end_request()

    # -- requests

    def enter(self, anonymous: bool = False) -> Any:
        transaction.begin()
        self.app = with_request(self.db.open().root()["Application"])
        return self.app

    def end_request(self) -> None:
        if self.app is not None:
            transaction.abort()
            self.app.REQUEST.close()
            self.app._p_jar.close()
            self.app = None

    def same(self, anonymous: bool) -> Any:
        """Return an object that searches like Plone does for that user."""
        roles = {"allowedRolesAndUsers": EVERYBODY if anonymous else MANAGER}
        if anonymous:
            roles["effectiveRange"] = DateTime()
        return partial(self.app.portal_catalog.unrestrictedSearchResults, **roles)

    def _write(self) -> None:
        transaction.begin()
        app = with_request(self.db.open().root()["Application"])
        row = Row(self.changed[self._writes % len(self.changed)], self._writes)
        app.portal_catalog.catalog_object(row, "/".join(row.getPhysicalPath()))
        transaction.commit()
        app._p_jar.close()
