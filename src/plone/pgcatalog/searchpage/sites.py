"""Searches of several Plone sites of a database: the sites, the visitor's user in each, and hits merged by reciprocal ranks."""

from AccessControl import getSecurityManager
from AccessControl.Permissions import search_zcatalog
from AccessControl.Permissions import view
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import setSecurityManager
from AccessControl.SpecialUsers import nobody
from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from plone.pgcatalog.discovery.file_pages import Snippet
from plone.pgcatalog.discovery.highlight import LENGTH
from plone.pgcatalog.discovery.snippets import snippets
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.meaning.embedder import is_url
from plone.pgcatalog.observe import searches
from plone.pgcatalog.query.nearest import SMOOTHING
from plone.pgcatalog.results.brain import PublicURLs
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.settings import offered_to_sites
from plone.pgcatalog.settings import public_url
from plone.pgcatalog.settings import SOURCE_INDEX
from Products.CMFCore.indexing import processQueue
from Products.ZCatalog.Catalog import CatalogError
from transaction.interfaces import TransientError
from typing import Any
from zope.component.hooks import getSite
from zope.component.hooks import setSite

import logging


logger = logging.getLogger(__name__)

#: The parameter for the names of sites.
SITES = "sites"
#: Maximum number of sites that are searched together, and of those whose settings are read.
MOST_SITES, MOST_READ = 20, 200
#: Maximum number of merged hits that pages show, and that are read of each site.
MOST_HITS = 100
#: Seconds that the search in another site may take, unless that site allows less.
OTHER_SECONDS = 3.0
#: Depth of nested folders in which sites are looked up, and types of these folders.
DEPTH, FOLDER_TYPES = 3, ("Folder", "Folder (Ordered)")


@dataclass(frozen=True)
class Site:
    """The site *portal* and the *user* that the visitor is there; None in the visitor's own site, which stays the current one."""

    portal: Any
    user: Any = None

    @property
    def is_own(self) -> bool:
        return self.user is None

    @property
    def catalog(self) -> Any:
        """The catalog tool."""
        return self.portal._getOb("portal_catalog")

    @cached_property
    def path(self) -> str:
        return "/".join(self.portal.getPhysicalPath())

    @property
    def name(self) -> str:
        """The path without its first slash: the value of the parameter SITES."""
        return self.path.lstrip("/")

    @property
    def title(self) -> str:
        return self.portal.title or self.name

    @cached_property
    def public_url(self) -> str:
        """The public URL in the settings of another site; "" without a valid one, and for the own site."""
        url = "" if self.is_own else public_url(self.catalog)
        return url.strip().rstrip("/") if isinstance(url, str) and is_url(url) else ""

    @property
    def url(self) -> str:
        """The URL of the site: its public one, else the URL on the server of the request."""
        return self.public_url or str(self.portal.absolute_url())

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make the site the current one, and its user the current user."""
        if self.is_own:
            yield
            return
        # The queue belongs to the current site.
        processQueue()
        site, manager = getSite(), getSecurityManager()
        try:
            setSite(self.portal)
            newSecurityManager(None, self.user)
            yield
        finally:
            setSite(site)
            setSecurityManager(manager)

    @property
    def is_open(self) -> bool:
        """True if the user may view the site and search its catalog."""
        with self.entered():
            may = getSecurityManager().checkPermission
            return bool(may(view, self.portal) and may(search_zcatalog, self.catalog))


def sites_of(portal: Any) -> list[Site]:
    """Return the site *portal*, and other sites of its database by name: those that are offered, and that the user may view.

    At most MOST_SITES.  The user of the root's user folder is the same user in each site, any other one is anonymous in them.
    """
    root, user = portal.getPhysicalRoot(), getSecurityManager().getUser()
    folder = aq_parent(aq_inner(user))
    is_of_root = folder is not None and aq_base(folder) is aq_base(getattr(root, "acl_users", None))
    others = [Site(other, user if is_of_root else nobody) for other in islice(_sites_in(root, DEPTH), MOST_READ)]
    offered = filter(_is_offered_to(portal), sorted(others, key=lambda site: site.name))
    return [Site(portal), *islice(offered, MOST_SITES - 1)]


def _sites_in(folder: Any, depth: int) -> Iterator[Any]:
    yield from folder.objectValues("Plone Site")
    for inner in folder.objectValues(FOLDER_TYPES) if depth else ():
        yield from _sites_in(inner, depth - 1)


def _is_offered_to(portal: Any) -> Callable[[Site], bool]:
    def is_offered(site: Site) -> bool:
        if aq_base(site.portal) is aq_base(portal):
            return False
        try:
            # Not by getattr: without its site being set, a content object looks up utilities that are missing.
            tool = site.portal._getOb("portal_catalog", None)
            is_ours = IPGCatalogTool.providedBy(tool) and aq_base(tool)._p_jar is portal._p_jar
            return is_ours and offered_to_sites(tool) is True and site.is_open
        except TransientError:
            raise
        except Exception:  # whatever is broken there, this site must be searched
            logger.warning("the site %s cannot be searched", site.name, exc_info=True)
            return False

    return is_offered


class SiteHits:
    """The first hits of a search in *site*; ``find(portal)`` returns anything and the results of the search, with ``b_size``.

    An error in another site than the visitor's own is logged, and ``has_failed`` is then True.
    """

    def __init__(self, site: Site, find: Callable[[Any], tuple[Any, Any]]) -> None:
        self.site = site
        self._find = find
        #: the value returned by *find*, and the results; None before ``collect``, and after an error
        self.finder: Any = None
        self.results: Any = None
        self.brains: Sequence[Any] = ()
        self.total, self.is_limited, self.has_failed = 0, False, False

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Enter the site, and note an error there."""
        try:
            with self.site.entered():
                yield
        except TransientError:
            raise
        except Exception:  # whatever the error, the other sites' hits must be delivered
            if self.site.is_own:
                raise
            self.has_failed = True
            logger.warning("the search in the site %s has failed", self.site.name, exc_info=True)

    def collect(self) -> None:
        """Search, and add the page of the results to the open batch."""
        with self.attempt():
            core = self.site.catalog._core
            if not self.site.is_own and (SOURCE_INDEX not in core.indexes or is_unfilled(core)):
                raise CatalogError(f"the catalog has no index {SOURCE_INDEX}, or has not been filled")
            self.finder, results = self._find(self.site.portal)
            if not self.site.is_own:
                results.view.limit = min(results.view.limit or OTHER_SECONDS, OTHER_SECONDS)
            if self.site.public_url:
                results.serve_urls(PublicURLs(self.site.path, self.site.public_url))
            results.collect()
            self.results = results

    @property
    def highlighter(self) -> Any:
        """The highlighter of the words of the search; false if there are no words."""
        return self.results.highlighter()

    def read(self) -> None:
        """Read the results."""
        if self.results is not None:
            with self.attempt():
                # Only if all can be read: a site that fails has no hits.
                brains, total = list(self.results), self.results.actual_result_count
                self.is_limited, self.brains, self.total = self.results.is_limited, brains, total


def search_together(session: Any, parts: Sequence[SiteHits], read_own: Callable[[], None], request: Any) -> None:
    """Search the sites of *parts*, and read their hits in one message with those of the visitor's site, by *read_own*."""
    with session.batch(across=True):
        for part in parts:
            part.collect()
        read_own()
    # The search belongs to the visitor's own site; the others do not count it.
    searches.note_no_more(request)
    for part in parts:
        part.read()


def merged(parts: Iterable[SiteHits]) -> list[tuple[SiteHits, Any]]:
    """Return the hits of *parts* with their brains, by reciprocal rank; of equal ones, the first site's first.

    A hit is found in one site only, so the rank fusion of Cormack, Clarke and Buettcher (2009) adds nothing up.
    """
    ranked = [
        (1 / (SMOOTHING + place), part, brain) for part in parts for place, brain in enumerate(part.brains, start=1)
    ]
    return [(part, brain) for _, part, brain in sorted(ranked, key=lambda hit: -hit[0])[:MOST_HITS]]


def shown(
    session: Any,
    found: Sequence[tuple[SiteHits, Any]],
    show: Callable[[SiteHits, list[Any], dict[int, Snippet], Any], Sequence[Any]],
    length: int = LENGTH,
    read_more: Callable[[], Any] = lambda: None,
) -> list[Any]:
    """Return the hits *found*, (part, brain), as ``show(part, brains, snippets, highlighter)`` returns those of a part.

    Their snippets, of *length* characters or none for 0, are read in one message with the reads of *read_more*.
    """
    brains: dict[SiteHits, list[Any]] = {}
    for part, brain in found:
        brains.setdefault(part, []).append(brain)
    texts: dict[SiteHits, Fetch[dict[int, Snippet]]] = {}
    with session.batch(across=True):
        for part, of_part in brains.items():
            with part.attempt():
                texts[part] = snippets(part.results, of_part if length and part.highlighter else (), length)
        read_more()
    items: dict[int, Any] = {}
    for part, of_part in brains.items():
        with part.attempt():
            listed = show(part, of_part, texts[part].value(), part.highlighter)
            items |= dict(zip(map(id, of_part), listed, strict=True))
    return [items[id(brain)] for _, brain in found if id(brain) in items]
