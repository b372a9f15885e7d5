"""The request of a search page: its URL, its parameters and its query."""

from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from datetime import tzinfo
from functools import cached_property
from plone.base.navigationroot import get_navigation_root
from plone.pgcatalog.discovery.facet_groups import may_see_authors
from plone.pgcatalog.discovery.facet_groups import may_sort_by
from plone.pgcatalog.discovery.facet_groups import visible_facets
from plone.pgcatalog.fulltext.typed import search_text
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.observe.searches import CORRECTED_FROM
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.request import number_in
from plone.pgcatalog.searchpage.facets import page_facets
from plone.pgcatalog.searchpage.facets import PageFacet
from plone.pgcatalog.searchpage.facets import PlaceFacet
from plone.pgcatalog.searchpage.sites import SITES
from plone.pgcatalog.settings import search_facets
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.registry.interfaces import IRegistry
from Products.CMFCore.utils import getToolByName
from Products.CMFPlone.browser.search import Search
from typing import Any
from typing import Self
from urllib.parse import parse_qsl
from urllib.parse import urlencode
from zExceptions import BadRequest
from zoneinfo import ZoneInfo
from zope.component import getMultiAdapter
from zope.component import getUtility


Pair = tuple[str, str]

#: Maximum length of the known parameters in a URL, in characters: the page repeats them in each of its links.
LONGEST_PARAMETERS = 16_000
#: Maximum number of other parameters that are repeated, and of their characters.
MOST_OTHERS, LONGEST_OTHERS = 50, 2_000

#: Numbers of hits per page that the visitor can choose; the first is the default.
SIZES = (10, 20, 50, 100)
#: Maximum position of the first hit of a page.
LAST_START = 10_000_000

#: Parameters of this page alone: the UID of a page that the hits are similar to, and a text that is not to be corrected.
SIMILAR, AS_TYPED = "similar", "as_typed"
#: Parameter for the facets, and its values: with the page whatever the size of the catalog, or without the page.
FACETS, WITH_PAGE, ALONE = "facets", "along", "alone"
#: Parameters that are fields of the form, and parameters of Plone's page that this page ignores.
FORM_FIELDS = (SOURCE_INDEX, "sort_on", "sort_order", "b_start", "b_size", SIMILAR, AS_TYPED, FACETS, SITES)
DROPPED = ("advanced_search", "ajax_load", "pt_toggle", CORRECTED_FROM)


def plain(name: str) -> str:
    """Return the *name* of a parameter without its converters for Zope (``portal_type:list``)."""
    return name.partition(":")[0]


def record_of(name: str) -> str:
    """Return the *name* of a parameter without converters and without its record key (``created.query:record``)."""
    return plain(name).partition(".")[0]


@dataclass(frozen=True)
class Address:
    """The URL *url* with its parameters, in their order."""

    url: str
    pairs: tuple[Pair, ...] = ()

    @classmethod
    def of(cls, request: Any) -> Self:
        """Return the address of *request*."""
        return cls(request.URL, tuple(parse_qsl(request.get("QUERY_STRING", ""), keep_blank_values=True)))

    def without(self, *names: str) -> Self:
        """Return the address without the parameters *names*."""
        return self._filtered(lambda pair: plain(pair[0]) not in names)

    def without_values(self, name: str, values: Iterable[str]) -> Self:
        """Return the address without *values* of the parameter *name*; its other values stay."""
        left_out = set(values)
        return self._filtered(lambda pair: plain(pair[0]) != name or pair[1] not in left_out)

    def having(self, name: str, value: str) -> Self:
        """Return the address with an additional parameter."""
        return type(self)(self.url, (*self.pairs, (name, value)))

    def for_links(self, names: Container[str]) -> Self:
        """Return the address for links: with the parameters *names*, and with other ones up to a limit.

        Raises LimitExceeded if the named parameters are too long.
        """
        remaining: list[Pair] = []
        others, room, length = MOST_OTHERS, LONGEST_OTHERS, 0
        for pair in self.pairs:
            size = len(urlencode([pair]))
            if plain(pair[0]) in names or record_of(pair[0]) in names:
                length += size
            elif others and size <= room:
                others, room = others - 1, room - size
            else:
                continue
            remaining.append(pair)
        if length > LONGEST_PARAMETERS:
            raise LimitExceeded(f"the parameters of a search have more than {LONGEST_PARAMETERS:,} characters")
        return type(self)(self.url, tuple(remaining))

    def __str__(self) -> str:
        return f"{self.url}?{urlencode(self.pairs)}" if self.pairs else self.url

    def _filtered(self, is_wanted: Callable[[Pair], bool]) -> Self:
        return type(self)(self.url, tuple(filter(is_wanted, self.pairs)))


def site_zone() -> tzinfo:
    """Return the time zone of the site; UTC if the setting is missing or unknown."""
    try:
        return ZoneInfo(getUtility(IRegistry).get("plone.portal_timezone") or "UTC")
    except (KeyError, ValueError):
        return ZoneInfo("UTC")


class PageRequest(Search):
    """The parameters of a request for the search page, and the query that they stand for."""

    @cached_property
    def catalog(self) -> Any:
        return getToolByName(self.context, "portal_catalog")

    #: the address that links repeat, set by ``update``
    address: Address

    def address_of_links(self) -> Address:
        """Return the address that links repeat.  Raises LimitExceeded if it is too long for that."""
        # The parameters of which Plone's page and this one build a query.
        searched = {
            *FORM_FIELDS,
            *self.valid_keys,
            *self.catalog.indexes(),
            *(facet.parameter for facet in self.facets),
        }
        dropped = DROPPED if self.facets_are(WITH_PAGE) else (*DROPPED, FACETS)
        return self.own_address().without(*dropped).for_links(searched)

    def own_address(self) -> Address:
        """Return the address of the request."""
        return Address.of(self.request)

    def facets_are(self, wanted: str) -> bool:
        """Return whether the request wants its facets in the way *wanted*, WITH_PAGE or ALONE."""
        return bool(self.request.form.get(FACETS) == wanted)

    @cached_property
    def text(self) -> str:
        """The typed text."""
        text = self.request.form.get(SOURCE_INDEX, "")
        return text.strip() if isinstance(text, str) else ""

    @cached_property
    def root(self) -> str:
        """The path of the site, or of the navigation root that is searched."""
        root: str = get_navigation_root(self.context)
        return root

    @cached_property
    def size(self) -> int:
        size = self._number("b_size", SIZES[0])
        return size if size in SIZES else SIZES[0]

    @cached_property
    def start(self) -> int:
        return min(self._number("b_start", 0), LAST_START)

    def _number(self, name: str, default: int) -> int:
        number = number_in(str(self.request.form.get(name, "")))
        return default if number is None or number < 0 else number

    @cached_property
    def similar(self) -> str | None:
        """The UID of the page that the hits are to be similar to; None without one."""
        uid = self.request.form.get(SIMILAR)
        return uid if isinstance(uid, str) and uid else None

    @cached_property
    def show_about(self) -> bool:
        """Whether the visitor may see authors and dates."""
        return may_see_authors(self.context, self.request)

    @cached_property
    def facets(self) -> list[PageFacet]:
        """The facets of the site, in order."""
        indexes = {index.getId(): index for index in self.catalog.index_objects()}
        wanted = (name for name in search_facets(self.catalog) if name in indexes)
        names = visible_facets(wanted, self.context, self.request)
        zone = site_zone()
        form = self.request.form
        return page_facets([indexes[n] for n in names], form, root=self.root, zone=zone, now=datetime.now(zone).year)

    def base(self, text: str) -> dict[str, Any]:
        """Return Plone's query dict for *text*, without the values chosen in facets."""
        form = self.request.form
        # Without a text, the types alone are the query: it finds the whole site.
        base: dict[str, Any] = self.filter_query({SOURCE_INDEX: text, "portal_type": []}) or {}
        if text:
            base[SOURCE_INDEX] = search_text(text)
        else:
            base.pop(SOURCE_INDEX, None)
            if not form.get("sort_on") and not self.similar:
                base |= {"sort_on": "Date", "sort_order": "reverse"}
        if self.similar:
            # Sorted by similarity.
            base = {name: value for name, value in base.items() if name not in ("sort_on", "sort_order")}
        check_order(base, self.context, self.request)
        names = {facet.name for facet in self.facets}
        if "portal_type" in names:
            base["portal_type"] = self.filter_types([])
        if "path" in names:
            base.pop("path", None)
            places = next(facet.tokens for facet in self.facets if isinstance(facet, PlaceFacet))
            # As on Plone's page, a place outside of the navigation root may be chosen.
            if all(f"{place}/".startswith(f"{self.root}/") for place in places):
                base["path"] = self.root
        others = names - {"portal_type", "path"}
        parameters = {facet.parameter for facet in self.facets}
        base = as_site_searches(self.catalog, base, self.context)
        return {k: v for k, v in base.items() if k != SITES and (k not in parameters or k not in others)}

    # -- URLs of links

    def facets_url(self, how: str) -> str:
        """Return the URL of the page with facets ``along``, or of the facets ``alone``."""
        return str(self.address.without(FACETS).having(FACETS, how))

    def page_url(self, number: int) -> str:
        """Return the URL of a page of the results; the first has the number 1."""
        return str(self.address.without("b_start").having("b_start:int", str((number - 1) * self.size)))

    @property
    def unfiltered_url(self) -> str:
        """The URL of the page without filters."""
        return str(self.address.without("b_start", SIMILAR, SITES, *(facet.parameter for facet in self.facets)))

    @property
    def as_typed_url(self) -> str:
        """The URL of the page that does not correct the typed text."""
        return str(self.address.without("b_start", AS_TYPED).having(AS_TYPED, self.text))

    @cached_property
    def rss_url(self) -> str | None:
        """The URL of the feed of the search, from its first hit on; None if the site has no feeds of searches."""
        if not getMultiAdapter((self.context, self.request), name="syndication-util").search_rss_enabled():
            return None
        feed = Address(f"{self.context.absolute_url()}/search_rss", self.address.pairs)
        return str(feed.without("b_start", "b_size", FACETS))

    def tag_url(self, tag: str) -> str:
        """Return the URL of the search for all pages with *tag*."""
        return str(Address(self.address.url).having("Subject:list", tag))


def check_order(query: Mapping[str, Any], context: Any, request: Any) -> None:
    """Raise BadRequest if the user may not have results in the order that *query* requests."""
    sort_on = query.get("sort_on") or ()
    for name in (sort_on,) if isinstance(sort_on, str) else sort_on:
        if not may_sort_by(name, context, request):
            raise BadRequest(f"results cannot be sorted by {name!r}")
