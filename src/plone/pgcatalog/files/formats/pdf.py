"""PDF: each page with its notes and form fields, and a form feed between pages; files in the PDF."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from io import BytesIO
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from plone.pgcatalog.files.formats.scan import of_page
from plone.pgcatalog.files.formats.scan import text_of_scan
from typing import Any

import ctypes
import pypdfium2
import pypdfium2.raw as pdfium
import re


#: Most pages that are read.
MOST_PAGES = 20_000
#: Most annotations of a page.
MOST_ANNOTATIONS = 1000
#: PDFium's mark of a hyphen at the end of a line; a soft hyphen there.
DIVIDED = re.compile(r"(\w+)(?:\ufffe|\u00ad\s*\n)(\w+)")
#: Words with a hyphen that PDFium did not see at the end of its line.
HYPHEN = re.compile(r"([^\W\d_]+)-[ \t]*\n[ \t]*([^\W\d_]+)")
#: Part of each match of DIVIDED and HYPHEN.
MARK = re.compile(r"[\ufffe\u00ad]|-[ \t]*+\n")
#: Fields whose values are no texts, but "Off" or the like.
WITHOUT_TEXT = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON, pdfium.FPDF_FORMFIELD_PUSHBUTTON)
PROPERTIES = ("Title", "Subject", "Keywords", "Author")


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the PDF at *path*.  Raises Unreadable."""
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise Unreadable(
            "the file is encrypted" if "password" in str(error).lower() else f"not a PDF: {error}"
        ) from error
    with closing(document):
        document.init_forms()
        pages, length = [], 0
        for number in range(min(len(document), MOST_PAGES)):
            pages.append(text_of_page(document, number, parts))
            length += len(pages[-1])
            if length > parts.longest:
                break
        more = [str(document.get_metadata_value(key)) for key in PROPERTIES]
        more += attachments(document, parts)
    if not pages:
        raise Unreadable("a PDF without pages")
    return "\n".join(filter(None, ["\n\f".join(undivided(pages)), *more]))


def text_of_page(document: Any, number: int, parts: Parts) -> str:
    """Return the text of the page with the index *number*; "" for a broken page, which adds to the errors of *parts*."""
    try:
        page = document[number]
        notes = list(annotations(document, page))
        # The captions of buttons, signatures and stamps are in the drawings of annotations.
        if notes and page.flatten() == pdfium.FLATTEN_SUCCESS:
            page.close()
            page = document[number]
        text_page = page.get_textpage()
        text: str = text_page.get_text_range().replace("\r\n", "\n").strip()
        text_page.close()
        if not text and pdfium.FPDFPage_CountObjects(page):
            text = text_of_scan(partial(of_page, page), parts)
        page.close()
    except pypdfium2.PdfiumError as error:
        parts.errors.append(f"page {number + 1}: {error}")
        return ""
    if not notes:
        return text
    seen = " ".join(text.split())
    return "\n".join([text, *(note for note in dict.fromkeys(notes) if note not in seen)]).strip()


def annotations(document: Any, page: Any) -> Iterator[str]:
    """Yield the texts of the notes and form fields of *page*, "" for those without a text; links are left out."""
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), MOST_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        if kind == pdfium.FPDF_ANNOT_WIDGET and document.formenv:
            is_text = pdfium.FPDFAnnot_GetFormFieldType(document.formenv, annotation) not in WITHOUT_TEXT
            yield string(pdfium.FPDFAnnot_GetFormFieldValue, document.formenv, annotation) if is_text else ""
        elif kind != pdfium.FPDF_ANNOT_LINK:
            yield string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
        pdfium.FPDFPage_CloseAnnot(annotation)


def string(function: Any, *arguments: Any) -> str:
    """Return the string that *function* of PDFium writes into a buffer, as a line."""
    length = function(*arguments, None, 0)
    if not 2 < length <= 1 << 20:
        return ""
    buffer = (ctypes.c_ushort * (length // 2 + 1))()
    function(*arguments, buffer, length)
    return " ".join(bytes(buffer)[: length - 2].decode("utf-16-le", "replace").split())


def attachments(document: Any, parts: Parts) -> Iterator[str]:
    """Yield the names and texts of the files in *document*."""
    for index in range(document.count_attachments()):
        try:
            attachment = document.get_attachment(index)
            yield parts.text(attachment.get_name(), "", BytesIO(bytes(attachment.get_data())))
        except pypdfium2.PdfiumError as error:
            parts.errors.append(f"file {index + 1} in the PDF: {error}")


def undivided(pages: list[str]) -> list[str]:
    """Return *pages* with the words joined that are divided at the end of a line.

    If the file has the word with a hyphen elsewhere, it is written so; if it has it neither way, as one word, and the word
    with its hyphen stands at the end of the page: so both are found.
    """
    if not any(map(MARK.search, pages)):
        return pages
    whole = {word.lower() for page in pages for word in re.findall(r"[\w-]+", page)}

    def on_page(page: str) -> str:
        both: dict[str, None] = {}

        def join(match: re.Match[str]) -> str:
            first, second = match[1], match[2]
            joined, hyphened = first + second, f"{first}-{second}"
            if "\u00ad" in match[0] or joined.lower() in whole:
                return joined
            # A name such as Nord-Süd, or a number.
            if hyphened.lower() in whole or not second[0].islower() or not first[-1].isalpha():
                return hyphened
            both[hyphened] = None
            return joined

        text = HYPHEN.sub(join, DIVIDED.sub(join, page)).replace("\ufffe", "-")
        return "\n".join([text, *both])

    return [on_page(page) for page in pages]
