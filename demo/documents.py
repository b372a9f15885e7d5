"""Creates small PDF, Word and OpenDocument files, pictures and scans for the demo and for tests."""

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from PIL import Image
from PIL import ImageDraw
from PIL import ImageFont
from plone.namedfile.file import NamedBlobFile
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import dsn_of
from time import gmtime
from typing import Any
from zipfile import ZIP_DEFLATED
from zipfile import ZipFile

import transaction


PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"

_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


#: A word that only the files contain.
WORD = "quagga"
#: A word that only a scanned page shows.
WORD_OF_SCAN = "thylacine"
TEXT = f"Minutes of the natural history society\nThe {WORD} of the museum was measured, and found to be small"


def add(site: Any) -> None:
    """Add to *site* a file of each format that contains WORD, and a scan; extract the text of all its files.  Commits."""
    scanned = scan(TEXT.replace(WORD, WORD_OF_SCAN))
    made = {"pdf": (pdf(TEXT), PDF), "docx": (docx(TEXT), DOCX), "odt": (odt(TEXT), ODT), "scan": (scanned, PDF)}
    for name, (data, kind) in made.items():
        id = "minutes-scan.pdf" if name == "scan" else f"minutes.{name}"
        if id not in site["en"]:
            file = NamedBlobFile(data, contentType=kind, filename=id)
            site["en"].invokeFactory("File", id, title=f"Minutes ({name})", file=file)
    transaction.commit()
    worker = Worker(site._p_jar.db(), dsn_of(site._p_jar))
    # In another thread, because this one has an open transaction.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(worker.run_until_empty).result()
    transaction.begin()


def blob(data: bytes, kind: str = PDF) -> NamedBlobFile:
    """Return a value for the field of a File."""
    return NamedBlobFile(data, contentType=kind, filename="file.bin")


def pdf(text: str, pages: int = 1) -> bytes:
    """Return a PDF with the lines of *text* on each of its *pages*."""
    return pdf_of([text] * pages)


def pdf_of(texts: list[str], data: bytes = b"") -> bytes:
    """Return a PDF with a page for the lines of each of *texts*, and *data* in a stream, like a font or a picture."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in texts:
        shown = b" ".join(b"(%s) Tj 0 -14 Td" % line.encode("latin-1") for line in text.split("\n"))
        content = b"BT /F1 12 Tf 72 720 Td " + shown + b" ET"
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(texts))
    if data:
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data))
    out = BytesIO(b"%PDF-1.4\n")
    out.seek(0, 2)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    end = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, end))
    return out.getvalue()


def picture(text: str, format: str = "PNG") -> bytes:
    """Return a picture of *text*, such as a scanner makes it, as a file of a *format* of Pillow."""
    out = BytesIO()
    _drawn(text).save(out, format)
    return out.getvalue()


def scan(*texts: str, size: int = 28) -> bytes:
    """Return a PDF whose pages are pictures of *texts*, in letters of *size* pixels, at 150 dots per inch."""
    first, *others = (_drawn(text, size) for text in texts)
    out = BytesIO()
    # The same texts are the same bytes.
    times = {"creationDate": gmtime(0), "modDate": gmtime(0)}
    first.save(out, "PDF", save_all=True, append_images=others, resolution=150, **times)
    return out.getvalue()


def _drawn(text: str, size: int = 28) -> Any:
    page = Image.new("L", (1240, 300 + 2 * size * len(text.split("\n"))), 255)
    ImageDraw.Draw(page).text((100, 120), text, fill=0, font=ImageFont.load_default(size), spacing=size / 2)
    return page


def docx(text: str) -> bytes:
    """Return a Word document with the lines of *text* as paragraphs."""
    paragraphs = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in text.split("\n"))
    return _zipped(
        {
            "[Content_Types].xml": f'<?xml version="1.0"?><Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{DOCX}.main+xml"/></Types>',
            "_rels/.rels": f'<?xml version="1.0"?><Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="rId1" Type="{_RELATION}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": '<?xml version="1.0"?><w:document '
            'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
            f"<w:body>{paragraphs}</w:body></w:document>",
        }
    )


def odt(text: str) -> bytes:
    """Return an OpenDocument text with the lines of *text* as paragraphs."""
    namespace = "urn:oasis:names:tc:opendocument:xmlns"
    paragraphs = "".join(f"<text:p>{line}</text:p>" for line in text.split("\n"))
    return _zipped(
        {
            "mimetype": ODT,
            "content.xml": f'<?xml version="1.0"?><office:document-content xmlns:office="{namespace}:office:1.0"'
            f' xmlns:text="{namespace}:text:1.0"><office:body><office:text>{paragraphs}</office:text>'
            "</office:body></office:document-content>",
            "META-INF/manifest.xml": f'<?xml version="1.0"?><manifest:manifest xmlns:manifest="{namespace}:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{ODT}"/></manifest:manifest>',
        }
    )


def _zipped(members: dict[str, str]) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()
