"""Single records: brains, also of a class of one's own, and their metadata."""

from Acquisition import aq_base
from plone.pgcatalog.indexes.once import OnceOnly
from plone.pgcatalog.indexing.extract import Extraction
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import oid_of
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.results.brain import brain_class
from plone.pgcatalog.results.brain import record_schema
from plone.pgcatalog.results.results import IdxBatches
from plone.pgcatalog.zcatalog import borrow_rest
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.CatalogBrains import NoBrainer
from typing import Any


class Records:
    """The part of ``_CatalogCompat`` that makes brains and writes metadata, and what needs nothing of ours."""

    @property
    def _v_brains(self) -> type:
        """The class that brains inherit from besides their own; volatile, as in ZCatalog."""
        brains: type = getattr(aq_base(self.tool), "_v_brains", NoBrainer)
        return brains

    @property
    def _v_result_class(self) -> type:
        return brain_class(self._v_brains)

    def useBrains(self, brains: type) -> None:
        """Mix the class *brains* into all brains of this tool."""
        aq_base(self.tool)._v_brains = brains

    def brain(self, batches: Any, rid: int, path: str, score: Any = 1, normalized: Any = 1) -> Any:
        """Return the brain of a row, wrapped in the tool."""
        brain = self._v_result_class(batches, record_schema(self.names), rid, path, score, normalized)
        return brain.__of__(self.tool)

    def __getitem__(self, index: Any) -> Any:
        normalized, score, rid = index if isinstance(index, tuple) else (1, 1, index)
        path = self.paths[rid]
        return self.brain(IdxBatches(self.view(), [rid]), rid, path, score, normalized)

    def instantiate(self, record: Any, score_data: Any = None) -> Any:
        """Return a brain of *record*, (rid, metadata values in the order of ``names``)."""
        rid, values = record
        score, normalized = score_data or (1, 1)
        brain = self[normalized, score, rid]
        aq_base(brain).__dict__.update(zip(self.names, values, strict=True))
        return brain

    def updateMetadata(self, object: Any, uid: str, index: int | None) -> int:
        """Take the metadata of *object* anew; return the rid of *uid*, *index* if it is given."""
        extraction = Extraction(uid, OnceOnly(object))
        extraction.add_metadata(self.names)
        vanished = frozenset(extraction.vanished)
        self._change().put(Entry(clean_path(uid), oid_of(object, self.jar), idx=extraction.idx, vanished=vanished))
        return self.uids[uid] if index is None else index

    borrow_rest(locals(), Catalog, *Catalog.__bases__)
