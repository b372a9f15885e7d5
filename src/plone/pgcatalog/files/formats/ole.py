"""Files of Microsoft's older container: attachments of Outlook's mails, and files embedded in Office documents."""

from io import BytesIO
from olefile import OleFileIO
from plone.pgcatalog.files.formats import library
from plone.pgcatalog.files.formats.parts import LARGEST_PART
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable

import re


#: Streams of an attachment: its data, and its long or short name in UTF-16 or in bytes.
DATA = "__substg1.0_37010102"
NAMES = ("__substg1.0_3707001F", "__substg1.0_3704001F", "__substg1.0_3707001E", "__substg1.0_3704001E")
#: Streams of an embedded object whose content is a file.
FILES = ("Package", "CONTENTS", "EmbeddedOdf", "Contents")
NATIVE = "\x01Ole10Native"
#: The head of a native object: lengths and flags, name and path of the file, path of its copy.
NATIVE_HEAD = re.compile(rb".{6}([^\0]*)\0[^\0]*\0.{4}(.{4})[^\0]*\0(.{4})", re.DOTALL)
OLE_ERRORS = (OSError, ValueError, IndexError, AttributeError)


def read_mail(path: str, name: str, parts: Parts) -> str:
    """Return the text of the mail of Outlook at *path*, and of its attachments.  Raises Unreadable."""
    texts = [library.read(path, "application/vnd.ms-outlook", parts)]
    try:
        with OleFileIO(path) as ole:
            for entry in ole.listdir():
                # Attachments of a mail in the mail are in deeper folders; xberg has read their texts.
                if len(entry) == 2 and entry[1] == DATA and ole.get_size(entry) <= LARGEST_PART:
                    data = BytesIO(ole.openstream(entry).read())
                    texts.append(parts.text(attachment_name(ole, entry[0]), "", data))
    except OLE_ERRORS as error:
        parts.errors.append(f"{type(error).__name__}: {error}")
    return "\n".join(filter(None, texts))


def attachment_name(ole: OleFileIO, folder: str) -> str:
    """Return the name of the attachment in *folder*."""
    for stream in NAMES:
        if ole.exists([folder, stream]):
            data = ole.openstream([folder, stream]).read(1024)
            return str(data.decode("utf-16-le" if stream.endswith("F") else "cp1252", "replace")).strip("\0 ")
    return ""


def read_object(path: str, name: str, parts: Parts) -> str:
    """Return the text of the file in the embedded object at *path*.  Raises Unreadable."""
    try:
        with OleFileIO(path) as ole:
            for stream in (NATIVE, *FILES):
                if ole.exists(stream) and ole.get_size(stream) <= LARGEST_PART:
                    data = ole.openstream(stream).read()
                    head = NATIVE_HEAD.match(data) if stream == NATIVE else None
                    file_name = head[1].decode("cp1252", "replace") if head else ""
                    return parts.text(file_name, "", BytesIO(data[head.end() :] if head else data))
    except OLE_ERRORS as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    raise Unreadable("an object without a file")
