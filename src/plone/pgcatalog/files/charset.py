"""The encoding of text files: a reader gets them in UTF-8.

The encoding is the one of the byte order mark; UTF-8 if the bytes are valid; the one that the upload or the file declares;
UTF-8 if most letters are valid; and cp1252 otherwise.
"""

from codecs import BOM_UTF8
from codecs import BOM_UTF16_BE
from codecs import BOM_UTF16_LE
from codecs import BOM_UTF32_BE
from codecs import BOM_UTF32_LE
from codecs import getincrementaldecoder
from codecs import lookup
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.pgcatalog.files.kinds import is_text
from plone.pgcatalog.files.kinds import wide
from tempfile import NamedTemporaryFile
from typing import BinaryIO

import re


#: Bytes of a file that are read at once, and characters in which a declaration is searched.
CHUNK = 1 << 20
DECLARATION = 4096
#: Byte order mark -> encoding; the longer ones first.
MARKS = {
    BOM_UTF32_LE: "utf-32",
    BOM_UTF32_BE: "utf-32",
    BOM_UTF16_LE: "utf-16",
    BOM_UTF16_BE: "utf-16",
    BOM_UTF8: "utf-8-sig",
}
UTF_8, WESTERN = "utf-8", "cp1252"
_DECLARED = re.compile(
    r"""(<\?xml\b[^>]*?\bencoding\s*=\s*["']|<meta\b[^>]*?\bcharset\s*=\s*["']?)([\w.:-]+)""", re.IGNORECASE
)
_SAID = re.compile(r"""\bcharset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
#: Encodings of texts that a declaration may name; Python has others, some of which inflate or run long.
_ENCODINGS = re.compile(
    r"(?:iso|windows|cp|ibm|koi8|mac|big5|gb|hz|euc|shift|s-?jis|ks_?c|tis|latin)[\w-]{0,20}|ascii|us-ascii",
    re.IGNORECASE,
)
#: Encodings that browsers read as cp1252, since most files that declare them are.
_WESTERN = frozenset({"iso8859-1", "ascii"})


@contextmanager
def in_utf8(path: str, kind: str, said: str) -> Iterator[str]:
    """Yield the path of the file at *path* in UTF-8: the same one, or the one of a copy for the duration of the context.

    *kind* is its content type, *said* the one of the upload, with its parameters.
    """
    if not is_text(kind):
        yield path
        return
    with Path(path).open("rb") as file:
        encoding, has_wrong_declaration = encoding_of(file, said)
        if encoding == UTF_8 and not has_wrong_declaration:
            yield path
            return
        with NamedTemporaryFile(prefix="pgcatalog-text-") as copy:
            file.seek(0)
            decoder = getincrementaldecoder(encoding)("replace")
            start = True
            while chunk := file.read(CHUNK):
                text = decoder.decode(chunk)
                if start:
                    text = _DECLARED.sub(rf"\1{UTF_8}", text[:DECLARATION]) + text[DECLARATION:]
                copy.write(text.encode(UTF_8, "replace"))
                start = False
            copy.write(decoder.decode(b"", final=True).encode(UTF_8, "replace"))
            copy.flush()
            yield copy.name


def encoding_of(file: BinaryIO, said: str) -> tuple[str, bool]:
    """Return the encoding of the text *file*, and whether the file declares another one."""
    head = file.read(CHUNK)
    mark = next((name for mark, name in MARKS.items() if head.startswith(mark)), "") or wide(head)
    if mark:
        return mark, True
    in_file = _DECLARED.search(head[:DECLARATION].decode("latin-1"))
    in_upload = _SAID.search(said)
    declared = next(
        (name for name in (codec(m.group(m.lastindex or 0)) for m in (in_upload, in_file) if m) if name), ""
    )
    valid, invalid = letters(file)
    if valid and not invalid:
        encoding = UTF_8
    else:
        encoding = declared or (UTF_8 if valid >= invalid else WESTERN)
    return encoding, in_file is not None and in_file[2].lower() not in ("utf-8", "utf8")


def codec(name: str) -> str:
    """Return Python's name of the encoding *name*; "" if it is unknown, or none that a text may declare."""
    if not _ENCODINGS.fullmatch(name):
        return ""
    try:
        normal = lookup(name).name
    except LookupError:
        return ""
    return WESTERN if normal in _WESTERN else normal


def letters(file: BinaryIO) -> tuple[int, int]:
    """Return the number of characters of *file* beyond ASCII that are valid in UTF-8, and of bytes that are not."""
    file.seek(0)
    decoder = getincrementaldecoder(UTF_8)("replace")
    valid = invalid = 0
    while chunk := file.read(CHUNK):
        text = decoder.decode(chunk)
        wrong = text.count("\ufffd")
        valid += len(text) - len(text.encode("ascii", "ignore")) - wrong
        invalid += wrong
    return valid, invalid
