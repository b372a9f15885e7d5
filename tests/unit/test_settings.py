"""Precedence of settings: the environment's, else that of the site, else the default; invalid ones are ignored."""

from Acquisition import Implicit
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


def another(setting: settings.Setting[Any]) -> Any:
    """Return a valid value of *setting* that is not its default."""
    if isinstance(setting.default, bool):
        return not setting.default
    if isinstance(setting.default, int | float):
        return min(setting.default + 1, setting.most)
    return ("Subject",) if isinstance(setting.default, tuple) else "a text"


READERS: dict[str, Callable[[], float]] = {
    "PGCATALOG_PREFETCH_BATCH": batch_size,
    "PGCATALOG_RESULT_CACHE_MB": settings.result_cache_mb,
    "PGCATALOG_SLOW_QUERY_MS": settings.slow_query_ms,
}
#: Names of databases, folders and hosts, and a key.
TEXTS = {"PGCATALOG_DIRECT_DSN", "PGCATALOG_DSN", "PGCATALOG_EMBEDDER_KEY", "PGCATALOG_PG_BIN", "PGCATALOG_TEST_DSN"}
#: Settings are in the registry.  Variables are for settings that are needed before a site exists, or belong to a process,
#: and for the one secret, which a registry would show and export.  One more is for tests.
MOST_VARIABLES = 8


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in READERS:
        monkeypatch.delenv(variable, raising=False)
    settings.number.cache_clear()


@pytest.mark.parametrize("name", settings.SETTINGS)
def test_setting_of_the_site_precedes_the_default(name: str) -> None:
    setting = settings.SETTINGS[name]
    # A site has no value for a setting of a later version until the upgrade step of that version has run.
    for without in (None, SimpleNamespace(), tool(), tool(languages=("en",))):
        assert setting(without) == setting.default
    assert setting(tool(**{name: another(setting)})) == another(setting) != setting.default


@pytest.mark.parametrize("name", [name for name, setting in settings.SETTINGS.items() if setting.variable])
def test_environment_precedes_the_site(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = settings.SETTINGS[name]
    catalog = tool(**{name: another(setting)})
    monkeypatch.setenv(f"PGCATALOG_{name.upper()}", "5")
    assert setting(catalog) == setting(None) == 5.0
    for empty_or_wrong in (" ", "a lot", "-1"):
        monkeypatch.setenv(f"PGCATALOG_{name.upper()}", empty_or_wrong)
        assert setting(catalog) == another(setting)


def test_settings_are_those_of_the_tool_itself() -> None:
    """A container of a tool may have an attribute of that name, too, and Acquisition would find it."""

    class Folder(Implicit):
        pass

    around, catalog = Folder(), Folder()
    setattr(around, settings.SETTINGS_ATTRIBUTE, {"slow_query_ms": 99.0})
    assert settings.slow_query_ms(catalog.__of__(around)) == settings.slow_query_ms.default


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308, -1.0])
def test_invalid_size_in_a_site_is_ignored(value: float) -> None:
    assert settings.result_cache_mb(tool(result_cache_mb=value)) == settings.result_cache_mb.default


def test_settings_import_nothing_of_ours() -> None:
    tree = ast.parse(Path(settings.__file__).read_text("utf-8"))
    found = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    assert [name for name in found if name.startswith("plone.")] == []


# -- the site's search


def test_tuning_belongs_to_a_site_which_is_not_searched_for_without_it() -> None:
    """Finding it may load objects."""
    for plain in (tool(), None):
        assert site.site_tuning(site_settings(plain), lambda: pytest.fail("looked for")) is None
    tuned = site_settings(tool(stop_words="en: the", synonyms="car, automobile"))
    assert site.site_tuning(tuned, lambda: None) is None
    found = site.site_tuning(tuned, lambda: "/plone")
    assert found is not None
    assert found.site == "/plone"


def test_weights_and_stemming_are_those_of_the_site() -> None:
    neutral, heavy = site.search_weights(tool()), site.search_weights(tool(weight_title=9.0))
    assert heavy != neutral == site.search_weights(None)
    for on in (True, False):
        assert (site.site_stemming(tool(stemming=on, languages=("de", "en"))) is not None) == on
        assert site.site_stemming(tool(stemming=on, languages=())) is None


# -- variables


def test_every_variable_with_a_number_is_read_here() -> None:
    assert environment_variables() == set(READERS) | TEXTS
    assert len(environment_variables()) <= MOST_VARIABLES


@pytest.mark.parametrize("variable", READERS)
@pytest.mark.parametrize("text", ["", " ", "many", "1,5", "-1", "nan", "inf", "1e400", "1e300", "0x10", "1 2"])
def test_empty_value_is_ignored_and_an_invalid_one_reported_once(
    variable: str, text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    default = READERS[variable]()
    monkeypatch.setenv(variable, text)
    assert [READERS[variable]() for _ in range(3)] == [default] * 3
    reported = [(record.levelname, f"{variable}={text!r} " in record.getMessage()) for record in caplog.records]
    assert reported == [("WARNING", True)] * bool(text.strip())


def test_a_count_is_a_whole_number(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    default = batch_size()
    monkeypatch.setenv("PGCATALOG_PREFETCH_BATCH", "0.5")
    assert batch_size() == default
    assert "whole number" in caplog.text
    monkeypatch.setenv("PGCATALOG_PREFETCH_BATCH", " 12 ")
    assert batch_size() == 12
