"""The front page of the demo site: twelve things to try, the users who may log in, and the required content."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from demo import documents
from demo import embedder
from demo import plan
from demo.site import acting_as
from html import escape
from plone.app.textfield.value import RichTextValue
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.observe import log
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.storage import dsn_of
from plone.registry.interfaces import IRegistry
from typing import Any
from urllib.parse import quote_plus
from zope.component import getUtility

import itertools
import os
import transaction


THRESHOLD = "PGCATALOG_SLOW_QUERY_MS"
ID = "welcome"
TITLE = "What to try"
#: Setting -> value; the tour does not search for these words.
TUNING = {"synonyms": "climate, weather", "pins": "weather = /en/news/climate", "related_pages": 3}
#: Words, number of visitors' searches for them, and whether these found anything.
SEARCHES = (
    ("water", 64, True),
    ("weather", 41, True),
    ("bücher", 23, True),
    ("opening hours", 31, False),
    ("bike lanes", 17, False),
    ("kindergarten", 9, False),
)
#: The newest objects of one type and state, of one author, and with one tag: no index of Plone's has both filter and order.
NEWEST = {"sort_on": "modified", "sort_order": "reverse"}
SLOW: tuple[dict[str, Any], ...] = (
    {"portal_type": "Document", "review_state": "published"},
    {"portal_type": "News Item", "review_state": "published"},
    *({"portal_type": "Document", "Creator": person.id} for person in plan.PEOPLE),
)
#: Number of searches for each of them.
REPEATS = 20


@dataclass(frozen=True)
class Link:
    """One thing to try: an *address* in the site, with *title* and *text* (HTML), for the user *login*.

    *shows* are regular expressions that must match the target: the pages that it links to, the responses to its script's
    *requests*, and to *button*.  *title* and *text* contain no searched word, so that searches do
    not find the front page.
    """

    address: str
    title: str
    text: str
    shows: tuple[str, ...]
    login: str = ""
    requests: tuple[str, ...] = ()
    button: str = ""


LINKS = (
    Link(
        "@@search?SearchableText=climte",
        "A search with a typo",
        "finds the corrected word.",
        (r"Showing results for\s+<strong[^>]*>climate</strong>", r"<mark>[Cc]limate</mark>"),
    ),
    Link(
        "@@search?SearchableText=water",
        "Facets and snippets",
        "narrow a search; the words found are highlighted.",
        (r"<fieldset", r"<mark>[Ww]ater</mark>"),
    ),
    Link(
        "@@search?SearchableText=mobil",
        "Live search",
        "click into the field at the top: it suggests words and pages, and corrects typos.",
        (r'"text": "mobility"', r'"title": "[^"]*[Mm]obilit', r'"label": "Showing results for mobility"'),
        requests=("@@ajax-search?SearchableText=mobil", "@@ajax-search?SearchableText=moblity"),
    ),
    Link(
        "@@search?SearchableText=Bücher",
        "Other languages",
        'this is a German search, and <a href="@@search?SearchableText=图书馆">this</a> a Chinese one.',
        (r"<mark>Bücher", r"<mark>图书"),
    ),
    Link(
        "@@search?SearchableText=weather",
        "A synonym and a pinned page",
        "the first page is pinned, and the others contain the synonym.",
        (r'class="searchResults(?s:.{,600})/en/news/climate"', r"<mark>climate</mark>"),
    ),
    Link(
        f"@@search?SearchableText={documents.WORD}",
        "Text of files",
        "a word that only a PDF, a Word and an OpenDocument file contain.",
        (r"minutes\.pdf", r"minutes\.docx", r"minutes\.odt"),
    ),
    Link("{page}", "Similar pages", "are shown below the text of a page.", (r'id="related-pages"',)),
    Link(
        f"@@search?SearchableText={quote_plus(embedder.QUESTION)}",
        "By meaning",
        "a question in other words than its two pages, whose vectors are computed some minutes after the start.",
        (r'id="search-results"',),
    ),
    Link(
        "@@pgcatalog-search-controlpanel?try_text=water&try=1",
        "Tuning with a preview",
        "change a weight, and see the order before you save it; below are the top searches.",
        (r'id="try-hits"', r'id="top-searches"(?s:.*)opening hours'),
        login="hana",
    ),
    Link(
        "portal_catalog/manage_slow_queries",
        "Slow queries",
        "by shape, with their plans.",
        (r"Creator =; portal_type =; sort modified desc; limit",),
        login=plan.ADMIN,
    ),
    Link(
        "portal_catalog/manage_index_advice",
        "Index advice",
        "one click looks for an index for them, another builds it.",
        (r"CREATE INDEX CONCURRENTLY", r'name="apply"'),
        login=plan.ADMIN,
        button="advise",
    ),
    Link(
        "++api++/@pgsearch?q=water&facets=portal_type,Subject&rows=3",
        "The same through REST",
        "with facets.",
        (r'"facet_fields"', r'"Document"', r'"@type"'),
    ),
)


def make(site: Any) -> None:
    """Create the front page of *site*, and the targets of its links.  Commits."""
    registry = getUtility(IRegistry)
    for name, value in TUNING.items():
        registry[f"{PREFIX}.{name}"] = value
    documents.add(site)
    count(site)
    if ID not in site:
        site.invokeFactory("Document", ID, title=TITLE, description="Twelve links to what this catalog can do.")
    page = site[ID]
    page.text = RichTextValue(html(site), "text/html", "text/x-html-safe")
    page.exclude_from_nav = True
    page.reindexObject()
    if site.portal_workflow.getInfoFor(page, "review_state") != "published":
        site.portal_workflow.doActionFor(page, "publish")
    site.setDefaultPage(ID)
    transaction.commit()
    record(site)


def count(site: Any) -> None:
    """Count the words of *site*, which corrections and similar pages need, before the first search.  Commits."""
    transaction.commit()
    core = site.portal_catalog._core
    with connect_directly(dsn_of(core.jar), "demo") as connection:
        count_words(connection, core.zoid)
    transaction.begin()


def html(site: Any) -> str:
    """Return the text of the page."""
    page = page_like_others(site)
    items = "".join(
        f'<li><a href="{escape(link.address.format(page=page))}">{escape(link.title)}</a>: {link.text}'
        + (f" Log in as <strong>{link.login}</strong>." if link.login else "")
        + "</li>"
        for link in LINKS
    )
    rows = "".join(
        f"<tr><td>{escape(person.id)}</td><td>{plan.PASSWORD}</td><td>{escape(person.fullname)}, "
        f"{escape(', '.join(person.roles[1:] or person.groups or person.roles))}</td></tr>"
        for person in plan.PEOPLE
    )
    return (
        f"<ol>{items}</ol><h2>Who may log in</h2><table class='table'>"
        "<thead><tr><th>Login</th><th>Password</th><th>Who</th></tr></thead>"
        f"<tbody><tr><td>{plan.ADMIN}</td><td>{plan.ADMIN}</td><td>Manager of the whole server</td></tr>{rows}"
        "</tbody></table>"
    )


def page_like_others(site: Any) -> str:
    """Return the path in *site* of a public page with similar pages."""
    catalog = site.portal_catalog
    with acting_as(site, None):
        pages = catalog(portal_type="Document", path="/".join((*site.getPhysicalPath(), "en")), sort_on="path")
        found = next((page for page in pages if catalog.more_like_this(page, limit=1, portal_type="Document")), None)
        return "/".join(found.getPath().split("/")[2:]) if found else "en"


def record(site: Any) -> None:
    """Record some slow searches, and some searches of visitors."""
    core = site.portal_catalog._core
    dsn = dsn_of(core.jar)
    # Slow queries during the creation of the site would hide them.
    log.clear(dsn, core.zoid)
    with recording_all():
        for number, query in itertools.product(range(REPEATS), SLOW):
            # A different limit each time, because a cached answer needs no search.
            site.portal_catalog.unrestrictedSearchResults({**NEWEST, **query, "sort_limit": 10 + number})[:1]
    for words, times, found in SEARCHES:
        for _ in range(times):
            searches.record(dsn, core.zoid, words, found)
    searches.flush()
    recorder.flush()


@contextmanager
def recording_all() -> Iterator[None]:
    """Record every search as a slow one."""
    before = os.environ.get(THRESHOLD)
    os.environ[THRESHOLD] = "0.0001"
    try:
        yield
    finally:
        os.environ.pop(THRESHOLD)
        if before is not None:
            os.environ[THRESHOLD] = before
