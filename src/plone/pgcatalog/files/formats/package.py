"""Office files: zip archives of XML, whose parts refer to each other."""

from collections.abc import Iterator
from dataclasses import dataclass
from plone.pgcatalog.files.formats.markup import local
from plone.pgcatalog.files.formats.markup import Rules
from plone.pgcatalog.files.formats.markup import Text
from plone.pgcatalog.files.formats.markup import tree
from plone.pgcatalog.files.formats.markup import xml_text
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from typing import Any
from typing import IO
from urllib.parse import unquote

import posixpath
import zipfile
import zlib


#: Most bytes of a part that is read as a tree, such as a list of relationships.
LARGEST_TREE = 4 << 20
#: Errors of a damaged or encrypted archive.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
#: Title, subject, keywords, description and author of a document.
PROPERTIES = Rules(
    texts=frozenset({"title", "subject", "keywords", "keyword", "description", "creator", "initial-creator"}),
    blocks=frozenset({"title", "subject", "keywords", "keyword", "description", "creator", "initial-creator"}),
)


@dataclass(frozen=True)
class Related:
    """A part that another part refers to: the *id* of the relationship, its *kind*, and the *name* of the part."""

    id: str
    kind: str
    name: str


class Package:
    """The zip archive at *path*; *parts* has the limits.  Raises Unreadable for a file that is none."""

    def __init__(self, path: str, parts: Parts) -> None:
        try:
            self.archive = zipfile.ZipFile(path)
        except ZIP_ERRORS as error:
            with open(path, "rb") as stream:
                is_ole = stream.read(4) == b"\xd0\xcf\x11\xe0"
            # Office encrypts the archive as a whole, and puts it into an OLE file.
            raise Unreadable("the file is encrypted" if is_ole else f"not a zip archive: {error}") from error
        self.parts = parts
        # The last one of two parts with the same name is read; writers differ in / and \ and in cases.
        self.names = {info.filename.replace("\\", "/").lower(): info for info in self.archive.infolist()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self.names

    def open(self, name: str) -> IO[bytes]:
        """Return a stream of the part *name*.  Raises Unreadable."""
        try:
            return self.archive.open(self.names[name.lower()])
        except KeyError as error:
            raise Unreadable(f"the file has no part {name}") from error
        except ZIP_ERRORS as error:
            raise Unreadable(f"{name}: {error}") from error

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of the part *name*.  Raises Unreadable."""
        with self.open(name) as stream:
            try:
                yield from self.parts.chunks(stream)
            except ZIP_ERRORS as error:
                raise Unreadable(f"{name}: {error}") from error

    def tree(self, name: str) -> Any:
        """Return the root of the XML of the part *name*.  Raises Unreadable."""
        data = b""
        for chunk in self.chunks(name):
            data += chunk
            if len(data) > LARGEST_TREE:
                raise Unreadable(f"{name} is too large")
        return tree(data)

    def text(self, name: str, rules: Rules) -> str:
        """Return the text of the XML of the part *name* by *rules*.  Raises Unreadable."""
        return xml_text(self.chunks(name), Text(rules, self.parts.longest))

    def text_of(self, names: list[str], rules: Rules) -> list[str]:
        """Return the texts of those parts of *names* that can be read; the others add to the errors."""
        texts = []
        for name in names:
            try:
                texts.append(self.text(name, rules))
            except Unreadable as error:
                self.parts.errors.append(str(error))
        return [text for text in texts if text]

    def related(self, name: str = "") -> list[Related]:
        """Return the parts that the part *name*, or the file, refers to."""
        folder, base = posixpath.split(name)
        rels = posixpath.join(folder, "_rels", f"{base}.rels")
        if rels not in self:
            return []
        found = []
        for element in self.tree(rels):
            target = element.get("Target", "")
            if local(str(element.tag)) == "Relationship" and element.get("TargetMode") != "External":
                place = posixpath.normpath(
                    posixpath.join("/", folder, unquote(target) if target not in self else target)
                )
                kind = element.get("Type", "").rpartition("/")[2]
                found.append(Related(element.get("Id", ""), kind, place.lstrip("/")))
        return found

    def main(self) -> str:
        """Return the name of the part with the document.  Raises Unreadable."""
        for related in self.related():
            if related.kind == "officeDocument" and related.name in self:
                return related.name
        raise Unreadable("an Office file without a document")

    def properties(self, name: str) -> list[str]:
        """Return the texts of the properties of the document in the part *name*."""
        return self.text_of([name] if name in self else [], PROPERTIES)


def office_rules(*blocks: str) -> Rules:
    """Return the rules for Office's XML, with further *blocks*."""
    return Rules(
        texts=frozenset({"t", "text", "v"}),
        blocks=frozenset({"p", "tc", "rt", "cm", "comment", "pt", "shape", "sp", "text", *blocks}),
        # A drawing at an anchor stands beside its line, the others in it.
        blanks=frozenset({"tab", "ptab", "br", "cr", "pict", "inline", "object", "oMath", "den"}),
        marks={"noBreakHyphen": "-"},
        # A drawing in an older form, and text that was moved away.
        skipped=frozenset({"Fallback", "moveFrom", "pPr", "rPr", "sectPr", "tblPr"}),
        attributes=frozenset({"descr"}),
    )


#: Kinds of relationships to parts with text.
STORIES = frozenset({"chart", "chartEx", "diagramData", "comments", "threadedComment", "notesSlide"})
OFFICE = office_rules()
