"""A copied or imported site shows everywhere that its catalog is empty, and a button fills it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from dataclasses import dataclass
from lxml import html
from OFS import ObjectManager
from pathlib import Path
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.queue import long
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.sql import locks
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.jobs import Recorded
from tests.integration.jobs import registered
from tests.integration.waiting import background_ended
from tests.integration.waiting import PATIENCE
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import text
from tests.integration.web import Web
from typing import Any
from zope.component.hooks import setSite

import click.testing
import json
import pytest
import re
import threading
import transaction


pytestmark = pytest.mark.slow


#: Pages of the catalog tool that a manager opens, and the control panel.
TABS = [
    *("manage_catalogOverview", "manage_catalogView", "manage_catalogIndexes", "manage_catalogAdvanced"),
    *("manage_catalogReport", "manage_catalogPlan", "manage_slow_queries", "manage_index_advice"),
]
PANEL = "@@pgcatalog-controlpanel"
PAGES = {*(f"portal_catalog/{tab}" for tab in TABS), PANEL}


@dataclass
class Site:
    """The site at *path* of the database *db*, whose connection string is *dsn*."""

    db: Any
    dsn: str
    path: str

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Yield the site, as admin, in a transaction of its own."""
        with sites.application(self.db) as app:
            sites.login(app)
            site = app.unrestrictedTraverse(self.path)
            setSite(site)
            yield site

    @contextmanager
    def changing(self) -> Iterator[Any]:
        """Yield the site in the same way; commit."""
        with self.opened() as site:
            yield site
            transaction.commit()

    def notice(self, page: str) -> Any:
        """Return the notice on *page*, None if there is none."""
        answer = Web(self.db).get(f"{self.path}/{page}", MANAGER, accept="text/html")
        assert answer.status == 200, answer.text
        found = html.fromstring(answer.body).xpath("//*[@id='unfilled']")
        return found[0] if found else None

    def has_notice(self) -> set[str]:
        """Return the pages that have the notice."""
        return {page for page in PAGES if self.notice(page) is not None}

    def is_filled(self) -> bool:
        return not self.has_notice() and self.status() == (0, [])

    def is_unfilled(self, state: str = "") -> bool:
        """Return whether every page and the command report a catalog that is not filled, because of *state*."""
        code, [attention] = self.status()
        reason = f"{self.path}: the catalog {state}.* the site was copied, imported or partially restored"
        assert re.fullmatch(f"{reason}; run pgcatalog rebuild to fill it", attention), attention
        return code == 1 and self.has_notice() == PAGES

    def status(self) -> tuple[int, list[str]]:
        """Return the exit status of ``pgcatalog status``, and the sentences that it prints under attention."""
        result = click.testing.CliRunner().invoke(main, ["status", "--dsn", self.dsn, "--json"])
        return result.exit_code, json.loads(result.stdout)["attention"]

    def press(self, page: str) -> Response:
        """Press the button of the notice on *page*, as a browser does."""
        notice = self.notice(page)
        [form] = notice.xpath(".//form")
        fields = {field.get("name"): field.get("value") for field in form.xpath(".//input | .//button")}
        assert form.get("method") == "post"
        return Web(self.db).post(form.get("action").removeprefix("http://nohost"), MANAGER, **fields)

    @property
    def original(self) -> "Site":
        return Site(self.db, self.dsn, "/plone")

    def found(self, **query: Any) -> list[str]:
        with self.opened() as site:
            return sorted(b.getPath().removeprefix(self.path) for b in site.portal_catalog.searchResults(**query))


@contextmanager
def archive(portal: Any) -> Iterator[tuple[Any, Any]]:
    """Fill *portal*, and yield the root and a new folder in it."""
    populate(portal)
    transaction.commit()
    app = portal.getPhysicalRoot()
    # Copying and importing happen outside of any site.
    setSite(None)
    app.manage_addFolder("archive")
    yield app, app.archive


def copied(portal: Any) -> None:
    """Copy the site by copy and paste into a folder of the root."""
    with archive(portal) as (app, folder):
        folder.manage_pasteObjects(app.manage_copyObjects(["plone"]))


def imported(portal: Any) -> None:
    """Import the site from a .zexp file into a folder of the root."""
    file = Path(ObjectManager.CONFIG.instancehome) / "import" / "plone.zexp"
    file.parent.mkdir(exist_ok=True)
    with archive(portal) as (app, folder):
        file.write_bytes(app.manage_exportObject("plone", download=1))
        folder.manage_importObject(file.name)
    file.unlink()


@contextmanager
def opened(dsn: str) -> Iterator[Site]:
    with sites.opened(dsn) as db:
        yield Site(db, dsn, "/archive/plone")
        assert background_ended()


@pytest.fixture
def site(site_with: SiteWith) -> Iterator[Site]:
    """A site that was copied."""
    with opened(site_with(copied)) as site:
        yield site


@pytest.fixture(params=[copied, imported])
def either(request: pytest.FixtureRequest, site_with: SiteWith) -> Iterator[Site]:
    """A site that was copied, and one that was imported."""
    with opened(site_with(request.param)) as site:
        yield site


def test_empty_catalog_is_shown_on_every_admin_page(either: Site) -> None:
    assert either.found() == []
    assert either.is_unfilled("has no table, for example because")
    assert either.original.has_notice() == set()
    assert either.original.found() != []


@pytest.mark.parametrize("page", ["portal_catalog/manage_catalogView", "portal_catalog/manage_catalogAdvanced", PANEL])
def test_button_fills_the_catalog(either: Site, page: str) -> None:
    answer = either.press(page)
    assert answer.status == 302
    assert background_ended()
    assert either.found(path="/archive/plone") == either.original.found(path="/plone")
    assert either.is_filled()
    with either.opened() as portal:
        assert list(Verifier(portal.portal_catalog).differences()) == []
    assert "/my_folder/page" in either.found(SearchableText="quick fox")


def test_notice_stays_after_a_save(either: Site) -> None:
    with either.changing() as portal:
        create(portal, "Document", "new", title="New")
    assert either.found(path="/archive/plone") == ["", "/new"]
    assert either.is_unfilled("contains only objects saved since")
    either.press(PANEL)
    assert background_ended()
    assert either.found(path="/archive/plone") == sorted([*either.original.found(path="/plone"), "/new"])
    assert either.is_filled()


def change_indexes(portal: Any) -> None:
    portal.portal_catalog.addColumn("layout")
    portal.portal_catalog.addIndex("layout", "FieldIndex")
    portal.portal_catalog.manage_reindexIndex(["layout"])
    portal.portal_catalog.delIndex("Subject")


def savepoint(portal: Any) -> None:
    before = transaction.savepoint()
    portal.portal_catalog.manage_catalogClear()
    before.rollback()
    portal.my_folder.page.reindexObject()


@pytest.mark.parametrize("change", [change_indexes, savepoint])
def test_no_change_of_the_catalog_but_filling_it_ends_the_notice(site: Site, change: Any) -> None:
    with site.changing() as portal:
        change(portal)
    with site.opened() as portal:
        assert is_unfilled(portal.portal_catalog._core)
    assert site.is_unfilled()


@pytest.fixture(params=[False, True], ids=["without a table", "with a table"])
def either_form(site: Site, request: pytest.FixtureRequest) -> Site:
    """A site that was copied, and one in which a page was saved since."""
    if request.param:
        with site.changing() as portal:
            portal.my_folder.page.reindexObject()
    return site


@pytest.mark.parametrize("name", ["clearFindAndRebuild", "manage_catalogClear"])
def test_other_ways_to_fill_or_empty_a_catalog_show_no_notice(either_form: Site, name: str) -> None:
    with either_form.changing() as portal:
        getattr(portal.portal_catalog, name)()
    assert either_form.is_filled()


def test_uninstalling_leaves_a_filled_zcatalog_all_the_same(either_form: Site) -> None:
    for name in ("uninstall", "default"):
        with either_form.changing() as portal:
            portal.portal_setup.runAllImportStepsFromProfile(f"profile-plone.pgcatalog:{name}")
        assert either_form.found(path="/archive/plone") == either_form.original.found(path="/plone")
    assert either_form.is_filled()


def test_an_abandoned_rebuild_leaves_the_notice(site: Site) -> None:
    with site.opened() as portal:
        runner = Rebuild(portal.portal_catalog)
        steps = runner.steps()
        next(steps)
        steps.close()
        assert site.is_unfilled()
        runner.abandon()
        runner.close()
    assert site.is_unfilled()


def test_deleted_site_needs_no_attention(site: Site) -> None:
    with site.changing() as portal:
        portal.getPhysicalRoot().archive.manage_delObjects(["plone"])
    assert site.status() == (0, [])


def test_running_or_failed_rebuild_is_reported(site: Site) -> None:
    with site.opened() as portal:
        # As long as its lock is held, no job can continue.
        runner = Rebuild(portal.portal_catalog)
        runner.connection.execute(
            "SELECT pg_advisory_lock(%s, %s)", locks.of_catalog(locks.REBUILD, portal.portal_catalog._core.zoid)
        )
        site.press(PANEL)
        assert background_ended()
        runner.close()
    notice = text(site.notice(PANEL))
    assert "did not finish. Background jobs shows the reason. Fill the catalog" in notice
    begun, go_on = threading.Event(), threading.Event()

    def work(job: Job, progress: Progress) -> None:
        progress.report(3, 12, "Visiting")
        begun.set()
        assert go_on.wait(PATIENCE)

    slow = Recorded(is_long=True)
    slow.does = work
    stack = ExitStack()
    stack.enter_context(registered(slow, "rebuild"))
    with site.opened() as portal:
        long.start_for(portal.portal_catalog, "rebuild")
        assert begun.wait(PATIENCE)
    try:
        for page in ("portal_catalog/manage_catalogView", PANEL):
            notice = site.notice(page)
            assert "It is being filled: 3 objects so far. Background jobs" in text(notice)
            assert notice.xpath(".//form") == []
            [link] = notice.xpath(".//a/@href")
            assert link == f"http://nohost{site.path}/portal_catalog/manage_catalogAdvanced"
    finally:
        go_on.set()
        assert background_ended()
        stack.close()
