"""Pending upgrade steps are named on all admin pages until they have run; the steps are those of GenericSetup."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.database import restored
from plone.pgcatalog.database.restored import PROFILE
from plone.pgcatalog.database.restored import steps
from plone.pgcatalog.subscribers import read_ahead
from tests.acceptance.cli import answer
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.waiting import background_ended
from tests.integration.web import Site
from textwrap import dedent
from typing import Any

import os
import psycopg
import pytest
import re
import subprocess
import sys
import transaction
import Zope2


GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = ("/plone/portal_catalog/manage_catalogOverview", "/plone/@@pgcatalog-controlpanel")
NEWEST = steps()[-1][0]
OLDER = range(1000, NEWEST)


@pytest.fixture
def site(dsn: str) -> Iterator[Site]:
    with sites.opened(dsn) as db:
        yield Site(db)
        assert background_ended()


def set_version(site: Site, version: int) -> None:
    with site.inside() as portal:
        portal.portal_setup.setLastVersionForProfile(PROFILE, str(version))
        transaction.commit()


def titles_after(version: int) -> list[str]:
    return [title for to, title in steps() if to > version]


def health_on(site: Site, page: str) -> tuple[str, str]:
    """Return class and text of the health line on *page*."""
    [line] = site.page(page).xpath("//*[@id='health']")
    return line.get("class"), line.text_content()


def test_pending_steps_are_those_of_genericsetup(portal: Any) -> None:
    theirs = portal.portal_setup.listUpgrades(PROFILE, show_old=True, simple=True)
    assert sorted((int(step.dest[0]), step.title) for step in theirs) == sorted(steps())
    assert portal.portal_setup.getVersionForProfile(PROFILE) == str(NEWEST)


def test_current_site_has_no_pending_steps(site: Site, dsn: str) -> None:
    assert answer("status", "--dsn", dsn)[1]["upgrades"] == []
    for page in PAGES:
        kind, text = health_on(site, page)
        assert "success" in kind
        assert text.startswith("Healthy")


@pytest.mark.parametrize(
    "version", [OLDER[0], *(pytest.param(version, marks=pytest.mark.slow) for version in OLDER[1:])]
)
def test_pending_steps_are_named_until_they_have_run(
    site: Site, dsn: str, version: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_version(site, version)
    titles = titles_after(version)
    assert titles
    code, status = answer("status", "--dsn", dsn)
    assert code == 1
    assert status["upgrades"] == [{"site": "/plone", "steps": titles}]
    _, found = answer("check", "--dsn", dsn)
    [finding] = [f for f in found["findings"] if "upgrade steps are pending" in f["text"]]
    assert finding["remedy"] == "Run them in Site Setup, Add-ons."
    monkeypatch.setattr(Zope2, "DB", site.db)
    read_ahead(None)
    said = [finding["text"], status["attention"][0], caplog.text]
    for page in PAGES:
        kind, text = health_on(site, page)
        assert "warning" in kind
        said.append(text)
    for text in said:
        assert [title for title in titles if title not in text] == []
    with site.inside() as portal:
        portal.portal_setup.upgradeProfile(PROFILE)
        transaction.commit()
    assert background_ended()
    caplog.clear()
    read_ahead(None)
    assert "upgrade steps are pending" not in caplog.text
    assert answer("status", "--dsn", dsn)[1]["attention"] == []
    assert all("success" in health_on(site, page)[0] for page in PAGES)


def test_tables_created_by_the_next_start_hide_no_steps(site: Site, dsn: str) -> None:
    """Newer code, and no process of it has started yet."""
    set_version(site, 1004)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE pgcatalog_words, pgcatalog_searches")
        connection.execute("ALTER TABLE pgcatalog_state DROP COLUMN collected")
    code, status = answer("status", "--dsn", dsn)
    assert code == 1
    missing, waiting = status["attention"]
    assert "pgcatalog_words, pgcatalog_searches, pgcatalog_state.collected" in missing
    assert waiting.startswith("/plone: upgrade steps are pending: ")
    _, found = answer("check", "--dsn", dsn)
    texts = [f["text"] for f in found["findings"]]
    for part in ("pgcatalog_words, pgcatalog_searches, pgcatalog_state.collected", "upgrade steps are pending"):
        assert any(part in text for text in texts)


def test_site_with_a_zcatalog_has_no_pending_steps(site: Site, dsn: str) -> None:
    with site.inside() as portal:
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
        portal.portal_setup.setLastVersionForProfile(PROFILE, "1000")
        transaction.commit()
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        assert list(restored.waiting(connection)) == []


@pytest.mark.parametrize("version", ["unknown", None, ("unknown",)])
def test_unknown_version_is_no_error(version: Any) -> None:
    assert restored.waiting_since(version) == []


def blocks(page: str) -> list[str]:
    """Return the texts of the code blocks of a how-to guide."""
    text = (GUIDES / page).read_text("utf-8")
    return [dedent(block) for block in re.findall(r"^ *```\w+\n(.*?)^ *```", text, re.M | re.S)]


@pytest.mark.slow
def test_page_upgrade_works_as_documented(dsn: str, tmp_path: Path) -> None:
    """Its commands for pending steps, the steps and the end, in the order of the page, with a site of an older version."""
    with sites.opened(dsn) as db:
        set_version(Site(db), 1003)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE pgcatalog_words, pgcatalog_searches")
    write_conf(tmp_path, dsn)
    versions, _, waiting, script, run, _, end, _ = blocks("upgrade.md")
    assert versions.startswith("pgcatalog --version")
    (tmp_path / "upgrade.py").write_text(script.replace("app.Plone", "app.plone"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def shell(text: str) -> str:
        command = ["sh", "-c", text]
        environ = os.environ | {"PATH": path, "PYTHONWARNINGS": "ignore", "COLUMNS": "200"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    before = shell(waiting)
    assert "pgcatalog_words, pgcatalog_searches" in before
    assert "upgrade steps are pending" in before
    shell(run)
    after = shell(end)
    assert "Healthy: nothing needs attention" in after
    assert "upgrade steps are pending" not in after


TABLE = "SELECT c.reloptions, t.reloptions FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.oid = %s::regclass"
INDEXES = (
    "SELECT c.relname, c.reloptions FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = %s::regclass"
)


def settings(dsn: str) -> Any:
    """Return the settings of the table, and of each of its indexes that has settings."""
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    with psycopg.connect(dsn) as connection:
        [(table, toast)] = connection.execute(TABLE, [relation]).fetchall()
        indexes = connection.execute(INDEXES, [relation]).fetchall()
    names = {name.removeprefix(relation): sorted(options) for name, options in indexes if options}
    return sorted(table), sorted(toast), names


def test_upgraded_table_has_the_settings_of_a_new_one(portal: Any, dsn: str) -> None:
    new = settings(dsn)
    assert "autovacuum_vacuum_scale_factor=0.02" in new[0]
    assert "autovacuum_vacuum_scale_factor=0.05" in new[1]
    sql(dsn, "ALTER TABLE {} RESET (autovacuum_vacuum_scale_factor, toast.autovacuum_vacuum_scale_factor)")
    assert settings(dsn) != new
    # The snapshot holds the locks of a search: on the table, and on each of its indexes.
    assert portal.portal_catalog.unrestrictedSearchResults(SearchableText="x").actual_result_count == 0
    setup = portal.portal_setup
    setup.setLastVersionForProfile("plone.pgcatalog:default", "1007")
    setup.upgradeProfile("plone.pgcatalog:default")
    assert settings(dsn) == new
    transaction.commit()


def test_rebuilt_indexes_have_the_settings_of_new_ones(portal: Any, dsn: str) -> None:
    """PostgreSQL blocks all readers while such a setting of an existing index is changed."""
    new = settings(dsn)
    assert {name for name, options in new[2].items() if "gin_pending_list_limit=1024" in options} >= {
        *("_searchable_text", "_title", "_description", "_subject")
    }
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    for name in new[2]:
        sql(dsn, f'ALTER INDEX "{relation}{name}" RESET (fastupdate, gin_pending_list_limit)')
    assert settings(dsn) != new
    rebuild(portal._p_jar.db())
    assert settings(dsn) == new
