"""The commands verify, slow, explain and advise, as an administrator runs them."""

from ast import literal_eval
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.cli.work import QueryType
from plone.pgcatalog.cli.work import sort_of
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import when
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.zmi.overview import FiguresView
from tests.acceptance.cli import answer
from tests.acceptance.cli import invoke
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.relation import damage
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import slow_listing
from typing import Any

import click
import json
import psycopg
import pytest
import re


pytestmark = pytest.mark.slow

CONTENT = populate


def test_verify_names_and_repairs_differences(dsn: str, tmp_path: Path) -> None:
    command = ("verify", write_conf(tmp_path, dsn), "--site", "plone")
    sound = pgcatalog(*command)
    assert (sound.returncode, sound.stdout) == (0, "15 objects compared: 0 differences\n"), sound.stderr
    damage(dsn, "DELETE FROM {} WHERE get_id = 'page'")
    status, found = answer(*command)
    missing = {"path": "/plone/my_folder/page", "kind": "missing", "names": []}
    assert (status, found["differences"]) == (1, [missing])
    repaired = invoke(*command, "--repair")
    assert repaired.exit_code == 0
    assert repaired.stdout.endswith("15 objects compared: 1 differences, 1 repaired\n")
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        # The Overview shows it.
        done, result = FiguresView(portal.portal_catalog, portal.REQUEST).job("verify")
        assert done
        assert english(result) == "15 objects compared, 1 differences repaired."
    assert invoke(*command).exit_code == 0
    for site in ("nowhere", "acl_users"):
        unknown = invoke(*command[:-1], site)
        assert unknown.exit_code == 2
        assert f"there is no site '{site}'" in unknown.stderr


def test_frequent_searches_are_replayed_with_a_file_of_tuning(dsn: str, tmp_path: Path) -> None:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        zoid = portal.portal_catalog._core.zoid
    for words in ("page", "page", "news"):
        searches.record(dsn, zoid, words, True)
    assert searches.flush(30)
    command = ("searches", write_conf(tmp_path, dsn), "--site", "plone")
    status, found = answer(*command)
    assert (status, [search["words"] for search in found["searches"]]) == (0, ["page", "news"])
    file = tmp_path / "tuning.txt"
    file.write_text("# Ours\n[pins]\npage => -/my_folder/page\n", "utf-8")
    status, found = answer(*command, "--replay", str(file))
    assert (status, found["figures"]) == (1, {"searches": 2, "first": 1, "five": 1, "total": 1})
    assert "2 searches: 1 with another first hit" in invoke(*command, "--replay", str(file)).stdout
    file.write_text("[pins]\n", "utf-8")
    assert answer(*command, "--replay", str(file))[0] == 0
    for wrong, told in (
        ("[pins]\nx", "Line 1: 'x' is not"),
        ("[x]\n", "no section 'x'"),
        ("\xff", "no section begins"),
    ):
        file.write_text(wrong, "utf-8")
        refused = invoke(*command, "--replay", str(file))
        assert refused.exit_code == 2
        assert told in " ".join(refused.stderr.split())


# -- slow queries

SHAPE = "Creator =; portal_type =; sort modified desc; limit"


@pytest.fixture(scope="module")
def slow_dsn(site_template: str, postgres: Any) -> Iterator[str]:
    """A site with rows and a slow query."""
    dsn = sites.clone(postgres, site_template)
    generate_rows(dsn)
    with sites.opened(dsn) as db, sites.inside(db) as portal, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        slow_listing(portal)
    yield dsn
    assert recorder.flush(10)


def test_slow_shows_the_data_of_the_tab(slow_dsn: str) -> None:
    """Time (with zone), page, cause and an example, in one block per catalog."""
    command = ("slow", "--dsn", slow_dsn)
    for since in ([], ["--since", "24h"], ["--since", "7d"]):
        status, found = answer(*command, *since)
        [group] = found["/plone/portal_catalog"]
        assert (status, group["shape"], group["operation"], group["count"]) == (1, SHAPE, "page", 1)
    assert group["share"] == 1
    assert datetime.fromisoformat(group["last"]).tzinfo is not None
    assert literal_eval(group["example"])["Creator"]
    shown = invoke(*command, "--since", "24h")
    assert shown.exit_code == 1
    assert shown.output.count("Slow queries of /plone/portal_catalog in the last 24 hours") == 1
    last = f"last {when(datetime.fromisoformat(group['last']))}"
    for part in (f"1 × page: {SHAPE}", f"why: {group['why']}", f"example: {group['example']}", last, "page: (none"):
        assert part in shown.output
    assert re.search(r"\d\d:\d\d:\d\d [A-Z+-]+", shown.output)


def test_slow_since_a_time_without_queries_shows_none(slow_dsn: str) -> None:
    with psycopg.connect(slow_dsn, autocommit=True) as connection:
        old = "UPDATE pgcatalog_slow_queries SET recorded_at = recorded_at - %s::interval"
        connection.execute(old, ["2 days"])
        found = invoke("slow", "--dsn", slow_dsn, "--since", "24h")
        assert (found.exit_code, found.output) == (0, "No slow query is recorded in the last 24 hours.\n")
        assert invoke("slow", "--dsn", slow_dsn, "--since", "3d").exit_code == 1
        connection.execute(old, ["-2 days"])
    for period in ("", "0h", "24", "h", "31d", "9999h", "1w", "-1h", "²h"):
        refused = invoke("slow", "--dsn", slow_dsn, "--since", period)
        assert refused.exit_code == 2
        assert "is not a period" in refused.output


def test_query_is_explained_and_its_index_built(slow_dsn: str, tmp_path: Path) -> None:
    conf = write_conf(tmp_path, slow_dsn)
    query = "{'Creator': 'creator7', 'sort_on': 'modified', 'sort_order': 'reverse', 'sort_limit': 10}"
    explained = pgcatalog("explain", conf, query, "--site", "plone", "--json")
    assert explained.returncode == 0, explained.stderr
    plan = json.loads(explained.stdout)
    assert plan["values"] == ["creator7"]
    assert plan["statement"].endswith('ORDER BY "modified" DESC, rid DESC LIMIT 10')
    assert any("Execution Time" in line for line in plan["plan"])
    refused = invoke("explain", conf, '{"created": "no date"}', "--site", "plone")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: the catalog refuses the query: ")

    status, advised = answer("advise", conf, "--site", "plone", "--apply")
    [suggestion] = advised["suggestions"]
    assert (status, suggestion["shape"], suggestion["built"], suggestion["error"]) == (0, SHAPE, True, "")
    with psycopg.connect(slow_dsn) as connection:
        assert connection.execute("SELECT name FROM pgcatalog_indexes").fetchall() == [(suggestion["name"],)]
        built = "SELECT indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname LIKE '%%' || %s"
        assert connection.execute(built, (suggestion["name"],)).fetchall() == [(True,)]
    again = invoke("advise", conf, "--site", "plone")
    assert again.exit_code == 0, again.stderr
    assert "No further index would help much." in again.stdout


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
