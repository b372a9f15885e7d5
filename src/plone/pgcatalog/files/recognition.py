"""Recognition of the scanned pages of a file, in parts of SCAN_SECONDS, stored with the text of the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import LONGEST_TEXT
from plone.pgcatalog.files.extractor import RecognisedText
from plone.pgcatalog.files.texts import File
from plone.pgcatalog.files.texts import FileText
from plone.pgcatalog.files.texts import KIND
from plone.pgcatalog.files.texts import LOCK_DIGEST
from plone.pgcatalog.files.texts import SCAN
from plone.pgcatalog.fulltext.text_index import in_one_line
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.sql.values import storable
from plone.pgcatalog.storage import fetch_blob
from psycopg import Connection
from typing import Any


#: Seconds until the next attempt if another worker recognises the same bytes.
PAUSE = 30.0
#: Only one worker recognises the same bytes.  Texts have another lock: they do not wait for it.
LOCK_SCAN = """
SELECT pg_try_advisory_xact_lock(hashtextextended('scan ' || encode(digest, 'hex'), 0))
FROM pgcatalog_file_blobs WHERE (zoid, tid) = (%s, %s)
"""
STORED_SCAN = """
SELECT texts.text, texts.error, texts.scans, texts.languages, texts.digest, texts.kind, texts.pages
FROM pgcatalog_file_blobs AS blobs JOIN pgcatalog_file_texts AS texts USING (digest, kind)
WHERE (blobs.zoid, blobs.tid) = (%s, %s)
"""
STORE = """
UPDATE pgcatalog_file_texts
SET text = %(text)s, error = %(error)s, languages = %(languages)s, pages = %(pages)s, extracted_at = now()
WHERE (digest, kind) = (%(digest)s, %(kind)s)
"""
CATALOGS = "SELECT catalog FROM pgcatalog_state"


@dataclass(frozen=True, slots=True)
class Scan(FileText):
    """A stored text with its key, and the recognised texts of its first scanned *pages* while not all are recognised."""

    digest: bytes = b""
    kind: str = ""
    pages: Sequence[str] = ()


def recognise(
    connection: Connection[Any], job: Job, file: File, extractor: Any, languages: Sequence[str]
) -> FileText | None:
    """Recognise some of the scanned pages of *file*, for *job*, in *languages*; return the text of the file.

    None if the text is not complete, and the job is put again; or if no text of the file is stored, and a text job is put.
    Without languages, as if the setting was switched off, the text stays as it is.  The same bytes are recognised once in the
    same languages; other objects that have them get a job.
    *connection* is an autocommit connection to the database.  Raises ExtractionError and JobFailed for a temporary failure.
    """
    version = file.version
    if version is None:
        return None
    with connection.transaction():
        if connection.execute(LOCK_SCAN, version).fetchone() == (False,):
            raise JobFailed("", False, PAUSE)
        row = connection.execute(STORED_SCAN, version).fetchone()
        if row is None:
            with connection.cursor() as cursor:
                table.put(cursor, KIND, job.catalog, [job.subject])
            return None
        scan = Scan(*row)
        if not scan.lacks(languages):
            return scan
        fetch_blob(connection, file.blob._p_jar, version)
        both = list(dict.fromkeys([*languages, *scan.languages]))
        failure = ""
        try:
            with file.blob.open() as stream:
                found = extractor.recognise(stream.name, scan.kind, both, scan.pages)
        except ExtractionError as error:
            if not error.for_good and not job.is_last_attempt:
                raise
            # The pages that were recognised stay.
            failure, found = storable(str(error)), RecognisedText(scan.text, [], True)
        # Of a file without recognised text, the stored text stays.
        text = in_one_line(storable(found.text))[:LONGEST_TEXT] if any(found.pages) else scan.text
        values = {
            "digest": scan.digest,
            "kind": scan.kind,
            "text": text,
            "error": "" if text.strip() else failure or scan.error,
            "languages": both if found.is_complete else scan.languages,
            "pages": [] if found.is_complete else list(map(storable, found.pages)),
        }
        # A text job that has found the text incomplete has recorded its object now.
        connection.execute(LOCK_DIGEST, (scan.digest.hex(),))
        connection.execute(STORE, values)
        with connection.cursor() as cursor:
            if not found.is_complete:
                table.put(cursor, SCAN, job.catalog, [job.subject])
                return None
            put_others(connection, cursor, job, (scan.digest, scan.kind))
    return FileText(text, failure or str(values["error"]))


def put_others(connection: Connection[Any], cursor: Any, job: Job, key: tuple[bytes, str]) -> None:
    """Put a job for each other object, of all sites, with the text *key*: it catalogues the object."""
    for (catalog,) in connection.execute(CATALOGS).fetchall():
        zoids = NeededJobs(executing(connection), catalog).scans(key)
        own = {job.subject} if catalog == job.catalog else set()
        table.put(cursor, SCAN, catalog, set(zoids) - own)
