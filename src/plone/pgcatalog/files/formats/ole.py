"""Files of Microsoft's older container: attachments of Outlook's mails, and files embedded in Office documents."""

from codecs import lookup
from collections.abc import Sequence
from io import BytesIO
from olefile import isOleFile
from olefile import OleFileIO
from pathlib import Path
from plone.pgcatalog.files.formats import library
from plone.pgcatalog.files.formats import wordperfect
from plone.pgcatalog.files.formats.parts import LARGEST_PART
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from struct import unpack

import re


#: Streams of an attachment: its data, and its long or short name in UTF-16 or in bytes.
DATA = "__substg1.0_37010102"
NAMES = ("__substg1.0_3707001F", "__substg1.0_3704001F", "__substg1.0_3707001E", "__substg1.0_3704001E")
#: Streams of an embedded object whose content is a file.
NATIVE = "\x01Ole10Native"
OBJECTS = (NATIVE, "Package", "CONTENTS", "EmbeddedOdf", "Workbook", "Book")
#: The head of a native object: lengths and flags, name and path of the file, path of its copy.
NATIVE_HEAD = re.compile(rb".{6}([^\0]*)\0[^\0]*\0.{4}(.{4})[^\0]*\0(.{4})", re.DOTALL)
OLE_ERRORS = (OSError, ValueError, IndexError, AttributeError)
#: Code pages of Unicode, of a Macintosh, and of Windows in Excel 2 to 4.
ENCODINGS = {1200: "utf-16-le", 10000: "mac_roman", 0x8000: "mac_roman", 0x8001: "cp1252"}
#: Properties of a document that are texts.
PROPERTIES = ("title", "subject", "keywords", "comments", "author")


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
    texts = objects(path, parts, depth=1)
    if not texts:
        raise Unreadable("an object without a file")
    return texts[0]


def read_document(path: str, name: str, parts: Parts) -> str:
    """Return the text of the document of Word before .docx at *path*, and of the files in it.  Raises Unreadable."""
    if not isOleFile(path):
        return wordperfect.read(path)
    return "\n".join([library.read(path, "application/msword", parts), *objects(path, parts, 3)])


def objects(path: str, parts: Parts, depth: int) -> list[str]:
    """Return the texts of the files in the objects that are *depth* levels deep in the OLE file at *path*."""
    texts: list[str] = []
    if not isOleFile(path):
        return texts
    try:
        with OleFileIO(path) as ole:
            for folder in dict.fromkeys(tuple(entry[:-1]) for entry in ole.listdir() if len(entry) == depth):
                # A workbook has its own stream in a folder, and the file at the top is no object.
                for stream in OBJECTS if folder else OBJECTS[:-2]:
                    if ole.exists([*folder, stream]) and ole.get_size([*folder, stream]) <= LARGEST_PART:
                        texts.append(object_text(ole.openstream([*folder, stream]).read(), stream == NATIVE, parts))
                        break
    except OLE_ERRORS as error:
        parts.errors.append(f"{type(error).__name__}: {error}")
    return texts


def object_text(data: bytes, is_native: bool, parts: Parts) -> str:
    """Return the text of the file that is the *data* of a stream, behind its name and size if it *is_native*."""
    head = NATIVE_HEAD.match(data) if is_native else None
    if head is None:
        return parts.text("", "", BytesIO(data))
    (size,) = unpack("<I", head[3])
    file_name = head[1].decode("cp1252", "replace")
    file = BytesIO(data[head.end() : head.end() + size])
    # Data of a program, such as a formula, begin otherwise.
    return parts.text(file_name if file_name.isprintable() else "", "", file)


def stream_of(path: str, names: Sequence[str]) -> bytes:
    """Return the bytes of the first stream of *names* in the file at *path*, or the whole file if it has no container.

    Raises Unreadable.
    """
    if not isOleFile(path):
        return Path(path).read_bytes()
    try:
        with OleFileIO(path) as ole:
            for name in names:
                if ole.exists(name):
                    return bytes(ole.openstream(name).read())
    except OLE_ERRORS as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    raise Unreadable(f"the file has no stream {names[-1]}")


def properties(path: str) -> list[str]:
    """Return the texts of the properties of the document at *path*; none of a broken file, or one without a container."""
    if not isOleFile(path):
        return []
    try:
        with OleFileIO(path) as ole:
            found = ole.get_metadata()
        values = [getattr(found, name) or b"" for name in PROPERTIES]
        page = encoding((found.codepage or 1252) & 0xFFFF)
    except OLE_ERRORS:
        return []
    texts = [value.decode(page, "replace") if isinstance(value, bytes) else str(value) for value in values]
    return [" ".join(text.partition("\0")[0].split()) for text in texts]


def encoding(page: int) -> str:
    """Return the name of the encoding of the code page with the number *page*; that of the West for an unknown one."""
    try:
        return lookup(ENCODINGS.get(page, f"cp{page}")).name
    except LookupError:
        return "cp1252"
