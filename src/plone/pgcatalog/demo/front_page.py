"""The front page of the demo site: ten things to try, who may log in, and what has to be there for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from plone.app.textfield.value import RichTextValue
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.demo import people
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.storage import dsn_of
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import getUtility

import itertools
import os
import transaction


THRESHOLD = "PGCATALOG_SLOW_QUERY_MS"
ID = "welcome"
TITLE = "What to try"
#: Setting -> value; the words are none that the tour searches for.
TUNING = {"synonyms": "climate, weather", "pins": "weather = /en/news/climate", "related_pages": 3}
#: Words, how often visitors have searched for them, and whether anything was found.
SEARCHES = (
    ("water", 64, True),
    ("weather", 41, True),
    ("bücher", 23, True),
    ("opening hours", 31, False),
    ("bike lanes", 17, False),
    ("kindergarten", 9, False),
)
#: The newest of one type and state, of one author, and with one tag: no index of Plone's serves both filter and order.
NEWEST = {"sort_on": "modified", "sort_order": "reverse"}
SLOW: tuple[dict[str, Any], ...] = (
    {"portal_type": "Document", "review_state": "published"},
    {"portal_type": "News Item", "review_state": "published"},
    *({"portal_type": "Document", "Creator": person.id} for person in people.PEOPLE),
)
#: How often each of them was asked for.
ASKED = 20

#: (address in the site, title, what is to be seen there, who has to log in)
LINKS = (
    ("@@search?SearchableText=climte", "A search with a typo", "finds what was meant.", ""),
    ("@@search?SearchableText=water", "Facets and snippets", "narrow a search; its words are marked.", ""),
    ("@@search?SearchableText=mobil", "Live search", "type mobil, or moblity, into the field at the top.", ""),
    ("@@search?SearchableText=Bücher", "Other languages", "this is a German search, and 图书馆 a Chinese one.", ""),
    ("@@search?SearchableText=weather", "A synonym and a pinned page", "weather finds climate, too.", ""),
    ("{page}", "Related pages", "stand below the text: those that are most like it.", ""),
    (
        "@@pgcatalog-search-controlpanel?try_text=water&try=1",
        "Tuning with a preview",
        "change a weight, and see the order before you save it; below are the top searches.",
        "hana",
    ),
    ("portal_catalog/manage_slow_queries", "Slow queries", "by shape, with their plans.", people.ADMIN),
    (
        "portal_catalog/manage_index_advice",
        "Index advice",
        "one click looks for an index for them, another builds it.",
        people.ADMIN,
    ),
    ("++api++/@pgsearch?q=water&facets=portal_type,Subject&rows=3", "The same through REST", "with facets.", ""),
)


def make(site: Any) -> None:
    """Make the front page of *site*, and what it leads to.  Commits."""
    if IPGCatalogTool.providedBy(site.portal_catalog):
        registry = getUtility(IRegistry)
        for name, value in TUNING.items():
            registry[f"{PREFIX}.{name}"] = value
    if ID not in site:
        site.invokeFactory("Document", ID, title=TITLE, description="Ten links to what this catalog can do.")
    page = site[ID]
    page.text = RichTextValue(html(site), "text/html", "text/x-html-safe")
    page.exclude_from_nav = True
    page.reindexObject()
    if site.portal_workflow.getInfoFor(page, "review_state") != "published":
        site.portal_workflow.doActionFor(page, "publish")
    site.setDefaultPage(ID)
    transaction.commit()
    if IPGCatalogTool.providedBy(site.portal_catalog):
        record(site)


def html(site: Any) -> str:
    """Return the text of the page."""
    found = site.portal_catalog(portal_type="Document", path="/".join((*site.getPhysicalPath(), "en")), sort_limit=1)
    page = "/".join(found[0].getPath().split("/")[2:]) if found else "en"
    items = "".join(
        f'<li><a href="{escape(address.format(page=page))}">{escape(title)}</a>: {escape(text)}'
        + (f" Log in as <strong>{login}</strong>." if login else "")
        + "</li>"
        for address, title, text, login in LINKS
    )
    rows = "".join(
        f"<tr><td>{escape(person.id)}</td><td>{people.PASSWORD}</td><td>{escape(person.fullname)}, "
        f"{escape(', '.join(person.roles[1:] or person.groups or person.roles))}</td></tr>"
        for person in people.PEOPLE
    )
    return (
        f"<ol>{items}</ol><h2>Who may log in</h2><table class='table'>"
        "<thead><tr><th>Login</th><th>Password</th><th>Who</th></tr></thead>"
        f"<tbody><tr><td>{people.ADMIN}</td><td>{people.ADMIN}</td><td>Manager of the whole server</td></tr>{rows}"
        "</tbody></table>"
    )


def record(site: Any) -> None:
    """Let some searches have been slow, and others have been made by visitors."""
    core = site.portal_catalog._core
    dsn = dsn_of(core.jar)
    with recording_all():
        for number, query in itertools.product(range(ASKED), SLOW):
            # Another limit each time: what is known already is not asked for again.
            site.portal_catalog.unrestrictedSearchResults({**NEWEST, **query, "sort_limit": 10 + number})[:1]
    for words, times, found in SEARCHES:
        for _ in range(times):
            searches.record(dsn, core.zoid, words, found)
    searches.flush()
    recorder.flush()


@contextmanager
def recording_all() -> Iterator[None]:
    """Take every search for a slow one."""
    before = os.environ.get(THRESHOLD)
    os.environ[THRESHOLD] = "0.0001"
    try:
        yield
    finally:
        os.environ.pop(THRESHOLD)
        if before is not None:
            os.environ[THRESHOLD] = before
