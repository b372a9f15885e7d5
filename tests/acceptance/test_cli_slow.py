"""The commands slow, explain and advise, as run by an administrator."""

from ast import literal_eval
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.cli.work import QueryType
from plone.pgcatalog.cli.work import sort_of
from plone.pgcatalog.i18n import when
from plone.pgcatalog.observe import recorder
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import slow_listing
from typing import Any

import click
import click.testing
import json
import psycopg
import pytest
import re


pytestmark = pytest.mark.slow


SHAPE = "Creator =; portal_type =; sort modified desc; limit"


@pytest.fixture(scope="module")
def dsn(site_template: str, postgres: Any) -> Iterator[str]:
    """A site with rows and a slow query."""
    dsn = sites.clone(postgres, site_template)
    generate_rows(dsn)
    with sites.opened(dsn) as db, sites.inside(db) as portal, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        slow_listing(portal)
    yield dsn
    assert recorder.flush(10)


def run(*args: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(main, args)


def test_slow_needs_no_site(dsn: str) -> None:
    found = run("slow", "--dsn", dsn, "--json")
    assert found.exit_code == 1, found.output
    [group] = json.loads(found.output)["/plone/portal_catalog"]
    assert (group["shape"], group["operation"], group["count"], group["share"]) == (SHAPE, "page", 1, 1)
    for since in ("24h", "7d"):
        [recent] = json.loads(run("slow", "--dsn", dsn, "--json", "--since", since).output)["/plone/portal_catalog"]
        assert (recent["shape"], recent["count"]) == (SHAPE, 1)


def test_slow_shows_the_data_of_the_tab(dsn: str) -> None:
    """Time (with zone), page, cause and an example, in one block per catalog."""
    [group] = json.loads(run("slow", "--dsn", dsn, "--json").output)["/plone/portal_catalog"]
    assert datetime.fromisoformat(group["last"]).tzinfo is not None
    assert literal_eval(group["example"])["Creator"]
    shown = run("slow", "--dsn", dsn, "--since", "24h")
    assert shown.exit_code == 1
    assert shown.output.count("Slow queries of /plone/portal_catalog in the last 24 hours") == 1
    assert f"1 × page: {SHAPE}" in shown.output
    for part in (
        f"why: {group['why']}",
        f"example: {group['example']}",
        f"last {when(datetime.fromisoformat(group['last']))}",
    ):
        assert part in shown.output
    assert "page: (none" in shown.output
    assert re.search(r"\d\d:\d\d:\d\d [A-Z+-]+", shown.output)


def test_slow_since_a_time_without_queries_shows_none(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        old = "UPDATE pgcatalog_slow_queries SET recorded_at = recorded_at - %s::interval"
        connection.execute(old, ["2 days"])
        found = run("slow", "--dsn", dsn, "--since", "24h")
        assert (found.exit_code, found.output) == (0, "No slow query is recorded in the last 24 hours.\n")
        assert run("slow", "--dsn", dsn, "--since", "3d").exit_code == 1
        connection.execute(old, ["-2 days"])


@pytest.mark.parametrize("period", ["", "0h", "24", "h", "31d", "9999h", "1w", "-1h", "²h"])
def test_invalid_period_is_refused(dsn: str, period: str) -> None:
    found = run("slow", "--dsn", dsn, "--since", period)
    assert found.exit_code == 2
    assert "is not a period" in found.output


def test_from_a_query_to_an_index(dsn: str, tmp_path: Path) -> None:
    conf = write_conf(tmp_path, dsn)
    query = "{'Creator': 'creator7', 'sort_on': 'modified', 'sort_order': 'reverse', 'sort_limit': 10}"
    explained = pgcatalog("explain", conf, query, "--site", "plone", "--json")
    assert explained.returncode == 0, explained.stderr
    plan = json.loads(explained.stdout)
    assert plan["values"] == ["creator7"]
    assert plan["statement"].endswith('ORDER BY "modified" DESC, rid DESC LIMIT 10')
    assert any("Execution Time" in line for line in plan["plan"])

    advised = pgcatalog("advise", conf, "--site", "plone", "--apply", "--json")
    assert advised.returncode == 0, advised.stderr
    [suggestion] = json.loads(advised.stdout)["suggestions"]
    assert (suggestion["shape"], suggestion["built"], suggestion["error"]) == (SHAPE, True, "")
    with psycopg.connect(dsn) as connection:
        [(name,)] = connection.execute("SELECT name FROM pgcatalog_indexes").fetchall()
        [(valid,)] = connection.execute(
            "SELECT indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname LIKE '%%' || %s", (name,)
        ).fetchall()
    assert (name, valid) == (suggestion["name"], True)

    again = pgcatalog("advise", conf, "--site", "plone")
    assert again.returncode == 0, again.stderr
    assert "No further index would help much." in again.stdout


def test_refused_query_is_reported(dsn: str, tmp_path: Path) -> None:
    refused = pgcatalog("explain", write_conf(tmp_path, dsn), '{"created": "no date"}', "--site", "plone")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: the catalog refuses the query: ")
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("text", ['{"a": 1}', "{'a': 1}", '{"a": null}', "{'a': (1, 2)}", "{}"])
def test_a_query_is_json_or_a_python_literal(text: str) -> None:
    assert isinstance(QueryType().convert(text, None, None), dict)


@pytest.mark.parametrize("text", ["", "[1]", "portal_type", "{1: 2}", "__import__('os')", "{'a': print()}", "(" * 9999])
def test_other_text_is_no_query(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a query"):
        QueryType().convert(text, None, None)


@pytest.mark.parametrize("query", [{"sort_on": 5}, {"sort_on": ["a", 1]}, {"sort_on": "a", "sort_order": 5}])
def test_invalid_sort_is_refused(query: dict[str, Any]) -> None:
    with pytest.raises(ReplayError, match="must be a string or a list of strings"):
        sort_of(query)
