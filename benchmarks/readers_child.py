"""Extracts the text of one file by one library; run by ``readers``: ``python readers_child.py LIBRARY PATH KIND``.

With a folder as PATH, and a further argument, it reads all files in it, and writes the seconds and the number of characters as JSON.

It needs only the library that it is called for, so it runs in the environment that has it.  The text goes to the output.
"""

from collections.abc import Callable
from collections.abc import Iterator
from email.message import EmailMessage
from functools import cache
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any
from xml.etree import ElementTree

import asyncio
import email
import email.policy
import json
import os
import sys


PDF = "application/pdf"
OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX, XLSX, PPTX = (
    OFFICE + kind for kind in ("wordprocessingml.document", "spreadsheetml.sheet", "presentationml.presentation")
)
ODT, ODS, ODP = (f"application/vnd.oasis.opendocument.{kind}" for kind in ("text", "spreadsheet", "presentation"))
XLS = "application/vnd.ms-excel"
RTF, MSG, MAIL = "text/rtf", "application/vnd.ms-outlook", "message/rfc822"
HTML, XML, CSV = "text/html", "text/xml", "text/csv"
#: "" for each kind
ALL = ("",)


def ours(path: str, kind: str) -> str:
    """Return the text of the file by the content type that a site finds for it."""
    from plone.pgcatalog.files.kinds import kind_of

    return str(our_extractor().extract(path, kind_of(path, Path(path).name, kind)))


@cache
def our_extractor() -> Any:
    """Return the extractor, whose process reads many files."""
    from plone.pgcatalog.files import extractor

    classes = [cls for cls in vars(extractor).values() if isinstance(cls, type)]
    (implementation,) = {cls for cls in classes if extractor.ITextExtractor.implementedBy(cls)}
    return implementation()


def kreuzberg(path: str, kind: str) -> str:
    import kreuzberg

    config = kreuzberg.ExtractionConfig(use_cache=False, enable_quality_processing=False)
    return str(kreuzberg.extract_file_sync(path, kind, config).content)


def xberg(path: str, kind: str) -> str:
    """Return content, annotations, form fields, and the same of attachments."""
    import xberg

    config = xberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        disable_ocr=True,
        content_filter=xberg.ContentFilterConfig(
            include_headers=True, include_footers=True, include_footnotes=True, strip_repeating_text=False
        ),
        pdf_options=xberg.PdfConfig(extract_annotations=True, extract_form_fields=True, extract_tables=False),
    )
    source = xberg.ExtractInput(kind="bytes", bytes=Path(path).read_bytes(), mime_type=kind)
    result = asyncio.run(xberg.extract(source, config))
    if result.errors:
        raise ValueError(str(result.errors[0].message))
    return "\n".join(part for document in result.results for part in parts_of(document))


def parts_of(document: Any) -> Iterator[str]:
    """Yield the texts of *document*, a result of xberg."""
    yield document.content
    for annotation in document.annotations or ():
        yield annotation.content or ""
    for field in document.form_fields or ():
        yield field.value or ""
    for child in document.children or ():
        yield from parts_of(child.result)


def pypdfium2(path: str, kind: str) -> str:
    import pypdfium2

    document = pypdfium2.PdfDocument(path)
    document.init_forms()
    return "\f".join(page.get_textpage().get_text_range() for page in document)


def pypdf(path: str, kind: str) -> str:
    import pypdf

    reader = pypdf.PdfReader(path)
    texts = [page.extract_text() for page in reader.pages]
    notes = [str(note.get_object().get("/Contents", "")) for page in reader.pages for note in page.get("/Annots") or ()]
    fields = [str(value or "") for value in (reader.get_form_text_fields() or {}).values()]
    attached = [
        data.decode("latin-1")
        for datas in reader.attachments.values()
        for data in datas
        if not data.startswith(b"%PDF")
    ]
    return "\n".join(texts + notes + fields + attached)


def python_docx(path: str, kind: str) -> str:
    import docx

    document = docx.Document(path)
    bands = [band for section in document.sections for band in (section.header, section.footer)]
    return "\n".join(text for part in (document, *bands) for text in blocks(part))


def blocks(part: Any) -> Iterator[str]:
    """Yield the texts of paragraphs and tables of *part*, an object of python-docx."""
    for paragraph in part.paragraphs:
        yield paragraph.text
    for table in part.tables:
        for row in table.rows:
            for cell in row.cells:
                yield from blocks(cell)


def python_pptx(path: str, kind: str) -> str:
    import pptx

    texts = []
    for slide in pptx.Presentation(path).slides:
        texts += shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            texts.append(slide.notes_slide.notes_text_frame.text)
    return "\n".join(texts)


def shapes(found: Any) -> Iterator[str]:
    """Yield the texts of the shapes *found*, of their tables and groups."""
    for shape in found:
        if hasattr(shape, "shapes"):
            yield from shapes(shape.shapes)
        elif shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            yield from (cell.text for row in shape.table.rows for cell in row.cells)


def python_calamine(path: str, kind: str) -> str:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(path)
    rows = (row for name in book.sheet_names for row in book.get_sheet_by_name(name).to_python())
    return "\n".join(" ".join(str(cell) for cell in row if cell != "") for row in rows)


def xlrd(path: str, kind: str) -> str:
    import xlrd

    with open(os.devnull, "w") as log:
        book = xlrd.open_workbook(path, logfile=log)
    rows = (row for sheet in book.sheets() for row in sheet.get_rows())
    return "\n".join(" ".join(str(cell.value) for cell in row if cell.value != "") for row in rows)


def odfdo(path: str, kind: str) -> str:
    from odfdo import Document

    document = Document(path)
    return "\n".join(paragraph.inner_text for paragraph in document.body.get_elements("//text:p|//text:h"))


def striprtf(path: str, kind: str) -> str:
    from striprtf.striprtf import rtf_to_text

    return str(rtf_to_text(Path(path).read_text("latin-1"), errors="replace"))


def extract_msg(path: str, kind: str) -> str:
    import extract_msg

    with extract_msg.openMsg(path) as message:
        names = [str(attachment.name) for attachment in message.attachments]
        return "\n".join([str(message.subject), str(message.sender), str(message.to), str(message.body), *names])


def standard_library(path: str, kind: str) -> str:
    """Return the text by ``email``, ``html.parser`` or ``xml.etree``."""
    data = Path(path).read_bytes()
    if kind == MAIL:
        message = email.message_from_bytes(data, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        return "\n".join(parts_of_mail(message))
    if kind == XML:
        return "\n".join(ElementTree.fromstring(data).itertext())
    return text_of_html(data.decode("utf-8", "replace")) if kind == HTML else data.decode("utf-8", "replace")


def parts_of_mail(message: EmailMessage) -> Iterator[str]:
    """Yield subject, addresses and texts of *message*."""
    yield from (str(message[name] or "") for name in ("subject", "from", "to", "cc"))
    for part in message.walk():
        if part.get_content_maintype() == "text":
            text = part.get_content()
            yield text_of_html(text) if part.get_content_subtype() == "html" else text


def text_of_html(html: str) -> str:
    """Return the text between the tags of *html*, but not scripts and styles."""
    texts: list[str] = []
    parser = Text(texts)
    parser.feed(html)
    parser.close()
    return "\n".join(texts)


class Text(HTMLParser):
    """Parser that appends the texts of a page to *texts*."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self.texts = texts

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is None:
            self.texts.append(data)


#: library -> (function, the kinds that it reads)
LIBRARIES: dict[str, tuple[Callable[[str, str], str], tuple[str, ...]]] = {
    "plone.pgcatalog": (ours, ALL),
    "kreuzberg": (kreuzberg, ALL),
    "xberg": (xberg, ALL),
    "pypdfium2": (pypdfium2, (PDF,)),
    "pypdf": (pypdf, (PDF,)),
    "python-docx": (python_docx, (DOCX,)),
    "python-pptx": (python_pptx, (PPTX,)),
    "python-calamine": (python_calamine, (XLSX, XLS, ODS)),
    "xlrd": (xlrd, (XLS,)),
    "odfdo": (odfdo, (ODT, ODS, ODP)),
    "striprtf": (striprtf, (RTF,)),
    "extract-msg": (extract_msg, (MSG,)),
    "Python": (standard_library, (MAIL, HTML, XML, CSV)),
}


def timed(library: str, folder: str, kind: str) -> str:
    """Return the seconds that *library* takes for the files in *folder*, after a first one, and their characters, as JSON."""
    read, paths = LIBRARIES[library][0], [str(path) for path in sorted(Path(folder).iterdir())]
    read(paths[0], kind)
    start = perf_counter()
    characters = sum(len(read(path, kind)) for path in paths)
    return json.dumps({"seconds": round(perf_counter() - start, 2), "characters": characters})


def main() -> None:
    library, *rest = sys.argv[1:]
    if not rest:
        sys.stdout.write(sys.version.split()[0] if library == "Python" else version(library))
        return
    path, kind, *is_timed = rest
    text = timed(library, path, kind) if is_timed else LIBRARIES[library][0](path, kind)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()
    # xberg's threads sometimes crash the end of the interpreter.
    os._exit(0)


if __name__ == "__main__":
    main()
