"""Reasons why a file has no text, as far as its content type and its bytes show them."""

from pathlib import Path
from plone.pgcatalog.files.kinds import ENCRYPTED
from plone.pgcatalog.files.kinds import HEAD
from plone.pgcatalog.files.kinds import NO_TEXT
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import stored

import re


#: Bytes of a PDF that are searched.
SEARCHED = 8 << 20
_PICTURE = re.compile(rb"/Subtype\s*/Image\b")
_DRAWN = re.compile(rb"/Subtype\s*/Type3\b")
#: Part of a content type -> message, for a file without a text.
MESSAGES = {
    "spreadsheet": _("no cell has a value"),
    "excel": _("no cell has a value"),
    "csv": _("no cell has a value"),
    "presentation": _("no slide has a text"),
    "powerpoint": _("no slide has a text"),
    "zip": _("no file in it has a text"),
    "7z": _("no file in it has a text"),
    "tar": _("no file in it has a text"),
    "word": _("it has no text, perhaps only pictures"),
    "opendocument": _("it has no text, perhaps only pictures"),
}
#: Reasons why the reader has found no text in a file that it has read.
_OF_PDF = (
    _("its fonts (Type 3) draw letters without saying which"),
    _("its pages are pictures, as in a scan"),
    _("no page has a text; perhaps it is a scan"),
)
_OTHER = _("no text was found in it")
REASONS = frozenset(map(stored, (*MESSAGES.values(), *_OF_PDF, _OTHER)))


def reason(path: str, kind: str) -> str:
    """Return a message that says why the reader has found no text in the file at *path* of the content type *kind*."""
    with Path(path).open("rb") as file:
        head = file.read(HEAD)
        if kind == "application/pdf":
            return _of_pdf(head + file.read(SEARCHED))
    return next((message for part, message in MESSAGES.items() if part in kind), _OTHER)


def _of_pdf(data: bytes) -> str:
    if _DRAWN.search(data):
        return _OF_PDF[0]
    return _OF_PDF[1 if _PICTURE.search(data) else 2]


def reason_unread(kind: str) -> str:
    """Return a message that says why files of the content type *kind* are not read; "" for those that never have a text."""
    if kind == ENCRYPTED:
        return _("it is encrypted")
    if kind.partition("/")[0] in NO_TEXT:
        return ""
    return _("files of this format are not read: ${kind}", {"kind": kind})
