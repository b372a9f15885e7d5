"""Odd content types, file fields and results of indexers: a save succeeds, with ZCatalog's words."""

from collections.abc import Callable
from collections.abc import Iterator
from demo import documents as files
from plone.indexer import indexer
from plone.namedfile.file import NamedBlobFile
from plone.namedfile.file import NamedFile
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.texts import without_transform
from plone.rfc822.interfaces import IPrimaryFieldInfo
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.uploads import Counted
from tests.integration.uploads import extractor as extractor
from tests.integration.uploads import queued
from tests.integration.uploads import work
from tests.integration.uploads import worker as worker
from typing import Any
from ZODB.blob import Blob
from zope.component import getGlobalSiteManager
from zope.interface import alsoProvides
from zope.interface import Interface

import pytest
import transaction


#: Content types.
KINDS = (
    *(files.PDF, "Application/PDF", "application/pdf; charset=binary", None, "", b"application/pdf", 7, [files.PDF]),
    *("x" * 10_000, "application/pdf\0", "application/pdf\r\nX: y", "application/pdé"),
)
#: Results of an indexer for SearchableText.
TEXTS = (
    *("wombat and quoll", None, "", b"wombat", 7, ["wombat", None, b"numbat", "quoll", 3], ("wombat", "quoll")),
    *({"wombat"}, {"wombat": "quoll"}, "wombat\0quoll \ufffd bilby"),
)


class IOdd(Interface):
    """An object whose SearchableText returns *said*, or raises it."""


@indexer(IOdd)
def said(obj: Any) -> Any:
    if isinstance(obj.said, Exception):
        raise obj.said
    return obj.said


@pytest.fixture(autouse=True)
def odd_indexer(zope: None) -> Iterator[None]:
    manager = getGlobalSiteManager()
    manager.registerAdapter(said, name="SearchableText")
    yield
    manager.unregisterAdapter(said, name="SearchableText")


class Quokka(Counted):
    """An extractor that reads any file, as a site may have."""

    def kinds(self, kind: str) -> bool:
        return kind.encode("ascii").decode() == kind


def words(catalog: Any, path: str) -> list[str]:
    """Return the words of the text of the object at *path* in *catalog*."""
    return sorted(set(catalog.getIndexDataForUID(path).get("SearchableText", ())))


def odd(portal: Any, name: str, kind: Any = files.PDF, text: Any = "", data: str = "x") -> Any:
    """Return an uploaded File *name* with the text *data*, whose content type is *kind* and whose indexer returns *text*."""
    obj = create(portal, "File", name, file=files.blob(files.pdf(data)))
    obj.file.__dict__["contentType"] = kind
    obj.file._p_changed = True
    obj.said = text
    alsoProvides(obj, IOdd)
    return obj


def recatalogue(portal: Any, obj: Any) -> None:
    """Catalogue the text of *obj* only; Plone's own indexers of a File read its field for other indexes."""
    portal.portal_catalog.catalog_object(obj, idxs=["SearchableText"], update_metadata=0)
    transaction.commit()


@pytest.fixture
def oracle(portal: Any) -> Any:
    return make_oracle(portal)


def saved(portal: Any, oracle: Any, obj: Any) -> None:
    """Catalogue *obj* and commit; check that our words are those of a ZCatalog without transforms of the file."""
    recatalogue(portal, obj)
    path = "/".join(obj.getPhysicalPath())
    with without_transform(files.PDF):
        oracle.catalog_object(obj, path, idxs=["SearchableText"], update_metadata=0)
    assert words(portal.portal_catalog, path) == words(oracle, path)


@pytest.mark.parametrize("reads_all", [False, True])
def test_an_odd_content_type_stops_no_save(
    portal: Any, worker: Any, oracle: Any, extractor: Any, reads_all: bool
) -> None:
    if reads_all:
        extractor(Quokka())
    for number, kind in enumerate(KINDS):
        obj = odd(portal, f"file-{number}", kind, "wombat")
        saved(portal, oracle, obj)
        work(worker)
        assert queued(worker.dsn) == [], kind
        transaction.begin()
        found = words(portal.portal_catalog, f"/plone/file-{number}")
        assert found in (["wombat"], ["quokka", "wombat"], ["wombat", "x"]), kind
        obj.reindexObject()
        transaction.commit()
        assert words(portal.portal_catalog, f"/plone/file-{number}") == found, kind


def test_any_result_of_an_indexer_has_the_words_of_zcatalog_and_of_the_file(
    portal: Any, worker: Any, oracle: Any
) -> None:
    for number, text in enumerate(TEXTS):
        saved(portal, oracle, odd(portal, f"file-{number}", text=text))
        before = words(portal.portal_catalog, f"/plone/file-{number}")
        work(worker)
        transaction.begin()
        assert words(portal.portal_catalog, f"/plone/file-{number}") == sorted({*before, "x"}), text
        # Once more, with the text stored.
        portal[f"file-{number}"].reindexObject()
        transaction.commit()
        assert words(portal.portal_catalog, f"/plone/file-{number}") == sorted({*before, "x"}), text
    assert queued(worker.dsn) == []


def without(name: str) -> Callable[[Any], None]:
    def change(obj: Any) -> None:
        delattr(obj.file, name)

    return change


def with_file(make: Callable[[], Any]) -> Callable[[Any], None]:
    return lambda obj: setattr(obj, "file", make())


def no_blob(obj: Any) -> None:
    obj.file._blob = None


def gone_blob(obj: Any) -> None:
    """Replace the blob by one removed by a pack."""
    blob = Blob()
    blob._p_jar, blob._p_oid = obj._p_jar, obj._p_jar.new_oid()
    blob._p_changed = None
    obj.file._blob = blob


FILES: dict[str, Callable[[Any], None]] = {
    "no file": with_file(lambda: None),
    "no data": with_file(lambda: NamedBlobFile(b"", contentType=files.PDF)),
    "no blob": with_file(lambda: NamedFile(b"x", contentType=files.PDF)),
    "a text": with_file(lambda: "application/pdf"),
    "blob that is None": no_blob,
    "lost blob": without("_blob"),
    "lost content type": without("contentType"),
    "blob that is gone": gone_blob,
}


def test_an_odd_file_stops_no_save_and_no_worker(portal: Any, worker: Any, oracle: Any) -> None:
    for number, (name, change) in enumerate(FILES.items()):
        obj = odd(portal, f"file-{number}", text="wombat")
        transaction.commit()
        change(obj)
        saved(portal, oracle, obj)
        work(worker)
        transaction.begin()
        # A file without a content type is known by its bytes.
        expected = ["wombat", "x"] if name == "lost content type" else ["wombat"]
        assert words(portal.portal_catalog, f"/plone/file-{number}") == expected, name
    assert [reason for (reason,) in queued(worker.dsn) if "PDF" not in reason] == []


def test_a_primary_field_that_cannot_be_read_stops_no_save(portal: Any, worker: Any) -> None:
    manager = getGlobalSiteManager()

    def fail(obj: Any) -> None:
        raise error("odd")

    obj = odd(portal, "file", text="wombat")
    transaction.commit()
    manager.registerAdapter(fail, (IOdd,), IPrimaryFieldInfo)
    try:
        for error in (TypeError, ValueError, KeyError, AttributeError, RuntimeError):
            recatalogue(portal, obj)
            assert words(portal.portal_catalog, "/plone/file") == ["wombat"], error
            assert work(worker) == 0 or queued(worker.dsn) == [], error
    finally:
        manager.unregisterAdapter(fail, (IOdd,), IPrimaryFieldInfo)


def outcome(catalog: Any, obj: Any) -> type[Exception] | None:
    """Catalogue *obj*; return the type of the exception, or None."""
    try:
        catalog.catalog_object(obj, "/plone/file", idxs=["SearchableText"])
    except Exception as raised:  # noqa: BLE001  whatever it is, both must raise it
        return type(raised)
    return None


def test_failing_indexer_acts_as_in_zcatalog(portal: Any, oracle: Any) -> None:
    obj = odd(portal, "file")
    for error in (AttributeError, ValueError, KeyError):
        obj.said = error("odd")
        assert outcome(portal.portal_catalog, obj) == outcome(oracle, obj), error
    transaction.abort()


@pytest.mark.parametrize("fails", [False, True])
def test_odd_text_of_an_extractor_is_stored_as_postgresql_accepts_it(
    portal: Any, worker: Any, extractor: Any, fails: bool
) -> None:
    texts = ("a\0b", "a\ud800b", "x" * 900_000)

    class Odd(Counted):
        def extract(self, path: str, kind: str) -> str:
            self.count += 1
            if fails:
                raise ExtractionError(texts[self.count - 1])
            return texts[self.count - 1]

    extractor(Odd())
    for number in range(len(texts)):
        odd(portal, f"file-{number}", text="wombat", data=str(number)).reindexObject()
        transaction.commit()
        work(worker)
        assert len(queued(worker.dsn)) == (number + 1 if fails else 0)
        transaction.begin()
        assert "wombat" in words(portal.portal_catalog, f"/plone/file-{number}")
