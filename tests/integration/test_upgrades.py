"""The next version of the package: its upgrade steps are reported until they have run, its columns are added at the start."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.database import restored
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.restored import PROFILE
from plone.pgcatalog.database.restored import steps
from plone.pgcatalog.indexing.processor import PGCatalogStateProcessor
from plone.pgcatalog.subscribers import read_ahead
from plone.registry.interfaces import IRegistry
from Products.GenericSetup.upgrade import _upgrade_registry
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from tests.acceptance.cli import answer
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.rebuilding import sql
from tests.integration.waiting import background_ended
from tests.integration.web import Site
from textwrap import dedent
from typing import Any
from zope.component import getUtility
from zope.configuration import xmlconfig

import os
import Products.GenericSetup
import psycopg
import pytest
import re
import subprocess
import sys
import transaction
import Zope2


GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = ("/plone/portal_catalog/manage_catalogOverview", "/plone/@@pgcatalog-controlpanel")
#: The version of the profile, and the one after it: 1000 and 1001 as long as the package has no upgrade step.
NOW = max([1000, *(number for number, _ in steps())])
NEXT = NOW + 1
#: The upgrades.zcml of a later version, which has a new setting and a new index.
LATER = f"""\
<configure
    xmlns="http://namespaces.zope.org/zope"
    xmlns:genericsetup="http://namespaces.zope.org/genericsetup"
    i18n_domain="plone.pgcatalog"
    >
  <genericsetup:upgradeSteps profile="{PROFILE}" source="{NOW}" destination="{NEXT}">
    <genericsetup:upgradeDepends title="A setting of a test" import_steps="plone.app.registry" />
    <genericsetup:upgradeStep title="An index of a test" handler="{__name__}.add_index" />
  </genericsetup:upgradeSteps>
</configure>
"""
TITLES = ["A setting of a test", "An index of a test"]
SETTING = f"{PREFIX}.count_limit"


def add_index(setup_tool: Any) -> None:
    """Upgrade step: add an index, and fill it."""
    catalog = setup_tool.aq_inner.aq_parent.portal_catalog
    catalog.addIndex("letters", KeywordIndex("letters", extra={"indexed_attrs": "getId"}))
    catalog.reindexIndex("letters", None)


@pytest.fixture
def later_version(zope: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package declares the steps of LATER."""
    path = tmp_path / "upgrades.zcml"
    path.write_text(LATER)
    monkeypatch.setattr(restored, "UPGRADES", path)
    steps.cache_clear()
    registered = _upgrade_registry.getUpgradeStepsForProfile(PROFILE)
    ours = dict(registered)
    registered.clear()
    xmlconfig.file(str(path), context=xmlconfig.file("meta.zcml", Products.GenericSetup))
    yield
    registered.clear()
    registered.update(ours)
    steps.cache_clear()


@pytest.fixture
def site(dsn: str) -> Iterator[Site]:
    with sites.opened(dsn) as db:
        yield Site(db)
        assert background_ended()


def health_on(site: Site, page: str) -> tuple[str, str]:
    """Return class and text of the line about the health on *page*."""
    [line] = site.page(page).xpath("//*[@id='health']")
    return line.get("class"), line.text_content()


# -- upgrade steps


def registered_steps(portal: Any) -> list[tuple[int, str]]:
    """Return version and title of each step of our profile, as GenericSetup has them."""
    found = portal.portal_setup.listUpgrades(PROFILE, show_old=True, simple=True)
    return sorted((int(step.dest[0]), step.title) for step in found)


def test_steps_and_version_of_the_profile_are_those_of_genericsetup(portal: Any) -> None:
    assert registered_steps(portal) == sorted(steps())
    assert portal.portal_setup.getVersionForProfile(PROFILE) == str(NOW)
    assert portal.portal_setup.getLastVersionForProfile(PROFILE) == (str(NOW),)


@pytest.mark.usefixtures("later_version")
def test_steps_of_a_later_version_are_those_of_genericsetup(portal: Any) -> None:
    assert registered_steps(portal) == steps() == [(NEXT, title) for title in TITLES]


@pytest.mark.usefixtures("later_version")
def test_steps_are_reported_until_they_have_run(
    site: Site, dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with site.inside() as portal:
        create(portal, "Document", "page", title="Page")
        del getUtility(IRegistry).records[SETTING]
    code, status = answer("status", "--dsn", dsn)
    assert code == 1
    assert status["upgrades"] == [{"site": "/plone", "steps": TITLES}]
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
        assert [title for title in TITLES if title not in text] == []
    with site.inside() as portal:
        portal.portal_setup.upgradeProfile(PROFILE)
    with site.inside() as portal:
        assert portal.portal_setup.getLastVersionForProfile(PROFILE) == (str(NEXT),)
        assert SETTING in getUtility(IRegistry).records
        assert [brain.getPath() for brain in portal.portal_catalog(letters="page")] == ["/plone/page"]
    caplog.clear()
    read_ahead(None)
    assert "upgrade steps are pending" not in caplog.text
    code, status = answer("status", "--check", "--dsn", dsn)
    assert (code, status["attention"], status["upgrades"]) == (0, [], [])
    for page in PAGES:
        kind, text = health_on(site, page)
        assert "success" in kind
        assert text.startswith("Healthy")


@pytest.mark.usefixtures("later_version")
def test_missing_tables_hide_no_steps(site: Site, dsn: str) -> None:
    """Newer code, and no process of it has started yet."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE pgcatalog_words, pgcatalog_searches")
    code, status = answer("status", "--dsn", dsn)
    assert code == 1
    missing, waiting = status["attention"]
    assert "pgcatalog_searches, pgcatalog_words" in missing
    assert waiting.startswith("/plone: upgrade steps are pending: ")
    _, found = answer("check", "--dsn", dsn)
    texts = [f["text"] for f in found["findings"]]
    for part in ("pgcatalog_searches, pgcatalog_words", "upgrade steps are pending"):
        assert any(part in text for text in texts)


@pytest.mark.usefixtures("later_version")
def test_site_with_its_zcatalog_has_no_waiting_step(site: Site, dsn: str) -> None:
    with site.inside() as portal:
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
        portal.portal_setup.setLastVersionForProfile(PROFILE, str(NOW))
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        assert list(restored.waiting(connection)) == []


@pytest.mark.usefixtures("later_version")
def test_unknown_version_has_no_waiting_step() -> None:
    assert [restored.waiting_since(version) for version in ("unknown", None, ("unknown",))] == [[], [], []]


# -- tables


def test_later_version_adds_a_column_to_a_shared_table(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later = f"{load_sql('base')}\nALTER TABLE pgcatalog_state ADD COLUMN IF NOT EXISTS of_a_test INT DEFAULT 7;\n"
    monkeypatch.setattr(PGCatalogStateProcessor, "get_schema_sql", lambda self: later)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        create(portal, "Document", "page", title="Page")
        transaction.commit()
        assert [brain.getPath() for brain in portal.portal_catalog(Title="page")] == ["/plone/page"]
    assert sql(dsn, "SELECT of_a_test FROM pgcatalog_state") == [(7,)]


# -- the how-to guide


def blocks(page: str) -> list[str]:
    """Return the texts of the code blocks of a how-to guide."""
    text = (GUIDES / page).read_text("utf-8")
    return [dedent(block) for block in re.findall(r"^ *```\w+\n(.*?)^ *```", text, re.M | re.S)]


@pytest.mark.slow
def test_commands_of_the_page_upgrade_work(dsn: str, tmp_path: Path) -> None:
    """In the order of the page, in a database that lacks two tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE pgcatalog_words, pgcatalog_searches")
    write_conf(tmp_path, dsn)
    versions, _, waiting, script, run, end, _ = blocks("upgrade.md")
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

    assert "pgcatalog_searches, pgcatalog_words" in shell(waiting)
    shell(run)
    assert "Healthy: nothing needs attention" in shell(end)
