"""Excel before .xlsx: the cells of each sheet as shown, its text boxes, notes, charts, headers and footers, and a form feed."""

from plone.pgcatalog.files.formats import library
from plone.pgcatalog.files.formats.biff import Workbook
from plone.pgcatalog.files.formats.numbers import BUILT_IN
from plone.pgcatalog.files.formats.numbers import shown
from plone.pgcatalog.files.formats.ole import objects
from plone.pgcatalog.files.formats.ole import properties
from plone.pgcatalog.files.formats.ole import stream_of
from plone.pgcatalog.files.formats.parts import MOST_PARTS
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from struct import error as StructError
from time import monotonic
from typing import Any

import os
import xlrd


KIND = "application/vnd.ms-excel"
STREAMS = ("Workbook", "Book")
#: Errors of xlrd at a broken workbook.
XLRD_ERRORS = (
    *(xlrd.XLRDError, StructError, AssertionError, ArithmeticError, AttributeError),
    *(LookupError, RecursionError, TypeError, ValueError),
)
#: Seconds after which no further sheet's cells are read: a sheet with a cell in the last row takes far less.
MOST_SECONDS = 20
#: The number of the first Excel whose formats have the same numbers in all files.
EXCEL_5 = 50


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the workbook at *path*.  Raises Unreadable."""
    workbook = Workbook(stream_of(path, STREAMS))
    texts, left, number, has_cells = [], parts.longest, 0, False
    deadline = monotonic() + MOST_SECONDS
    with open(os.devnull, "w") as log:
        try:
            book = xlrd.open_workbook(
                file_contents=bytes(workbook.cells), formatting_info=True, on_demand=True, ragged_rows=True, logfile=log
            )
        except XLRD_ERRORS as error:
            parts.errors.append(f"{type(error).__name__}: {error}")
            book = None
        for sheet in workbook.sheets[:MOST_PARTS]:
            lines = [sheet.name]
            if sheet.kind == 0:
                try:
                    lines += cells(book, number, left) if book and monotonic() < deadline else []
                    has_cells = bool(book)
                except XLRD_ERRORS as error:
                    parts.errors.append(f"{sheet.name}: {type(error).__name__}: {error}")
                number += 1
            texts.append("\n".join(filter(None, [*lines, *sheet.texts])).replace("\f", " "))
            left -= len(texts[-1])
            if left < 0:
                break
    if not has_cells:
        texts = by_xberg(path, texts, parts)
    return "\n".join(filter(None, ["\n\f".join(texts), *objects(path, parts, 2), *properties(path)]))


def cells(book: xlrd.Book, number: int, longest: int) -> list[str]:
    """Return the rows of the sheet with the index *number*, up to *longest* characters.  Raises one of XLRD_ERRORS."""
    sheet, rows, left = book.sheet_by_index(number), [], longest
    for row in range(sheet.nrows):
        if not sheet.row_len(row):
            continue
        values = zip(sheet.row_types(row), sheet.row_values(row), strict=True)
        texts = [
            shown_cell(book, kind, value, sheet.cell_xf_index(row, column))
            for column, (kind, value) in enumerate(values)
            if kind
        ]
        rows.append("\t".join(filter(None, texts)))
        left -= len(rows[-1])
        if left < 0:
            break
    book.unload_sheet(number)
    return rows


def shown_cell(book: xlrd.Book, kind: int, value: Any, style: int) -> str:
    """Return the *value* of a cell of the *kind* of xlrd as the format of its *style* shows it."""
    if kind == xlrd.XL_CELL_TEXT:
        return " ".join(str(value).split())
    if kind == xlrd.XL_CELL_BOOLEAN:
        return "TRUE" if value else "FALSE"
    if kind not in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        return str(xlrd.error_text_from_code.get(value, "")) if kind == xlrd.XL_CELL_ERROR else ""
    key = book.xf_list[style].format_key if style < len(book.xf_list) else 0
    code = book.format_map[key].format_str if key in book.format_map else ""
    if book.biff_version >= EXCEL_5:
        code = BUILT_IN.get(key, code)
    text = str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return shown(text, code, book.datemode == 1)


def by_xberg(path: str, texts: list[str], parts: Parts) -> list[str]:
    """Return the text of the workbook at *path* by xberg before *texts*, those outside of cells.

    Raises Unreadable if there are neither.
    """
    try:
        return [library.read(path, KIND, parts), *filter(None, texts)]
    except Unreadable:
        if not any(texts):
            raise
        return texts
