"""The control panel for the tuning of the search, in Classic UI and through plone.restapi."""

from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from plone.pgcatalog.settings import SETTINGS_ATTRIBUTE
from tests.integration.content import create
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import token
from tests.integration.web import Web
from typing import Any
from zope.interface import Invalid
from zope.schema import getFieldNames

import html
import json
import lxml.html
import pytest
import re
import transaction


PANEL = "/plone/@@pgcatalog-search-controlpanel"
REST = "/plone/++api++/@controlpanels/pgcatalog-search"
NAMES = getFieldNames(IPGCatalogSearchSettings)
DEFAULTS = {name: IPGCatalogSearchSettings[name].default for name in NAMES}
BOXES = [name for name in NAMES if isinstance(DEFAULTS[name], bool)]
NUMBERS = {"weight_title": 7.5, "weight_body": 0.0}
LINES = {
    "type_boosts": "News Item = 2",
    "pins": "opening hours = /contact",
    "synonyms": "car, automobile\ntv => television",
    "stop_words": "en: the, a, of",
}


def save(db: Any, login: str = MANAGER, **lines: str) -> Response:
    """Send the form with *lines* instead of its current values."""
    web = Web(db)
    page = web.get(PANEL, login)
    assert page.status == 200
    form = {f"form.widgets.{name}": lines.get(name) or shown(page.text, name) for name in NAMES if name not in BOXES}
    form |= boxes()
    return web.post(PANEL, login, **form, **{"form.buttons.save": "Save", "_authenticator": token(page.text)})


def boxes() -> dict[str, str]:
    """Return a browser's form data for the boxes, checked as by default."""
    sent = {f"form.widgets.{name}-empty-marker": "1" for name in BOXES}
    return sent | {f"form.widgets.{name}:list": "selected" for name in BOXES if DEFAULTS[name]}


def shown(page: str, name: str) -> str:
    """Return the value of the field *name* in the form."""
    found = re.search(rf'<textarea[^>]*name="form.widgets.{name}"[^>]*>([^<]*)</textarea>', page)
    found = found or re.search(rf'<input[^>]*name="form.widgets.{name}"[^>]*value="([^"]*)"', page)
    assert found
    return html.unescape(found[1]).strip()


def kept(portal: Any) -> dict[str, Any]:
    transaction.begin()
    found: dict[str, Any] = getattr(portal.portal_catalog, SETTINGS_ATTRIBUTE)
    return {name: found[name] for name in NAMES}


def test_form_shows_and_stores_the_settings_of_searches(portal: Any, db: Any) -> None:
    create(portal, "Document", "contact", title="Contact")
    transaction.commit()
    assert PANEL.rpartition("/")[2] in Web(db).get("/plone/@@overview-controlpanel", MANAGER).text
    assert save(db, **LINES, **{name: f"{number:g}" for name, number in NUMBERS.items()}).status == 302
    changed = {name: kept(portal)[name] for name in LINES | NUMBERS}
    assert {k: v.replace("\r", "") if isinstance(v, str) else v for k, v in changed.items()} == LINES | NUMBERS
    page = Web(db).get(PANEL, MANAGER).text
    assert {name: shown(page, name).replace("\r", "") for name in LINES} == LINES
    results = portal.portal_catalog.searchResults(SearchableText="opening hours")
    assert [brain.getId for brain in results] == ["contact"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("type_boosts", "Document = 2\nEvent = many", "Line 2: 'many' is not a number from 0 to 1000"),
        ("type_boosts", "Document = nan", "Line 1: 'nan' is not a number from 0 to 1000"),
        ("type_boosts", "Document = -1", "Line 1: '-1' is not a number from 0 to 1000"),
        ("type_boosts", "Document", "Line 1: 'Document' is not of the form: portal type = number"),
        ("pins", "\n\nopening hours", "Line 3: 'opening hours' is not of the form: words = /path/in/site or UID"),
        ("pins", "hours = contact", "'contact' is neither a path in the site, which begins with a slash, nor a UID"),
        ("pins", "hours = /", "'/' is neither a path in the site, which begins with a slash, nor a UID"),
        ("pins", "a\0 = /b", "Line 1: it contains invalid characters"),
        ("synonyms", "\ud800, b", "Line 1: it contains invalid characters"),
        ("synonyms", "car", "Line 1: 'car' is not of the form: word, synonym, … or word => synonym, …"),
        ("synonyms", "a, b\nc, c\n=> d", "Line 2: 'c, c' is not of the form"),
        ("synonyms", ", ".join(map(str, range(501))), "Line 1: more than 500 words in a line"),
        ("stop_words", "the, a, of", "Line 1: 'the, a, of' is not of the form: language code: word, word, …"),
    ],
)
def test_invalid_line_is_named(name: str, text: str, message: str) -> None:
    with pytest.raises(Invalid) as raised:
        IPGCatalogSearchSettings[name].validate(text)
    assert message in str(raised.value)


def test_form_shows_errors_and_stores_nothing(portal: Any, db: Any) -> None:
    answer = save(db, pins="a = /b\r\nnonsense\r\nc = d")
    assert answer.status == 200
    text = html.unescape(answer.text)
    assert "Line 2: 'nonsense' is not of the form: words = /path/in/site or UID; Line 3: 'd' is neither" in text
    assert kept(portal) == DEFAULTS
    answer = save(db, pins="<script>alert(1)</script>")
    assert "Line 1" in answer.text
    assert "<script>alert" not in answer.text


@pytest.fixture
def staff(portal: Any) -> str:
    """The login of a Site Administrator; there are an Editor and a Member, too."""
    for name, roles in (("sita", ["Site Administrator"]), ("eddy", ["Editor", "Reviewer"]), ("mara", ["Member"])):
        portal.acl_users.userFolderAddUser(name, "secret", roles, [])
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    transaction.commit()
    return "sita:secret"


def test_listed_stop_words_are_those_of_languages_without_a_line(portal: Any, db: Any) -> None:
    def listed() -> list[str]:
        tree = lxml.html.fromstring(Web(db).get(PANEL, MANAGER).text)
        return [each.text_content() for each in tree.xpath('//*[@id="listed-stop-words"]/p')]

    [english] = listed()
    assert english.startswith("en: a, about, above")
    assert save(db, stop_words="en: the").status == 302
    assert listed() == []


PLONES_PANEL = "/plone/@@search-controlpanel"


@pytest.mark.parametrize("login", [None, "mara:secret", "eddy:secret", "sita:secret", MANAGER])
def test_panel_is_open_to_users_of_plones_search_panel(staff: str, db: Any, login: str | None) -> None:
    web = Web(db)
    opens = web.get(PLONES_PANEL, login).status == 200
    assert opens == (login in (staff, MANAGER))
    assert (web.get(PANEL, login).status == 200) == opens
    assert (web.get(REST, login, accept="application/json").status == 200) == opens
    assert (web.patch(REST, login, LINES).status == 204) == opens


def test_a_site_administrator_changes_it_and_no_other_panel(staff: str, portal: Any, db: Any) -> None:
    overview = Web(db).get("/plone/@@overview-controlpanel", staff).text
    assert "@@pgcatalog-search-controlpanel" in overview
    assert "@@pgcatalog-controlpanel" not in overview
    assert save(db, staff, **LINES).status == 302
    assert {name: kept(portal)[name].replace("\r", "") for name in LINES} == LINES
    assert Web(db).patch(REST, staff, {"pins": "a = /b"}).status == 204
    assert kept(portal)["pins"] == "a = /b"
    panels = Web(db).get("/plone/++api++/@controlpanels", staff, accept="application/json").json
    assert {panel["@id"] for panel in panels if "pgcatalog" in panel["@id"]} == {
        "http://nohost/plone/@controlpanels/pgcatalog-search",
        "http://nohost/plone/@controlpanels/pgcatalog-search-page",
    }


def test_volto_gets_the_panel_from_the_rest_api(portal: Any, db: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    transaction.commit()
    panel = Web(db).get(REST, MANAGER, accept="application/json").json
    assert panel["title"] == "Search Tuning"
    assert panel["data"] == DEFAULTS
    assert set(panel["schema"]["properties"]) == set(NAMES)
    answer = Web(db).patch(REST, MANAGER, {"pins": "hours = nowhere"})
    assert answer.status == 400
    [error] = json.loads(answer.json["message"])
    assert error["field"] == "pins"
    assert "'nowhere' is neither a path" in error["message"]
    assert Web(db).patch(REST, MANAGER, LINES | NUMBERS).status == 204
    assert {name: kept(portal)[name] for name in LINES | NUMBERS} == LINES | NUMBERS


def test_site_administrators_may_tune_the_search(portal: Any, db: Any) -> None:
    portal.acl_users.userFolderAddUser("sita", "secret", ["Site Administrator"], [])
    transaction.commit()
    search = ("Plone Site Setup: Search",)
    panels = [a for a in portal.portal_controlpanel.listActions() if a.id.startswith("pgcatalog")]
    assert {panel.id: panel.permissions for panel in panels} == {
        "pgcatalog": ("Manage portal",),
        "pgcatalog-search": search,
        "pgcatalog-search-page": search,
    }
    assert PANEL.rpartition("/")[2] in Web(db).get("/plone/@@overview-controlpanel", "sita:secret").text
