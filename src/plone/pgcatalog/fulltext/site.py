"""What a site's settings make of its full-text search: what ranks, what words count, their stems, and its tuning."""

from collections.abc import Callable
from collections.abc import Mapping
from plone.pgcatalog.fulltext.bm25 import PlainBackend
from plone.pgcatalog.fulltext.ranking import SearchBackend
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.tuned import SiteTuning
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.interfaces import IPGSearchBackend
from plone.pgcatalog.settings import LANGUAGES
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.settings import stemming
from typing import Any
from zope.component import queryUtility
from zope.globalrequest import getRequest


PLAIN = PlainBackend()


def site_tuning(tool: Any, find_site: Callable[[], str | None]) -> SiteTuning | None:
    """Return how the site of the catalog *tool* tunes its search; None for not at all.

    *find_site* returns the path of the site, None for a catalog that is no site's; it may have to load objects.
    """
    tuning = tuning_in(site_settings(tool))
    site = None if tuning is None else find_site()
    return None if tuning is None or site is None else SiteTuning(tuning, site, request_language)


def tuning_with(settings: Mapping[str, Any], site: str | None) -> SiteTuning | None:
    """Return how the site at the path *site* would tune its search with *settings*; None for not at all."""
    tuning = tuning_in(settings)
    return None if tuning is None or site is None else SiteTuning(tuning, site, request_language)


def request_language() -> str | None:
    """Return the code of the language in which the current request is answered, None without request or language."""
    request = getRequest()
    language = None if request is None else request.get("LANGUAGE")
    return language if isinstance(language, str) and language else None


def search_weights(tool: Any) -> Weights:
    """Return what words count in titles, descriptions, keywords and bodies in the site of the catalog *tool*."""
    return Weights.of(site_settings(tool))


def site_stemming(tool: Any) -> Stemming | None:
    """Return the stemming of the site of the catalog *tool*; None when it is off, or there are no stemmers."""
    return Stemming.of(site_settings(tool).get(LANGUAGES, ())) if stemming(tool) else None


def search_backend() -> SearchBackend:
    """Return what ranks results in the current site."""
    utility: SearchBackend | None = queryUtility(IPGSearchBackend)
    return utility or PLAIN
