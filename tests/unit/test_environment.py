"""Settings by environment variables: a wrong value is reported once, and the default counts."""

from collections.abc import Callable
from plone.pgcatalog import settings
from plone.pgcatalog.fulltext.counting import pause
from plone.pgcatalog.observe.settings import kept_days
from plone.pgcatalog.observe.settings import kept_rows
from plone.pgcatalog.results.prefetch import batch_size
from tests.unit.test_docs import environment_variables

import pytest


READERS: dict[str, Callable[[], float]] = {
    "PGCATALOG_COUNT_WORDS_SECONDS": pause,
    "PGCATALOG_PREFETCH_BATCH": batch_size,
    "PGCATALOG_RANKED_ROWS": settings.ranked_rows,
    "PGCATALOG_RESULT_CACHE_MB": settings.result_cache_mb,
    "PGCATALOG_SEARCH_TIMEOUT": lambda: settings.search_timeout() or 0,
    "PGCATALOG_SLOW_QUERY_DAYS": kept_days,
    "PGCATALOG_SLOW_QUERY_MS": settings.slow_query_ms,
    "PGCATALOG_SLOW_QUERY_ROWS": kept_rows,
    "PGCATALOG_STEMMING": settings.stemming,
}
COUNTS = ("PGCATALOG_PREFETCH_BATCH", "PGCATALOG_RANKED_ROWS", "PGCATALOG_SLOW_QUERY_ROWS")
#: Names of databases, folders and hosts, lists of names, and a word with a warning of its own.
TEXTS = {
    "PGCATALOG_DSN",
    "PGCATALOG_PG_BIN",
    "PGCATALOG_RANKING",
    "PGCATALOG_SLOW_QUERY_MASK",
}
WRONG = ("many", "1,5", "-1", "nan", "inf", "1e400", "1e300", "0x10", "1 2")


def test_every_variable_with_a_number_is_read_here() -> None:
    found = {name for name in environment_variables() if not name.startswith("PGCATALOG_DEMO_")}
    assert found == set(READERS) | TEXTS


@pytest.fixture(autouse=True)
def _forget_warnings() -> None:
    settings.parsed.cache_clear()


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
        assert settings.result_cache_mb(Tool()) == settings.DEFAULTS["result_cache_mb"]
