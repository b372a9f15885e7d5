"""WordPerfect 4.2: letters with functions between them, without a head; later versions are read by xberg."""

from pathlib import Path
from plone.pgcatalog.files.formats.parts import Unreadable

import re


#: Most bytes of a file.
LARGEST = 1 << 20
#: A function of several bytes begins and ends with the same byte; 0xE1 has a letter in the code page of the PC.
FUNCTION = re.compile(rb"([\xc0-\xfe])(.{1,512}?)\1", re.DOTALL)
LETTER = 0xE1
#: Functions of a byte: the hyphens, and a blank at which no line ends; a text has no other bytes than these, letters and ends of lines.
HYPHENS = re.compile(rb"[\xa9-\xae]")
BLANK = b"\xa0"
OTHER = re.compile(rb"[\x80-\xbf]")
BROKEN = re.compile(rb"[^\t-\r -~]")


def read(path: str) -> str:
    """Return the text of the file at *path*.  Raises Unreadable for another one."""
    if Path(path).stat().st_size > LARGEST:
        raise Unreadable("no known format of Word or WordPerfect")
    texts, at = [], 0
    data = Path(path).read_bytes()
    for function in FUNCTION.finditer(data):
        texts.append(plain(data[at : function.start()]))
        texts.append(function[2].decode("cp437") if function[1][0] == LETTER and len(function[2]) == 1 else "")
        at = function.end()
    text = "".join([*texts, plain(data[at:])])
    if not at or not text.strip():
        raise Unreadable("no known format of Word or WordPerfect")
    return text.replace("\r", " ").replace("\f", "\n")


def plain(data: bytes) -> str:
    """Return the text of *data* between functions.  Raises Unreadable if they are not those of WordPerfect."""
    letters = OTHER.sub(b"", HYPHENS.sub(b"-", data).replace(BLANK, b" "))
    if BROKEN.search(letters):
        raise Unreadable("no known format of Word or WordPerfect")
    return letters.decode("ascii")
