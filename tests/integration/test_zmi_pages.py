"""The pages of the ZMI, the control panels and Classic UI in a table, and laws for all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field
from lxml import etree
from lxml import html
from plone import api
from plone.pgcatalog.catalog import FORMER_PAGES
from plone.pgcatalog.catalog import WEB_ACTIONS
from plone.pgcatalog.catalog import WEB_FORMS
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from plone.pgcatalog.distribution import own_distribution
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.zmi.advanced import ACTIONS
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.people import add_plain_users
from tests.integration.people import USERS
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import key_of
from tests.integration.slow_queries import search
from tests.integration.slow_queries import slow_listing
from tests.integration.waiting import background_ended
from tests.integration.web import MANAGER
from tests.integration.web import REFUSED
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any
from urllib.parse import unquote_plus
from zope.component import getGlobalSiteManager
from zope.interface import Interface
from zope.interface.interface import InterfaceClass
from zope.schema import getFieldNames

import psycopg
import pytest


TOOL = "portal_catalog"
ADVANCED, ADVICE, CATALOG = (f"{TOOL}/manage_{name}" for name in ("catalogAdvanced", "index_advice", "catalogView"))
INFORMATION, SLOW = f"{TOOL}/manage_objectInformation", f"{TOOL}/manage_slow_queries"
SETTINGS, TUNING = "@@pgcatalog-controlpanel", "@@pgcatalog-search-controlpanel"
SEARCH_PAGE = "@@pgcatalog-search-page-controlpanel"

MANAGERS = ("boss",)
ADMINISTRATORS = ("boss", "sita")
EVERYBODY = ("", *USERS, "sita")

EVIL = "<script>alert(1)</script>"
DISTRIBUTION = own_distribution()
VERSION = f"{DISTRIBUTION.metadata['Name']} {DISTRIBUTION.version}" if DISTRIBUTION else "plone.pgcatalog"
HEAD = {"version": VERSION, "figures": ("waiting for a lock", "none connected", "younger than a minute")}
GERMAN_HEAD = (
    *("Zeilen", "SQL-Indizes", "Letzte Änderung", "Replikate", "Tabelle", "In Ordnung: kein Handlungsbedarf"),
    *("jünger als eine Minute", "0 Arten von Suchen brauchen vielleicht einen Index", "Wartung Zuletzt Ergebnis"),
    *("0, davon 0 langsam für diese Website", ", 0 warten auf eine Sperre", "(Nummer ", "Tote Zeilen: "),
)
MAINTENANCE = "verify rebuild vacuum"
INDEXES = {"indexes": "FieldIndex portal_type", "metadata": "Title"}
ROW_BUTTONS = "manage_catalogObject manage_uncatalogObject"
INDEX_BUTTONS = "manage_reindexIndex manage_clearIndex manage_delIndex manage_delColumn manage_addColumn"
SAVE = "form.buttons.save form.buttons.cancel"
JOBS = ("Objekte auslassen und protokollieren", "Der Zwischenspeicher dieses Prozesses")
NO_LOG = ("Keine langsame Suche ist aufgezeichnet.",)


@dataclass(frozen=True)
class Page:
    """A page below the site's URL.

    - *texts*: texts for a manager by the id of their element, "" for the page
    - *buttons*: the names of the buttons of its POST forms
    - *query*: the query string; a row is given by its path, a shape by its beginning
    - *german*: texts on a site in German
    - *readers*: users who may see it; "" is an anonymous visitor
    """

    path: str
    texts: dict[str, str | tuple[str, ...]]
    buttons: str = ""
    query: dict[str, str] = field(default_factory=dict)
    german: tuple[str, ...] = ()
    readers: tuple[str, ...] = MANAGERS

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2].removeprefix("@@")

    @property
    def view(self) -> str:
        """The path in Zope's syntax for a view; the same path if there is no view of this name."""
        return self.path if self.name in NO_VIEWS else self.path.replace("manage_", "@@manage_")


#: A page that Plone's own code calls, and whose class is replaced; its permission is Plone's.
CALLED_BY_PLONE = "querybuilderresults"
NO_VIEWS = {*FORMER_PAGES, *WEB_FORMS}
FOLDER = {"total": "8", "rows": (EVIL, "/plone/f/d3 Document Page 3", "/plone/f/d6")}
RECORD = {
    **{"path": "/plone/f/d3", "metadata": "Page 3", "indexes": "FieldIndex", "texts": "hedgehogs"},
    **{"columns": "portal_type Document", "idx": '"portal_type": "Document"'},
}
FOUND = {"groups": ("Creator =; portal_type =; sort modified desc", "getId =")}
PAGES = [
    Page(f"{TOOL}/manage_catalogOverview", HEAD, MAINTENANCE, german=GERMAN_HEAD),
    Page(CATALOG, {"total": "about "}, ROW_BUTTONS, german=("Pfadfilter setzen",)),
    Page(CATALOG, FOLDER, ROW_BUTTONS, {"filterpath": "plone/f/"}),
    Page(CATALOG, {"total": "0", "empty": "There are no rows."}, query={"filterpath": EVIL, "after": EVIL}),
    Page(INFORMATION, RECORD, query={"rid": "/plone/f/d3"}),
    Page(INFORMATION, {"path": "/plone/f", "metadata": EVIL}, query={"rid": "/plone/f"}),
    Page(INFORMATION, {"": ("There is no object at this path.", "/plone/x1")}, query={"rid": "/plone/x1"}),
    Page(f"{TOOL}/manage_catalogIndexes", INDEXES, INDEX_BUTTONS, german=("Metadaten hinzufügen",)),
    Page(f"{TOOL}/manage_catalogSchema", INDEXES, INDEX_BUTTONS),
    Page(f"{TOOL}/manage_catalogFind", {"": "Find objects of type"}, "btn_submit"),
    # The size of the cache is in the unit of its setting.
    Page(
        ADVANCED,
        {"cache": "MB of 96.0 MB. Entries"},
        f"{MAINTENANCE} repair clear_cache manage_catalogClear",
        german=JOBS,
    ),
    Page(SLOW, FOUND, "clear", german=NO_LOG),
    Page(SLOW, {"examples": EVIL}, "explain", {"shape": "getId ="}),
    Page(SLOW, {"empty": "No slow query is recorded."}, query={"page": EVIL, "hours": EVIL, "new": EVIL}),
    Page(f"{TOOL}/manage_catalogReport", FOUND, "clear", german=NO_LOG),
    Page(f"{TOOL}/manage_catalogPlan", FOUND, "clear", german=NO_LOG),
    Page(ADVICE, {"indexes": "SQL indexes of"}, "advise", german=("Indizes suchen",)),
    Page(SETTINGS, HEAD, f"{MAINTENANCE} {SAVE}", german=(*GERMAN_HEAD, "Zeitlimit für Suchen (Sekunden)")),
    Page(TUNING, {}, SAVE, german=("Angeheftete Seiten",), readers=ADMINISTRATORS),
    Page(TUNING, {"try-hits": EVIL}, SAVE, {"try_text": EVIL, "try": "1"}, readers=ADMINISTRATORS),
    Page(SEARCH_PAGE, {"": "Count hits up to"}, SAVE, german=("Treffer zählen bis",), readers=ADMINISTRATORS),
    Page("@@search", {"": EVIL}, query={"SearchableText": EVIL}, readers=EVERYBODY),
    Page("@@ajax-search", {}, query={"SearchableText": EVIL}, readers=EVERYBODY),
    Page("@@pgcatalog-tuning.txt", {}, readers=ADMINISTRATORS),
    Page("@@pgcatalog-searches.csv", {}, readers=ADMINISTRATORS),
]
READERS = {page.path: page.readers for page in PAGES}
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
#: The last ones return JSON, a text and a table.
EACH_HTML = pytest.mark.parametrize("page", PAGES[:-3], ids=lambda page: page.name)


def saved(**values: Any) -> dict[str, str]:
    """Return the form of a control panel with *values*, except those of boxes."""
    sent = {f"form.widgets.{name}": str(value) for name, value in values.items() if not isinstance(value, bool)}
    return {"form.buttons.save": "Save", **sent}


TUNED = {name: IPGCatalogSearchSettings[name].default for name in getFieldNames(IPGCatalogSearchSettings)}
#: (page, a form of it that changes something)
FORMS: list[tuple[str, dict[str, str]]] = [
    *((ADVANCED, {action: "1"}) for action in ACTIONS),
    *((SLOW, {action: "1"}) for action in ("clear", "explain")),
    *((ADVICE, {action: "advice_1"}) for action in ("advise", "apply", "build", "cancel", "drop")),
    (SETTINGS, {"rebuild": "1"}),
    (SETTINGS, saved(slow_query_ms=250, slow_query_mask="", result_cache_mb=1, search_timeout=20)),
    (TUNING, saved(**TUNED | {"pins": "opening hours = /contact"})),
    (SEARCH_PAGE, saved(count_limit=7) | {"form.widgets.search_facets-empty-marker": "1"}),
]
#: Names of all buttons that are in FORMS or in tests/integration/test_publishing.py, or change nothing.
KNOWN_BUTTONS = {name for _, form in FORMS for name in form} | {*WEB_ACTIONS, "btn_submit", "form.buttons.cancel"}

#: Figures that each commit and each action of a page would change, except the empty cache.
STATE = """
SELECT (SELECT max(tid) FROM transaction_log), (SELECT array_agg(relation) FROM pgcatalog_state),
    (SELECT count(*) FROM pgcatalog_slow_queries),
    (SELECT count(*) FROM pgcatalog_queue), (SELECT count(*) FROM pgcatalog_indexes)
"""


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Site]:
    """A site with generated rows, content, users and slow queries."""
    with shared_site.inside() as portal:
        add_plain_users(portal)
        portal.acl_users.userFolderAddUser("sita", "secret", ["Site Administrator"], [])
        folder = create(portal, "Folder", "f", title=EVIL, subject=("a", EVIL))
        for number in range(7):
            create(folder, "Document", f"d{number}", title=f"Page {number}", description="Red hedgehogs")
    generate_rows(shared_site.dsn)
    with shared_site.inside() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        slow_listing(portal)
        search(portal, getId=EVIL)
    yield shared_site
    assert recorder.flush(10)
    assert background_ended()


def state(site: Site) -> Any:
    with psycopg.connect(site.dsn) as connection:
        return connection.execute(STATE).fetchall()


def query(site: Site, page: Page) -> dict[str, Any]:
    with site.inside() as portal:
        resolve = {"rid": portal.portal_catalog.getrid, "shape": lambda shape: key_of(portal, shape)}
        return {name: resolve.get(name, str)(value) for name, value in page.query.items()}


def login(user: str) -> str | None:
    return f"{user}:secret" if user else None


def registered() -> dict[str, list[type]]:
    """Return the classes of this package of each registered page, by its name.

    Services of plone.restapi have an @ in their names, and pages about errors are registered for classes.
    """
    pages: dict[str, list[type]] = {}
    for each in getGlobalSiteManager().registeredAdapters():
        if each.provided is Interface and len(each.required) == 2 and isinstance(each.required[0], InterfaceClass):
            mro = getattr(each.factory, "__mro__", ())
            classes = [cls for cls in mro if cls.__module__.startswith("plone.pgcatalog.")]
            if classes and "@" not in each.name and each.name != CALLED_BY_PLONE:
                pages[each.name] = classes
    return pages


def test_table_has_each_registered_page(zope: None) -> None:
    assert {*registered(), *NO_VIEWS} == {page.name for page in PAGES}


@pytest.mark.slow
def test_methods_of_pages_are_not_published(site: Site) -> None:
    before, views = state(site), {page.name: page.view for page in PAGES}
    for page, classes in registered().items():
        for name in {name for cls in classes for name in vars(cls) if not name.startswith("_")}:
            assert site.web.get(f"/plone/{views[page]}/{name}", MANAGER).status in REFUSED, (page, name)
    assert background_ended()
    assert state(site) == before


@EACH
def test_page_is_shown_to_its_readers_only(site: Site, page: Page) -> None:
    fields = query(site, page)
    for path in {page.path, page.view}:
        for user in EVERYBODY:
            status = site.web.get(f"/plone/{path}", login(user), **fields).status
            refused = REFUSED if user else (302, 401)
            assert status in ((200,) if user in page.readers else refused), (path, user, status)


@EACH_HTML
def test_page_has_its_texts_and_is_well_formed(site: Site, page: Page) -> None:
    fields = {"manage_tabs_message": EVIL} | query(site, page)
    answer = site.web.get(f"/plone/{page.path}", MANAGER, accept="text/html", **fields)
    assert answer.status == 200, answer.text
    assert EVIL not in answer.text
    assert "Traceback" not in answer.text
    assert faults(answer.body) == []
    tree = html.fromstring(answer.body)
    assert tree.findtext(".//title").strip()
    if page.path.startswith(TOOL):
        tabs = {text(tab) for tab in tree.xpath("//*[@id='tabs']//a")}
        assert {"Overview", "Catalog", "Indexes & Metadata", "Advanced", "Slow Queries", "Index Advice"} <= tabs
    for id, expected in page.texts.items():
        shown = text(tree.get_element_by_id(id) if id else tree)
        for each in (expected,) if isinstance(expected, str) else expected:
            assert each in shown


def faults(page: bytes) -> list[str]:
    """Return the errors of the HTML *page*.  The parser is older than some of HTML's elements."""
    parser = etree.HTMLParser()
    etree.fromstring(page, parser)
    return [f"{e.line}: {e.message}" for e in parser.error_log if e.type_name != "HTML_UNKNOWN_TAG"]


@EACH_HTML
def test_page_has_its_buttons_and_their_forms_a_token(site: Site, page: Page) -> None:
    buttons = set()
    for form in site.page(f"/plone/{page.path}", **query(site, page)).forms:
        submits = form.xpath(".//button[not(@type='button')]/@name | .//input[@type='submit']/@name")
        names = {name.removesuffix(":method") for name in submits}
        if form.method == "POST":
            assert len(form.fields["_authenticator"]) == 40
            # Zope calls methods of the form's object.
            assert names == set(submits) or form.action.endswith(f"/plone/{TOOL}")
            buttons |= names
        else:
            assert not (names | {(form.action or "").rpartition("/")[2]}) & KNOWN_BUTTONS
    assert buttons == set(page.buttons.split())
    assert buttons <= KNOWN_BUTTONS


@pytest.mark.parametrize(("path", "form"), FORMS, ids=lambda part: part if isinstance(part, str) else next(iter(part)))
def test_form_changes_nothing_without_permission_post_and_token(site: Site, path: str, form: dict[str, str]) -> None:
    before, token = state(site), site.token()
    for url in {f"/plone/{path}", f"/plone/{path.replace('manage_', '@@manage_')}"}:
        for user in set(EVERYBODY) - set(READERS[path]):
            assert site.web.post(url, login(user), _authenticator=token, **form).status in REFUSED
        assert site.web.post(url, MANAGER, **form).status == 403
        assert site.web.post(url, MANAGER, _authenticator="0" * 40, **form).status == 403
        answer = site.web.get(url, MANAGER, _authenticator=token, **form)
        assert answer.status in (200, 403)
        assert 'id="plan"' not in answer.text
    assert background_ended()
    assert state(site) == before


ODD = (
    *("", " ", "x", "0", "-1", "9" * 40, "1.5", "١", "--1", "SELECT 1", "1; DROP TABLE object_state", "\0", "\ud800"),
    *("/nowhere", "'; DROP TABLE object_state; --", '"; DROP TABLE object_state; --', "x" * 9000, "%", "/", EVIL),
    *("modified", "advice_000000000000"),
)


@pytest.mark.parametrize(
    ("method", "path", "fields", "status", "message"),
    [
        ("get", CATALOG, ("filterpath", "after", "before"), 200, "<main"),
        ("get", INFORMATION, ("rid",), 404, ""),
        ("get", SLOW, ("shape", "page", "hours", "new"), 200, "<main"),
        ("post", SLOW, ("explain",), 200, "This query is no longer in the log."),
        ("post", ADVICE, ("apply", "build", "cancel", "drop"), 302, "Not+done"),
        ("post", ADVANCED, ("stop",), 302, "The+job+will+stop+soon"),
    ],
)
def test_odd_value_is_no_error(
    site: Site, method: str, path: str, fields: tuple[str, ...], status: int, message: str
) -> None:
    relation = state(site)
    for name in fields:
        for value in ODD:
            form = {name: value.encode("utf-8", "surrogatepass")}
            url = f"/plone/{path}"
            answer = site.post(url, **form) if method == "post" else site.web.get(url, MANAGER, "text/html", **form)
            assert (answer.status, name, value) == (status, name, value), answer.text
            assert message in answer.headers.get("Location", "") + answer.text
            assert EVIL not in answer.text
    assert state(site) == relation


def test_list_is_no_value(site: Site) -> None:
    fields = {"filterpath:list": ["a", "b"], "after:record": "x"}
    assert site.web.get(f"/plone/{CATALOG}", MANAGER, **fields).status == 200
    assert site.post(f"/plone/{ADVICE}", drop=["a", "b"]).status == 200
    assert site.post(f"/plone/{SLOW}", explain=["1", "2"]).status == 200


# -- in German


def make_german(portal: Any) -> None:
    populate(portal)
    api.portal.set_registry_record("plone.available_languages", ["de"])
    api.portal.set_registry_record("plone.default_language", "de")


@pytest.fixture(scope="module")
def german(site_with: SiteWith) -> Iterator[Site]:
    with sites.opened(site_with(make_german)) as db:
        yield Site(db)


@pytest.mark.parametrize("page", [page for page in PAGES if page.german], ids=lambda page: page.name)
def test_page_of_a_german_site_is_german(german: Site, page: Page) -> None:
    shown = text(german.page(f"/plone/{page.path}"))
    assert [each for each in page.german if each not in shown] == []
    assert "${" not in shown


def test_message_of_a_german_site_is_german(german: Site) -> None:
    answer = german.post(f"/plone/{ADVANCED}", clear_cache="1")
    assert answer.status == 302
    assert "Der Zwischenspeicher dieses Prozesses ist leer." in unquote_plus(answer.headers["Location"])
