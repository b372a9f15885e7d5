"""Single records: brains, also of a class of one's own, and their metadata."""

from Acquisition import aq_base
from collections.abc import Callable
from functools import lru_cache
from plone.pgcatalog.compat.zcatalog import borrow_rest
from plone.pgcatalog.indexes.once import OnceOnly
from plone.pgcatalog.indexing.extract import Extraction
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.indexing.objects import oid_of
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.results.brain import brain_class
from plone.pgcatalog.results.brain import record_schema
from plone.pgcatalog.results.rows import RowLoader
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.CatalogBrains import NoBrainer
from typing import Any


@lru_cache
def unread_keys(names: tuple[str, ...], indexes: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of *indexes* that are not among *names*."""
    known = set(names)
    return tuple(name for name in indexes if name not in known)


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

    @property
    def unread(self) -> tuple[str, ...]:
        """The keys of idx that no brain asks for: indexes that are no metadata columns."""
        return unread_keys(self.names, tuple(aq_base(self.tool)._indexes))

    def brain_maker(self) -> Callable[..., Any]:
        """Return the function that makes brains, wrapped in the tool, of a RowLoader, a rid, two scores and the Row, if known."""
        cls, schema, tool = self._v_result_class, record_schema(self.names), self.tool

        def brain(loader: Any, rid: int, score: Any = 1, normalized: Any = 1, row: Any = None) -> Any:
            return cls(loader, schema, rid, score, normalized, row).__of__(tool)

        return brain

    def __getitem__(self, index: Any) -> Any:
        normalized, score, rid = index if isinstance(index, tuple) else (1, 1, index)
        view = self.view()
        path = view.paths([rid]).get(rid) if is_rid(rid) else None
        if path is None:
            raise KeyError(rid)
        loader = RowLoader(view, [rid], self.unread)
        loader.store.path(rid, path)
        return self.brain_maker()(loader, rid, score, normalized)

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
