"""``pgcatalog install`` and ``uninstall``: in batches, killed and resumed, with editors at work."""

from Acquisition import aq_base
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.migration import tools
from Products.CMFCore.indexing import processQueue
from Products.CMFPlone.CatalogTool import CatalogTool
from tests.acceptance.cli import answer
from tests.acceptance.cli import command
from tests.acceptance.cli import invoke
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any

import psycopg
import pytest
import subprocess
import time
import transaction


pytestmark = pytest.mark.slow


def fill(portal: Any) -> None:
    """Create 12 folders of 15 documents; one document is in no catalog."""
    for number in range(12):
        folder = create(portal, "Folder", f"f{number}")
        for i in range(15):
            folder.invokeFactory("Document", f"d{i}", title=f"Document {i}")
    processQueue()
    portal.portal_catalog.uncatalog_object("/plone/f3/d3")


CONTENT = fill


@contextmanager
def opened(dsn: str) -> Iterator[Any]:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        yield portal


def known(portal: Any) -> list[str]:
    return sorted(portal.portal_catalog._catalog.uids)


def run_until(query: str, dsn: str, *args: str) -> None:
    """Run the command in a process of its own, and kill it as soon as *query* finds a row."""
    process = subprocess.Popen(command(*args), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not connection.execute(query).fetchall():
            assert process.poll() is None
            time.sleep(0.005)
    process.kill()
    process.wait()


def test_a_killed_installation_is_resumed(stock_dsn: str, tmp_path: Path, zope: None) -> None:
    install = ("install", write_conf(tmp_path, stock_dsn), "--site", "plone")
    with opened(stock_dsn) as portal:
        before = known(portal)
    status, rehearsed = answer(*install, "--dry-run")
    assert (status, rehearsed["objects"]) == (0, len(before))
    with opened(stock_dsn) as portal:
        assert isinstance(aq_base(portal.portal_catalog), CatalogTool)
    run_until("SELECT FROM pgcatalog_rebuild WHERE done > 0", stock_dsn, *install)
    assert invoke("status", "--dsn", stock_dsn).exit_code == 1
    assert answer(*install)[0] == 0
    with opened(stock_dsn) as portal:
        assert isinstance(aq_base(portal.portal_catalog), PlonePGCatalogTool)
        # The entries of the old catalog, and nothing else.
        assert known(portal) == before
        assert [d.path for d in Verifier(portal.portal_catalog).differences()] == ["/plone/f3/d3"]
        assert len(portal.portal_catalog(SearchableText="document", portal_type="Document")) == 179
    again = invoke(*install)
    assert (again.exit_code, again.stdout) == (0, "the catalog is already installed\n")
    assert invoke("status", "--dsn", stock_dsn).exit_code == 0


def test_a_killed_uninstallation_is_resumed_and_follows_changes(dsn: str, tmp_path: Path, zope: None) -> None:
    uninstall = ("uninstall", write_conf(tmp_path, dsn), "--site", "plone")
    run_until("SELECT FROM object_state WHERE class_name = 'CatalogTool'", dsn, *uninstall)
    with opened(dsn) as portal:
        tool = portal.portal_catalog
        assert isinstance(aq_base(tool), PlonePGCatalogTool)
        # As if another run gets that far before an editor changes an object it has seen.
        steps = tools.fill_in_batches(tool, tools.begin(tool))
        assert next(steps)[1] == len(known(portal))
        list(steps)
        portal.f1.d1.title = "Changed"
        portal.f1.d1.reindexObject()
        portal.f2.d2.manage_setLocalRoles("test_user", ["Reader"])
        portal.f2.d2.reindexObjectSecurity()
        portal.manage_delObjects(["f4"])
        create(portal, "Document", "new", title="New")
        transaction.commit()
        expected = known(portal)
    assert answer(*uninstall, "--dry-run") == (0, {"objects": len(expected), "done": len(expected) + 15})
    assert answer(*uninstall)[0] == 0
    with opened(dsn) as portal:
        tool = portal.portal_catalog
        assert isinstance(aq_base(tool), CatalogTool)
        assert known(portal) == expected
        assert [b.getPath() for b in tool(Title="Changed")] == ["/plone/f1/d1"]
        assert [b.Title for b in tool(getId="d1", path="/plone/f1")] == ["Changed"]
        assert "user:test_user" in tool.getIndexDataForUID("/plone/f2/d2")["allowedRolesAndUsers"]
        # All remaining pages, except for the one with a new title, and the new page.
        pages = [path for path in expected if "/d" in path]
        assert len(tool(SearchableText="document", portal_type="Document")) == len(pages) - 1 == 163
        # An index and a lexicon still work.
        portal.f1.d1.title = "Again"
        portal.f1.d1.reindexObject()
        assert [b.getPath() for b in tool(SearchableText="again")] == ["/plone/f1/d1"]
    with psycopg.connect(dsn) as connection:
        assert connection.execute("TABLE pgcatalog_state").fetchall() == []


def test_obstacle_is_reported_and_nothing_is_changed(stock_dsn: str, tmp_path: Path, zope: None) -> None:
    with opened(stock_dsn) as portal:
        portal.portal_catalog.addIndex("sort_limit", "FieldIndex")
        transaction.commit()
    conf = write_conf(tmp_path, stock_dsn)
    rehearsed = invoke("install", conf, "--site", "plone", "--dry-run")
    assert (rehearsed.exit_code, rehearsed.stdout.count("obstacle: ")) == (1, 1), rehearsed.stderr
    refused = invoke("install", conf, "--site", "plone")
    assert refused.exit_code == 2
    assert "An index cannot have the name 'sort_limit'" in refused.stderr
    with opened(stock_dsn) as portal:
        assert isinstance(aq_base(portal.portal_catalog), CatalogTool)
