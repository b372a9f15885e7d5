"""The index ``kind_of_file`` for the facet of a search page: kinds of files, their titles, the indexer, and a job that fills it."""

from collections.abc import Mapping
from itertools import batched
from plone.indexer import indexer
from plone.namedfile.interfaces import INamed
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.files.job import ATTEMPTS
from plone.pgcatalog.files.job import objects_with_files
from plone.pgcatalog.files.job import rows_of
from plone.pgcatalog.files.kinds import by_name
from plone.pgcatalog.files.kinds import GENERIC
from plone.pgcatalog.files.kinds import normal
from plone.pgcatalog.files.texts import primary_value
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexing.jobs import CatalogKind
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.settings import search_facets
from plone.pgcatalog.storage import writable_dsn_of
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from typing import Any
from zope.interface import implementer
from zope.interface import Interface

import transaction


#: The name of the index, and of the kind of jobs that fill it.
INDEX = "kind_of_file"
#: Classes of files of which an object refers to one.
CLASSES = ["NamedBlobFile", "NamedBlobImage", "NamedFile", "NamedImage"]
#: Number of objects that are catalogued in one transaction.
BATCH = 100

#: Kind -> its title, and beginnings of its content types without aliases; the first kind that fits counts.
#: Names of programs and formats are not translated.
KINDS = {
    "pdf": ("PDF", "application/pdf"),
    "word": (
        "Word",
        "application/msword application/vnd.ms-word application/vnd.openxmlformats-officedocument.wordprocessingml",
    ),
    "excel": ("Excel", "application/vnd.ms-excel application/vnd.openxmlformats-officedocument.spreadsheetml"),
    "powerpoint": (
        "PowerPoint",
        "application/vnd.ms-powerpoint application/vnd.openxmlformats-officedocument.presentationml",
    ),
    "opendocument": ("OpenDocument", "application/vnd.oasis.opendocument application/vnd.sun.xml"),
    "html": (_("Web page"), "text/html application/xhtml+xml"),
    "email": (_("E-mail"), "message/ application/vnd.ms-outlook application/mbox"),
    "ebook": (_("E-book"), "application/epub+zip application/x-fictionbook application/x-mobipocket-ebook"),
    "archive": (
        _("Archive"),
        "application/zip application/gzip application/x-tar application/x-7z application/x-bzip application/x-xz"
        " application/vnd.rar application/x-rar",
    ),
    "image": (_("Image"), "image/"),
    "audio": (_("Audio"), "audio/ application/ogg"),
    "video": (_("Video"), "video/"),
    "text": (
        _("Text"),
        "text/ application/rtf application/json application/xml application/yaml application/toml application/x-latex"
        " application/x-ndjson",
    ),
}
TITLES = {kind: title for kind, (title, _types) in KINDS.items()}


def kind_of_content_type(content_type: str) -> str | None:
    """Return the kind of files of *content_type*, which is in lower case and no alias; None if no kind fits."""
    fits = (kind for kind, (_title, types) in KINDS.items() if content_type.startswith(tuple(types.split())))
    return next(fits, None)


def kind_of_file(file: Any) -> str | None:
    """Return the kind of *file*, the value of a field, by its content type; by its name if that says nothing."""
    said = normal(getattr(file, "contentType", None))
    return kind_of_content_type(by_name(getattr(file, "filename", None)) if said in GENERIC else said)


@indexer(Interface)  # type: ignore[untyped-decorator]
def kind_of_primary_file(obj: Any) -> str:
    """Return the kind of the primary file of *obj*.  Raises AttributeError without a file, or for one of another kind."""
    value = primary_value(obj)
    kind = kind_of_file(value) if INamed.providedBy(value) else None
    if kind is None:
        raise AttributeError(INDEX)
    return kind


def settings_changed(tool: Any, now: Mapping[str, Any]) -> None:
    """Add the index to the catalog *tool*, and queue the job that fills it, if its site has the facet and no index.

    *now* are the settings of the site.
    """
    if INDEX in (now.get(search_facets.name) or ()) and INDEX not in tool.indexes() and tool._p_jar is not None:
        tool.addIndex(INDEX, FieldIndex(INDEX))
        tool._core.change().own_jobs |= {INDEX}


@implementer(IJobKind)
class KindsOfFiles(CatalogKind):
    """Fills the index ``kind_of_file`` of a catalog."""

    def do(self, tool: Any, arguments: dict[str, Any], progress: Progress) -> None:
        """Index the objects of the catalog *tool* that have a file, BATCH of them in a transaction."""
        if INDEX not in tool.indexes():
            return
        with connect(writable_dsn_of(tool._p_jar), "kinds of files", 0) as connection:
            zoids = objects_with_files(connection, tool._core.zoid, CLASSES)
        done = 0
        for batch in batched(zoids, BATCH):
            for attempt in transaction.manager.attempts(ATTEMPTS):
                with attempt:
                    for zoid in batch:
                        for path, obj in rows_of(tool, zoid).items():
                            tool.catalog_object(obj, path, idxs=[INDEX], update_metadata=0)
            done += len(batch)
            progress.report(done, len(zoids), _("Indexing files"))
