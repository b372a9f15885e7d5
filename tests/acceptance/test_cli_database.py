"""The commands without a site: status, export, vacuum, metrics, with a DSN and with a zope.conf."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import restored
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.relation import damage
from typing import Any
from urllib.request import urlopen

import click.testing
import csv
import io
import json
import psycopg
import pytest
import re
import transaction


pytestmark = pytest.mark.slow


CONTENT = populate


@pytest.fixture
def open_catalog(db: Any) -> Iterator[Any]:
    with sites.inside(db) as portal:
        yield portal.portal_catalog


def run(*args: str) -> click.testing.Result:
    """Run the command in this process; return its standard output and exit code."""
    return click.testing.CliRunner(env={"COLUMNS": "150"}).invoke(main, [*args])


def sql(dsn: str, statement: str) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


# -- all commands


@pytest.mark.parametrize("command", ["status", "export", "vacuum", "slow"])
def test_database_without_a_catalog_is_a_clear_error(database: str, command: str) -> None:
    result = run(command, "--dsn", database)
    assert result.exit_code == 2
    assert "this database has no catalog of plone.pgcatalog" in result.output


@pytest.mark.parametrize("command", ["status", "export", "vacuum", "metrics"])
def test_usage_is_shown_without_a_database(command: str) -> None:
    result = run(command)
    assert result.exit_code == 2
    assert "a ZOPE_CONF or the option --dsn is required" in result.output


@pytest.mark.parametrize("command", ["status", "export", "vacuum"])
def test_unreachable_server_is_a_clear_error(command: str, tmp_path: Path) -> None:
    result = run(command, "--dsn", f"host={tmp_path} dbname=nothing")
    assert result.exit_code == 1
    assert "connection" in result.output


@pytest.mark.parametrize("command", ["status", "export", "vacuum", "slow", "metrics"])
def test_invalid_zope_conf_is_a_clear_error(command: str, tmp_path: Path) -> None:
    conf = tmp_path / "zope.conf"
    conf.write_text("root:x:0:0:root:/root:/bin/bash\n")
    result = run(command, str(conf))
    assert result.exit_code == 2
    assert "zope.conf cannot be read: value did not match" in " ".join(result.output.split())


@pytest.mark.parametrize("command", ["status", "export", "vacuum", "slow"])
def test_missing_permission_to_read_is_a_clear_error(dsn: str, command: str) -> None:
    if not sql(dsn, "SELECT 1 FROM pg_roles WHERE rolname = 'cli_stranger'"):
        sql(dsn, "CREATE ROLE cli_stranger LOGIN")
    result = run(command, "--dsn", psycopg.conninfo.make_conninfo(dsn, user="cli_stranger"))
    assert result.exit_code == 1
    assert "permission denied for table pgcatalog_" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["slow", "--limit", "0"], "0 is not in the range x>=1"),
        (["metrics", "--serve", "99999"], "99999 is not in the range 1<=x<=65535"),
        (["export", "--output", "{tmp}/none/rows.csv"], "rows.csv cannot be written: No such file or directory"),
    ],
)
def test_wrong_option_is_a_clear_error(dsn: str, tmp_path: Path, options: list[str], message: str) -> None:
    result = run(*[option.format(tmp=tmp_path) for option in options], "--dsn", dsn)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_database_is_found_in_a_zope_conf(dsn: str, tmp_path: Path) -> None:
    result = run("status", write_conf(tmp_path, dsn), "--json")
    assert json.loads(result.stdout)["catalogs"][0]["site"] == "/plone"


def test_zope_conf_without_our_storage_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    conf = tmp_path / "etc" / "zope.conf"
    conf.write_text(sites.ZOPE_CONF.format(instance=tmp_path, storage=sites.NO_STORAGE))
    result = run("status", str(conf))
    assert result.exit_code == 2
    assert "has no zodb-pgjsonb storage" in result.output


# -- status


def test_status_shows_catalogs_and_figures(dsn: str) -> None:
    result = run("status", "--dsn", dsn, "--json", "--check")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    (catalog,) = found["catalogs"]
    [(relation, generation, version)] = sql(dsn, "SELECT relation, generation, version FROM pgcatalog_state")
    [(rows,)] = sql(dsn, f'SELECT count(*) FROM "{relation}"')
    assert (catalog["site"], catalog["relation"], catalog["rows"]) == ("/plone", relation, rows)
    assert (catalog["generation"], catalog["version"]) == (generation, version)
    names = {name for (name,) in sql(dsn, f"SELECT indexname FROM pg_indexes WHERE tablename = '{relation}'")}
    assert {index["name"] for index in catalog["indexes"]} == names
    assert catalog["table_bytes"] > 0
    assert catalog["index_bytes"] > 0
    assert catalog["rebuild"] is None
    assert (catalog["rows_without_idx"], found["stale_objects"], found["attention"]) == (0, 0, [])
    assert found["connections"]["max_connections"] > 0
    assert found["counts_bytes"] > 0


def test_status_is_printed_as_tables(dsn: str) -> None:
    result = run("status", "--dsn", dsn, "--indexes")
    assert result.exit_code == 0, result.output
    for word in ("catalog of /plone\n", "last change: number ", "connections:", "counts", "SQL indexes of pgcatalog_"):
        assert word in result.stdout
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    assert f" rows in {relation}, " in result.stdout  # complete, however narrow the terminal is
    assert result.stdout.splitlines()[-1] == "Healthy: nothing needs attention"


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE object_state SET idx = NULL WHERE idx ->> 'getId' = 'page'", "1 rows have no metadata"),
        ("DELETE FROM {} WHERE get_id = 'page'", "1 objects have an idx but no row"),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = ("
            "SELECT indexrelid FROM pg_stat_user_indexes WHERE indexrelname LIKE '%subject')",
            "is invalid",
        ),
    ],
)
def test_status_names_faults(dsn: str, statement: str, sentence: str) -> None:
    damage(dsn, statement)
    result = run("status", "--dsn", dsn, "--check")
    assert result.exit_code == 1
    assert sentence in re.sub(r"\s+", " ", result.stdout)
    line = result.stdout.splitlines()[-1]
    assert line.startswith("Needs attention: ")
    assert sentence in line


def test_status_of_a_catalog_without_rows_is_shown(dsn: str) -> None:
    damage(dsn, "DELETE FROM {}")
    found = run("status", "--dsn", dsn, "--json")
    assert json.loads(found.stdout)["catalogs"][0]["rows"] == 0
    assert run("status", "--dsn", dsn).exit_code == found.exit_code == 0
    for command in ("export", "slow"):
        assert run(command, "--dsn", dsn).exit_code == 0
    assert run("export", "--dsn", dsn, "--site", "/plone").exit_code == 2
    assert json.loads(run("vacuum", "--dsn", dsn, "--json").stdout)["cleared"] > 0


# -- export


def test_export_writes_every_row_once(dsn: str, open_catalog: Any) -> None:
    result = run("export", "--dsn", dsn)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["path"] for row in rows] == sorted(open_catalog._catalog.uids)
    by_path = {row["path"]: row for row in rows}
    page = by_path["/plone/my_folder/page"]
    assert page["metadata"]["Title"] == "Page one"
    assert page["portal_type"] == "Document"
    assert page["subject"] == ["Rot", "x y"]
    assert "searchable_text" not in page
    assert by_path["/plone/my_folder/a/b/über%_x"]["metadata"]["Description"] == "café \U0001f600"


def test_export_of_chosen_columns_as_csv(dsn: str, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    options = ["--format", "csv", "--columns", "path,get_id,subject,effective", "--output", str(output)]
    assert run("export", "--dsn", dsn, *options).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(output.read_text("utf-8"))))
    assert list(rows[0]) == ["path", "get_id", "subject", "effective"]
    (page,) = [row for row in rows if row["get_id"] == "page"]
    assert page["subject"] == '["Rot", "x y"]'


def test_export_of_an_unknown_column_or_site_is_a_clear_error(dsn: str) -> None:
    for options, message in (
        (["--columns", "path,nothing"], "no such column: nothing"),
        (["--site", "/nowhere"], "choose a catalog with --site: /plone"),
    ):
        result = run("export", "--dsn", dsn, *options)
        assert result.exit_code == 2
        assert message in result.output


def test_export_reads_in_batches(dsn: str) -> None:
    from plone.pgcatalog.cli.data import BATCH

    damage(dsn, f"INSERT INTO {{}} (rid, path) SELECT -n, '/plone/x' || n FROM generate_series(1, {BATCH * 2}) n")
    assert len(run("export", "--dsn", dsn, "--columns", "rid").stdout.splitlines()) > BATCH * 2


# -- vacuum


@contextmanager
def reading(db: Any) -> Iterator[Any]:
    """Yield the catalog in a transaction that is open during commits of others."""
    manager = transaction.TransactionManager()
    connection = db.open(manager)
    catalog = connection.root()["Application"]["plone"]["portal_catalog"]
    len(catalog._catalog)
    try:
        yield catalog
    finally:
        manager.abort()
        connection.close()


def clear_and_rebuild(db: Any) -> None:
    with sites.inside(db) as portal:
        portal.portal_catalog.clearFindAndRebuild()
        transaction.commit()


def test_vacuum_removes_leftovers(dsn: str, db: Any) -> None:
    with reading(db):
        clear_and_rebuild(db)
    assert len(sql(dsn, "SELECT * FROM pgcatalog_retired")) == 1
    damage(dsn, "DELETE FROM {} WHERE get_id = 'page'")
    sql(dsn, "UPDATE pgcatalog_count_changes SET n = n + 1")
    checked = json.loads(run("status", "--dsn", dsn, "--check", "--json").stdout)
    [text] = [text for text in checked["attention"] if "counts of values" in text]
    assert "counts of values differ from the rows; run pgcatalog vacuum to repair them" in text, checked
    first = run("vacuum", "--dsn", dsn, "--json")
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)
    assert found["cleared"] == 1
    assert (len(found["dropped"]), found["waiting"]) == (1, [])
    assert found["vacuumed"] == found["mended"] == [r for (r,) in sql(dsn, "SELECT relation FROM pgcatalog_state")]
    assert sql(dsn, "SELECT count(*) FROM object_state WHERE idx ->> 'getId' = 'page'") == [(0,)]
    second = run("vacuum", "--dsn", dsn)
    assert "0 retired relations dropped, 0 still in use" in second.stdout
    assert "idx cleared of 0 objects without a row" in second.stdout
    assert "counts of values repaired: 0 catalogs" in second.stdout
    # The Overview shows it.
    [(message, reason, finished)] = sql(
        dsn, "SELECT message, reason, finished FROM pgcatalog_queue WHERE kind = 'vacuum'"
    )
    assert english(restored(message)) == "Vacuumed; 0 retired tables dropped, 0 objects cleared."
    assert finished is not None
    assert reason == ""


def test_vacuum_leaves_relations_that_a_transaction_still_reads(dsn: str, db: Any) -> None:
    with reading(db) as old:
        number = len(old._catalog)
        clear_and_rebuild(db)
        found = json.loads(run("vacuum", "--dsn", dsn, "--json").stdout)
        assert (found["dropped"], len(found["waiting"])) == ([], 1)
        assert len(old._catalog) == number > 0


# -- metrics


def test_metrics_are_prometheus_text(dsn: str) -> None:
    result = run("metrics", "--dsn", dsn, "--check")
    assert result.exit_code == 0, result.output
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    [(rows,)] = sql(dsn, f'SELECT count(*) FROM "{relation}"')
    assert re.search(rf'^pgcatalog_rows{{catalog="\w+",site="/plone"}} {rows}.0$', result.stdout, re.M)
    for line in ("pgcatalog_up 1.0", "pgcatalog_stale_objects 0.0", "pgcatalog_retired_relations 0.0"):
        assert f"\n{line}\n" in result.stdout


def test_metrics_of_an_unreachable_database_report_it(tmp_path: Path) -> None:
    result = run("metrics", "--dsn", f"host={tmp_path} dbname=nothing")
    assert result.exit_code == 1
    assert "pgcatalog_up 0.0" in result.stdout


def test_metrics_are_served(dsn: str) -> None:
    from plone.pgcatalog.metrics import prometheus

    server, thread = prometheus.serve(dsn, "127.0.0.1", 0)
    try:
        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as response:
            assert b"\npgcatalog_up 1.0\n" in response.read()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
