"""Reasons why a file has no text, as far as its content type and its bytes show them."""

from pathlib import Path
from plone.pgcatalog.files.kinds import ENCRYPTED
from plone.pgcatalog.files.kinds import HEAD
from plone.pgcatalog.files.kinds import NO_TEXT
from plone.pgcatalog.i18n import _

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


def reason(path: str, kind: str) -> str:
    """Return a message that says why the reader has found no text in the file at *path* of the content type *kind*."""
    with Path(path).open("rb") as file:
        head = file.read(HEAD)
        if kind == "application/pdf":
            return _of_pdf(head + file.read(SEARCHED))
    return next((message for part, message in MESSAGES.items() if part in kind), _("no text was found in it"))


def _of_pdf(data: bytes) -> str:
    if _DRAWN.search(data):
        return _("its fonts (Type 3) draw letters without saying which")
    if _PICTURE.search(data):
        return _("its pages are pictures, as in a scan")
    return _("no page has a text; perhaps it is a scan")


def reason_unread(kind: str) -> str:
    """Return a message that says why files of the content type *kind* are not read; "" for those that never have a text."""
    if kind == ENCRYPTED:
        return _("it is encrypted")
    if kind.partition("/")[0] in NO_TEXT:
        return ""
    return _("files of this format are not read: ${kind}", {"kind": kind})
