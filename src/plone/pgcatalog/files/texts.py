"""Texts of files, stored once per content, so that no save has to convert a file.

The key of a text is the digest of the file's bytes with its content type, and the key of these is the blob (zoid, tid).  So a
changed title, a copy, another version with the same file, a rebuild, or another site in the database needs no further
extraction; and a text that was read with a wrong type is no text of the same bytes with the right one.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from plone.indexer.interfaces import IIndexableObjectWrapper
from plone.namedfile.interfaces import INamedBlobFile
from plone.pgcatalog import settings
from plone.pgcatalog.files.charset import in_utf8
from plone.pgcatalog.files.empty import reason
from plone.pgcatalog.files.empty import reason_unread
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import IScanReader
from plone.pgcatalog.files.extractor import ITextExtractor
from plone.pgcatalog.files.extractor import LONGEST_TEXT
from plone.pgcatalog.files.kinds import kind_of
from plone.pgcatalog.files.kinds import may_have_text
from plone.pgcatalog.files.kinds import normal
from plone.pgcatalog.files.kinds import PICTURES
from plone.pgcatalog.fulltext.text_index import in_one_line
from plone.pgcatalog.fulltext.text_index import TextOfFile
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.indexes.cached_attributes import CachedAttributes
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.values import storable
from plone.pgcatalog.storage import fetch_blob
from plone.pgcatalog.storage import serial_of
from plone.rfc822.interfaces import IPrimaryFieldInfo
from Products.PortalTransforms.TransformEngine import TransformTool
from psycopg import Connection
from transaction.interfaces import TransientError
from typing import Any
from ZODB.blob import Blob
from ZODB.POSException import POSKeyError
from ZODB.utils import u64
from ZODB.utils import z64
from zope.component import queryUtility

import hashlib
import logging
import os


logger = logging.getLogger(__name__)

#: Name of the kind of jobs that extract the text of a file, and of the kind that recognise its scanned pages.
KIND = "text"
SCAN = "scan"
KINDS = (KIND, SCAN)
#: Content types that Plone converts itself, with its own words of a file in UTF-8: they are found at once.
PLONES = frozenset({"text/plain", "text/html"})
#: Characters of a text that was decoded with the wrong encoding: an invalid byte, UTF-16, ISO-2022.
GARBLED = ("\ufffd", "\0", "\x1b")

STORED_TEXT = """
SELECT texts.text, texts.error FROM pgcatalog_file_blobs AS blobs JOIN pgcatalog_file_texts AS texts USING (digest, kind)
WHERE (blobs.zoid, blobs.tid) = (%s, %s)
"""
# Another extractor may have no such failure.
KNOWN = (
    "SELECT text, error, scans, languages FROM pgcatalog_file_texts WHERE (digest, kind) = (%(digest)s, %(kind)s)"
    " AND (error = '' OR extractor = %(extractor)s)"
)
LOCK_DIGEST = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
STORE_TEXT = read_statement("files", "store_text")
STORE_BLOB = """
INSERT INTO pgcatalog_file_blobs (zoid, tid, digest, kind) VALUES (%s, %s, %s, %s)
ON CONFLICT (zoid, tid) DO UPDATE SET (digest, kind) = (EXCLUDED.digest, EXCLUDED.kind)
"""
STORE_OTHERS = read_statement("files", "store_others")
#: The digest of the empty string, recorded for files whose text is not needed.
NO_BYTES = hashlib.sha256(b"").digest()

#: The content type without Plone's transforms, while the SearchableText of an object with such a file is computed.
_hidden: ContextVar[str | None] = ContextVar("hidden", default=None)


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, or "" and an *error*, the reason why there is none.

    *scans* is the number of its scanned pages, *languages* are those in which they were recognised.
    """

    text: str
    error: str
    scans: int = 0
    languages: Sequence[str] = ()

    def lacks(self, languages: Sequence[str]) -> bool:
        """True if scanned pages of the file were not recognised in one of *languages*."""
        return self.scans > 0 and not set(languages) <= set(self.languages)


@dataclass(frozen=True, slots=True)
class File:
    """The file of an object: the content type *said* by the upload, its file *name*, and its ZODB *blob*."""

    said: str
    name: str
    blob: Any

    @property
    def version(self) -> tuple[int, int] | None:
        """(zoid, tid) of the blob; None if it has uncommitted changes or does not exist any more."""
        if self.blob._p_oid is None or self.blob._p_changed:
            return None
        try:
            serial = serial_of(self.blob)
        except POSKeyError:
            return None
        return None if serial == z64 else (u64(self.blob._p_oid), u64(serial))


def ready_extractor() -> Any:
    """Return the utility that extracts texts; None if there is none, or it is not ready."""
    extractor = queryUtility(ITextExtractor)
    return extractor if extractor is not None and extractor.is_ready else None


def with_scans(tool: Any, extractor: Any) -> bool:
    """True if the site of the catalog *tool* recognises scanned pages and pictures, and *extractor* can do so."""
    return bool(settings.text_of_scans(tool) and IScanReader.providedBy(extractor))


def reads(extractor: Any, with_pictures: bool) -> Callable[[str], bool]:
    """Return the function that is True for a content type that *extractor* reads; *with_pictures*: or recognises."""
    if not with_pictures:
        return extractor.kinds  # type: ignore[no-any-return]
    return lambda kind: kind in PICTURES or extractor.kinds(kind)


def file_of(obj: Any, reads: Callable[[str], bool]) -> File | None:
    """Return the primary file of *obj*, an object or its indexable wrapper.

    None without a file that may have a text, by the content types for which *reads* is true.
    """
    if IIndexableObjectWrapper.providedBy(obj):
        obj = obj._getWrappedObject()
    value = primary_value(obj)
    said, name, blob = (getattr(value, attribute, None) for attribute in ("contentType", "filename", "_blob"))
    if not INamedBlobFile.providedBy(value) or not isinstance(blob, Blob):
        return None
    if not may_have_text(said, name, reads):
        return None
    return File(said if isinstance(said, str) else "", name if isinstance(name, str) else "", blob)


def primary_value(obj: Any) -> Any:
    """Return the value of the primary field of *obj*; None if there is none, or its adapter raises."""
    try:
        return getattr(IPrimaryFieldInfo(obj, None), "value", None)
    except TransientError:
        raise
    except Exception:  # an add-on's adapter: ZCatalog does not call it, so its errors must not prevent the save
        logger.exception("the primary field of %r cannot be read", obj)
        return None


def add_file_text(catalog: Any, obj: Any, source: CachedAttributes) -> frozenset[str]:
    """Put the stored text of the file of *obj* into *source*; return the kinds of jobs that are still needed.

    *source* caches the attributes of *obj*.  Its SearchableText becomes the value of the indexer, without Plone's transform
    of the file, plus the stored text.  The words that Plone finds in text/plain and text/html stay if it has decoded them
    well, and until there is a stored text.  Raises the errors of the indexer, except AttributeError.
    """
    extractor = ready_extractor()
    if extractor is None or not settings.text_of_files(catalog.tool):
        return frozenset()
    file = file_of(obj, reads(extractor, with_scans(catalog.tool, extractor)))
    if file is None:
        return frozenset()
    is_plones = normal(file.said) in PLONES
    with nullcontext() if is_plones else without_transform(file.said):
        words = getattr(source, SOURCE_INDEX, None)
    version = file.version
    rows = [] if version is None else catalog.session.execute(STORED_TEXT, version)
    if not rows:
        return frozenset({KIND})
    [(text, _error)] = rows
    if is_plones:
        if not is_garbled(words):
            return frozenset()
        if 0 < len(text) < LONGEST_TEXT:
            source.__dict__.pop(SOURCE_INDEX)
            with without_transform(file.said):
                words = getattr(source, SOURCE_INDEX, None)
    if text:
        # As in ZCTextIndex, an indexer may return several texts, and only strings have words.  The text of the file is an
        # element of its own, so that its words may come from the cache.
        parts = words if isinstance(words, (list, tuple, set)) else [words]
        source.__dict__[SOURCE_INDEX] = [part for part in parts if isinstance(part, str)] + [TextOfFile(text)]
    return frozenset()


def is_garbled(words: Any) -> bool:
    """True if *words*, the value of an indexer, has characters of a file that was decoded with the wrong encoding."""
    parts = words if isinstance(words, (list, tuple, set)) else [words]
    return any(sign in part for part in parts if isinstance(part, str) for sign in GARBLED)


@contextmanager
def without_transform(kind: str) -> Iterator[None]:
    """Hide Plone's transforms of the content type *kind*, in this thread."""
    token = _hidden.set(kind)
    try:
        yield
    finally:
        _hidden.reset(token)


_find_path = TransformTool._findPath


def _findPath(self: Any, orig: str, target: str, required_transforms: Any = ()) -> Any:
    return None if orig == _hidden.get() else _find_path(self, orig, target, required_transforms)


def hide_transforms() -> None:
    """Patch the transform tool for ``without_transform``: indexers look up a path of transforms before they read a file.

    Idempotent.
    """
    TransformTool._findPath = _findPath


def extract(connection: Connection[Any], file: File, extractor: Any) -> FileText:
    """Return the text of the committed *file*; unless a text of the same bytes and kind is stored, extract and store it.

    *connection* is an autocommit connection to the database.  Raises ExtractionError for a temporary failure, and the error
    of the storage (POSKeyError) for a blob that does not exist any more.
    """
    version = file.version
    if version is not None:
        fetch_blob(connection, file.blob._p_jar, version)
    with file.blob.open() as stream, connection.transaction():
        digest = hashlib.file_digest(stream, "sha256").digest()
        # Of two workers with the same bytes, the second one waits here and finds the text of the first.
        connection.execute(LOCK_DIGEST, (digest.hex(),))
        kind = kind_of(stream.name, file.name, file.said)
        values = {"digest": digest, "kind": kind, "extractor": extractor.name}
        row = connection.execute(KNOWN, values).fetchone()
        text = FileText(*row) if row is not None else read(stream.name, kind, file.said, extractor)
        if row is None:
            values |= {"bytes": stream.seek(0, 2), "text": text.text, "error": text.error, "scans": text.scans}
            connection.execute(STORE_TEXT, values)
        if version is not None:
            connection.execute(STORE_BLOB, (*version, digest, kind))
    return text


def store_others(connection: Connection[Any], zoid: int, classes: list[str]) -> None:
    """Record all other files, of *classes*, of the object *zoid* as files without a text: only the primary one's is needed."""
    connection.execute(STORE_OTHERS, {"zoid": zoid, "digest": NO_BYTES, "classes": classes})


def read(path: str, kind: str, said: str, extractor: Any) -> FileText:
    """Return the text of the file at *path*, whose content type is *kind* and which the upload called *said*.

    Without a text the error is the reason, as of a permanent failure.  Raises ExtractionError for a temporary one.
    """
    if not extractor.kinds(kind):
        return FileText("", stored(reason_unread(kind)), int(kind in PICTURES))
    try:
        with in_utf8(path, kind, said) as readable:
            extracted = extractor.extract(readable, kind)
    except ExtractionError as error:
        if not error.for_good:
            raise
        return FileText("", storable(str(error)))
    text, scans = in_one_line(storable(extracted))[:LONGEST_TEXT], getattr(extracted, "scans", 0)
    if text.strip() or os.path.getsize(path) == 0:
        return FileText(text, "", scans)
    return FileText("", stored(reason(path, kind)), scans)
