"""``pgcatalog check`` on databases and sites with real faults: each finding names the fault and the remedy."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import closing
from OFS.Folder import Folder
from pathlib import Path
from plone.pgcatalog import distribution
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.cli import site as cli_site
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.cli.reports import storage_findings
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.database import findings as health
from plone.pgcatalog.database.direct import session_of
from plone.pgcatalog.subscribers import register_processors
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from tests.integration import site as sites
from tests.integration.checking import check
from tests.integration.checking import FILE
from tests.integration.checking import JSONB
from tests.integration.checking import write_conf
from tests.integration.content import create
from tests.integration.custom import LengthIndex
from tests.integration.rebuilding import rebuilding
from tests.integration.rebuilding import sql
from tests.integration.servers import execute
from typing import Any
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

import click.testing
import itertools
import psycopg
import pytest
import re
import transaction


_roles = itertools.count(1)


def said(dsn: str) -> list[str]:
    """Return the findings as lines."""
    return [str(health.Finding(**finding)) for finding in check(dsn)]


@pytest.fixture
def role(dsn: str) -> Iterator[str]:
    """A role that owns nothing in the database of a site."""
    name = f"visitor_{next(_roles)}"
    execute(dsn, f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    yield name
    execute(dsn, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def as_role(dsn: str, role: str) -> str:
    return psycopg.conninfo.make_conninfo(dsn, user=role, password="x")


def test_sound_site_has_no_findings(dsn: str) -> None:
    assert check(dsn) == []
    result = click.testing.CliRunner().invoke(main, ["check"])
    assert result.exit_code == 2
    assert "a ZOPE_CONF or the option --dsn is required" in result.output


def test_unreachable_server_is_reported(tmp_path: Path) -> None:
    [line] = said(f"host={tmp_path} dbname=nothing")
    assert line.startswith("error: database: ")


def test_wrong_encoding_is_reported(postgres: EmbeddedPostgres) -> None:
    execute(postgres.dsn(), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    [line] = said(postgres.dsn("latin"))
    assert re.match("error: encoding: .*LATIN1.*ENCODING 'UTF8'", line)
    postgres.dropdb("latin")


def test_settings_that_lose_data_or_statistics_are_reported(open_tmp: Path) -> None:
    wrong = {**TEST_SETTINGS, "autovacuum": "off", "fsync": "off"}
    with EmbeddedPostgres(settings=wrong, temp_dir=open_tmp) as server:
        result = click.testing.CliRunner().invoke(main, ["check", "--dsn", server.dsn()])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "error: settings: autovacuum is off: tables grow, and the planner has no statistics." in lines[0]
    assert any(line.startswith("error: settings: fsync is off") for line in lines)
    assert lines[-1] == f"{len(lines) - 1} findings"


@pytest.mark.direct("the pooler of the tests logs in as one role")
def test_role_without_rights_is_reported(dsn: str, role: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    execute(
        dsn,
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
    )
    found = check(as_role(dsn, role))
    assert {f["subject"] for f in found} == {"rights"}
    texts = "\n".join(f["text"] for f in found)
    for part in ("may not create tables", "may not create temporary tables", "more belongs to", "cannot alter it"):
        assert part in texts
    assert any(f["remedy"] == f"GRANT CREATE, USAGE ON SCHEMA public TO {role};" for f in found)
    # The remedies, typed by an administrator, are enough to work with the site.
    execute(dsn, *(f["remedy"] for f in found))
    assert check(as_role(dsn, role)) == []
    with sites.opened(as_role(dsn, role)) as db, sites.inside(db) as portal:
        create(portal, "Document", "page", title="Saved by a role")
        transaction.commit()
        assert [b.Title for b in portal.portal_catalog(getId="page")] == ["Saved by a role"]
        portal.portal_catalog.clearFindAndRebuild()
        transaction.commit()


def test_too_small_pools_and_connection_limits_are_reported(dsn: str) -> None:
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        found = list(health.connection_findings(connection, 40, 8, 8, 5))
        fine = list(health.connection_findings(connection, 1, 4, 7, 8))
    assert [f"{f.level}: {f.subject}" for f in found] == ["warning: pool", "error: pool", "error: connections"]
    assert "40 processes may open 400 connections" in found[2].text
    assert fine == []


def test_unsupported_storage_is_reported(tmp_path: Path) -> None:
    [database] = configured_databases(write_conf(tmp_path, FILE))
    assert (database.is_main, database.dsn) == (True, None)
    [finding] = storage_findings([database])
    assert str(finding) == (
        "error: storage: the database main has the storage filestorage. Copy the objects to zodb-pgjsonb first;"
        " see docs/how-to/from-your-site.md."
    )
    [database] = configured_databases(write_conf(tmp_path, JSONB, dsn="dbname=x", pool_max=12))
    assert (database.dsn, database.pool_size, database.pool_max) == ("dbname=x", 7, 12)
    assert list(storage_findings([database])) == []


def invalid_index(dsn: str) -> None:
    # An index becomes invalid by a CREATE INDEX CONCURRENTLY that fails.
    with pytest.raises(psycopg.errors.DivisionByZero):
        sql(dsn, "CREATE INDEX CONCURRENTLY halfway ON {} ((1 / (length(path) - length(path))))")


def interrupted_rebuild(dsn: str) -> None:
    with sites.opened(dsn) as db, rebuilding(db) as steps:
        steps.step()


def copy_without_its_catalog(dsn: str) -> None:
    sql(dsn, "DELETE FROM pgcatalog_state")


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (invalid_index, "error: catalog: .*halfway is invalid"),
        (interrupted_rebuild, r".*a rebuild was interrupted\. Run pgcatalog rebuild to resume it\.$"),
        (copy_without_its_catalog, r".*: /plone: the catalog has no table, .*\. Run pgcatalog rebuild to fill it\.$"),
    ],
)
def test_fault_of_a_catalog_is_reported_with_its_remedy(dsn: str, fault: Callable[[str], None], line: str) -> None:
    fault(dsn)
    [found] = said(dsn)
    assert re.match(line, found), found


def test_long_transaction_is_reported(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LONG_SECONDS", 0.0)
    with psycopg.connect(dsn, application_name="report") as connection:
        connection.execute("SELECT 1")
        [line] = said(dsn)
        pid = session_of(connection)
    assert line.startswith("warning: transactions: ")
    assert f"process {pid} (report, idle in transaction)" in line
    assert line.endswith(f"SELECT pg_terminate_backend({pid});")


def test_full_disk_is_reported(tmp_path: Path) -> None:
    [finding] = health.disk_findings(str(tmp_path), 1 << 60)
    assert (finding.level, finding.subject) == ("error", "disk")
    assert list(health.disk_findings(str(tmp_path), 1)) == []
    assert list(health.disk_findings(str(tmp_path / "elsewhere"), 1 << 60)) == []
    assert list(health.disk_findings(None, 1 << 60)) == []


def test_tables_without_planner_statistics_are_reported(dsn: str) -> None:
    sql(dsn, "CREATE TABLE copied (LIKE {} INCLUDING ALL)")
    execute(
        dsn,
        "INSERT INTO copied (rid, path) SELECT n, '/plone/page-' || n FROM generate_series(1, 20000) n",
        "UPDATE pgcatalog_state SET relation = 'copied'",
    )
    # The statistics of the former table's parts are missing, too.
    line = ": the planner has no statistics for copied. Run pgcatalog vacuum ZOPE_CONF to create them."
    assert len([found for found in said(dsn) if found.endswith(line)]) == 1
    execute(dsn, "ANALYZE copied")
    assert [found for found in said(dsn) if found.endswith(line)] == []


def test_older_server_is_reported() -> None:
    server = {"version": 140011, "version_name": "14.11", "encoding": "UTF8", "shared_buffers": 1, "bytes": 0}
    server |= dict.fromkeys(("autovacuum", "track_counts", "fsync", "full_page_writes"), "on")
    assert [f.text for f in health.server_findings(server)] == ["version 14.11 is older than 15"]


def test_namesake_distribution_is_reported(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    info = tmp_path / "plone_pgcatalog-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plone.pgcatalog\nVersion: 9.9\n")
    (info / "RECORD").write_text("plone/pgcatalog/interfaces.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    distribution.mixture.cache_clear()
    request.addfinalizer(distribution.mixture.cache_clear)
    sentence = "The distribution plone.pgcatalog 9.9 has the same import name, plone.pgcatalog, and is another project"
    remedy = "Uninstall both with pip, and install this one again."
    assert said(dsn) == [f"error: packages: {sentence}. {remedy}"]
    refused = click.testing.CliRunner().invoke(main, ["status", "--dsn", dsn])
    assert (refused.exit_code, refused.output) == (1, f"Error: {sentence}. {remedy}\n")
    # Zope does not start.
    with pytest.raises(distribution.MixedDistributions):
        register_processors(None)


# -- sites


def in_site(dsn: str, change: Any) -> list[health.Finding]:
    """Apply *change* to a site; return the findings about its catalog."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        change(portal)
        return list(cli_site.catalog_findings("/plone", portal.portal_catalog))


def add_foreign_index(portal: Any) -> None:
    portal.portal_catalog._catalog.addIndex("length", LengthIndex("length"))
    portal.portal_catalog.addIndex("sort_on", "FieldIndex")


def test_unsupported_indexes_are_reported(stock_dsn: str, dsn: str) -> None:
    assert in_site(stock_dsn, lambda portal: None) == in_site(dsn, lambda portal: None) == []
    found = in_site(stock_dsn, add_foreign_index)
    assert [(f.level, f.subject) for f in found] == [("error", "index")] * 2
    assert "the index length has the type LengthIndex" in found[0].text
    assert "'sort_on'" in found[1].text


def test_publicly_readable_figures_are_reported(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [finding] = cli_site.metrics_findings(app)
    assert (finding.level, finding.subject) == ("warning", "metrics")
    assert "PLONE_OBSERVABILITY_METRICS_ALLOWLIST" in finding.remedy
    monkeypatch.setenv("PLONE_OBSERVABILITY_METRICS_ALLOWLIST", "10.0.0.0/8")
    assert list(cli_site.metrics_findings(app)) == []


def test_missing_columns_are_reported(dsn: str) -> None:
    execute(dsn, "UPDATE pgcatalog_state SET columns = array_remove(columns, 'creator')")
    [finding] = in_site(dsn, lambda portal: None)
    assert re.match("warning: index: .*creator", str(finding))


def test_catalog_left_on_another_storage_is_reported(zope: None) -> None:
    with closing(DB(MappingStorage())) as database:
        with database.transaction() as connection:
            connection.root()["site"] = site = Folder("site")
            site._setOb("portal_catalog", PlonePGCatalogTool())
        with database.transaction() as connection:
            [finding] = cli_site.catalog_findings("/site", connection.root()["site"].portal_catalog)
    assert (finding.level, finding.subject) == ("error", "storage")


def test_references_to_missing_objects_are_reported(dsn: str) -> None:
    assert not [line for line in said(dsn) if ": objects: " in line]
    [(zoid,)] = sql(
        dsn,
        "DELETE FROM object_state WHERE zoid = (SELECT min(zoid) FROM object_state WHERE class_name = 'WorkflowTool')"
        " RETURNING zoid",
    )
    [line] = [line for line in said(dsn) if line.startswith("error: objects: ")]
    assert f"0x{zoid:x} (in the " in line
