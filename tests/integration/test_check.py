"""``pgcatalog check`` on databases and sites with real faults: each finding names the fault and the remedy."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog import distribution
from plone.pgcatalog.cli import site as cli_site
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.database import findings as health
from plone.pgcatalog.database.direct import session_of
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.integration import site as sites
from tests.integration.checking import check
from tests.integration.checking import FILE
from tests.integration.checking import JSONB
from tests.integration.checking import write_conf
from tests.integration.content import create
from typing import Any
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

import click.testing
import itertools
import psycopg
import pytest
import transaction


_roles = itertools.count(1)


def said(dsn: str, *options: str) -> list[tuple[str, str]]:
    return [(f["level"], f["subject"]) for f in check(dsn, *options)]


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


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
    assert said(f"host={tmp_path} dbname=nothing") == [("error", "database")]


def test_wrong_encoding_is_reported(postgres: EmbeddedPostgres) -> None:
    execute(postgres.dsn(), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    [finding] = check(postgres.dsn("latin"))
    assert (finding["level"], finding["subject"]) == ("error", "encoding")
    assert "LATIN1" in finding["text"]
    assert "ENCODING 'UTF8'" in finding["remedy"]
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
    for part in (
        "may not create tables",
        "may not create temporary tables",
        "and 14 more belongs to",
        "cannot alter it",
    ):
        assert part.partition(" 14 ")[0] in texts
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


def test_too_small_pools_and_connection_limits_are_reported(dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn) as connection:
        found = list(map(str, health.connection_findings(dict_rows(connection), 40, 8, 8, 5)))
        fine = list(health.connection_findings(dict_rows(connection), 1, 4, 7, 8))
    assert [line.split(":")[:2] for line in found] == [
        ["warning", " pool"],
        ["error", " pool"],
        ["error", " connections"],
    ]
    assert "40 processes may open 400 connections" in found[2]
    assert fine == []


def dict_rows(connection: Any) -> Any:
    connection.row_factory = psycopg.rows.dict_row
    return connection


def test_unsupported_storage_is_reported(tmp_path: Path) -> None:
    from plone.pgcatalog.cli.reports import storage_findings
    from plone.pgcatalog.cli.target import configured_databases

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


def test_invalid_index_is_reported(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
        # An index becomes invalid by a CREATE INDEX CONCURRENTLY that fails.
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute(f"CREATE INDEX CONCURRENTLY halfway ON {relation} ((1 / (length(path) - length(path))))")
    [finding] = check(dsn)
    assert (finding["level"], finding["subject"]) == ("error", "catalog")
    assert "halfway is invalid" in finding["text"] + finding["remedy"]


def test_interrupted_rebuild_is_reported(dsn: str) -> None:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        runner = Rebuild(portal.portal_catalog)
        steps = runner.steps()
        next(steps)
        steps.close()
        runner.close()
    [finding] = check(dsn)
    assert finding["text"].endswith("a rebuild was interrupted")
    assert finding["remedy"] == "Run pgcatalog rebuild to resume it."


def test_database_copied_without_its_catalog_is_reported(dsn: str) -> None:
    execute(dsn, "DELETE FROM pgcatalog_state")
    [finding] = check(dsn)
    assert (
        finding["text"]
        == "/plone: the catalog has no table, for example because the site was copied, imported or partially restored"
    )
    assert finding["remedy"] == "Run pgcatalog rebuild to fill it."


def test_long_transaction_is_reported(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LONG_SECONDS", 0.0)
    with psycopg.connect(dsn, application_name="report") as connection:
        connection.execute("SELECT 1")
        [finding] = check(dsn)
        pid = session_of(connection)
    assert (finding["level"], finding["subject"]) == ("warning", "transactions")
    assert f"process {pid} (report, idle in transaction)" in finding["text"]
    assert finding["remedy"].endswith(f"SELECT pg_terminate_backend({pid});")


def test_full_disk_is_reported(tmp_path: Path) -> None:
    [finding] = health.disk_findings(str(tmp_path), 1 << 60)
    assert (finding.level, finding.subject) == ("error", "disk")
    assert list(health.disk_findings(str(tmp_path), 1)) == []
    assert list(health.disk_findings(str(tmp_path / "elsewhere"), 1 << 60)) == []
    assert list(health.disk_findings(None, 1 << 60)) == []


def test_tables_without_planner_statistics_are_reported(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
        connection.execute(f"CREATE TABLE copied (LIKE {relation} INCLUDING ALL)")
        connection.execute(
            "INSERT INTO copied (rid, path) SELECT n, '/plone/page-' || n FROM generate_series(1, 20000) n"
        )
        connection.execute("UPDATE pgcatalog_state SET relation = 'copied'")
    # The statistics of the former table's parts are missing, too.
    text = ": the planner has no statistics for copied"
    assert [f["remedy"] for f in check(dsn) if f["text"].endswith(text)] == [
        "Run pgcatalog vacuum ZOPE_CONF to create them."
    ]
    execute(dsn, "ANALYZE copied")
    assert [f for f in check(dsn) if f["text"].endswith(text)] == []


def test_older_server_is_reported() -> None:
    server = {"version": 140011, "version_name": "14.11", "encoding": "UTF8", "shared_buffers": 1, "bytes": 0}
    server |= dict.fromkeys(("autovacuum", "track_counts", "fsync", "full_page_writes"), "on")
    assert [f.text for f in health.server_findings(server)] == ["version 14.11 is older than 15"]


def write_distribution(folder: Path, name: str, *files: str) -> None:
    """Create an installed distribution in *folder*, as pip leaves it."""
    info = folder / f"{name.replace('.', '_')}-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_namesake_distribution_is_reported(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plone.pgcatalog.subscribers import register_processors

    write_distribution(tmp_path, "plone.pgcatalog", "plone/pgcatalog/interfaces.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    distribution.mixture.cache_clear()
    try:
        sentence = (
            "The distribution plone.pgcatalog 9.9 has the same import name, plone.pgcatalog, and is another project"
        )
        remedy = "Uninstall both with pip, and install this one again."
        assert check(dsn) == [{"level": "error", "subject": "packages", "text": sentence, "remedy": remedy}]
        refused = click.testing.CliRunner().invoke(main, ["status", "--dsn", dsn])
        assert (refused.exit_code, refused.output) == (1, f"Error: {sentence}. {remedy}\n")
        # Zope does not start.
        with pytest.raises(distribution.MixedDistributions):
            register_processors(None)
    finally:
        monkeypatch.undo()
        distribution.mixture.cache_clear()
    assert distribution.mixture() is None


# -- sites


class LengthIndex(FieldIndex):
    """An index type of an add-on that has no translator for it."""

    meta_type = "LengthIndex"


def in_site(dsn: str, change: Any) -> list[health.Finding]:
    """Apply *change* to a site; return the findings about its catalog."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        change(portal)
        return list(cli_site.catalog_findings("/plone", portal.portal_catalog))


def add_foreign_index(portal: Any) -> None:
    portal.portal_catalog._catalog.addIndex("length", LengthIndex("length"))
    portal.portal_catalog.addIndex("sort_on", "FieldIndex")


def test_unsupported_indexes_are_reported(stock_dsn: str) -> None:
    found = in_site(stock_dsn, add_foreign_index)
    assert [(f.level, f.subject) for f in found] == [("error", "index")] * 2
    assert "the index length has the type LengthIndex" in found[0].text
    assert "'sort_on'" in found[1].text


def test_sound_catalog_has_no_findings(stock_dsn: str, dsn: str) -> None:
    for each in (stock_dsn, dsn):
        assert in_site(each, lambda portal: None) == []


def test_publicly_readable_figures_are_reported(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [finding] = cli_site.metrics_findings(app)
    assert (finding.level, finding.subject) == ("warning", "metrics")
    assert "PLONE_OBSERVABILITY_METRICS_ALLOWLIST" in finding.remedy
    monkeypatch.setenv("PLONE_OBSERVABILITY_METRICS_ALLOWLIST", "10.0.0.0/8")
    assert list(cli_site.metrics_findings(app)) == []


def test_missing_columns_are_reported(dsn: str) -> None:
    def forget_column(portal: Any) -> None:
        execute(dsn, "UPDATE pgcatalog_state SET columns = array_remove(columns, 'creator')")
        transaction.begin()

    [finding] = in_site(dsn, forget_column)
    assert (finding.level, finding.subject) == ("warning", "index")
    assert "creator" in finding.text


def test_catalog_left_on_another_storage_is_reported(zope: None) -> None:
    from OFS.Folder import Folder
    from plone.pgcatalog.catalog import PlonePGCatalogTool

    database = DB(MappingStorage())
    with database.transaction() as connection:
        connection.root()["site"] = site = Folder("site")
        site._setOb("portal_catalog", PlonePGCatalogTool())
    connection = database.open()
    [finding] = cli_site.catalog_findings("/site", connection.root()["site"].portal_catalog)
    assert (finding.level, finding.subject) == ("error", "storage")
    connection.close()
    database.close()


def test_references_to_missing_objects_are_reported(dsn: str) -> None:
    assert "objects" not in {subject for _, subject in said(dsn)}
    with psycopg.connect(dsn) as connection:
        lost = "DELETE FROM object_state WHERE zoid = (SELECT min(zoid) FROM object_state WHERE class_name = 'WorkflowTool')"
        [(zoid,)] = connection.execute(f"{lost} RETURNING zoid").fetchall()
    [found] = [finding for finding in check(dsn) if finding["subject"] == "objects"]
    assert found["level"] == "error"
    assert f"0x{zoid:x} (in the " in found["text"]
