"""Settings: environment before control panel before default; both control panels; upgrade and uninstall."""

from plone.pgcatalog import settings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchPageSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSettings
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ResultCache
from plone.registry.interfaces import IRegistry
from tests.integration.web import MANAGER
from tests.integration.web import token
from tests.integration.web import Web
from typing import Any
from zope.component import getUtility
from zope.schema import getFieldNames

import gc
import json
import pytest
import transaction


OTHER = {
    "slow_query_ms": 250.0,
    "slow_query_mask": ("SearchableText", "Creator"),
    "result_cache_mb": 7.0,
    "search_timeout": 9.0,
    "stemming": False,
    "text_of_files": False,
    "parts_of_words": True,
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


def seen(tool: Any) -> dict[str, Any]:
    return {name: settings.SETTINGS[name](tool) for name in NAMES}


def store(values: dict[str, Any]) -> None:
    registry = getUtility(IRegistry)
    for name, value in values.items():
        registry[f"{PREFIX}.{name}"] = value


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
        store({"slow_query_ms": value})
        assert settings.slow_query_ms(catalog) == value


def test_a_new_site_has_the_defaults(catalog: Any) -> None:
    registry = getUtility(IRegistry)
    assert {name: registry[f"{PREFIX}.{name}"] for name in DEFAULTS} == DEFAULTS
    assert seen(catalog) == seen(None) == DEFAULTS


def test_changed_registry_applies_at_once(catalog: Any) -> None:
    store(OTHER)
    assert seen(catalog) == OTHER
    transaction.abort()
    assert seen(catalog) == DEFAULTS


def test_other_processes_see_a_change_with_its_commit(catalog: Any, db: Any) -> None:
    manager = transaction.TransactionManager()
    connection = db.open(manager)
    try:
        other = connection.root()["Application"]["plone"]["portal_catalog"]
        assert seen(other) == DEFAULTS
        store(OTHER)
        assert seen(other) == DEFAULTS
        transaction.commit()
        manager.begin()
        assert seen(other) == OTHER
    finally:
        manager.abort()
        connection.close()


def test_a_site_without_changed_settings_stores_nothing_for_them(catalog: Any) -> None:
    store(DEFAULTS)
    store(DEFAULTS)
    transaction.commit()
    store(DEFAULTS)
    assert not catalog._p_changed


def test_reading_a_setting_sends_nothing_to_the_database(catalog: Any) -> None:
    store(OTHER)
    transaction.commit()
    seen(catalog)
    loads = catalog._p_jar.getTransferCounts()
    for _ in range(3):
        seen(catalog)
    assert catalog._p_jar.getTransferCounts() == loads


def test_cache_has_the_size_of_the_setting(catalog: Any, monkeypatch: Any) -> None:
    result_cache.cache_clear()
    len(catalog.unrestrictedSearchResults(portal_type="Document"))
    assert result_cache().limit == 96 * 2**20
    store({"result_cache_mb": 7.0})
    transaction.commit()
    len(catalog.unrestrictedSearchResults(portal_type="Document"))
    assert result_cache().limit == 7 * 2**20
    assert result_cache().size > 0
    store({"result_cache_mb": 0.0})
    transaction.commit()
    len(catalog.unrestrictedSearchResults(portal_type="Document"))
    assert (result_cache().limit, result_cache().size) == (0, 0)
    monkeypatch.setenv("PGCATALOG_RESULT_CACHE_MB", "3")
    len(catalog.unrestrictedSearchResults(portal_type="Document"))
    assert result_cache().limit == 3 * 2**20
    result_cache.cache_clear()


class Database:
    """Stands for an opened database."""


def test_largest_cache_setting_of_several_sites_applies() -> None:
    cache, database = ResultCache(0), Database()
    for catalog, megabytes, limit in ((1, 5, 5), (2, 9, 9), (2, 1, 5), (1, 0, 1)):
        cache.set_limit(database, catalog, megabytes)
        assert cache.limit == limit * 2**20


def test_unreachable_database_has_no_cache_setting() -> None:
    cache, database, other = ResultCache(0), Database(), Database()
    cache.set_limit(other, 1, 9)
    del other
    gc.collect()
    cache.set_limit(database, 1, 5)
    assert cache.limit == 5 * 2**20


# -- control panels


def test_classic_form_shows_and_stores_settings(portal: Any, db: Any) -> None:
    web = Web(db)
    page = web.get("/plone/@@pgcatalog-controlpanel", MANAGER)
    assert page.status == 200
    for name in NAMES:
        assert f"form.widgets.{name}" in page.text
    overview = web.get("/plone/@@overview-controlpanel", MANAGER)
    assert "@@pgcatalog-controlpanel" in overview.text
    answer = web.post(
        "/plone/@@pgcatalog-controlpanel",
        MANAGER,
        **{
            "form.widgets.slow_query_ms": "250",
            "form.widgets.slow_query_mask": "SearchableText\nCreator",
            "form.widgets.result_cache_mb": "7",
            "form.widgets.search_timeout": "9",
            "form.widgets.parts_of_words:list": "selected",
            "form.widgets.embedder_url": "http://127.0.0.1:8000/v1",
            "form.widgets.embedder_model": "e5-{kind}",
            "form.widgets.embedder_question_prefix": "query:",
            "form.widgets.embedder_passage_prefix": "passage:",
            # A browser's form data for an unticked box.
            "form.widgets.stemming-empty-marker": "1",
            "form.widgets.text_of_files-empty-marker": "1",
            "form.widgets.meaning_of_private-empty-marker": "1",
            "form.buttons.save": "Save",
            "_authenticator": token(page.text),
        },
    )
    assert answer.status == 302, answer.text
    transaction.begin()
    assert seen(portal.portal_catalog) == OTHER


def test_a_number_below_zero_is_refused_with_a_message(portal: Any, db: Any) -> None:
    web = Web(db)
    form = {"form.widgets.slow_query_ms": "-5", "form.widgets.slow_query_mask": "", "form.widgets.result_cache_mb": "1"}
    page = web.get("/plone/@@pgcatalog-controlpanel", MANAGER)
    answer = web.post(
        "/plone/@@pgcatalog-controlpanel",
        MANAGER,
        **form,
        **{"form.buttons.save": "Save", "_authenticator": token(page.text)},
    )
    assert answer.status == 200
    assert "Value is too small" in answer.text
    transaction.begin()
    assert seen(portal.portal_catalog) == DEFAULTS


def test_volto_gets_the_panel_from_the_rest_api(portal: Any, db: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    transaction.commit()
    web = Web(db)
    listed = web.get("/plone/++api++/@controlpanels", MANAGER, accept="application/json")
    assert [panel["@id"] for panel in listed.json if panel["@id"].endswith("/pgcatalog")]
    panel = web.get("/plone/++api++/@controlpanels/pgcatalog", MANAGER, accept="application/json").json
    assert panel["title"] == "PostgreSQL Catalog"
    assert panel["data"] == json.loads(json.dumps(DEFAULTS))
    assert set(panel["schema"]["properties"]) == set(NAMES)


def test_volto_changes_settings(portal: Any, db: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    transaction.commit()
    path, web = "/plone/++api++/@controlpanels/pgcatalog", Web(db)
    data = json.loads(json.dumps(OTHER))
    assert web.patch(path, MANAGER, data).status == 204
    assert web.get(path, MANAGER, accept="application/json").json["data"] == data
    transaction.begin()
    assert seen(portal.portal_catalog) == OTHER
    assert web.patch(path, MANAGER, {"slow_query_ms": -1}).status == 400
    # JavaScript writes 3.0 as 3, and booleans are none of its numbers.
    for number in (3, 3.0):
        assert web.patch(path, MANAGER, {"slow_query_ms": number}).status == 204
    for wrong in (True, "many", None, [3], -3, 10**400):
        assert web.patch(path, MANAGER, {"slow_query_ms": wrong}).status == 400, wrong
    assert web.get(path, MANAGER, accept="application/json").json["data"] == data | {"slow_query_ms": 3.0}


def test_rest_api_is_for_users_of_the_panel(portal: Any, db: Any) -> None:
    """The service itself allows a Site Administrator; this panel requires more."""
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    for name, role in (("eddy", "Editor"), ("ada", "Site Administrator")):
        portal.acl_users.userFolderAddUser(name, "secret", [role], [])
    transaction.commit()
    web, service = Web(db), "/plone/++api++/@controlpanels"
    for login in (None, "eddy:secret", "ada:secret"):
        assert web.get(f"{service}/pgcatalog", login, accept="application/json").status in (401, 403, 404)
        assert web.patch(f"{service}/pgcatalog", login, {"slow_query_ms": 3.0}).status in (401, 403, 404)
    for login, expected in (("ada:secret", False), (MANAGER, True)):
        listed = web.get(service, login, accept="application/json")
        assert listed.status == 200
        assert ("pgcatalog" in {panel["@id"].rpartition("/")[2] for panel in listed.json}) == expected
    transaction.begin()
    assert seen(portal.portal_catalog) == DEFAULTS


# -- profiles


def test_reapplied_profile_leaves_the_settings(portal: Any) -> None:
    store(OTHER)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
    assert seen(portal.portal_catalog) == OTHER


def test_uninstall_removes_the_settings(portal: Any) -> None:
    store(OTHER)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
    assert not [name for name in getUtility(IRegistry).records if name.startswith(f"{PREFIX}.")]
    assert not [action.id for action in portal.portal_controlpanel.listActions() if action.id.startswith("pgcatalog")]
    assert not hasattr(portal.portal_catalog, settings.SETTINGS_ATTRIBUTE)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
    assert seen(portal.portal_catalog) == DEFAULTS
