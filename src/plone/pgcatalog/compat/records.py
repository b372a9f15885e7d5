"""Single records: brains, also of a class of one's own, and their metadata."""

from Acquisition import aq_base
from plone.pgcatalog.compat.zcatalog import borrow_rest
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.results.brain import brain_class
from plone.pgcatalog.results.rows import RowLoader
from Products.ZCatalog.Catalog import Catalog
from typing import Any


class Records:
    """The part of ``_CatalogCompat`` that makes brains of single records, and what needs nothing of ours."""

    @property
    def _v_brains(self) -> type:
        """The class that brains inherit from besides their own; volatile, as in ZCatalog."""
        brains: type = self.core.brains
        return brains

    @property
    def _v_result_class(self) -> type:
        return brain_class(self._v_brains)

    def useBrains(self, brains: type) -> None:
        """Mix the class *brains* into all brains of this tool."""
        aq_base(self.tool)._v_brains = brains

    def __getitem__(self, index: Any) -> Any:
        normalized, score, rid = index if isinstance(index, tuple) else (1, 1, index)
        view = self.view()
        path = view.paths([rid]).get(rid) if is_rid(rid) else None
        if path is None:
            raise KeyError(rid)
        loader = RowLoader(view, [rid], self.core.excluded_keys)
        loader.place([(rid, path)])
        return self.core.brain_maker()(loader, rid, score, normalized)

    def instantiate(self, record: Any, score_data: Any = None) -> Any:
        """Return a brain of *record*, (rid, metadata values in the order of ``names``)."""
        rid, values = record
        score, normalized = score_data or (1, 1)
        brain = self[normalized, score, rid]
        aq_base(brain).__dict__.update(zip(self.names, values, strict=True))
        return brain

    borrow_rest(locals(), Catalog, *Catalog.__bases__)
