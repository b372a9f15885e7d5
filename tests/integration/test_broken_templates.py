"""A connection that is lost while a page is rendered: the log stays short, and Zope answers the next request.

The error of a template repeats its variables.  One that is a ghost is loaded for that, which fails, too; and ZODB logs each
such failure with a traceback, whose text says what the template's error says.
"""

from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from plone.dexterity.content import Item
from plone.pgcatalog.storage import connection
from plone.pgcatalog.unavailable import TEXT
from plone.pgcatalog.unavailable import unavailable_filter
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from tests.integration.content import create
from tests.integration.faults import terminate
from tests.integration.fixtures import SiteWith
from tests.integration.site import opened
from tests.integration.storage import forget_loaded
from tests.integration.web import application
from tests.integration.web import Web
from typing import Any
from zope.component import getGlobalSiteManager
from zope.interface import Interface

import logging
import psycopg
import pytest


GHOSTS = 300
#: A page of the site whose template has so many objects in its variables, as a listing has its rows, when it loads one.
TEMPLATE = """\
<tal:page define="{ghosts}"><html metal:use-macro="context/main_template/macros/master"><body>
<metal:main fill-slot="content-core" tal:define="broken view/break_connection"><p tal:content="v0/title">Title</p>
</metal:main></body></html></tal:page>
"""
MOST_LOGGED = 100_000


class Log(logging.Handler):
    """Keeps an event log in ``text``, and in ``nested`` what is logged while a record is made text: that has no end."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.nested: list[str] = []
        self._is_at_it = False

    def emit(self, record: logging.LogRecord) -> None:
        if self._is_at_it:
            self.nested.append(record.getMessage())
            return
        self._is_at_it = True
        self.text += f"{self.format(record)}\n"
        self._is_at_it = False


@pytest.fixture
def log() -> Iterator[Log]:
    """What the process logs, in place of pytest's own handlers, which would go on formatting."""
    log, root = Log(), logging.getLogger()
    root.handlers, former = [log], root.handlers
    yield log
    root.handlers = former


def lose(connection: psycopg.Connection[Any]) -> None:
    terminate(connection.info.dsn, connection.info.backend_pid)


def spoil(connection: psycopg.Connection[Any]) -> None:
    """Have the SQL of somebody fail who does not roll back."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / 0")


class Listing(BrowserView):
    """A page of all that a folder has; it breaks its connection in each of the ways in ``breaks``, one in a request."""

    __roles__ = None
    breaks: list[Callable[[psycopg.Connection[Any]], None]]
    index: Any

    def __call__(self) -> Any:
        self.ghosts = list(self.context.folder.objectValues())
        return self.index()

    def break_connection(self) -> None:
        forget_loaded(self.context._p_jar)
        for ghost in self.ghosts:
            ghost._p_deactivate()
        if self.breaks:
            self.breaks.pop()(connection(self.context._p_jar))


def fill(portal: Any) -> None:
    folder = create(portal, "Folder", "folder")
    for number in range(GHOSTS):
        folder._setOb(f"item{number:03}", Item(f"item{number:03}", title=f"Item {number}"))


@pytest.fixture
def listing(tmp_path: Path) -> Iterator[type[Listing]]:
    """The page ``@@listing``."""
    file = tmp_path / "listing.pt"
    file.write_text(TEMPLATE.format(ghosts="; ".join(f"v{n} python:view.ghosts[{n}]" for n in range(GHOSTS))))
    page = type("Page", (Listing,), {"breaks": [], "index": ViewPageTemplateFile(str(file))})
    getGlobalSiteManager().registerAdapter(page, (Interface, Interface), Interface, name="listing")
    yield page
    getGlobalSiteManager().unregisterAdapter(page, (Interface, Interface), Interface, name="listing")


@pytest.fixture
def web(site_with: SiteWith, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A browser on the site; Zope repeats at once, three times."""
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.delay_retry", lambda self: None)
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.retry_max_count", 3)
    with opened(site_with(fill)) as db:
        yield Web(db, unavailable_filter(application(db)))


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("way", [lose, spoil])
def test_a_page_whose_connection_breaks_in_its_template(
    web: Web, listing: type[Listing], log: Log, way: Any, times: int
) -> None:
    assert web.open("/plone/@@listing").status == 200
    log.text = ""
    listing.breaks[:] = [way] * times
    response = web.open("/plone/@@listing")
    assert log.nested == []
    assert len(log.text) <= MOST_LOGGED, log.text[:MOST_LOGGED]
    assert (response.status, listing.breaks) == (200 if times < 4 else 503, [])
    assert times < 4 or response.text == f"{TEXT}\n"
    assert web.open("/plone/@@listing").status == 200
