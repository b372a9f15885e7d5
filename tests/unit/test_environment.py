"""Settings by environment variables: a wrong value is reported once, and the default counts."""

from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog import settings
from plone.pgcatalog.database.prefetch import batch_size
from tests.unit.sources import environment_variables

import ast
import pytest


READERS: dict[str, Callable[[], float]] = {
    "PGCATALOG_PREFETCH_BATCH": batch_size,
    "PGCATALOG_RESULT_CACHE_MB": settings.result_cache_mb,
    "PGCATALOG_SLOW_QUERY_MS": settings.slow_query_ms,
}
COUNTS = ("PGCATALOG_PREFETCH_BATCH",)
#: Names of databases, folders and hosts.
TEXTS = {"PGCATALOG_DIRECT_DSN", "PGCATALOG_DSN", "PGCATALOG_PG_BIN"}
WRONG = ("many", "1,5", "-1", "nan", "inf", "1e400", "1e300", "0x10", "1 2")
#: Settings are in the registry; a variable is for what is needed before a site exists, or is a process's.
MOST_VARIABLES = 6


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
def test_a_wrong_value_is_reported_once_and_does_not_count(
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


def test_a_setting_of_a_site_that_is_no_size_does_not_count() -> None:
    class Tool:
        _settings = {"result_cache_mb": 64.0}

    for value in (float("nan"), float("inf"), 1e308, -1.0):
        Tool._settings["result_cache_mb"] = value
        assert settings.result_cache_mb(Tool()) == settings.result_cache_mb.default


def test_settings_import_nothing_of_ours() -> None:
    tree = ast.parse(Path(settings.__file__).read_text("utf-8"))
    found = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    assert [name for name in found if name.startswith("plone.")] == []
