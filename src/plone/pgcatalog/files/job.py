"""The job that extracts the text of a file, and catalogues the object with it."""

from Acquisition import aq_base
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.files import texts
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.scans import all_languages
from plone.pgcatalog.files.scans import languages_of
from plone.pgcatalog.files.scans import recognition
from plone.pgcatalog.files.texts import FileText
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.kind import ShortKind
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.queue.worker import tool_path
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.expression import Condition
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

# The objects of a catalog that refer to a file in a blob.
FILES = SQL("""
SELECT DISTINCT rows.zoid FROM {relation} AS rows JOIN object_state AS objects USING (zoid)
CROSS JOIN unnest(objects.refs) AS ref JOIN object_state AS files ON files.zoid = ref
WHERE (files.class_mod, files.class_name) = ('plone.namedfile.file', 'NamedBlobFile')
""")
# Failures, which another extractor or another version of it may not have.
FORGET_ERRORS = "DELETE FROM pgcatalog_file_texts WHERE error <> ''"
RELATION = "SELECT relation FROM pgcatalog_state WHERE catalog = %s"


@implementer(IJobKind)
class TextOfFile(ShortKind):
    """The kind of jobs that extract the text of an object's primary file, and reindex its SearchableText."""

    @property
    def is_ready(self) -> bool:
        return texts.ready_extractor() is not None

    def work(self, database: Any, job: Job, progress: Progress) -> None:
        """Do *job*.  Raises JobFailed if the text of the file cannot be extracted, and database errors."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                error = self._once(database, job)
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise
            else:
                break
        if error:
            raise JobFailed(error)

    def needed(self, jobs: NeededJobs) -> list[int]:
        """Return the zoids of the objects with a file whose text is not stored, or failed with another extractor.

        Empty without an extractor.
        """
        extractor = texts.ready_extractor()
        with recognition(all_languages(jobs.settings)):
            return [] if extractor is None else jobs.files(extractor.kinds, extractor.name)

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
        """Return the text of the file of the object of *job*; None if object or file do not exist any more.

        Other files of the object are recorded as files without a text.  Raises JobFailed.
        """
        extractor = texts.ready_extractor()
        obj = next(iter(rows_of(tool, job.subject).values()), None)
        file = None if obj is None else texts.file_of(obj, extractor)
        with connect(writable_dsn_of(tool._p_jar), "text of file", 0) as connection:
            try:
                with recognition(languages_of(tool)):
                    text = None if file is None else texts.extract(connection, file, extractor)
            except POSKeyError:
                text = None  # a pack has removed the blob
            except ExtractionError as error:
                raise JobFailed(str(error), error.for_good) from error
            texts.store_others(connection, job.subject)
        return text


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
    """Delete stored failures, of all catalogs, and retry the failed jobs of *catalog*; return the number of jobs.

    *connection* is an autocommit connection.
    """
    connection.execute(FORGET_ERRORS)
    return table.repeat(connection, catalog, texts.KIND)


def put_all(connection: Connection[Any], catalog: int) -> int:
    """Queue a job for each object of *catalog* that has a file in a blob; return the number of jobs."""
    rows = connection.execute(RELATION, (catalog,)).fetchall()
    if not rows:
        return 0
    zoids = [zoid for (zoid,) in connection.execute(FILES.format(relation=Identifier(rows[0][0]))).fetchall()]
    with connection.transaction(), connection.cursor() as cursor:
        table.put(cursor, texts.KIND, catalog, zoids, is_backfill=True)
    return len(zoids)
