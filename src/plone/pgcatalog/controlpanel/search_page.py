"""The schema of the settings of the search page in Classic UI, and the facets there are to choose from."""

from plone.pgcatalog.discovery.facet_kinds import kind_of
from plone.pgcatalog.i18n import _
from plone.pgcatalog.settings import SEARCH_DEFAULTS
from plone.registry.interfaces import IRegistry
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope import schema
from zope.component import queryUtility
from zope.component.hooks import getSite
from zope.globalrequest import getRequest
from zope.i18n import translate
from zope.interface import directlyProvides
from zope.interface import Interface
from zope.schema.interfaces import IVocabularyFactory
from zope.schema.vocabulary import SimpleTerm
from zope.schema.vocabulary import SimpleVocabulary


def facets(context: Any) -> SimpleVocabulary:
    """Return the names of the indexes that can be facets; those of the default always, so that it is always valid."""
    catalog = getToolByName(getSite(), "portal_catalog")
    names = {index.getId() for index in catalog.index_objects() if kind_of(index) is not None}
    return SimpleVocabulary([SimpleTerm(n, n, _title(n)) for n in sorted({*names, *SEARCH_DEFAULTS["search_facets"]})])


def _title(name: str) -> str:
    """Return the name of an index with what Plone's collections call it."""
    registry = queryUtility(IRegistry)
    title = registry.get(f"plone.app.querystring.field.{name}.title") if registry is not None else None
    return f"{name} ({translate(title, context=getRequest())})" if title else name


directlyProvides(facets, IVocabularyFactory)


class IPGCatalogSearchPageSettings(Interface):
    """What the search page of Classic UI looks like."""

    search_page = schema.Bool(
        title=_("Search page with facets"),
        description=_("If off, the site has Plone's own search page."),
        required=False,
        default=SEARCH_DEFAULTS["search_page"],
    )
    search_facets = schema.Tuple(
        title=_("Facets"),
        description=_(
            "Indexes by which visitors can narrow a search, in this order. Date indexes are offered by year and month,"
            " path by the folders at the top of the site."
        ),
        value_type=schema.Choice(vocabulary="plone.pgcatalog.Facets"),
        required=False,
        default=SEARCH_DEFAULTS["search_facets"],
        missing_value=(),
    )
    count_limit = schema.Int(
        title=_("Count hits up to"),
        description=_(
            "If more pages match, the search page says “more than” this number, which is faster on very large sites. 0"
            " means no limit. Where facets are shown, all hits are counted."
        ),
        min=0,
        default=SEARCH_DEFAULTS["count_limit"],
    )
