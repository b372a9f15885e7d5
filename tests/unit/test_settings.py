"""Precedence of settings: the environment's, else that of the site, else the default; invalid ones are ignored."""

from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog import settings
from plone.pgcatalog.database.prefetch import batch_size
from plone.pgcatalog.fulltext import site
from plone.pgcatalog.settings import site_settings
from tests.unit.sources import environment_variables
from types import SimpleNamespace
from typing import Any

import ast
import pytest


def tool(**values: Any) -> Any:
    """Return a stub of a catalog tool with the settings *values* of its site."""
    return SimpleNamespace(**{settings.SETTINGS_ATTRIBUTE: values})


#: name -> a value of a site
VALUES: dict[str, Any] = {
    "slow_query_ms": 250.0,
    "slow_query_mask": ("Creator",),
    "result_cache_mb": 7.0,
    "search_timeout": 5.0,
    "stemming": False,
    "parts_of_words": True,
    "search_page": False,
    "search_facets": ("Subject",),
    "related_pages": 5,
    "text_of_files": False,
    "embedder_url": "http://127.0.0.1:8000/v1",
    "embedder_model": "e5-{kind}",
    "embedder_question_prefix": "query:",
    "embedder_passage_prefix": "passage:",
    "meaning_of_private": False,
    "meaning_threshold": 0.5,
    "search_by_meaning": True,
    "record_searches": False,
    "count_limit": 10_000,
    "weight_title": 9.0,
    "weight_description": 0.0,
    "weight_keywords": 1000.0,
    "weight_body": 2.0,
    "type_boosts": "News Item = 2",
    "pins": "hours = /contact",
    "synonyms": "car, automobile",
    "stop_words": "en: the",
}
#: name -> (value in the environment, its meaning)
OF_THE_PROCESS = {"slow_query_ms": ("5", 5.0), "result_cache_mb": ("0", 0.0)}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.SETTINGS:
        monkeypatch.delenv(f"PGCATALOG_{name.upper()}", raising=False)


def test_every_setting_of_a_site_has_a_value_here() -> None:
    assert set(VALUES) == set(settings.SETTINGS)
    assert set(OF_THE_PROCESS) == {name for name, setting in settings.SETTINGS.items() if setting.variable}


@pytest.mark.parametrize("name", VALUES)
def test_default_applies_without_a_site_or_a_setting(name: str) -> None:
    setting = settings.SETTINGS[name]
    # A site has no value for a setting of a later version until the upgrade step of that version has run.
    for nobody in (None, SimpleNamespace(), tool(), tool(languages=("en",))):
        assert setting(nobody) == setting.default


@pytest.mark.parametrize("name", VALUES)
def test_setting_of_the_site_precedes_the_default(name: str) -> None:
    value = VALUES[name]
    assert settings.SETTINGS[name](tool(**{name: value})) == value


@pytest.mark.parametrize("name", OF_THE_PROCESS)
def test_environment_precedes_the_site(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, meant = OF_THE_PROCESS[name]
    setting, catalog = settings.SETTINGS[name], tool(**{name: VALUES[name]})
    monkeypatch.setenv(f"PGCATALOG_{name.upper()}", text)
    assert setting(catalog) == setting(None) == meant
    for empty_or_wrong in (" ", "a lot", "-1"):
        monkeypatch.setenv(f"PGCATALOG_{name.upper()}", empty_or_wrong)
        assert setting(catalog) == VALUES[name]


def test_settings_are_those_of_the_tool_itself() -> None:
    """A container of a tool may have an attribute of that name, too, and Acquisition would find it."""
    from Acquisition import Implicit

    class Folder(Implicit):
        pass

    around, catalog = Folder(), Folder()
    setattr(around, settings.SETTINGS_ATTRIBUTE, {"slow_query_ms": 99.0})
    assert settings.slow_query_ms(catalog.__of__(around)) == settings.slow_query_ms.default


# -- the site's search


def test_site_is_not_searched_for_without_tuning() -> None:
    """Finding it may load objects."""
    assert site.site_tuning(site_settings(tool()), lambda: pytest.fail("looked for")) is None
    assert site.site_tuning(site_settings(None), lambda: pytest.fail("looked for")) is None


def test_tuning_belongs_to_a_site() -> None:
    tuned = tool(stop_words="en: the", synonyms="car, automobile")
    assert site.site_tuning(site_settings(tuned), lambda: None) is None
    found = site.site_tuning(site_settings(tuned), lambda: "/plone")
    assert found is not None
    assert found.site == "/plone"


def test_weights_are_those_of_the_site_or_neutral() -> None:
    neutral, heavy = site.search_weights(tool()), site.search_weights(tool(weight_title=9.0))
    assert neutral == site.search_weights(None)
    assert heavy != neutral


@pytest.mark.parametrize(("on", "found"), [(True, True), (False, False)])
def test_stemming_is_in_the_languages_of_the_site(on: bool, found: bool) -> None:
    assert (site.site_stemming(tool(stemming=on, languages=("de", "en"))) is not None) == found
    assert site.site_stemming(tool(stemming=on, languages=())) is None


READERS: dict[str, Callable[[], float]] = {
    "PGCATALOG_PREFETCH_BATCH": batch_size,
    "PGCATALOG_RESULT_CACHE_MB": settings.result_cache_mb,
    "PGCATALOG_SLOW_QUERY_MS": settings.slow_query_ms,
}
COUNTS = ("PGCATALOG_PREFETCH_BATCH",)
#: Names of databases, folders and hosts, and a key.
TEXTS = {"PGCATALOG_DIRECT_DSN", "PGCATALOG_DSN", "PGCATALOG_EMBEDDER_KEY", "PGCATALOG_PG_BIN", "PGCATALOG_TEST_DSN"}
WRONG = ("many", "1,5", "-1", "nan", "inf", "1e400", "1e300", "0x10", "1 2")
#: Settings are in the registry.  Variables are for settings that are needed before a site exists, or belong to a process,
#: and for the one secret, which a registry would show and export.  One more is for tests.
MOST_VARIABLES = 8


def test_every_variable_with_a_number_is_read_here() -> None:
    found = environment_variables()
    assert found == set(READERS) | TEXTS
    assert len(found) <= MOST_VARIABLES


@pytest.fixture(autouse=True)
def _forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings.number.cache_clear()


def default_of(variable: str, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.delenv(variable, raising=False)
    return READERS[variable]()


@pytest.mark.parametrize("variable", READERS)
@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_value_is_no_value(
    variable: str, text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    default = default_of(variable, monkeypatch)
    monkeypatch.setenv(variable, text)
    assert READERS[variable]() == default
    assert caplog.messages == []


@pytest.mark.parametrize("variable", READERS)
@pytest.mark.parametrize("text", WRONG)
def test_invalid_value_is_reported_once_and_ignored(
    variable: str, text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    default = default_of(variable, monkeypatch)
    monkeypatch.setenv(variable, text)
    assert [READERS[variable]() for _ in range(3)] == [default] * 3
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert f"{variable}={text!r} " in record.getMessage()


@pytest.mark.parametrize("variable", COUNTS)
def test_a_count_is_a_whole_number(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    default = default_of(variable, monkeypatch)
    monkeypatch.setenv(variable, "0.5")
    assert READERS[variable]() == default
    assert "whole number" in caplog.text
    monkeypatch.setenv(variable, " 12 ")
    assert READERS[variable]() == 12


def test_invalid_size_in_a_site_is_ignored() -> None:
    class Tool:
        _settings = {"result_cache_mb": 64.0}

    for value in (float("nan"), float("inf"), 1e308, -1.0):
        Tool._settings["result_cache_mb"] = value
        assert settings.result_cache_mb(Tool()) == settings.result_cache_mb.default


def test_settings_import_nothing_of_ours() -> None:
    tree = ast.parse(Path(settings.__file__).read_text("utf-8"))
    found = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    assert [name for name in found if name.startswith("plone.")] == []
