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
from plone.pgcatalog.files.extractor import LONGEST_TEXT
from plone.pgcatalog.indexes.cached_attributes import CachedAttributes
from plone.pgcatalog.settings import SOURCE_INDEX
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


logger = logging.getLogger(__name__)

#: Name of the kind of jobs that find the text of a file.
KIND = "text"
#: Characters of a content type.
LONGEST_KIND = 255

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
# The blobs of the files of an object of which nothing is known.
KEEP_OTHERS = """
WITH others AS MATERIALIZED (
    SELECT blob.zoid, blob.tid
    FROM object_state object CROSS JOIN unnest(object.refs) AS file_zoid JOIN object_state file ON file.zoid = file_zoid
    CROSS JOIN unnest(file.refs) AS blob_zoid JOIN object_state blob ON blob.zoid = blob_zoid
    WHERE object.zoid = %(zoid)s AND (file.class_mod, file.class_name) = ('plone.namedfile.file', 'NamedBlobFile')
        AND (blob.class_mod, blob.class_name) = ('ZODB.blob', 'Blob')
        AND NOT EXISTS (SELECT FROM pgcatalog_file_blobs known WHERE (known.zoid, known.tid) = (blob.zoid, blob.tid))
), nothing AS (
    INSERT INTO pgcatalog_file_texts (digest, kind, bytes, text, extractor, error)
    SELECT %(digest)s, '', 0, '', '', '' WHERE EXISTS (TABLE others) ON CONFLICT DO NOTHING
)
INSERT INTO pgcatalog_file_blobs (zoid, tid, digest) SELECT zoid, tid, %(digest)s FROM others ON CONFLICT DO NOTHING
"""
#: The digest of no bytes: that of files whose text is not asked for.
NO_BYTES = hashlib.sha256(b"").digest()

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
        """Return (zoid, tid) of the blob, None for one that is not committed as it is, or gone."""
        if self.blob._p_oid is None or self.blob._p_changed:
            return None
        try:
            serial = serial_of(self.blob)
        except POSKeyError:
            return None
        return None if serial == z64 else (u64(self.blob._p_oid), u64(serial))


def ready_extractor() -> Any:
    """Return the utility that extracts texts, None if there is none that is ready."""
    extractor = queryUtility(ITextExtractor)
    return extractor if extractor is not None and extractor.is_ready else None


def file_of(obj: Any, extractor: Any) -> File | None:
    """Return the primary file of *obj*, an object or what stands before it for indexing; None without one *extractor* reads."""
    if IIndexableObjectWrapper.providedBy(obj):
        obj = obj._getWrappedObject()
    value = primary_value(obj)
    kind: Any = getattr(value, "contentType", None)
    blob: Any = getattr(value, "_blob", None)
    if not INamedBlobFile.providedBy(value) or not isinstance(blob, Blob) or not is_content_type(kind):
        return None
    return File(kind, blob) if extractor.kinds(kind) else None


def primary_value(obj: Any) -> Any:
    """Return the value of the primary field of *obj*; None if there is none, or its adapter fails."""
    try:
        return getattr(IPrimaryFieldInfo(obj, None), "value", None)
    except TransientError:
        raise
    except Exception:  # an add-on's adapter: an object that ZCatalog catalogues without it is saved
        logger.exception("the primary field of %r cannot be read", obj)
        return None


def is_content_type(value: Any) -> bool:
    """True for what can be one: objects keep whatever was put there."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_KIND and value.isascii() and value.isprintable()


def take_file_text(catalog: Any, obj: Any, source: CachedAttributes) -> frozenset[str]:
    """Give *source*, which stands before *obj*, the SearchableText of an object with a file; return the kinds of jobs it needs.

    That is what its indexer says without Plone's transform of the file, and the text of the file, if it is known.  Raises
    what the indexer raises, AttributeError excepted.
    """
    extractor = ready_extractor()
    if extractor is None or not settings.text_of_files(catalog.tool):
        return frozenset()
    file = file_of(obj, extractor)
    if file is None:
        return frozenset()
    with without_transform(file.kind):
        words = getattr(source, SOURCE_INDEX, None)
    text = known_text(catalog.session, file)
    if text is None:
        return frozenset({KIND})
    if text.text:
        # As ZCTextIndex: an indexer may return several texts, and what is none of them has no words.  The text of the file
        # stays by itself, as its words may be known.
        parts = words if isinstance(words, (list, tuple, set)) else [words]
        source.__dict__[SOURCE_INDEX] = [part for part in parts if isinstance(part, str)] + [text.text]
    return frozenset()


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
    if version is not None:
        fetch_blob(connection, file.blob._p_jar, version)
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


def keep_others(connection: Connection[Any], zoid: int) -> None:
    """Note that the text of no further file of the object *zoid* is asked for: only its primary file has one."""
    connection.execute(KEEP_OTHERS, {"zoid": zoid, "digest": NO_BYTES})


def extracted(path: str, kind: str, extractor: Any) -> Text:
    """Return what *extractor* makes of the file at *path*, a failure for good included.  Raises ExtractionError for others."""
    try:
        return Text(storable(extractor.extract(path, kind))[:LONGEST_TEXT], "")
    except ExtractionError as error:
        if not error.for_good:
            raise
        return Text("", storable(str(error)))
