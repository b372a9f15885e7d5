"""The content type of a file: by its first bytes and its structure, then its name, then the type that the upload said.

Needs the standard library only.  Whatever a file is, some 100 KB of it are read, and up to 2 MB of the directory of an
archive.  Content types are in lower case, without parameters.
"""

from codecs import BOM_UTF16_BE
from codecs import BOM_UTF16_LE
from collections.abc import Callable
from collections.abc import Iterator
from lzma import LZMAError
from mimetypes import guess_type
from mimetypes import types_map
from pathlib import Path
from struct import unpack_from
from typing import Any
from typing import BinaryIO
from zipfile import BadZipFile
from zipfile import ZipFile

import re
import zlib


def _table() -> tuple[dict[str, str], dict[str, str]]:
    """Return content type or alias -> content type, and ending -> content type, of kinds.txt.

    The list is stored, since importing the library would take much memory in Zope.
    """
    kinds: dict[str, str] = {}
    endings: dict[str, str] = {}
    for line in Path(__file__).with_name("kinds.txt").read_text("utf-8").splitlines():
        kind, *names = line.split()
        kinds[kind] = kind
        for name in names:
            (endings if name.startswith(".") else kinds)[name] = kind
    return kinds, endings


_ALIASES, _ENDINGS = _table()
#: Content types of the files that the package extracts text from, and their aliases.
KINDS = frozenset(_ALIASES)
#: Content types that the extractor is called with.
READ = frozenset(_ALIASES.values())
#: Most characters of a content type.
LONGEST_KIND = 255
#: Bytes read from the start of a file.
HEAD = 1 << 16
#: Most bytes of the directory of an archive, and of a member that names the content type.
DIRECTORY = 2 << 20
MEMBER = 1 << 18
#: Most sectors of a directory of an OLE file that are read, and the signature of such a file.
SECTORS = 64
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

UNKNOWN = "application/octet-stream"
ENCRYPTED = "application/encrypted"
#: Content types that say nothing about a file.
GENERIC = frozenset(
    {
        "",
        UNKNOWN,
        "application/binary",
        "application/download",
        "application/force-download",
        "application/save",
        "application/unknown",
        "application/x-download",
        "application/x-unknown",
        "binary/octet-stream",
        "unknown/unknown",
    }
)
#: First parts of content types whose files have no text.
NO_TEXT = ("audio", "font", "image", "model", "video")
#: Of these, no file of an unknown type needs a look; texts of other types are catalogued by Plone.
UNREAD = (*NO_TEXT, "text")

#: Content types of pictures whose text may be recognised, and their aliases.
_PICTURES = "bmp gif jpeg jpg pjpeg png tif tiff webp x-bmp x-ms-bmp x-png x-tiff"
PICTURES = frozenset(f"image/{name}" for name in _PICTURES.split())

#: First bytes -> content type, for formats whose first bytes are enough.
SIGNATURES = {
    b"{\\rtf": "application/rtf",
    b"\x1f\x8b": "application/gzip",
    b"7z\xbc\xaf\x27\x1c": "application/x-7z-compressed",
    b"\xffWPC": "application/vnd.wordperfect",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"II*\0": "image/tiff",
    b"MM\0*": "image/tiff",
    b"ID3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"\x1aE\xdf\xa3": "video/webm",
    b"wOFF": "font/woff",
    b"wOF2": "font/woff2",
    b"BZh": "application/x-bzip2",
    b"\xfd7zXZ\0": "application/x-xz",
    b"Rar!\x1a\x07": "application/vnd.rar",
    b"\x7fELF": "application/x-executable",
    b"SQLite format 3\0": "application/vnd.sqlite3",
    b"%!PS": "application/postscript",
}
#: The first record of an Excel sheet without a container, of Excel 2 to 4 as a rule: its number, size, version and kind.
_SHEET = re.compile(rb"\x09[\0\x02\x04\x08][\x04-\x10]\0..[\x05\x10\x20\x40\0][\0\x01]", re.DOTALL)
#: Stream or storage at the top of an OLE file -> content type.
STREAMS = {
    "EncryptedPackage": ENCRYPTED,
    "WordDocument": "application/msword",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
    "Workbook": "application/vnd.ms-excel",
    "Book": "application/vnd.ms-excel",
    "__properties_version1.0": "application/vnd.ms-outlook",
    "VisioDocument": "application/vnd.visio",
    "BodyText": "application/x-hwp",
}
#: Member of an archive -> content type, for archives that do not name theirs.
MEMBERS = {
    "word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xl/workbook.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xl/workbook.bin": "application/vnd.ms-excel.sheet.binary.macroenabled.12",
    "ppt/presentation.xml": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "META-INF/container.xml": "application/epub+zip",
    "Contents/content.hpf": "application/haansofthwpx",
}
#: Root element of an XML file -> content type.
ROOTS = {
    "html": "application/xhtml+xml",
    "svg": "image/svg+xml",
    "opml": "application/xml+opml",
    "fictionbook": "application/x-fictionbook+xml",
    "kml": "application/vnd.google-earth.kml+xml",
}
#: Content types of OLE files, for which programs and people take other files, too: sheets as text or HTML, and letters as RTF.
OFFICE = frozenset({"application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"})
#: Content types whose files are never texts; a text that is called so is one.
BINARY = OFFICE | {"application/pdf", *(f"image/{kind}" for kind in ("jpeg", "jpg", "png", "gif", "tiff", "webp"))}
#: Content types of texts beside text/*, XML and JSON.
TEXTS = frozenset(
    {
        "application/toml",
        "application/x-bibtex",
        "application/x-latex",
        "application/x-ndjson",
        "application/x-pubmed",
        "application/x-research-info-systems",
        "application/yaml",
    }
)
MAILS = ("message/rfc822",)
#: Content types of archives that do not name theirs.
INSIDE = tuple(f"application/x-iwork-{kind}" for kind in ("keynote-sffkey", "numbers-sffnumbers", "pages-sffpages"))
PDF = b"%PDF-"
ZIPS = (b"PK\x03\x04", b"PK\x05\x06")
BLANKS = b"\xef\xbb\xbf \t\r\n\f\0"
#: Numbers of sectors from here on mean that there is none.
FREE = 0xFFFFFFFA
#: The first member of a document whose archive is damaged.
_FIRST = re.compile(rb"PK\x03\x04.{22}\x08\0(?:\0\0|.{2})mimetype(application/[\w.+-]{1,80}?)(?=PK|$)", re.DOTALL)
_MAIN = re.compile(rb'ContentType="(application/vnd\.[\w.-]+?)(?:\.main\+xml|\.main)"', re.IGNORECASE)
_KIND = re.compile(r"\A[\w.+-]++/[\w.+-]++", re.ASCII)
_ODF = re.compile(rb'media-type="(application/vnd\.oasis\.opendocument\.[\w-]+)"')
_HTML = re.compile(
    r"\A(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|(?:html|head|body|title|meta|style|script|table|div|h1|p|center|font)\b)",
    re.IGNORECASE | re.DOTALL,
)
_ROOT = re.compile(r"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)")
_XML_HEAD = re.compile(
    r"\A(?:\s*+(?:<\?(?>.*?\?>)|<!--(?>.*?-->)|<!doctype[^>\[]*+(?:\[.*?\]\s*+)?>))*+\s*+", re.IGNORECASE | re.DOTALL
)
_FLAT = re.compile(r'office:mimetype="([\w./-]+)"')
_HEADER = re.compile(
    r"^(received|return-path|message-id|date|from|to|subject|mime-version|delivered-to|content-type):", re.I | re.M
)
#: Control characters that no text has; a form feed and an escape are in some.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def normal(said: Any) -> str:
    """Return the content type *said* in lower case, without parameters, and without its alias; "" if it is none.

    *said* is an attribute of an object, and may have any value.
    """
    if not isinstance(said, str) or len(said) > LONGEST_KIND:
        return ""
    kind = said.partition(";")[0].strip().lower()
    return _ALIASES.get(kind, kind) if _KIND.fullmatch(kind) else ""


def by_name(name: Any) -> str:
    """Return the content type that the end of the file name *name* says, "" without one; *name* may have any value."""
    if not isinstance(name, str):
        return ""
    ending = Path(name[-LONGEST_KIND:]).suffix.lower()
    guessed = normal(guess_type(f"x{ending}", strict=False)[0])
    return _ENDINGS.get(ending) or ("" if guessed in GENERIC else guessed)


def may_have_text(said: Any, name: Any, reads: Callable[[str], bool]) -> bool:
    """True if a file with the content type *said* and the file name *name* needs a job, which looks at its bytes.

    *reads*: True for a content type that the extractor reads.  Also true if the upload said nothing, or an unknown
    type, unless the name is one of a picture, a sound, or another file without a text.
    """
    kind, named = normal(said), by_name(name)
    if any(each and reads(each) for each in (kind, named)):
        return True
    return not named and (kind in GENERIC or (kind not in types_map.values() and kind.partition("/")[0] not in UNREAD))


def kind_of(path: str, name: str, said: str) -> str:
    """Return the content type of the file at *path*, with the file name *name*, of which the upload said it is *said*.

    Never an alias; UNKNOWN if nothing is known.  Raises OSError if the file cannot be read.
    """
    hints = [kind for kind in (by_name(name), normal(said)) if kind not in GENERIC]
    hint = hints[0] if hints else ""
    with Path(path).open("rb") as file:
        head = file.read(HEAD)
        if head.startswith(OLE):
            found = _of_ole(file, head)
        elif head.startswith(ZIPS):
            found = _of_zip(path, head, hint)
        else:
            found = _of_signature(head, hints) or _of_text(head, hints)
    return normal(found) or hint or UNKNOWN


def is_text(kind: str) -> bool:
    """True if a file of the content type *kind* is a sequence of characters."""
    return kind.startswith("text/") or kind.endswith(("xml", "json", "+opml")) or kind in TEXTS


def _of_signature(head: bytes, hints: list[str]) -> str:
    """Return the content type that the first bytes *head* of a file say, "" if they say none."""
    start = head.lstrip(BLANKS)
    found = next((kind for signature, kind in SIGNATURES.items() if start.startswith(signature)), "")
    # Some programs write lines before the first one of a PDF; and a text may be about this format.
    if start.startswith(PDF) or (PDF in head[:1024] and "application/pdf" in hints):
        return "application/pdf"
    if found:
        return found
    if _SHEET.match(head):
        return "application/vnd.ms-excel"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    if head[4:8] == b"ftyp":
        return "image/heic" if head[8:12] in (b"heic", b"heix", b"mif1", b"avif") else "video/mp4"
    if head.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "video/x-msvideo")
    return ""


def _of_ole(file: BinaryIO, head: bytes) -> str:
    """Return the content type of the OLE *file* by the names at the top of its directory, "" if it has none of STREAMS."""
    names = set(names_of_ole(file, head))
    return next((kind for name, kind in STREAMS.items() if name in names), "")


def names_of_ole(file: BinaryIO, head: bytes) -> Iterator[str]:
    """Yield the names of the streams and storages at the top of the OLE *file* [MS-CFB], which begins with *head*."""
    # 512 or 4096 bytes, by version 3 or 4 of the format.
    if len(head) < 512 or (shift := unpack_from("<H", head, 30)[0]) not in (9, 12):
        return
    size = 1 << shift
    tables = unpack_from("<109I", head, 76)

    def sector(number: int) -> bytes:
        file.seek((number + 1) * size)
        return file.read(size)

    entries: list[bytes] = []
    (number,) = unpack_from("<I", head, 48)
    for _ in range(SECTORS):
        data = sector(number) if number < FREE else b""
        entries += [data[at : at + 128] for at in range(0, len(data) - 127, 128)]
        block, place = divmod(number, size // 4)
        if block >= len(tables) or tables[block] >= FREE or len(table := sector(tables[block])) < size:
            break
        (number,) = unpack_from("<I", table, 4 * place)
    # A tree: each entry has a left one, a right one, and the top of the entries inside of it.
    waiting = [unpack_from("<I", entries[0], 76)[0]] if entries else []
    seen = set()
    while waiting:
        index = waiting.pop()
        if index < len(entries) and index not in seen:
            seen.add(index)
            entry = entries[index]
            yield entry[: max(unpack_from("<H", entry, 64)[0] - 2, 0)][:62].decode("utf-16-le", "replace")
            waiting += unpack_from("<2I", entry, 68)


class _Bounded:
    """The binary file *file*, of which no more than DIRECTORY bytes are read at once; a larger read raises BadZipFile."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > DIRECTORY:
            raise BadZipFile("the directory is too large")
        return self._file.read(size if size >= 0 else DIRECTORY)


def _of_zip(path: str, head: bytes, hint: str) -> str:
    """Return the content type of the archive at *path*, whose first bytes are *head*: of the document, if it is one."""
    first = _FIRST.match(head)
    try:
        with Path(path).open("rb") as file, ZipFile(_Bounded(file)) as archive:
            names = set(archive.namelist())

            def member(name: str) -> bytes:
                if name not in names:
                    return b""
                with archive.open(name) as stream:
                    data: bytes = stream.read(MEMBER)
                    return data

            kind = normal(member("mimetype").decode("ascii", "replace").strip())
            if not kind and (odf := _ODF.search(member("META-INF/manifest.xml"))):
                kind = odf[1].decode()
            if not kind and (main := _MAIN.search(member("[Content_Types].xml"))):
                kind = f"{main[1].decode()}.12" if b"macroenabled" in main[1].lower() else main[1].decode()
    except (BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, zlib.error, LZMAError, OSError):
        # It is damaged, or encrypted: the reader says so.
        return normal(first[1].decode()) if first else hint or "application/zip"
    if kind:
        return kind
    found = next((kind for name, kind in MEMBERS.items() if name in names), "")
    return found or (hint if hint in INSIDE else "application/zip")


def _of_text(head: bytes, hints: list[str]) -> str:
    """Return the content type of a file that begins with *head* if this is a text, "" otherwise.

    *hints* are the content types according to its name, and to what the upload said.
    """
    text = _decoded(head)
    if text is None:
        return ""
    of_texts = (kind for kind in hints if is_text(kind) or kind in MAILS)
    hint = next(of_texts, next(iter(hints), ""))
    start = text.lstrip("\ufeff \t\r\n\f")
    is_sheet = hint in ("application/vnd.ms-excel", "text/csv", "text/tab-separated-values")
    if start[:5].lower() == "<?xml" or (start.startswith("<") and "xml" in hint):
        return hint if "xml" in hint or hint == "text/plain" else _of_xml(start)
    if _HTML.match(start) and (is_sheet or not is_text(hint)):
        return "text/html"
    if is_text(hint):
        return hint
    if hint and hint not in BINARY and hint not in MAILS:
        return ""
    if len(set(_HEADER.findall(start.partition("\n\n")[0][:4096].lower()))) > 1 and start[:1].isalpha():
        return "message/rfc822"
    if hint in MAILS:
        return ""
    if is_sheet:
        line = start.partition("\n")[0]
        return "text/tab-separated-values" if "\t" in line else "text/csv"
    return "text/plain"


def _of_xml(start: str) -> str:
    """Return the content type of the XML document that begins with *start*."""
    root = _ROOT.match(_XML_HEAD.sub("", start))
    flat = _FLAT.search(start)
    if flat and root and root[1] == "document":
        return flat[1] if flat[1].endswith("graphics") else "application/xml"
    return ROOTS.get(root[1].lower(), "application/xml") if root else "application/xml"


def _decoded(head: bytes) -> str | None:
    """Return the first bytes *head* of a file as a text, None if they are none; only its ASCII characters are certain."""
    is_marked = head.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    text = head.decode("utf-16" if is_marked else wide(head) or "latin-1", "replace")
    return None if _CONTROL.search(text) else text


def wide(head: bytes) -> str:
    """Return the encoding of two bytes a character in which *head*, without a byte order mark, is a text of the West; or ""."""
    start = head[: 1 << 10]
    even, odd = start[::2].count(0), start[1::2].count(0)
    if 3 * max(even, odd) < len(start) or min(even, odd):
        return ""
    return ("utf-16-le" if odd > even else "utf-16-be") if start else ""
