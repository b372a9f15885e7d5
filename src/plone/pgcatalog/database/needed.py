"""Finds objects that lack the result of a job and have no job: files without text, pages without vectors.  Needs no Zope.

A rebuild creates rows without commits that queue jobs, and a dump may be restored without the tables of texts, chunks or
jobs.
"""

from collections.abc import Callable
from plone.pgcatalog.database.expected import Execute
from plone.pgcatalog.database.expected import NamedStatement
from plone.pgcatalog.database.expected import values_of
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.files.kinds import KINDS
from plone.pgcatalog.files.kinds import may_have_text
from plone.pgcatalog.files.kinds import normal
from plone.pgcatalog.files.kinds import READ
from plone.pgcatalog.sql.values import ROLES
from psycopg import sql
from typing import Any


NO_CHUNKS = sql.SQL("(SELECT NULL::bigint AS zoid WHERE false)")
PUBLIC = sql.SQL(
    "rows.{roles} IN (SELECT number FROM pgcatalog_sets WHERE name = {name} AND vals @> ARRAY['Anonymous']::text[])"
)


#: Conditions of needed_scans.sql.
UNRECOGNISED = sql.SQL("texts.languages = '{}'")
OF_TEXT = sql.SQL("(texts.digest, texts.kind) = (%(digest)s, %(kind)s)")

#: A statement that returns no rows.
NO_ROWS: NamedStatement = ("SELECT WHERE false", {})


def content_types() -> frozenset[str]:
    """Return the content types that the extractor is called with; files may have aliases of them."""
    return READ


def is_read(content_type: str) -> bool:
    """Return whether the package extracts text from files of *content_type*."""
    return normal(content_type) in KINDS


def file_classes(with_scans: bool) -> list[str]:
    """Return the names of the classes of files that may have a text; *with_scans*: with images."""
    return ["NamedBlobFile", "NamedBlobImage"] if with_scans else ["NamedBlobFile"]


def settings_statement(catalog: int) -> NamedStatement:
    """Return the statement for the *rows* of ``NeededJobs``, for the catalog with tool oid *catalog*."""
    return load_sql("needed"), {"catalog": catalog}


def files_in(rows: list[Any], reads: Callable[[str], bool] = is_read) -> list[int]:
    """Return the zoids in *rows* of ``NeededJobs.files_statement`` whose files may have a text, see ``may_have_text``."""
    return sorted({zoid for zoid, kind, name in map(values_of, rows) if may_have_text(kind, name, reads)})


class NeededJobs:
    """The jobs that the catalog with tool oid *catalog* needs and that are not queued; read with *execute*.

    *rows* are the rows of ``settings_statement``, read here by default.  ``settings`` are the settings of the catalog's
    site, which are part of the stored state of the tool.
    """

    def __init__(self, execute: Execute, catalog: int, rows: list[Any] | None = None) -> None:
        self.execute = execute
        self.catalog = catalog
        rows = execute(*settings_statement(catalog)) if rows is None else rows
        self.exists = bool(rows)
        self.settings: dict[str, Any] = {}
        #: True if there is a text of some file, or a job that extracts one
        self.has_texts = False
        #: True if a job for the tables of chunks is queued
        self.has_table_job = False
        self._tables: list[dict[str, Any]] = []
        for row in rows:
            self.relation, self._columns, settings, tables, *flags = values_of(row)
            self.settings = settings if isinstance(settings, dict) else {}
            self._tables = tables
            self.has_texts, self.has_table_job = flags

    @property
    def with_scans(self) -> bool:
        """True if the site recognises the text of scanned pages and of pictures."""
        return bool(self.settings.get("text_of_scans", False))

    @property
    def embedder(self) -> str:
        """The URL of the site's embedder; "" if there is none."""
        return str(self.settings.get("embedder_url") or "").strip()

    def table(self) -> dict[str, Any] | None:
        """Return ``name`` and ``is_complete`` of the newest table of chunks for the site's embedder; None if there is none."""
        model, prefix = (str(self.settings.get(f"embedder_{name}") or "") for name in ("model", "passage_prefix"))
        fitting = (t for t in self._tables if (t["model"], t["passage_prefix"]) == (model.strip(), prefix))
        return next(fitting, None)

    def files(self, reads: Callable[[str], bool] = is_read, extractor: str | None = None) -> list[int]:
        """Return the zoids of the objects with a file without text that may have one; *reads* as for ``may_have_text``.

        With the name of an *extractor*, failures of others count as files without text.
        """
        return files_in(self.execute(*self.files_statement(extractor)), reads)

    def files_statement(self, extractor: str | None = None) -> NamedStatement:
        """Return the statement for objects with a file without text, of any content type; see ``files``, ``files_in``."""
        if not self.exists or not self.settings.get("text_of_files", True):
            return NO_ROWS
        statement = sql.SQL(load_sql("needed_texts")).format(relation=sql.Identifier(self.relation))
        classes = file_classes(self.with_scans)
        return statement.as_string(), {"catalog": self.catalog, "extractor": extractor, "classes": classes}

    def scans(self, text: tuple[bytes, str] | None = None) -> list[int]:
        """Return the zoids of the objects whose file has scanned pages that were never recognised, and that have no job.

        With the key of a *text*, (digest, kind), those of all objects with this text instead.  Empty if the setting is off.
        """
        if not (self.exists and self.with_scans and self.settings.get("text_of_files", True)):
            return []
        values = {"catalog": self.catalog} | ({"digest": text[0], "kind": text[1]} if text else {})
        statement = sql.SQL(load_sql("needed_scans")).format(
            relation=sql.Identifier(self.relation), condition=OF_TEXT if text else UNRECOGNISED
        )
        return [zoid for (zoid,) in map(values_of, self.execute(statement.as_string(), values))]

    def pages(self, chunks: str | None = None) -> list[int]:
        """Return the zoids of the pages without a chunk in the table *chunks*, by default the one of ``table``.

        Empty for a site without an embedder; all pages if there is no such table.
        """
        return [zoid for (zoid,) in map(values_of, self.execute(*self.pages_statement(chunks)))]

    def pages_statement(self, chunks: str | None = None) -> NamedStatement:
        """Return the statement of ``pages``, with one row per page."""
        if not self.exists or not self.embedder:
            return NO_ROWS
        table = self.table()
        name = chunks or (table["name"] if table else None)
        statement = sql.SQL(load_sql("needed_vectors")).format(
            relation=sql.Identifier(self.relation),
            chunks=NO_CHUNKS if name is None else sql.Identifier(name),
            visible=self._visible(),
        )
        return statement.as_string(), {"catalog": self.catalog}

    def _visible(self) -> sql.Composable:
        """Return the condition for rows that get vectors: all rows, or the rows that anonymous users may see."""
        if self.settings.get("meaning_of_private", True):
            return sql.SQL("true")
        if ROLES.name not in self._columns:
            return sql.SQL("false")
        return PUBLIC.format(roles=sql.Identifier(ROLES.name), name=sql.Literal(ROLES.name))
