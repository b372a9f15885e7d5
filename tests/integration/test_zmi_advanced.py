"""The tabs Indexes & Metadata and Advanced: figures, and background jobs that finish or report why not."""

from collections.abc import Iterator
from contextlib import closing
from contextlib import contextmanager
from lxml import html
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain_connection
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.progress import recorded
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.worker import LONG
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.results.cache import result_cache
from tests.integration.content import create
from tests.integration.jobs import Recorded
from tests.integration.jobs import registered
from tests.integration.storage import terminate
from tests.integration.waiting import background_ended
from tests.integration.waiting import PATIENCE
from tests.integration.web import location
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any

import psycopg
import pytest
import threading


TOOL = "/plone/portal_catalog"
ADVANCED = f"{TOOL}/manage_catalogAdvanced"
INDEXES = f"{TOOL}/manage_catalogIndexes"


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Site]:
    """A site with some content."""
    with shared_site.inside() as portal:
        for number in range(12):
            create(portal, "Document", f"d{number}", title=f"Page {number}", subject=("a", str(number)))
    with psycopg.connect(shared_site.dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    yield shared_site
    assert background_ended()


def post(site: Site, **form: Any) -> str:
    """Send the form of the tab Advanced; return the message of the answer."""
    return location(site.post(ADVANCED, **form)).split("message=")[1]


def job(site: Site, name: str) -> Any:
    """Return the line of the job *name*, after its end."""
    assert background_ended()
    return line_of(site, name)


def line_of(site: Site, name: str) -> Any:
    """Return the line of the job *name* in the page."""
    [line] = site.page(ADVANCED).xpath(f"//section[@id='jobs']//tr[@data-name='{name}']")
    return line


def relation(site: Site) -> str:
    with site.inside() as portal:
        name: str = portal.portal_catalog._core.view().read_state().relation
        return name


# -- indexes and metadata


def test_each_index_has_its_columns_and_sql_indexes(site: Site) -> None:
    tree = site.page(INDEXES)
    with site.inside() as portal:
        catalog = portal.portal_catalog
        lines = {line.get("data-index"): text(line) for line in tree.xpath("//table[@id='indexes']/tbody/tr")}
        assert set(lines) == set(catalog.indexes())
        names = {text(label) for label in tree.xpath("//div[@id='metadata']//label")}
        assert names == set(catalog.schema())
    assert "FieldIndex portal_type text USING btree" in lines["portal_type"]
    assert "KeywordIndex subject text[] USING gin" in lines["Subject"]
    assert " sets " in f"{lines['Subject']} "
    assert "tsvector" in lines["SearchableText"]


def test_usage_of_indexes_is_counted(db: Any) -> None:
    site = Site(db)

    def used() -> int:
        [line] = site.page(INDEXES).xpath("//tr[@data-index='UID']")
        return int(text(line).rsplit(" ", 1)[1].replace(",", ""))

    before = used()
    with connect_directly(db.storage._dsn, "test") as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute(f"""SELECT FROM "{relation(site)}" WHERE uid = 'x'""")
        connection.execute("SELECT pg_stat_force_next_flush()")
    assert used() == before + 1


def test_tool_without_any_commit_has_a_page(site: Site) -> None:
    from plone.pgcatalog.catalog import PlonePGCatalogTool

    with site.inside() as portal:
        portal._setObject("empty", PlonePGCatalogTool("empty"))
        tool = portal["empty"]
        from plone.pgcatalog.zmi.advanced import AdvancedPage
        from plone.pgcatalog.zmi.indexes import IndexesPage
        from plone.pgcatalog.zmi.overview import FiguresView

        assert IndexesPage(tool, portal.REQUEST).lines() == []
        assert AdvancedPage(tool, portal.REQUEST).interrupted() is None
        assert 'id="nothing"' in FiguresView(tool, portal.REQUEST)()
        portal._delObject("empty")


# -- work in the background


def test_rebuild(site: Site) -> None:
    before = relation(site)
    assert "being+rebuilt" in post(site, rebuild="1")
    line = job(site, "rebuild")
    assert line.get("data-state") == "done"
    assert "objects catalogued" in text(line)
    assert relation(site) != before
    with site.inside() as portal:
        assert list(Verifier(portal.portal_catalog).differences()) == []


def test_verify_names_differences_and_repairs_them(site: Site) -> None:
    with site.inside() as portal:
        portal.portal_catalog.uncatalog_object("/plone/d3")
    post(site, verify="1")
    line = job(site, "verify")
    assert line.get("data-state") == "done"
    assert "1 differences found. missing: /plone/d3" in text(line)
    post(site, repair="1")
    assert "1 differences repaired" in text(job(site, "verify"))
    post(site, verify="1")
    assert "0 differences found" in text(job(site, "verify"))
    with site.inside() as portal:
        portal.getOrdering().notifyAdded("gone")
    post(site, repair="1")
    assert "0 differences repaired, 1 left. dangling: /plone/gone" in text(job(site, "verify"))
    with site.inside() as portal:
        portal.getOrdering().notifyRemoved("gone")


@contextmanager
def verifying(does: Any) -> Iterator[None]:
    """Have *does* do the jobs of the kind ``verify``, until they have ended."""
    kind = Recorded(is_long=True)
    kind.does = does
    with registered(kind, "verify"):
        yield
        assert background_ended()


def test_one_job_at_a_time_can_be_stopped(site: Site) -> None:
    """The job waits for the test; every process sees that it runs, and can stop it."""
    begun = threading.Event()

    def work(job: Job, progress: Progress) -> None:
        begun.set()
        while True:
            progress.report(3, 12, "Waiting <b>for</b> somebody")
            threading.Event().wait(0.05)

    with verifying(work):
        post(site, verify="1")
        assert begun.wait(PATIENCE)
        assert "Not+done%3A+the+job+is+running+already" in post(site, repair="1")
        response = site.web.get(ADVANCED, MANAGER, accept="text/html")
        [again] = [value for name, value in response.headers.items() if name.title() == "Refresh"]
        # Without the start message, which would stay on the page when the job has ended.
        assert again == f"3; url=http://nohost{ADVANCED}"
        assert "<b>for</b>" not in response.text
        [line] = html.fromstring(response.body).xpath("//tr[@data-name='verify']")
        assert line.get("data-state") == "working"
        assert "3 of 12" in text(line)
        post(site, stop="verify")
    assert text(job(site, "verify")).startswith("verify failed")
    assert "Stopped." in text(job(site, "verify"))


def test_reason_of_a_failure_is_shown(site: Site) -> None:
    def work(job: Job, progress: Progress) -> None:
        raise RuntimeError("broken\0 in portal_catalog")

    with verifying(work):
        post(site, verify="1")
    line = job(site, "verify")
    assert line.get("data-state") == "failed"
    assert "RuntimeError: broken" in text(line)
    assert "in portal_catalog" in text(line)


def test_a_job_whose_process_died_is_interrupted_and_continued(site: Site) -> None:
    dsn = site.db.storage._dsn
    with site.inside() as portal:
        zoid = portal.portal_catalog._core.zoid
    with closing(connect_directly(dsn, "test")) as connection:
        assert table.begin_long(connection, "verify", zoid, zoid)
        assert line_of(site, "verify").get("data-state") == "working"
        terminate(dsn, connection.info.backend_pid)
        assert line_of(site, "verify").get("data-state") == "interrupted"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE kind = 'verify'")
    Worker(site.db, dsn, is_long=True).run_once()
    assert line_of(site, "verify").get("data-state") == "done"


def test_ended_job_can_be_started_again_at_once(site: Site) -> None:
    """Even while its session is still there: a busy server ends it later than its client."""
    dsn = site.db.storage._dsn
    with site.inside() as portal:
        zoid = portal.portal_catalog._core.zoid
    with recorded(dsn, "verify", zoid) as one, recorded(dsn, "verify", zoid) as other:
        assert one.job is not None
        assert other.job is None
        one.lines.append("all of it")
    assert line_of(site, "verify").get("data-state") == "done"
    assert "all of it" in text(line_of(site, "verify"))
    with recorded(dsn, "verify", zoid, {"repair": True}) as again:
        assert again.job is not None
        # Another worker, if this process died, would do the same.
        assert again.job.arguments == {"repair": True}


def test_job_waits_for_a_worker_for_long_jobs_if_there_is_one(site: Site) -> None:
    with plain_connection(direct_dsn(site.db.storage._dsn), LONG):
        post(site, verify="1")
        assert background_ended()
        line = line_of(site, "verify")
        assert line.get("data-state") == "waiting"
        post(site, stop="verify")
        assert line_of(site, "verify").get("data-state") == "failed"
        post(site, verify="1")
    Worker(site.db, site.db.storage._dsn, is_long=True).run_once()
    assert line_of(site, "verify").get("data-state") == "done"


def test_other_kinds_of_jobs_are_counted(site: Site) -> None:
    with site.inside() as portal, connect(site.db.storage._dsn, "test") as connection:
        zoid = portal.portal_catalog._core.zoid
        with connection.transaction(), connection.cursor() as cursor:
            table.put(cursor, "text", zoid, [1, 2, 3])
        lines = [text(line) for line in site.page(ADVANCED).xpath("//table[@id='queue']/tbody/tr")]
        assert [line[:11] for line in lines if line.startswith("text")] == ["text 3 0 20"]
        connection.execute("DELETE FROM pgcatalog_queue WHERE kind = 'text'")


def test_interrupted_rebuild_can_be_continued_or_abandoned(site: Site) -> None:
    with site.inside() as portal:
        runner = Rebuild(portal.portal_catalog)
        steps = runner.steps()
        next(steps)
        steps.close()
        runner.close()
    assert site.page(ADVANCED).get_element_by_id("interrupted") is not None
    assert "dropped" in post(site, abandon="1")
    assert not site.page(ADVANCED).xpath("//*[@id='interrupted']")


def test_unreachable_database_is_reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plone.pgcatalog.queue.long.writable_dsn_of", lambda jar: "host=127.0.0.1 port=1 dbname=x")
    assert "Not+done%3A+PostgreSQL" in post(site, verify="1")


def test_cache_can_be_emptied(site: Site) -> None:
    with site.inside() as portal:
        found = portal.portal_catalog.unrestrictedSearchResults(portal_type="Document")
        assert len([brain.Title for brain in found]) >= 12
    assert len(result_cache()) > 0
    post(site, clear_cache="1")
    assert len(result_cache()) == 0
