"""Texts of files, kept once for the bytes of a file: what stands in one is found without anybody converting it in a save.

The text is known by the digest of the bytes, and the digest by the blob that has them, so a changed title, a copy, another
version with the same file, a rebuild, or another site of the database extracts nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from plone.indexer.interfaces import IIndexableObjectWrapper
from plone.namedfile.interfaces import INamedBlobFile
from plone.pgcatalog import settings
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import ITextExtractor
from plone.pgcatalog.indexes.cached_attributes import CachedAttributes
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.rfc822.interfaces import IPrimaryFieldInfo
from Products.PortalTransforms.TransformEngine import TransformTool
from psycopg import Connection
from typing import Any
from ZODB.utils import u64
from ZODB.utils import z64
from zope.component import queryUtility

import hashlib


#: Name of the kind of jobs that find the text of a file.
KIND = "text"

KNOWN = """
SELECT texts.text, texts.error FROM pgcatalog_file_blobs AS blobs JOIN pgcatalog_file_texts AS texts USING (digest)
WHERE (blobs.zoid, blobs.tid) = (%s, %s)
"""
BY_DIGEST = "SELECT text, error FROM pgcatalog_file_texts WHERE digest = %s"
LOCK_DIGEST = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
KEEP_TEXT = """
INSERT INTO pgcatalog_file_texts (digest, kind, bytes, text, extractor, error)
VALUES (%(digest)s, %(kind)s, %(bytes)s, %(text)s, %(extractor)s, %(error)s)
ON CONFLICT (digest) DO UPDATE SET (text, extractor, error, extracted_at) = (EXCLUDED.text, EXCLUDED.extractor, EXCLUDED.error, now())
"""
KEEP_BLOB = """
INSERT INTO pgcatalog_file_blobs (zoid, tid, digest) VALUES (%s, %s, %s)
ON CONFLICT (zoid, tid) DO UPDATE SET digest = EXCLUDED.digest
"""

#: The content type that Plone's own transforms are not asked for, while the text of an object is taken that has such a file.
_hidden: ContextVar[str | None] = ContextVar("hidden", default=None)


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file, empty with an *error* that says why there is none."""

    text: str
    error: str


@dataclass(frozen=True, slots=True)
class File:
    """The file of an object: its content type, and the ZODB's *blob*."""

    kind: str
    blob: Any

    @property
    def version(self) -> tuple[int, int] | None:
        """Return (zoid, tid) of the blob, None for one that is not committed as it is."""
        self.blob._p_activate()
        if self.blob._p_oid is None or self.blob._p_changed or self.blob._p_serial in (None, z64):
            return None
        return u64(self.blob._p_oid), u64(self.blob._p_serial)


def ready_extractor() -> Any:
    """Return the utility that extracts texts, None if there is none that is ready."""
    extractor = queryUtility(ITextExtractor)
    return extractor if extractor is not None and extractor.is_ready else None


def file_of(obj: Any, extractor: Any) -> File | None:
    """Return the primary file of *obj*, an object or what stands before it for indexing; None without one *extractor* reads."""
    if IIndexableObjectWrapper.providedBy(obj):
        obj = obj._getWrappedObject()
    info = IPrimaryFieldInfo(obj, None)
    value: Any = None if info is None else info.value
    if not INamedBlobFile.providedBy(value) or not extractor.kinds(value.contentType):
        return None
    return File(value.contentType, value._blob)


def words_with_file(session: Any, obj: Any, file: File) -> tuple[str, bool]:
    """Return the SearchableText of *obj* with the known text of its *file*, and True if that is still to be extracted.

    Raises what the indexer raises, AttributeError included.
    """
    with without_transform(file.kind):
        words = getattr(obj, SOURCE_INDEX)
        words = words() if callable(words) else words
    text = known_text(session, file)
    if text is None or not text.text:
        return words, text is None
    return f"{words} {text.text}", False


def take_file_text(catalog: Any, obj: Any, source: CachedAttributes) -> frozenset[str]:
    """Give *source*, which stands before *obj*, the SearchableText of an object with a file; return the kinds of jobs it needs."""
    extractor = ready_extractor()
    if extractor is None or not settings.text_of_files(catalog.tool):
        return frozenset()
    file = file_of(obj, extractor)
    if file is None:
        return frozenset()
    try:
        text, is_missing = words_with_file(catalog.session, obj, file)
    except AttributeError:
        return frozenset()
    source.__dict__[SOURCE_INDEX] = text
    return frozenset({KIND} if is_missing else ())


def known_text(session: Any, file: File) -> Text | None:
    """Return the text of *file* as the snapshot of *session* knows it, else None."""
    version = file.version
    rows = [] if version is None else session.execute(KNOWN, version)
    return Text(*rows[0]) if rows else None


@contextmanager
def without_transform(kind: str) -> Iterator[None]:
    """Have Plone's transforms of the content type *kind* to text count as missing, in this thread."""
    token = _hidden.set(kind)
    try:
        yield
    finally:
        _hidden.reset(token)


_find_path = TransformTool._findPath


def _findPath(self: Any, orig: str, target: str, required_transforms: Any = ()) -> Any:
    return None if orig == _hidden.get() else _find_path(self, orig, target, required_transforms)


def hide_transforms() -> None:
    """Let ``without_transform`` be heard: indexers ask the transform tool for a path before they read a file; idempotent."""
    TransformTool._findPath = _findPath


def extract(connection: Connection[Any], file: File, extractor: Any) -> Text:
    """Return the text of the committed *file*; extracted, and kept, unless one of the same bytes is.

    *connection* is an autocommit connection to the database.  Raises ExtractionError for a failure that may pass, and
    what the storage raises for a blob that is gone.
    """
    version = file.version
    with file.blob.open() as stream, connection.transaction():
        digest = hashlib.file_digest(stream, "sha256").digest()
        # Of two workers with one file, the second one finds the text of the first.
        connection.execute(LOCK_DIGEST, (digest.hex(),))
        row = connection.execute(BY_DIGEST, (digest,)).fetchone()
        text = Text(*row) if row is not None else extracted(stream.name, file.kind, extractor)
        if row is None:
            values = {"digest": digest, "kind": file.kind, "bytes": stream.seek(0, 2), "extractor": extractor.name}
            connection.execute(KEEP_TEXT, values | {"text": text.text, "error": text.error})
        if version is not None:
            connection.execute(KEEP_BLOB, (*version, digest))
    return text


def extracted(path: str, kind: str, extractor: Any) -> Text:
    """Return what *extractor* makes of the file at *path*, a failure for good included.  Raises ExtractionError for others."""
    try:
        return Text(extractor.extract(path, kind), "")
    except ExtractionError as error:
        if not error.for_good:
            raise
        return Text("", str(error))
