"""Uploads, their jobs, and extractors controlled by a test."""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextlib import ExitStack
from demo import documents as files
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.files import scans
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import ITextExtractor
from plone.pgcatalog.files.extractor import RecognisedText
from plone.pgcatalog.files.extractor import Xberg
from plone.pgcatalog.queue.worker import Worker
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from zope.component import getGlobalSiteManager
from zope.component import getUtility

import pytest


@pytest.fixture
def site(site_template: str, postgres: Any) -> Iterator[Any]:
    """(portal, worker) of a site of its own."""
    with sites.opened(sites.clone(postgres, site_template)) as db, sites.inside(db) as portal:
        yield portal, Worker(db, db.storage._dsn)


@pytest.fixture
def worker(db: Any) -> Worker:
    """A worker for the site of the fixture ``portal``."""
    return Worker(db, db.storage._dsn)


def upload(portal: Any, name: str, data: bytes, kind: str = files.PDF) -> Any:
    return create(portal, "File", name, title=name, file=files.blob(data, kind))


def work(worker: Worker) -> int:
    """Have *worker* do all due jobs in a thread of its own; return their number."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(worker.run_until_empty).result()


class AsIs:
    """Extractor whose texts are the files' bytes, but not the mark of a PDF."""

    name, is_ready = "as is", True

    def kinds(self, kind: str) -> bool:
        return True

    def extract(self, path: str, kind: str) -> str:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read().removeprefix("%PDF-")


@contextmanager
def extracting(extractor: Any) -> Iterator[None]:
    """Register *extractor* in place of the usual one."""
    manager, usual = getGlobalSiteManager(), getUtility(ITextExtractor)
    manager.registerUtility(extractor, ITextExtractor)
    yield
    manager.registerUtility(usual, ITextExtractor)


@pytest.fixture
def extractor() -> Iterator[Any]:
    """Yield a function that registers another extractor until the end of the test."""
    with extracting(getUtility(ITextExtractor)):
        yield lambda other: getGlobalSiteManager().registerUtility(other, ITextExtractor)


def queued(dsn: str) -> list[Any]:
    with connect(dsn, "test") as connection:
        return connection.execute("SELECT reason FROM pgcatalog_queue WHERE kind = 'text'").fetchall()


def due(dsn: str) -> None:
    """Make the jobs due that wait for another attempt."""
    with connect(dsn, "test") as connection:
        connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity'")


class Counted:
    """An extractor that counts its calls, and raises if *fails* is set."""

    name = "counted"
    is_ready = True

    def __init__(self, fails: ExtractionError | None = None) -> None:
        self.count = 0
        self.fails = fails

    def kinds(self, kind: str) -> bool:
        return True

    def extract(self, path: str, kind: str) -> str:
        self.count += 1
        if self.fails is not None:
            raise self.fails
        return "quokka"


class Recogniser(Xberg):
    """An extractor whose scans have the texts *texts*, one for each call; a text that is an exception is raised."""

    def __init__(self, *texts: str | Exception) -> None:
        super().__init__()
        self.texts = list(texts)
        self.calls: list[tuple[list[str], list[str]]] = []

    def recognise(self, path: str, kind: str, languages: Any, pages: Any) -> RecognisedText:
        self.calls.append((list(languages), list(pages)))
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        now = [*pages, text]
        return RecognisedText("\n\f".join(now), now, not self.texts)


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Recogniser]]:
    """Yield a function that registers a Recogniser, with Tesseract in English, German and French."""
    monkeypatch.setattr(scans, "installed", lambda: frozenset({"eng", "deu", "fra"}))
    with ExitStack() as stack:

        def register(*texts: str | Exception) -> Recogniser:
            made = Recogniser(*texts)
            stack.enter_context(extracting(made))
            stack.callback(made.end)
            return made

        yield register
