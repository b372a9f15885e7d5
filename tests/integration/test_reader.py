"""A Zope on a standby answers as one on the primary, sends the primary nothing, and saves nothing."""

from collections.abc import Iterator
from contextlib import closing
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.storage import UnknownStorage
from tests.integration import readers
from tests.integration.histories import counter
from tests.integration.readers import body
from tests.integration.readers import PAGE
from tests.integration.readers import Servers
from tests.integration.readers import servers as servers
from tests.integration.readers import target
from tests.integration.readers import titles
from tests.integration.readers import writer as writer
from tests.integration.statements import log_of
from tests.integration.statements import statements
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any
from ZODB.POSException import ReadOnlyError

import pytest
import transaction


pytestmark = pytest.mark.slow

WRITER_URL = "https://edit.example.org"


@pytest.fixture(scope="module")
def reader(servers: Servers) -> Iterator[Site]:
    with readers.reading(servers.standby_dsn) as db:
        yield Site(db)


@pytest.fixture
def redirecting(servers: Servers) -> Iterator[Site]:
    """A reader that has the address of its writer."""
    with readers.reading(servers.standby_dsn, writer_url=WRITER_URL) as db:
        yield Site(db)


@pytest.fixture(autouse=True)
def _the_standby_refuses_nothing(servers: Servers) -> Iterator[None]:
    """Check that the standby gets no statement that it refuses."""
    before = len(log_of(servers.standby))
    yield
    assert "ERROR" not in log_of(servers.standby)[before:]


# -- reading


@pytest.mark.parametrize(("name", "pages"), [(None, 20), (MANAGER, 40)])
def test_every_page_is_that_of_the_primary(
    servers: Servers, writer: Site, reader: Site, name: str | None, pages: int
) -> None:
    # A first visit may save.
    paths = readers.crawl(writer.web, name, pages)
    assert len(paths) == pages
    expected = {path: writer.web.open(path, name) for path in paths}
    assert {page.status for page in expected.values()} <= {200, 302}
    servers.standby.catch_up()
    for path, page in expected.items():
        found = reader.web.open(path, name)
        assert (path, found.status, body(found)) == (path, page.status, body(page))
        assert target(found) == target(page)


def test_reader_sends_the_primary_nothing(servers: Servers, writer: Site, reader: Site) -> None:
    paths = ["/plone", PAGE, "/plone/@@search?SearchableText=page"]
    for path in paths:
        writer.web.open(path)
    servers.standby.catch_up()
    with statements(servers.primary) as of_writer:
        for path in paths:
            assert writer.web.open(path).status == 200
    assert len(of_writer) >= 3 * len(paths)
    with statements(servers.primary) as of_reader:
        for path in paths:
            assert reader.web.open(path).status == 200
    assert of_reader == []


def test_the_same_state_has_the_same_counter(servers: Servers, writer: Site, reader: Site) -> None:
    """Plone builds ETags from it."""
    from plone.app.caching.operations.utils import getETag

    def of(site: Site) -> tuple[Any, ...]:
        with readers.sites.inside(site.db) as portal:
            names = ("catalogCounter", "lastModified", "roles", "skin")
            return counter(portal), getETag(portal.folder, portal.REQUEST, names)

    servers.standby.catch_up()
    before = of(writer)
    assert of(reader) == before
    with writer.inside() as portal:
        portal.folder.page1.reindexObject()
    servers.standby.catch_up()
    assert of(reader) == of(writer) != before


def test_overview_shows_the_lag_of_the_standby(writer: Site, reader: Site) -> None:
    page = "/plone/portal_catalog/manage_catalogOverview"
    shown = reader.web.open(page, MANAGER).text
    assert "follows its primary" in shown
    assert 'id="standby"' not in writer.web.open(page, MANAGER).text


# -- saving


def test_a_save_is_refused_with_a_text(reader: Site) -> None:
    before, token = titles(reader.db), reader.token()
    answer = reader.web.patch(PAGE, MANAGER, {"title": "changed"})
    assert answer.status == 503
    assert "Saving is not possible" in answer.json["message"]
    form = {"form.widgets.IDublinCore.title": "changed", "form.widgets.IBasic.title": "changed"}
    answer = reader.web.post(f"{PAGE}/edit", MANAGER, **form, **{"form.buttons.save": "Save", "_authenticator": token})
    assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
    assert answer.text.startswith("Saving is not possible")
    answer = reader.web.send_json("POST", "/plone/folder", MANAGER, {"@type": "Document", "title": "new"})
    assert answer.status == 503
    for work in ("rebuild", "verify", "vacuum"):
        form = {work: "1", "_authenticator": token}
        assert reader.web.post("/plone/portal_catalog/manage_catalogAdvanced", MANAGER, **form).status == 503
    assert titles(reader.db) == before


def test_a_save_is_sent_to_the_writer(redirecting: Site) -> None:
    answer = redirecting.web.patch(PAGE, MANAGER, {"title": "changed"})
    assert (answer.status, answer.headers["Location"]) == (307, f"{WRITER_URL}{PAGE}")
    link = f"/plone/folder/selectViewTemplate?templateId=summary_view&_authenticator={redirecting.token()}"
    answer = redirecting.web.open(link, MANAGER)
    assert (answer.status, answer.headers["Location"]) == (307, f"{WRITER_URL}{link}")
    behind_proxy = "/VirtualHostBase/https/www.example.org:443/plone/VirtualHostRoot/folder/page1"
    answer = redirecting.web.patch(behind_proxy, MANAGER, {"title": "changed"})
    assert (answer.status, answer.headers["Location"]) == (307, f"{WRITER_URL}/folder/page1")


def test_reader_changes_nothing_in_a_transaction(reader: Site) -> None:
    """So no search needs a temporary table, which a standby cannot have."""
    with readers.sites.inside(reader.db) as portal:
        page = portal.folder.page1
        page.title = "changed"
        page.reindexObject()
        with pytest.raises(ReadOnlyError):
            portal.portal_catalog.unrestrictedSearchResults(Title="changed")
        transaction.abort()
        assert portal.portal_catalog.unrestrictedSearchResults(Title="changed").actual_result_count == 0
        assert portal.folder.page1.title != "changed"
        # A new object has no oid.
        with pytest.raises(ReadOnlyError):
            portal.folder.invokeFactory("Document", "new")
        transaction.abort()
        with pytest.raises(ReadOnlyError):
            reader.db.pack()


def test_no_thread_writes(servers: Servers, reader: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither slow queries, nor counts of searches."""
    monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.001")
    kinds: Any = recorder.recorders, searches.search_recorders
    for text in ("page", "folder", "news"):
        assert reader.web.open(f"/plone/@@search?SearchableText={text}").status == 200
    assert servers.standby_dsn not in {worker.dsn for workers in kinds for worker in workers.all()}


def test_opening_a_storage_changes_nothing(servers: Servers) -> None:
    with statements(servers.primary) as asked, closing(readers.ReadOnlyStorage(servers.dsn)) as storage:
        assert storage.isReadOnly()
    assert asked
    assert not [text for text in asked if not text.startswith(("SELECT", "BEGIN", "COMMIT", "ROLLBACK", "SET"))]


def test_only_a_supported_storage_is_opened_read_only(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plone.pgcatalog.storage.supported.version", lambda name: "1.20.0")
    with pytest.raises(UnknownStorage, match=r"1\.19\."):
        readers.ReadOnlyStorage(servers.standby_dsn)
