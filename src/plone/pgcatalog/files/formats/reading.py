"""The reader of each kind of file."""

from collections.abc import Callable
from olefile import isOleFile
from plone.pgcatalog.files.formats import archive
from plone.pgcatalog.files.formats import library
from plone.pgcatalog.files.formats import mail
from plone.pgcatalog.files.formats import ole
from plone.pgcatalog.files.formats import opendocument
from plone.pgcatalog.files.formats import pdf
from plone.pgcatalog.files.formats import presentations
from plone.pgcatalog.files.formats import scan
from plone.pgcatalog.files.formats import sheets
from plone.pgcatalog.files.formats import slides
from plone.pgcatalog.files.formats import web
from plone.pgcatalog.files.formats import word
from plone.pgcatalog.files.formats import workbooks
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.kinds import kind_of
from plone.pgcatalog.files.kinds import READ

import re


Reader = Callable[[str, str, Parts], str]

#: Pattern of content types -> reader; xberg reads the others.
READERS: dict[str, Reader] = {
    r"application/pdf": pdf.read,
    r"image/.*": scan.read_picture,
    r".*\.wordprocessingml\..*|application/vnd\.ms-word\..*": word.read,
    r".*\.presentationml\..*|application/vnd\.ms-powerpoint\..*": slides.read,
    r".*\.spreadsheetml\..*|application/vnd\.ms-excel\.(?!sheet\.binary).*": sheets.read,
    r"application/vnd\.oasis\.opendocument\..*": opendocument.read,
    r"message/rfc822|multipart/related": mail.read,
    r"(application|text)/(x-)?rtf": library.read_rtf,
    r"application/msword": ole.read_document,
    r"application/vnd\.ms-excel": workbooks.read,
    r"application/vnd\.ms-powerpoint": presentations.read,
    r"application/vnd\.ms-outlook": ole.read_mail,
    r"application/epub\+zip": web.read_book,
    r"application/(x-)?zip(-compressed)?": archive.read_zip,
    r"application/x-g?tar": archive.read_tar,
    r"application/(x-)?gzip": archive.read_gzip,
    r"text/html|application/xhtml\+xml": web.read_html,
    r"(text|application)/xml": web.read_xml,
    r"text/(plain|csv|tab-separated-values|calendar|vcard|troff)": web.read_text,
}
PATTERNS = [(re.compile(pattern), reader) for pattern, reader in READERS.items()]
#: Ligatures of fonts, which are two letters for a search.
LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
#: Characters without a shape, other than those between lines and pages.
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]+")


def read(path: str, name: str, kind: str, parts: Parts) -> str:
    """Return the text of the file at *path*, with the content type *kind*, "" if it is not known.  Raises Unreadable."""
    kind = (kind or "").partition(";")[0].strip().lower()
    reader = next((reader for pattern, reader in PATTERNS if pattern.fullmatch(kind)), None)
    text = library.read(path, kind, parts) if reader is None else reader(path, name, parts)
    return CONTROLS.sub(" ", text.translate(LIGATURES)).strip(" \t\r\n")


def read_part(path: str, name: str, said: str, parts: Parts) -> str:
    """Return the text of a part, whose container states the content type *said* or ""; "" for a picture or the like.

    Raises Unreadable.
    """
    kind = kind_of(path, name, said)
    if kind in READ:
        return read(path, name, kind, parts)
    return ole.read_object(path, name, parts) if isOleFile(path) else ""
