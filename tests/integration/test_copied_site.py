"""A copied or imported site shows everywhere that its catalog is empty, and a button fills it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from dataclasses import dataclass
from lxml import html
from OFS import ObjectManager
from pathlib import Path
from plone.pgcatalog.cli.commands import main
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
import psycopg
import pytest
import threading
import transaction


pytestmark = pytest.mark.slow


#: Pages of the catalog tool that a manager opens, and the control panel.
TABS = [
    *("manage_catalogOverview", "manage_catalogView", "manage_catalogIndexes", "manage_catalogAdvanced"),
    *("manage_catalogReport", "manage_catalogPlan", "manage_slow_queries", "manage_index_advice"),
]
PANEL = "@@pgcatalog-controlpanel"


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

    @property
    def web(self) -> Web:
        return Web(self.db)

    def get(self, page: str, login: str | None = MANAGER) -> Response:
        return self.web.get(f"{self.path}/{page}", login, accept="text/html")

    def notice(self, page: str) -> Any:
        """Return the notice on *page*, None if there is none."""
        answer = self.get(page)
        assert answer.status == 200, answer.text
        found = html.fromstring(answer.body).xpath("//*[@id='unfilled']")
        return found[0] if found else None

    def has_notice(self) -> set[str]:
        """Return the pages that have the notice."""
        pages = [*(f"portal_catalog/{tab}" for tab in TABS), PANEL]
        return {page.rpartition("/")[2] for page in pages if self.notice(page) is not None}

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
        return self.web.post(form.get("action").removeprefix("http://nohost"), MANAGER, **fields)

    def found(self, **query: Any) -> list[str]:
        with self.opened() as site:
            return sorted(b.getPath().removeprefix(self.path) for b in site.portal_catalog.searchResults(**query))


@pytest.fixture(scope="module")
def original(site_with: SiteWith) -> str:
    """DSN of a database with a site that no test changes."""
    return site_with(populate)


@pytest.fixture(scope="module")
def copied_template(original: str, postgres: Any) -> str:
    """Name of a database with a site, and its copy made by copy and paste in a folder of the root."""
    dsn = sites.clone(postgres, database_of(original))
    with sites.opened(dsn) as db, archive(db) as folder:
        folder.manage_pasteObjects(folder.getPhysicalRoot().manage_copyObjects(["plone"]))
    return database_of(dsn)


@pytest.fixture(scope="module")
def imported_template(original: str, site_template: str, postgres: Any) -> str:
    """Name of a database with another site, and this one imported from a .zexp file into a folder of the root."""
    file = Path(ObjectManager.CONFIG.instancehome) / "import" / "plone.zexp"
    file.parent.mkdir(exist_ok=True)
    with sites.opened(original) as db, sites.application(db) as app:
        file.write_bytes(app.manage_exportObject("plone", download=1))
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, archive(db) as folder:
        folder.manage_importObject(file.name)
    file.unlink()
    return database_of(dsn)


@contextmanager
def archive(db: Any) -> Iterator[Any]:
    """Yield a new folder in the root of *db*, and commit."""
    with sites.application(db) as app:
        sites.login(app)
        app.manage_addFolder("archive")
        yield app.archive
        transaction.commit()


def database_of(dsn: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


@contextmanager
def cloned(postgres: Any, template: str) -> Iterator[Site]:
    dsn = sites.clone(postgres, template)
    with sites.opened(dsn) as db:
        yield Site(db, dsn, "/archive/plone")
        assert background_ended()


@pytest.fixture
def site(copied_template: str, postgres: Any) -> Iterator[Site]:
    """A site that was copied."""
    with cloned(postgres, copied_template) as site:
        yield site


@pytest.fixture(params=["copied", "imported"])
def either(request: pytest.FixtureRequest, postgres: Any) -> Iterator[Site]:
    """A site that was copied, and one that was imported."""
    with cloned(postgres, request.getfixturevalue(f"{request.param}_template")) as site:
        yield site


@pytest.fixture
def expected(original: str) -> list[str]:
    """The paths in the original site, without the path of the site itself."""
    with sites.opened(original) as db:
        return Site(db, original, "/plone").found(path="/plone")


EVERYWHERE = {*TABS, PANEL}


def test_empty_catalog_is_shown_on_every_admin_page(either: Site) -> None:
    assert either.found() == []
    assert either.has_notice() == EVERYWHERE
    code, attention = either.status()
    assert code == 1
    assert attention == [
        "/archive/plone: the catalog has no table, for example because the site was copied, imported or partially restored;"
        " run pgcatalog rebuild to fill it"
    ]
    other = Site(either.db, either.dsn, "/plone")
    assert other.has_notice() == set()
    assert other.found() != []


@pytest.mark.parametrize("page", ["portal_catalog/manage_catalogView", "portal_catalog/manage_catalogAdvanced", PANEL])
def test_button_fills_the_catalog(either: Site, page: str, expected: list[str]) -> None:
    answer = either.press(page)
    assert answer.status == 302
    assert background_ended()
    assert either.found(path="/archive/plone") == expected
    assert (either.has_notice(), either.status()) == (set(), (0, []))
    with either.opened() as portal:
        assert list(Verifier(portal.portal_catalog).differences()) == []
    assert "/my_folder/page" in either.found(SearchableText="quick fox")


def test_notice_stays_after_a_save(either: Site, expected: list[str]) -> None:
    with either.opened() as portal:
        create(portal, "Document", "new", title="New")
        transaction.commit()
    assert either.found(path="/archive/plone") == ["", "/new"]
    assert either.has_notice() == EVERYWHERE
    code, attention = either.status()
    assert code == 1
    assert attention == [
        "/archive/plone: the catalog contains only objects saved since the site was copied, imported or partially restored;"
        " run pgcatalog rebuild to fill it"
    ]
    either.press(PANEL)
    assert background_ended()
    assert either.found(path="/archive/plone") == sorted([*expected, "/new"])
    assert (either.has_notice(), either.status()) == (set(), (0, []))


def add_index(portal: Any) -> None:
    portal.portal_catalog.addIndex("layout", "FieldIndex")
    portal.portal_catalog.manage_reindexIndex(["layout"])


def add_column(portal: Any) -> None:
    portal.portal_catalog.addColumn("layout")
    portal.portal_catalog.addIndex("layout", "FieldIndex")


def delete_index(portal: Any) -> None:
    portal.portal_catalog.delIndex("Subject")


def savepoint(portal: Any) -> None:
    before = transaction.savepoint()
    portal.portal_catalog.manage_catalogClear()
    before.rollback()
    portal.my_folder.page.reindexObject()


@pytest.mark.parametrize("change", [add_index, add_column, delete_index, savepoint])
def test_no_change_of_the_catalog_but_filling_it_ends_the_notice(site: Site, change: Any) -> None:
    with site.opened() as portal:
        change(portal)
        transaction.commit()
        assert is_unfilled(portal.portal_catalog._core)
    assert site.has_notice() == EVERYWHERE
    assert site.status()[0] == 1


def clear_and_rebuild(portal: Any) -> None:
    portal.portal_catalog.clearFindAndRebuild()


def clear(portal: Any) -> None:
    portal.portal_catalog.manage_catalogClear()


@pytest.mark.parametrize("change", [clear_and_rebuild, clear])
@pytest.mark.parametrize("has_table", [False, True])
def test_other_ways_to_fill_or_empty_a_catalog_show_no_notice(site: Site, change: Any, has_table: bool) -> None:
    with site.opened() as portal:
        if has_table:
            portal.my_folder.page.reindexObject()
            transaction.commit()
        change(portal)
        transaction.commit()
    assert (site.has_notice(), site.status()) == (set(), (0, []))


@pytest.mark.parametrize("has_table", [False, True])
def test_uninstalling_leaves_a_filled_zcatalog_all_the_same(site: Site, has_table: bool, expected: list[str]) -> None:
    with site.opened() as portal:
        if has_table:
            portal.my_folder.page.reindexObject()
            transaction.commit()
    for name in ("uninstall", "default"):
        with site.opened() as portal:
            portal.portal_setup.runAllImportStepsFromProfile(f"profile-plone.pgcatalog:{name}")
            transaction.commit()
        assert site.found(path="/archive/plone") == expected
    assert (site.has_notice(), site.status()) == (set(), (0, []))


def test_an_abandoned_rebuild_leaves_the_notice(site: Site) -> None:
    from plone.pgcatalog.indexing.rebuild import Rebuild

    with site.opened() as portal:
        runner = Rebuild(portal.portal_catalog)
        steps = runner.steps()
        next(steps)
        steps.close()
        assert site.has_notice() == EVERYWHERE
        assert site.status()[0] == 1
        runner.abandon()
        runner.close()
    assert site.has_notice() == EVERYWHERE
    assert site.status()[0] == 1


def test_deleted_site_needs_no_attention(site: Site) -> None:
    with site.opened() as portal:
        portal.getPhysicalRoot().archive.manage_delObjects(["plone"])
        transaction.commit()
    assert site.status() == (0, [])


def test_running_or_failed_rebuild_is_reported(site: Site) -> None:
    from plone.pgcatalog.indexing.rebuild import Rebuild

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
