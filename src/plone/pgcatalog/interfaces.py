"""The public contract of plone.pgcatalog."""

from plone.base.interfaces import IPloneCatalogTool
from Products.CMFCore.interfaces import ICatalogTool
from Products.ZCatalog.interfaces import IZCatalog
from typing import Any
from zope.interface import Interface
from zope.publisher.interfaces.browser import IDefaultBrowserLayer


class INotInSearch(Interface):
    """Mark of a page, in the index ``object_provides``, that searches of visitors leave out; see the behavior *Search*."""


class IPGCatalogLayer(IDefaultBrowserLayer):
    """Browser layer of sites whose catalog is PostgreSQL."""


class IPGCatalogTool(IPloneCatalogTool, ICatalogTool, IZCatalog):
    """A Plone catalog tool answered by PostgreSQL."""


class IPGIndexTranslator(Interface):
    """A translator class for an index type; register it as a utility named like the index's meta_type.

    The utility is the class itself, a subclass of ``plone.pgcatalog.indexes.base.IndexTranslator``.
    """

    def __call__(index: Any, base: str) -> Any:
        """Return a translator bound to the settings of *index*; *base* names its columns."""


class IPGSearchBackend(Interface):
    """A ranking of text searches in place of the built-in BM25; register it as a utility without a name.

    A site's local utility applies to that site.  It is a ``plone.pgcatalog.fulltext.ranking.SearchBackend``.
    """

    def score(text: Any, terms: Any, weights: Any) -> Any:
        """Return an SQL ``Fragment``: a number for each found row, higher for a better match; None to leave rows unranked.

        *text*: the ``RankedText`` of the text index; *terms*: those of the query; *weights*: those of the parts of a page.
        """
