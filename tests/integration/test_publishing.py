"""The catalog over HTTP: no user can call more than on a stock site, and writing needs POST and a token."""

from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field
from inspect import signature
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.catalog import WEB_ACTIONS
from plone.protect.interfaces import IDisableCSRFProtection
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.Five import BrowserView
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import publish
from tests.integration.web import MANAGER
from tests.integration.web import REFUSED
from tests.integration.web import Site
from typing import Any
from zope.component import getSiteManager
from zope.component import provideAdapter
from zope.interface import alsoProvides
from zope.interface import Interface
from zope.publisher.interfaces.browser import IBrowserRequest

import pytest


CATALOG = "/plone/portal_catalog"
#: On a stock site a manager's GET of these acts, or shows a confirmation.
POST_ONLY = {
    *("manage_catalogClear", "manage_catalogFoundItems", "manage_catalogObject", "manage_catalogRebuild"),
    *("manage_catalogReindex", "manage_clearIndex", "manage_delIndex", "manage_edit", "manage_editCatalogReport"),
    *("manage_normalize_paths", "manage_reindexIndex", "manage_resetCatalogReport", "manage_setProgress"),
    *("manage_subbingToggle", "manage_uncatalogObject"),
}
INDEXES = (
    *("Title", "Subject", "UID", "path", "getObjPositionInParent", "start", "created", "effectiveRange"),
    "is_folderish",
)


@pytest.fixture(scope="module")
def stock(stock_template: str, postgres: Any) -> Iterator[Site]:
    """A site with Plone's own catalog."""
    with sites.opened(sites.clone(postgres, stock_template)) as db:
        yield Site(db)


def fill(portal: Any) -> None:
    portal.acl_users.userFolderAddUser("mara", "secret", ["Member"], [])
    portal.manage_permission("plone.restapi: Use REST API", ["Anonymous"], 1)
    portal.portal_workflow.setChainForPortalTypes(("Document",), "simple_publication_workflow")
    create(portal, "Document", "page", title="Needle secret")
    publish(create(portal, "Document", "open", title="Needle open"))


CONTENT = SHARED = fill


@pytest.fixture
def ours(db: Any) -> Site:
    """A fresh site with our catalog."""
    return Site(db)


def public_names(*objects: Any) -> list[str]:
    """Return the names published over HTTP; names in capitals are WebDAV's verbs, including DELETE."""
    names = {name for obj in objects for name in dir(obj)}
    return sorted(n for n in names if not n.startswith("_") and not n.endswith("__roles__") and not n.isupper())


@pytest.mark.parametrize("login", [None, pytest.param(MANAGER, marks=pytest.mark.slow)])
def test_every_name_answers_as_on_a_stock_site_or_requires_a_post(stock: Site, shared_site: Site, login: Any) -> None:
    before = shared_site.generation
    # Not published by ours; on a stock site it would run at once.
    names = [name for name in public_names(CatalogTool, PlonePGCatalogTool) if name != "refreshCatalog"]
    mine, theirs = ({n: each.web.get(f"{CATALOG}/{n}", login).status for n in names} for each in (shared_site, stock))
    different = {name: (mine[name], theirs[name]) for name in names if mine[name] != theirs[name]}
    # Fails on a stock site, since no object is named; Zope's status of a NameError is 503.
    assert different.pop("manage_objectInformation", (404, 503)) == (404, 503)
    assert {name: status for name, (status, _) in different.items()} == dict.fromkeys(POST_ONLY if login else (), 403)
    assert shared_site.generation == before


@pytest.mark.slow
@pytest.mark.parametrize("login", [None, MANAGER])
@pytest.mark.parametrize("index", INDEXES)
def test_indexes_publish_no_more_than_on_a_stock_site(stock: Site, shared_site: Site, index: str, login: Any) -> None:
    before = shared_site.generation
    with stock.inside() as theirs, shared_site.inside() as mine:
        names = public_names(theirs.portal_catalog.Indexes[index], mine.portal_catalog.Indexes[index])
    for name in names:
        url = f"{CATALOG}/Indexes/{index}/{name}"
        status = shared_site.web.get(url, login).status
        if status not in REFUSED:
            assert (name, status) == (name, stock.web.get(url, login).status)
    assert shared_site.generation == before


def test_searching_is_not_published(shared_site: Site) -> None:
    for send in (shared_site.web.get, shared_site.web.post):
        for method in ("searchResults", "unrestrictedSearchResults", "search", "__call__", "_catalog"):
            for login in (None, MANAGER):
                assert send(f"{CATALOG}/{method}", login).status in REFUSED, (method, login)
        assert send(CATALOG, portal_type="Plone Site").status in REFUSED


# -- writing actions


@dataclass
class Action:
    """A writing action: its form, its initial state, and a check that it was done."""

    name: str
    done: Callable[[Any], bool]
    form: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[Any], Any] = lambda portal: None


def uids(portal: Any) -> set[str]:
    return set(portal.portal_catalog._catalog.uids)


def has_page(portal: Any) -> bool:
    return "/plone/page" in uids(portal)


def has_types(portal: Any) -> bool:
    return "Document" in portal.portal_catalog.uniqueValuesFor("portal_type")


def lose_page(portal: Any) -> None:
    portal.portal_catalog.uncatalog_object("/plone/page")


def lose_types(portal: Any) -> None:
    portal.portal_catalog.manage_clearIndex(["portal_type"])


def misplace(portal: Any) -> None:
    lose_page(portal)
    portal.portal_catalog.catalog_object(portal.page, "plone/page")
    portal.portal_catalog.catalog_object(portal.page, "/plone/no-such-page")


ACTIONS = [
    Action("manage_catalogClear", lambda p: len(p.portal_catalog) == 0),
    Action("manage_catalogRebuild", has_page, prepare=lambda p: p.portal_catalog.manage_catalogClear()),
    Action("manage_catalogReindex", has_types, prepare=lose_types),
    Action("manage_catalogFoundItems", has_page, {"obj_ids": ["page"]}, lose_page),
    Action("manage_catalogObject", has_page, {"urls": "/plone/page"}, lose_page),
    Action("manage_uncatalogObject", lambda p: not has_page(p), {"urls": "/plone/page"}),
    Action(
        "manage_normalize_paths",
        lambda p: {"plone/page", "/plone/page", "/plone/no-such-page"} & uids(p) == {"/plone/page"},
        {},
        misplace,
    ),
    Action("manage_addIndex", lambda p: "odd" in p.portal_catalog.indexes(), {"name": "odd", "type": "FieldIndex"}),
    Action("manage_delIndex", lambda p: "Type" not in p.portal_catalog.indexes(), {"ids:list": ["Type"]}),
    Action("manage_clearIndex", lambda p: not has_types(p), {"ids": "portal_type"}),
    Action("manage_reindexIndex", has_types, {"ids": "portal_type"}, lose_types),
    Action("manage_addColumn", lambda p: "odd" in p.portal_catalog.schema(), {"name": "odd"}),
    Action("manage_delColumn", lambda p: "Type" not in p.portal_catalog.schema(), {"names": "Type"}),
    Action("manage_edit", lambda p: p.portal_catalog.threshold == 7, {"threshold": "7"}),
    Action("manage_subbingToggle", lambda p: p.portal_catalog.threshold is None),
    Action("manage_setProgress", lambda p: getattr(p.portal_catalog, "pgthreshold", 0) == 7, {"pgthreshold:int": "7"}),
    Action(
        "manage_editCatalogReport",
        lambda p: p.portal_catalog._settings["slow_query_ms"] == 7000,
        {"long_query_time": "7"},
    ),
]


def test_writing_needs_a_manager_a_post_and_a_token(ours: Site) -> None:
    token, web = ours.token(), ours.web
    forged = {"REQUEST.REQUEST_METHOD:record": "POST", "REQUEST._authenticator:record": token}
    for action in ACTIONS:
        with ours.inside() as portal:
            action.prepare(portal)
        before, url = ours.generation, f"{CATALOG}/{action.name}"
        for proof in ({}, {"_authenticator": token}, forged):
            assert web.get(url, MANAGER, **proof, **action.form).status == 403, url
        for proof in ({}, {"_authenticator": "0" * 40}):
            assert web.post(url, MANAGER, **proof, **action.form).status == 403, url
        for login in (None, "mara:secret"):
            assert web.post(url, login, _authenticator=token, **action.form).status in REFUSED, url
        with ours.inside() as portal:
            assert not action.done(portal), url
        assert ours.generation == before, url
        assert web.post(url, MANAGER, _authenticator=token, **action.form).status in (200, 204, 302), url
        with ours.inside() as portal:
            assert action.done(portal), url
    # The report belongs to the process; it leaves no trace in the catalog.
    assert {action.name for action in ACTIONS} | {"manage_resetCatalogReport"} == set(WEB_ACTIONS)


class Calling(BrowserView):
    """A page that calls a web action of the catalog with all arguments in the request, as upgrade steps do."""

    __roles__ = ("Manager",)

    def __call__(self) -> str:
        """Call the action."""
        alsoProvides(self.request, IDisableCSRFProtection)
        method = getattr(self.context.portal_catalog, self.request.form["action"])
        wanted = [name for name in signature(method).parameters if name in self.request]
        method(**{name: self.request[name] for name in wanted})
        return "done"


def test_a_call_from_python_needs_neither_post_nor_token(ours: Site) -> None:
    provideAdapter(Calling, (Interface, IBrowserRequest), Interface, "call-an-action")
    try:
        for action in ACTIONS:
            with ours.inside() as portal:
                action.prepare(portal)
            ours.web.get("/plone/call-an-action", MANAGER, **action.form, action=action.name)
            with ours.inside() as portal:
                assert action.done(portal), action.name
    finally:
        getSiteManager().unregisterAdapter(Calling, (Interface, IBrowserRequest), Interface, "call-an-action")


#: Fields with names of objects of the publisher.
FORGED = (
    *({"PUBLISHED": "x"}, {"PUBLISHED.aq_base:record": "x"}, {"REQUEST:record": "x", "RESPONSE": "x"}),
    {"REQUEST.PUBLISHED:record": "x", "self": "x"},
)


@pytest.mark.parametrize("tool", [CATALOG, "/plone/page/portal_catalog"])
def test_no_form_makes_a_published_action_a_call(shared_site: Site, tool: str) -> None:
    before, web = shared_site.generation, shared_site.web
    for form in FORGED:
        for send in (web.get, web.post):
            assert send(f"{tool}/manage_catalogClear", MANAGER, **form).status == 403, form
    assert web.open(f"{tool}?manage_catalogClear:method=1", MANAGER).status == 403
    assert shared_site.generation == before


def test_actions_called_by_a_published_action_are_guarded_too(ours: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch under another name around an action does not remove its guard."""
    stock = PlonePGCatalogTool.manage_catalogClear

    def patched(self: Any, REQUEST: Any = None, RESPONSE: Any = None, URL1: Any = None) -> Any:
        """Clear"""
        return stock(self)

    monkeypatch.setattr(PlonePGCatalogTool, "manage_catalogClear", patched)
    before = ours.generation
    assert ours.web.get(f"{CATALOG}/manage_catalogClear", MANAGER).status == 403
    assert ours.generation == before


def test_buttons_of_the_zmi_work(ours: Site) -> None:
    """Zope calls a method of the form's object by the name of the button."""
    for action in ACTIONS:
        if action.name in ("manage_catalogClear", "manage_addColumn"):
            assert ours.post(CATALOG, **{f"{action.name}:method": "OK"}, **action.form).status == 302
            with ours.inside() as portal:
                assert action.done(portal), action.name


# -- searching over HTTP


@pytest.mark.parametrize(
    "query",
    [
        *({}, {"allowedRolesAndUsers": "Manager"}, {"allowedRolesAndUsers:list": ["Manager", "user:admin"]}),
        {"allowedRolesAndUsers.query:record:list": ["Manager"], "allowedRolesAndUsers.not:record": "x"},
        *({"allowedRolesAndUsers.not:record": "Anonymous"}, {"allowedRolesAndUsers_not": "x"}, {"show_inactive": "1"}),
        {"allowedRolesAndUsers_usage": "range:min", "allowedRolesAndUsers": "A"},
        *({"effectiveRange": "1990-01-01"}, {"effectiveRange_usage": "range:min"}),
    ],
    ids=str,
)
def test_searches_over_http_find_only_visible_objects(shared_site: Site, query: dict[str, Any]) -> None:
    found = shared_site.web.get("/plone/@search", accept="application/json", SearchableText="needle", **query)
    if found.status == 200:
        assert {item["@id"].rsplit("/", 1)[1] for item in found.json["items"]} <= {"open"}
    else:
        assert found.status == 400, found.text
    page = shared_site.web.get("/plone/@@search", accept="text/html", SearchableText="needle", **query)
    assert page.status == 200
    assert "Needle secret" not in page.text
