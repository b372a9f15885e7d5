"""A primary with a writing Zope, and its standby with a read-only one; comparison of their answers."""

from collections.abc import Iterator
from contextlib import closing
from contextlib import contextmanager
from contextlib import suppress
from plone.pgcatalog.reader import ReadOnlyStorage
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import Standby
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.embedded import with_standby
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.servers import execute
from tests.integration.web import Response
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any

import psycopg
import pytest
import re
import transaction


NAME = "site"
PAGES = 12
PAGE = "/plone/folder/page1"
#: The token in a link, different each time.
_TOKEN = r"[?&]_authenticator=\w+"
#: The parts that differ between two answers to the same request: tokens, and ids created per answer.
_RANDOM = re.compile(rb"[0-9a-f]{32,40}")
_LINK = re.compile(r'(?:href|src|action)="(?:http://nohost)?(/plone[^"#]*)"')
#: Saves, ends the session, downloads the whole site, or is served from the disk.
_LEFT_OUT = re.compile(
    r"selectViewTemplate|content_status_modify|workflow_action|object_cut|object_copy|logout"
    r"|\+\+(?:plone|resource|theme)\+\+|@@site-logo|@@export|favicon|\.(?:js|css|map|svg|png)\b"
)


class Servers:
    """A primary and its standby; ``dsn`` and ``standby_dsn`` are the database of a site on each."""

    def __init__(self, primary: EmbeddedPostgres, standby: Standby) -> None:
        self.primary = primary
        self.standby = standby
        self.dsn = primary.dsn(NAME)
        self.standby_dsn = standby.dsn(NAME)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the standby's replay within the block."""
        execute(self.standby.dsn(), "SELECT pg_wal_replay_pause()")
        self.standby._wait_for("pause", "SELECT pg_get_wal_replay_pause_state() = 'paused'")
        try:
            yield
        finally:
            # Immediate replay may conflict with this very statement.
            with suppress(psycopg.errors.SerializationFailure):
                execute(self.standby.dsn(), "SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def servers(zope: None, request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Servers with a site that has content; the module's STANDBY are further settings of the standby."""
    settings = with_standby(TEST_SETTINGS)
    with EmbeddedPostgres(settings=settings) as primary:
        dsn = primary.createdb(NAME)
        sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
        with sites.opened(dsn) as db:
            with sites.inside(db) as site:
                fill(site)
                transaction.commit()
            # The first visit of a new site saves portlet assignments.
            assert Web(db).open("/plone").status == 200
        with primary.standby(settings={**settings, **getattr(request.module, "STANDBY", {})}) as standby:
            yield Servers(primary, standby)


@pytest.fixture
def writer(servers: Servers) -> Iterator[Site]:
    with sites.opened(servers.dsn) as db:
        yield Site(db)


def fill(site: Any) -> None:
    create(site, "Folder", "folder", title="Folder")
    for number in range(PAGES):
        create(site.folder, "Document", f"page{number}", title=f"Page {number}", subject=("a", f"s{number % 3}"))
    create(site, "News Item", "news-item", title="News")
    workflow = site.portal_workflow
    for obj in (site.folder, *site.folder.objectValues(), site["news-item"]):
        workflow.doActionFor(obj, "publish")


def reading(dsn: str, **options: Any) -> Any:
    """Return the context of a ZODB.DB that only reads from *dsn*."""
    return sites.opened_on(ReadOnlyStorage(dsn, **options))


@contextmanager
def reading_until_killed(dsn: str, **options: Any) -> Iterator[Any]:
    """Context of ``reading`` from a server that is killed within the block.

    ZODB loses a connection that could not be opened.  Closing the database then fails with a KeyError before it reaches the
    storage, because another thread has begun it.
    """
    storage = ReadOnlyStorage(dsn, **options)
    context = sites.opened_on(storage)
    with closing(storage):
        yield context.__enter__()
        with suppress(KeyError):
            context.__exit__(None, None, None)


def titles(db: Any) -> tuple[str, str]:
    """Return the title of the page at PAGE, of the object and of its row."""
    with sites.inside(db) as portal:
        [brain] = portal.portal_catalog.unrestrictedSearchResults(path=PAGE)
        return portal.folder.page1.title, brain.Title


def body(response: Response) -> bytes:
    """Return the body of *response* without the parts that differ each time."""
    return _RANDOM.sub(b"", response.body)


def target(response: Response) -> str:
    """Return the redirect target of *response* without the parts that differ each time; empty if there is none."""
    return re.sub(_TOKEN, "", response.headers.get("Location", ""))


def crawl(web: Web, login: str | None, limit: int) -> dict[str, Response]:
    """Return the responses to up to *limit* paths linked, directly or indirectly, from the front page."""
    found: dict[str, Response] = {}
    waiting = ["/plone"]
    while waiting and len(found) < limit:
        path = waiting.pop(0)
        found[path] = web.open(path, login)
        for link in _LINK.findall(found[path].text if is_html(found[path]) else ""):
            link = re.sub(_TOKEN, "", link.replace("&amp;", "&"))
            if not _LEFT_OUT.search(link) and link not in found and link not in waiting:
                waiting.append(link)
    return found


def is_html(response: Response) -> bool:
    return response.headers.get("Content-Type", "").startswith("text/html")
