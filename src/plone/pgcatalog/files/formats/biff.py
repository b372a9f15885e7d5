"""Records of an Excel workbook before .xlsx: texts outside of cells, and the records that xlrd needs for the cells."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.files.formats.ole import encoding
from plone.pgcatalog.files.formats.parts import Unreadable
from struct import error as StructError
from struct import unpack_from

import re


#: Most records of a workbook that are read.
MOST_RECORDS = 5_000_000
#: Numbers of records [MS-XLS]; those of Excel 2 to 4 differ in the higher byte.
BEGIN, END = frozenset({0x0009, 0x0209, 0x0409, 0x0809}), 0x000A
HEADERS, NOTE, CODEPAGE, ENCRYPTED, CONTINUE = frozenset({0x0014, 0x0015}), 0x001C, 0x0042, 0x002F, 0x003C
SHEET, TEXT_BOX, PROMPT, CHART_TEXT = 0x0085, 0x01B6, 0x01BE, 0x100D
NUMBER, LABEL = frozenset({0x0003, 0x0203}), frozenset({0x0004, 0x0204})
#: Cells, their formats and strings, and sheets.
FOR_CELLS = frozenset(
    {END, CODEPAGE, SHEET, *BEGIN, *NUMBER, *LABEL}
    | {0x0002, 0x0005, 0x0006, 0x0007, 0x001E, 0x0021, 0x0022, 0x0036, 0x0037, 0x0043, 0x0044, 0x0056, 0x008E, 0x008F}
    | {0x00BD, 0x00D6, 0x00E0, 0x00FC, 0x00FD, 0x0205, 0x0206, 0x0207, 0x0221, 0x0236, 0x0243, 0x027E, 0x0406, 0x041E}
    | {0x0443, 0x04BC}
)
#: A number of a record that xlrd skips.
SKIPPED = b"\xff\x0f"
#: Kinds of parts: charts, in Excel and in other programs, and a workbook of Excel 4, which has its sheets inside of its part.
CHARTS, WORKSPACE = (0x0020, 0x8000), 0x0100
#: Codes in a header or footer, such as a font or the number of the page.
HEADER_CODES = re.compile(r'&(?:"[^"]*"|\d+|K[0-9A-F]{6}|[A-Z])')


@dataclass
class Sheet:
    """A sheet of the *kind* 0 with cells, or 2 with a chart, that starts at *start*; *texts* are those outside of cells."""

    name: str
    start: int
    kind: int = 0
    texts: list[str] = field(default_factory=list)


class Workbook:
    """The *sheets* of the workbook in *data*, and its *cells*: the records for xlrd.  Raises Unreadable if it is encrypted."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.cells = bytearray(data)
        self.is_wide = data[:2] == b"\x09\x08" and data[5:6] == b"\x06"
        self.encoding = "cp1252"
        self.sheets: list[Sheet] = []
        #: Characters of the open text box that are still to come.
        self.left = 0
        texts: dict[int, list[str]] = {}
        opened: list[tuple[int, int]] = []
        is_needed, end = False, 0
        for kind, start, end in records(data):
            if kind in BEGIN:
                opened.append((start - 4, unpack_from("<H", data, start + 2)[0] if end - start > 3 else 0))
            is_chart = bool(opened) and (opened[-1][1] in CHARTS or (len(opened) > 1 and opened[0][1] != WORKSPACE))
            if kind != CONTINUE:
                is_needed, self.left = kind in FOR_CELLS and not is_chart, 0
            if not is_needed:
                self.cells[start - 4 : start - 2] = SKIPPED
            with suppress(StructError, IndexError):  # a broken record has no text
                found = self.text(kind, start, end, is_chart)
                outside = texts.setdefault(opened[0][0] if opened else 0, [""])
                if kind == CONTINUE:
                    outside[-1] += found
                else:
                    outside.append(found)
            if kind == END and opened:
                opened.pop()
        # Bytes behind a broken record are no records.
        self.cells[end:] = b"\x0a\0\0\0" * 4
        self.sheets = self.sheets or [Sheet("", 0)]
        for sheet in self.sheets:
            sheet.texts += dict.fromkeys(filter(None, texts.pop(sheet.start, [])))

    def text(self, kind: int, start: int, end: int, is_chart: bool) -> str:
        """Return the text of the record of the number *kind* between *start* and *end*, in a chart or not; "" without one.

        Raises StructError, IndexError.
        """
        two = 2 if self.is_wide else 1
        if kind == CODEPAGE:
            self.encoding = encoding(unpack_from("<H", self.data, start)[0])
        elif kind == ENCRYPTED:
            raise Unreadable("the file is encrypted")
        elif kind == SHEET:
            place, _, sheet_kind, size = unpack_from("<IBBB", self.data, start)
            self.sheets.append(Sheet(self.string(start + 7, size, end), place, sheet_kind))
        elif kind in HEADERS and end > start:
            (size,) = unpack_from("<H" if self.is_wide else "<B", self.data, start)
            return HEADER_CODES.sub(" ", self.string(start + two, size, end)).strip()
        elif kind == NOTE and not self.is_wide:
            return self.string(start + 6, unpack_from("<H", self.data, start + 4)[0], end)
        elif kind == CHART_TEXT:
            return self.string(start + 3, self.data[start + 2], end)
        elif kind in LABEL and is_chart:
            return self.string(start + 8, end - start, end)
        elif kind in NUMBER and is_chart:
            return f"{unpack_from('<d', self.data, end - 8)[0]:.15g}"
        elif kind == PROMPT and self.is_wide:
            return self.prompt(start, end)
        elif kind == TEXT_BOX:
            (self.left,) = unpack_from("<H", self.data, start + 10)
        elif kind == CONTINUE and self.left:
            text = self.string(start, self.left, end)
            self.left -= len(text)
            return text
        return ""

    def prompt(self, start: int, end: int) -> str:
        """Return title and text of the prompt of a cell between *start* and *end*.  Raises StructError, IndexError."""
        texts, at = [], start + 4
        for _ in range(3):
            (size,) = unpack_from("<H", self.data, at)
            texts.append(self.string(at + 2, size, end))
            at += 3 + size * (1 + (self.data[at + 2] & 1))
        return " ".join(texts[::2]).strip("\0 ")

    def string(self, at: int, size: int, end: int) -> str:
        """Return the string of *size* characters at *at*, up to *end*; Excel 97 has a byte of flags before it."""
        if not self.is_wide:
            return self.data[at : min(at + size, end)].decode(self.encoding, "replace")
        width = 1 + (self.data[at] & 1)
        letters = self.data[at + 1 : min(at + 1 + size * width, end)]
        return letters.decode("utf-16-le" if width == 2 else "latin-1", "replace")


def records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of each record in *data*, up to the limit or a broken one."""
    at = 0
    for _ in range(MOST_RECORDS):
        if at + 4 > len(data):
            return
        kind, size = unpack_from("<HH", data, at)
        if at + 4 + size > len(data):
            return
        yield kind, at + 4, at + 4 + size
        at += 4 + size
