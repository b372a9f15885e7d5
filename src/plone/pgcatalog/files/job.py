"""The jobs that read a file: one extracts its text, one recognises its scanned pages; both catalogue the object."""

from abc import ABC
from abc import abstractmethod
from Acquisition import aq_base
from collections.abc import Mapping
from dataclasses import replace
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.needed import file_classes
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.files import scans
from plone.pgcatalog.files import texts
from plone.pgcatalog.files.empty import REASONS
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import IScanReader
from plone.pgcatalog.files.recognition import recognise
from plone.pgcatalog.files.texts import File
from plone.pgcatalog.files.texts import FileText
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.kind import NothingFound
from plone.pgcatalog.queue.kind import ShortKind
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.worker import put_needed
from plone.pgcatalog.queue.worker import tool_path
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.settings import text_of_files
from plone.pgcatalog.settings import text_of_scans
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.storage import database_dsn
from plone.pgcatalog.storage import writable_dsn_of
from psycopg import Connection
from psycopg.sql import Identifier
from psycopg.sql import SQL
from typing import Any
from ZODB.POSException import ConflictError
from ZODB.POSException import POSKeyError
from ZODB.utils import p64
from zope.interface import implementer

import transaction


#: Most attempts to catalogue an object after conflicts with other transactions.
ATTEMPTS = 3

# The objects of a catalog that refer to a file.
FILES = SQL("""
SELECT DISTINCT rows.zoid FROM {relation} AS rows JOIN object_state AS objects USING (zoid)
CROSS JOIN unnest(objects.refs) AS ref JOIN object_state AS files ON files.zoid = ref
WHERE files.class_mod = 'plone.namedfile.file' AND files.class_name = ANY(%s)
""")
# Failures, which another extractor or another version of it may not have.
FORGET_ERRORS = "DELETE FROM pgcatalog_file_texts WHERE error <> '' AND (scans = 0 OR languages <> '{}')"
FORGET_SCANS = read_statement("files", "forget_scans")
FAILED_SCANS = f"""
DELETE FROM pgcatalog_queue WHERE kind = '{texts.SCAN}' AND catalog = %s AND due = 'infinity' RETURNING subject
"""
RELATION = "SELECT relation FROM pgcatalog_state WHERE catalog = %s"


def settings_changed(tool: Any, former: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Queue, with the commit, a job that puts the jobs for the files of *tool* if a setting that requires them is now on.

    *former* and *now* are the settings of its site.
    """
    switched = (s for s in (text_of_files, text_of_scans) if now.get(s.name) and not former.get(s.name, s.default))
    if any(switched) and tool._p_jar is not None:
        tool._core.change().own_jobs |= {texts.KIND}


class FileJob(ShortKind, ABC):
    """A kind of jobs that store a text of an object's primary file, and reindex the object's SearchableText.

    A failed job of the kind *other* for the same object is deleted if ``ends_other``: its reason is obsolete.
    """

    other = ""

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """Do *job*.  Raises JobFailed if the file has no text, and database errors.

        A job about the catalog itself puts the jobs that its files need.
        """
        if job.subject == job.catalog:
            with connect(str(database_dsn(database)), "needed jobs", 0) as connection:
                put_needed(connection, job.catalog)
            return
        for attempt in range(1, ATTEMPTS + 1):
            try:
                error = self._once(database, job)
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise
            else:
                break
        if error:
            raise NothingFound(error) if error in REASONS else JobFailed(error)

    def _once(self, database: Any, job: Job) -> str:
        """Do *job* once; return the reason why the file has no text, "" if it has one or does not exist any more."""
        path = tool_path(database, job.catalog)
        if path is None:
            return ""
        with opened_at(database, path) as tool:
            text = self._text(tool, job)
            if text is not None:
                # A new snapshot, which includes the text.
                transaction.begin()
                rows = rows_of(tool, job.subject)
                if rows:
                    tool._core.change().is_backfill = job.is_backfill
                    for path, obj in rows.items():
                        tool.catalog_object(obj, path, idxs=[SOURCE_INDEX], update_metadata=0)
                    transaction.commit()
        return text.error if text is not None else ""

    def _text(self, tool: Any, job: Job) -> FileText | None:
        """Return the text of the file of the object of *job*; None if the object need not be catalogued.

        Other files of the object are recorded as files without a text.  Raises JobFailed.
        """
        extractor = texts.ready_extractor()
        with_scans = texts.with_scans(tool, extractor)
        obj = next(iter(rows_of(tool, job.subject).values()), None)
        file = None if obj is None else texts.file_of(obj, texts.reads(extractor, with_scans))
        with connect(writable_dsn_of(tool._p_jar), "text of file", 0) as connection:
            try:
                languages = scans.languages_of(tool) if with_scans else []
                text = None if file is None else self._read(connection, job, file, extractor, languages)
            except POSKeyError:
                text = None  # a pack has removed the blob
            except ExtractionError as error:
                raise JobFailed(str(error), error.for_good) from error
            if self.ends_other(text):
                connection.execute(table.DROP_FAILED, job.values | {"kind": self.other})
            texts.store_others(connection, job.subject, file_classes(with_scans))
        return text

    @abstractmethod
    def _read(
        self, connection: Connection[Any], job: Job, file: File, extractor: Any, languages: list[str]
    ) -> FileText | None:
        """Return the text of *file*, stored now; None if it is not complete.  Raises ExtractionError and POSKeyError."""

    @abstractmethod
    def ends_other(self, text: FileText | None) -> bool:
        """True if a failure of the other kind no longer applies to the file, whose text is *text*."""


@implementer(IJobKind)
class TextOfFile(FileJob):
    """The kind of jobs that extract the text of a file; they put a job for scanned pages."""

    other = texts.SCAN

    @property
    def is_ready(self) -> bool:
        return texts.ready_extractor() is not None

    def needed(self, jobs: NeededJobs) -> list[int]:
        """Return the zoids of the objects with a file whose text is not stored, or failed with another extractor.

        Empty without an extractor.
        """
        extractor = texts.ready_extractor()
        if extractor is None:
            return []
        reads = texts.reads(extractor, jobs.with_scans and IScanReader.providedBy(extractor))
        return jobs.files(reads, extractor.name)

    def _read(
        self, connection: Connection[Any], job: Job, file: File, extractor: Any, languages: list[str]
    ) -> FileText | None:
        text = texts.extract(connection, file, extractor)
        if not text.lacks(languages):
            return text
        with connection.transaction(), connection.cursor() as cursor:
            table.put(cursor, texts.SCAN, job.catalog, [job.subject])
        return replace(text, error="")

    def ends_other(self, text: FileText | None) -> bool:
        # The pages of a scan that have no text may be behind others.
        return text is None or bool(text.error) or not text.scans


@implementer(IJobKind)
class ScanOfFile(FileJob):
    """The kind of jobs that recognise the scanned pages of a file, behind all other jobs."""

    other = texts.KIND

    @property
    def is_ready(self) -> bool:
        return IScanReader.providedBy(texts.ready_extractor()) and bool(scans.installed())

    def needed(self, jobs: NeededJobs) -> list[int]:
        """Return the zoids of the objects with a file with scanned pages that were never recognised; [] without Tesseract."""
        return jobs.scans() if self.is_ready else []

    def _read(
        self, connection: Connection[Any], job: Job, file: File, extractor: Any, languages: list[str]
    ) -> FileText | None:
        return recognise(connection, job, file, extractor, languages)

    def ends_other(self, text: FileText | None) -> bool:
        return text is not None


def rows_of(tool: Any, zoid: int) -> dict[str, Any]:
    """Return path -> object for each row of the object with the oid *zoid* in the catalog *tool*, for example one per language.

    A row at a path that leads nowhere gets the object of another row; a row whose path leads to another object is left out.
    Empty if no path leads to the object.
    """
    paths = [path for (path,) in tool._core.view().select("path", Condition("zoid = %s", (zoid,))).value()]
    found = {path: tool.unrestrictedTraverse(path, None) for path in paths}
    rows = {path: obj for path, obj in found.items() if getattr(aq_base(obj), "_p_oid", None) == p64(zoid)}
    lost = [path for path, obj in found.items() if obj is None]
    return rows | dict.fromkeys(lost, next(iter(rows.values()))) if rows else {}


def repeat_failed(connection: Connection[Any], catalog: int) -> int:
    """Delete stored failures, of all catalogs, and repeat the failed jobs of *catalog*; return the number of jobs.

    The files are read from the beginning.  *connection* is an autocommit connection.
    """
    connection.execute(FORGET_ERRORS)
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(FORGET_SCANS, {"catalog": catalog})
        zoids = [zoid for (zoid,) in cursor.execute(FAILED_SCANS, (catalog,)).fetchall()]
        table.put(cursor, texts.KIND, catalog, zoids, is_backfill=True)
    return len(zoids) + table.repeat(connection, catalog, texts.KIND)


def put_all(connection: Connection[Any], catalog: int) -> int:
    """Queue a job for each object of *catalog* that has a file in a blob; return the number of jobs."""
    classes = file_classes(NeededJobs(executing(connection), catalog).with_scans)
    zoids = objects_with_files(connection, catalog, classes)
    with connection.transaction(), connection.cursor() as cursor:
        table.put(cursor, texts.KIND, catalog, zoids, is_backfill=True)
    return len(zoids)


def objects_with_files(connection: Connection[Any], catalog: int, classes: list[str]) -> list[int]:
    """Return the zoids of the objects of *catalog* that refer to a file of plone.namedfile's *classes*."""
    rows = connection.execute(RELATION, (catalog,)).fetchall()
    if not rows:
        return []
    files = connection.execute(FILES.format(relation=Identifier(rows[0][0])), (classes,))
    return [zoid for (zoid,) in files.fetchall()]
