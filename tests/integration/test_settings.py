"""Settings: environment before control panel before default; control panels; profiles."""

from collections.abc import Iterable
from plone.pgcatalog import settings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchPageSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSettings
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ResultCache
from plone.registry.interfaces import IRegistry
from tests.integration.content import tune
from tests.integration.pages import second_connection
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import Web
from typing import Any
from zope.component import getUtility
from zope.interface import Invalid
from zope.schema import getFieldNames

import gc
import html
import json
import lxml.html
import pytest
import transaction


OTHER = {
    "slow_query_ms": 250.0,
    "slow_query_mask": ("SearchableText", "Creator"),
    "result_cache_mb": 7.0,
    "search_timeout": 9.0,
    "stemming": False,
    "text_of_files": False,
    "text_of_scans": True,
    "parts_of_words": True,
    "split_compounds": False,
    "embedder_url": "http://127.0.0.1:8000/v1",
    "embedder_model": "e5-{kind}",
    "embedder_question_prefix": "query:",
    "embedder_passage_prefix": "passage:",
    "meaning_of_private": False,
}
SCHEMAS = (IPGCatalogSettings, IPGCatalogSearchSettings, IPGCatalogSearchPageSettings)
#: Fields of the control panel *PostgreSQL Catalog*.
NAMES = getFieldNames(IPGCatalogSettings)
DEFAULTS = {name: settings.SETTINGS[name].default for name in NAMES}


def seen(tool: Any, names: Iterable[str] = NAMES) -> dict[str, Any]:
    return {name: settings.SETTINGS[name](tool) for name in names}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: Any) -> None:
    for name in NAMES:
        monkeypatch.delenv(f"PGCATALOG_{name.upper()}", raising=False)


def test_every_setting_is_a_field_of_a_control_panel() -> None:
    assert {name for schema in SCHEMAS for name in getFieldNames(schema)} == set(settings.SETTINGS)
    assert set(OTHER) == set(NAMES)


def test_settings_are_not_copied_from_a_cache_of_the_request(catalog: Any) -> None:
    # plone.registry caches values on the request, and does not invalidate them.
    registry = getUtility(IRegistry)
    for value in (5.0, 6.0):
        registry.get(f"{PREFIX}.slow_query_ms")
        tune(slow_query_ms=value)
        assert settings.slow_query_ms(catalog) == value


def test_changed_registry_applies_at_once_and_to_other_processes_with_its_commit(catalog: Any, db: Any) -> None:
    registry = getUtility(IRegistry)
    assert {name: registry[f"{PREFIX}.{name}"] for name in DEFAULTS} == seen(catalog) == seen(None) == DEFAULTS
    tune(**OTHER)
    assert seen(catalog) == OTHER
    transaction.abort()
    assert seen(catalog) == DEFAULTS
    with second_connection(db) as (manager, site):
        tune(**OTHER)
        assert seen(site.portal_catalog) == DEFAULTS
        transaction.commit()
        manager.begin()
        assert seen(site.portal_catalog) == OTHER


def test_a_site_without_changed_settings_stores_nothing_for_them(catalog: Any) -> None:
    tune(**DEFAULTS)
    tune(**DEFAULTS)
    transaction.commit()
    tune(**DEFAULTS)
    assert not catalog._p_changed


def test_reading_a_setting_sends_nothing_to_the_database(catalog: Any) -> None:
    tune(**OTHER)
    transaction.commit()
    seen(catalog)
    loads = catalog._p_jar.getTransferCounts()
    for _ in range(3):
        seen(catalog)
    assert catalog._p_jar.getTransferCounts() == loads


def test_cache_has_the_size_of_the_setting(catalog: Any, monkeypatch: Any) -> None:
    def limit() -> float:
        """Return the size of the cache in megabytes after a search."""
        assert len(catalog.unrestrictedSearchResults(portal_type="Document")) == 0
        return result_cache().limit / 2**20

    result_cache.cache_clear()
    assert limit() == 96
    tune(result_cache_mb=7.0)
    transaction.commit()
    assert limit() == 7
    assert result_cache().size > 0
    tune(result_cache_mb=0.0)
    transaction.commit()
    assert (limit(), result_cache().size) == (0, 0)
    monkeypatch.setenv("PGCATALOG_RESULT_CACHE_MB", "3")
    assert limit() == 3
    result_cache.cache_clear()


class Database:
    """Stands for an opened database."""


def test_largest_cache_setting_of_several_sites_in_reachable_databases_applies() -> None:
    cache, database, other = ResultCache(0), Database(), Database()
    cache.set_limit(other, 1, 20)
    del other
    gc.collect()
    for catalog, megabytes, limit in ((1, 5, 5), (2, 9, 9), (2, 1, 5), (1, 0, 1)):
        cache.set_limit(database, catalog, megabytes)
        assert cache.limit == limit * 2**20


# -- control panels


LINES = {
    "type_boosts": "News Item = 2",
    "pins": "opening hours = /contact",
    "synonyms": "car, automobile\ntv => television",
    "stop_words": "en: the, a, of",
}
#: Name of a panel -> its title, its fields, and other values than the defaults.
PANELS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "pgcatalog": ("PostgreSQL Catalog", IPGCatalogSettings, OTHER),
    "pgcatalog-search": ("Search Tuning", IPGCatalogSearchSettings, LINES | {"weight_title": 7.5, "weight_body": 0.0}),
}
PANEL = pytest.mark.parametrize("panel", PANELS)


def defaults(panel: str) -> dict[str, Any]:
    _, schema, _ = PANELS[panel]
    return {name: schema[name].default for name in getFieldNames(schema)}


def stored(portal: Any, panel: str) -> dict[str, Any]:
    """Return the settings of *panel*, without the carriage returns of forms."""
    transaction.begin()
    found = seen(portal.portal_catalog, defaults(panel))
    return {name: value.replace("\r", "") if isinstance(value, str) else value for name, value in found.items()}


def form(db: Any, panel: str, login: str = MANAGER) -> Any:
    response = Web(db).get(f"/plone/@@{panel}-controlpanel", login)
    assert response.status == 200
    return lxml.html.fromstring(response.text)


def save(db: Any, panel: str, values: dict[str, Any], login: str = MANAGER) -> Response:
    """Send the form of *panel* with *values*, and the defaults of the other fields, as a browser does."""
    token = form(db, panel, login).xpath('//input[@name="_authenticator"]/@value')[0]
    sent = {"form.buttons.save": "Save", "_authenticator": token}
    for name, value in (defaults(panel) | values).items():
        field = f"form.widgets.{name}"
        if not isinstance(value, bool):
            sent[field] = "\n".join(value) if isinstance(value, tuple) else str(value)
            continue
        sent[f"{field}-empty-marker"] = "1"
        if value:
            sent[f"{field}:list"] = "selected"
    return Web(db).post(f"/plone/@@{panel}-controlpanel", login, **sent)


@PANEL
def test_form_shows_and_stores_settings(portal: Any, db: Any, panel: str) -> None:
    _, _, values = PANELS[panel]
    assert f"@@{panel}-controlpanel" in Web(db).get("/plone/@@overview-controlpanel", MANAGER).text
    assert save(db, panel, values).status == 302
    assert stored(portal, panel) == defaults(panel) | values
    tree = form(db, panel)
    shown = {name: tree.xpath(f'//*[starts-with(@name, "form.widgets.{name}")]')[0] for name in defaults(panel)}
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    assert {name: shown[name].value.strip().replace("\r", "") for name in texts} == texts


@pytest.mark.parametrize(
    ("panel", "values", "message"),
    [
        ("pgcatalog", {"slow_query_ms": -5.0}, "Value is too small"),
        (
            "pgcatalog-search",
            {"pins": "a = /b\r\nnonsense\r\nc = d"},
            "Line 2: 'nonsense' is not of the form: words = /path/in/site or UID; Line 3: 'd' is neither",
        ),
        ("pgcatalog-search", {"pins": "<script>alert(1)</script>"}, "Line 1"),
    ],
)
def test_form_shows_errors_and_stores_nothing(
    portal: Any, db: Any, panel: str, values: dict[str, Any], message: str
) -> None:
    answer = save(db, panel, values)
    assert answer.status == 200
    assert message in html.unescape(answer.text)
    assert "<script>alert" not in answer.text
    assert stored(portal, panel) == defaults(panel)


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


def test_listed_stop_words_are_those_of_languages_without_a_line(portal: Any, db: Any) -> None:
    def listed() -> list[str]:
        return [each.text_content() for each in form(db, "pgcatalog-search").xpath('//*[@id="listed-stop-words"]/p')]

    [english] = listed()
    assert english.startswith("en: a, about, above")
    assert save(db, "pgcatalog-search", {"stop_words": "en: the"}).status == 302
    assert listed() == []


@pytest.fixture
def service(portal: Any) -> str:
    """The path of plone.restapi's panels."""
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    transaction.commit()
    return "/plone/++api++/@controlpanels"


@PANEL
def test_volto_shows_and_changes_settings(service: str, portal: Any, db: Any, panel: str) -> None:
    web, path, (title, _, values) = Web(db), f"{service}/{panel}", PANELS[panel]
    shown = web.get(path, MANAGER, accept="application/json").json
    assert shown["title"] == title
    assert shown["data"] == json.loads(json.dumps(defaults(panel)))
    assert set(shown["schema"]["properties"]) == set(defaults(panel))
    changed = json.loads(json.dumps(defaults(panel) | values))
    assert web.patch(path, MANAGER, changed).status == 204
    assert web.get(path, MANAGER, accept="application/json").json["data"] == changed
    assert stored(portal, panel) == defaults(panel) | values


def test_volto_changes_a_number_to_a_number_only(service: str, db: Any) -> None:
    web, path = Web(db), f"{service}/pgcatalog"
    # JavaScript writes 3.0 as 3, and booleans are none of its numbers.
    for number in (3, 3.0):
        assert web.patch(path, MANAGER, {"slow_query_ms": number}).status == 204
    for wrong in (True, "many", None, [3], -3, 10**400):
        assert web.patch(path, MANAGER, {"slow_query_ms": wrong}).status == 400, wrong
    assert web.get(path, MANAGER, accept="application/json").json["data"]["slow_query_ms"] == 3.0


USERS = {"sita": "Site Administrator", "eddy": "Editor", "mara": "Member"}


def test_panels_of_searches_are_open_to_users_of_plones_and_the_other_one_to_managers(
    service: str, portal: Any, db: Any
) -> None:
    """plone.restapi's service itself allows a Site Administrator; the panel *pgcatalog* requires more."""
    for name, role in USERS.items():
        portal.acl_users.userFolderAddUser(name, "secret", [role], [])
    transaction.commit()
    web = Web(db)
    for login in (None, *(f"{name}:secret" for name in USERS), MANAGER):
        may_search = web.get("/plone/@@search-controlpanel", login).status == 200
        assert may_search == (login in ("sita:secret", MANAGER))
        opened = {"pgcatalog": login == MANAGER, "pgcatalog-search": may_search, "pgcatalog-search-page": may_search}
        for panel, is_open in opened.items():
            assert (web.get(f"/plone/@@{panel}-controlpanel", login).status == 200) == is_open, (login, panel)
            assert (web.get(f"{service}/{panel}", login, accept="application/json").status == 200) == is_open
        for panel, values in (("pgcatalog", {"slow_query_ms": 3.0}), ("pgcatalog-search", {"pins": "a = /b"})):
            assert (web.patch(f"{service}/{panel}", login, values).status == 204) == opened[panel], (login, panel)
        if may_search:
            panels = {name for name, is_open in opened.items() if is_open}
            links = web.get("/plone/@@overview-controlpanel", login).text
            assert {name for name in opened if f"@@{name}-controlpanel" in links} == panels
            listed = web.get(service, login, accept="application/json").json
            assert {panel["@id"].rpartition("/")[2] for panel in listed} & {*opened} == panels
            assert save(db, "pgcatalog-search", LINES, login).status == 302
            assert stored(portal, "pgcatalog-search") == defaults("pgcatalog-search") | LINES


# -- profiles


def test_reapplied_profile_leaves_the_settings(portal: Any) -> None:
    tune(**OTHER)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
    assert seen(portal.portal_catalog) == OTHER


def test_uninstall_removes_the_settings(portal: Any) -> None:
    tune(**OTHER)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
    assert not [name for name in getUtility(IRegistry).records if name.startswith(f"{PREFIX}.")]
    assert not [action.id for action in portal.portal_controlpanel.listActions() if action.id.startswith("pgcatalog")]
    assert not hasattr(portal.portal_catalog, settings.SETTINGS_ATTRIBUTE)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
    assert seen(portal.portal_catalog) == DEFAULTS
