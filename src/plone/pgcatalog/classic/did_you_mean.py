"""*Did you mean* on Plone's search page, when a search has found nothing.

Plone's page has no place for it that both a reader and the page's own script see: after a search within the page, the
script replaces the results only (``#search-results``), and what viewlets say around them would be about the search before.
So it is put into the results of the finished page, whatever template and class have made it: nothing is overridden.
"""

from collections.abc import Callable
from plone.pgcatalog.classic.request import Address
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.discovery.vocabulary import finds_something
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.transformchain.interfaces import ITransform
from Products.CMFCore.utils import getToolByName
from Products.CMFPlone.browser.search import Search
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any
from zope.component import adapter
from zope.interface import implementer

import logging
import re


logger = logging.getLogger(__name__)

#: Where the page says that it has found nothing, and where its results begin; one look at each character.
NOTHING_FOUND = re.compile(r'<(?>[^<>]*?\bid="search-results-number")[^<>]*+>\s*+0\s*+<')
RESULTS = re.compile(r'<(?>[^<>]*?\bid="search-results")[^<>]*+>')
#: Parameters of the page that do not belong to another search.
DROPPED = (SOURCE_INDEX, "b_start", "ajax_load")


def if_possible(better: Callable[[], str | None]) -> str | None:
    """Return what *better* answers; None, and a warning in the log, if it fails: the page is better than none."""
    try:
        return better()
    except Exception:  # whatever it is, the rest of the page has to reach its reader
        logger.warning("no suggestion for the search page", exc_info=True)
        return None


@implementer(ITransform)
@adapter(Search, IPGCatalogLayer)
class DidYouMeanTransform:
    """Puts the suggestion into search pages without results; leaves all others, and pages of other makings, alone."""

    #: Before themes, which may move what they get.
    order = 7000

    def __init__(self, published: Any, request: Any) -> None:
        self._view = published
        self._request = request

    def transformBytes(self, result: bytes, encoding: str) -> str | None:
        """See ITransform."""
        return self.transformUnicode(result.decode(encoding, "replace"), encoding)

    def transformIterable(self, result: Any, encoding: str) -> str | None:
        """See ITransform; a body is a list of bytes, and anything else comes from a transform that has parsed it."""
        return self.transformBytes(b"".join(result), encoding) if isinstance(result, list) else None

    def transformUnicode(self, result: str, encoding: str) -> str | None:
        """See ITransform."""
        # Our own page corrects what was typed itself.
        is_own = getattr(self._view, "is_on", False)
        if is_own or self._request.get("REQUEST_METHOD") != "GET" or not NOTHING_FOUND.search(result):
            return None
        place = RESULTS.search(result)
        suggestion = DidYouMean(self._view, self._request).render() if place else ""
        return result[: place.end()] + suggestion + result[place.end() :] if place and suggestion else None


class DidYouMean(BrowserView):
    """What the search page that is its context may say in place of results; no published view."""

    template = ViewPageTemplateFile("did_you_mean.pt")
    text: str | None = None

    def render(self) -> str:
        """Return HTML, empty when nothing better is known."""
        self.text = if_possible(self._better)
        html: str = self.template() if self.text else ""
        return html

    def _better(self) -> str | None:
        page = self.context
        catalog = getToolByName(page.context, "portal_catalog")
        text = self.request.form.get(SOURCE_INDEX)
        if not isinstance(text, str) or not IPGCatalogTool.providedBy(catalog):
            return None
        place = {name: value for name, value in page.filter_query({}).items() if name != SOURCE_INDEX}
        better = did_you_mean(catalog, text, place)
        # To the page operators are words, and all words are beginnings.
        return better if better and finds_something(catalog, page.filter_query({SOURCE_INDEX: better})) else None

    def url(self) -> str:
        """Return the address of the page with the better text: all else that was asked for stays."""
        return str(Address.of(self.request).without(*DROPPED).having(SOURCE_INDEX, self.text or ""))
