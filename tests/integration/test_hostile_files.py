"""A hostile file is a text or a failure that says why: in bounded time and memory, and the next file is read."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import suppress
from demo import documents as files
from io import BytesIO
from pathlib import Path
from plone.pgcatalog.files import extractor as module
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import Kreuzberg
from plone.pgcatalog.files.extractor import LONGEST_TEXT
from zipfile import ZIP_DEFLATED
from zipfile import ZipFile

import gzip
import os
import pytest
import signal
import socket
import tarfile
import zlib


XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
EPUB = "application/epub+zip"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def with_part(data: bytes, name: str, content: bytes) -> bytes:
    """Return the archive *data* with an additional part *name*, which may exist already."""
    out = BytesIO(data)
    with ZipFile(out, "a", ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return out.getvalue()


def replaced(data: bytes, name: str, content: bytes) -> bytes:
    out = BytesIO()
    with ZipFile(BytesIO(data)) as old, ZipFile(out, "w", ZIP_DEFLATED) as new:
        for member in old.namelist():
            new.writestr(member, content if member == name else old.read(member))
    return out.getvalue()


def word(xml: str) -> bytes:
    """Return a docx whose document is *xml*."""
    return replaced(files.docx("x"), "word/document.xml", xml.encode())


def laughs(levels: int = 10) -> str:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, levels))
    return f'<!DOCTYPE d [<!ENTITY l0 "ha">{entities}]>'


def external(address: str) -> str:
    return f'<!DOCTYPE d [<!ENTITY x SYSTEM "{address}">]>'


def paragraph(text: str) -> str:
    return f"<w:document {W}><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"


def flate_pdf(packed: bytes) -> bytes:
    """Return a PDF whose page content is the deflated *packed*."""
    plain = b"BT /F1 12 Tf 72 720 Td (x) Tj 0 -14 Td ET"
    page = files.pdf("x")
    start, end = page.index(b"<< /Length"), page.index(b"endobj", page.index(b"<< /Length"))
    assert plain in page
    stream = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream\n" % (len(packed), packed)
    return page[:start] + stream + page[end:]


def tar(name: str, content: bytes, link: str = "") -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 0 if link else len(content)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        archive.addfile(member, None if link else BytesIO(content))
    return out.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    return with_part(b"", name, content)


def nested(depth: int) -> bytes:
    data = zipped("a.txt", b"quokka")
    for _ in range(depth):
        data = zipped("a.zip", data)
    return data


ZEROS = b"\0" * (300 << 20)
HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "nothing": (files.PDF, lambda: b""),
    "noise as PDF": (files.PDF, lambda: os.urandom(100_000)),
    "noise as docx": (files.DOCX, lambda: os.urandom(100_000)),
    "head of a PDF": (files.PDF, lambda: files.pdf("quokka", 9)[:700]),
    "tail of a PDF": (files.PDF, lambda: files.pdf("quokka", 9)[700:]),
    "half a docx": (files.DOCX, lambda: files.docx("quokka " * 999)[:400]),
    "text as PDF": (files.PDF, lambda: b"only words\n" * 1000),
    "PDF as docx": (files.DOCX, lambda: files.pdf("quokka")),
    "docx as PDF": (files.PDF, lambda: files.docx("quokka")),
    "page tree in a circle": (files.PDF, lambda: files.pdf("quokka").replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]")),
    "count of pages is a lie": (files.PDF, lambda: files.pdf("quokka").replace(b"/Count 1", b"/Count 999999999")),
    "length of a stream is a lie": (files.PDF, lambda: files.pdf("quokka").replace(b"/Length ", b"/Length 99999999")),
    "a stream that inflates to 300 MB": (files.PDF, lambda: flate_pdf(zlib.compress(ZEROS, 9))),
    "a script in a PDF": (
        files.PDF,
        lambda: files.pdf("quokka").replace(b"/Catalog", b"/Catalog /OpenAction << /S /JavaScript /JS (while(1){}) >>"),
    ),
    "a PDF that starts a program": (
        files.PDF,
        lambda: files.pdf("quokka").replace(b"/Catalog", b"/Catalog /OpenAction << /S /Launch /F (/bin/sh) >>"),
    ),
    "a PDF that is encrypted": (
        files.PDF,
        lambda: files.pdf("quokka").replace(
            b"/Root 1 0 R", b"/Root 1 0 R /Encrypt << /Filter /Standard /V 2 /R 3 /P -4 /O (x) /U (y) >> /ID [(a) (b)]"
        ),
    ),
    "a document that inflates to 300 MB": (files.DOCX, lambda: replaced(files.docx("x"), "word/document.xml", ZEROS)),
    "a text that inflates to 300 MB": (files.DOCX, lambda: word(paragraph("ha " * (100 << 20)))),
    "a billion laughs": (files.DOCX, lambda: word(laughs() + paragraph("&l9;"))),
    "a billion laughs in OpenDocument": (
        files.ODT,
        lambda: replaced(files.odt("x"), "content.xml", (laughs() + "<d>&l9;</d>").encode()),
    ),
    "a file of the machine by an entity": (
        files.DOCX,
        lambda: word(external(Path("/etc/passwd").as_uri()) + paragraph("&x;")),
    ),
    "an address of the network by an entity": (
        files.DOCX,
        lambda: word(external("http://127.0.0.1:9/x") + paragraph("&x;")),
    ),
    "elements 100,000 deep": (files.DOCX, lambda: word("<w:p>" * 100_000)),
    "a million attributes": (files.DOCX, lambda: word("<a " + " ".join(f'b{n}="1"' for n in range(1_000_000)) + "/>")),
    "a part that leaves its folder": (
        files.DOCX,
        lambda: with_part(files.docx("quokka"), "../../../tmp/pgcatalog-evil", b"x"),
    ),
    "a macro": (files.DOCX, lambda: with_part(files.docx("quokka"), "word/vbaProject.bin", os.urandom(9999))),
    "two documents in one": (files.DOCX, lambda: with_part(files.docx("quokka"), "word/document.xml", b"<other/>")),
    "sheets that are none": (XLSX, lambda: files.docx("quokka")),
    "slides that are none": (PPTX, lambda: files.odt("quokka")),
    "a book that is none": (EPUB, lambda: files.docx("quokka")),
    "zip in zip in zip": ("application/zip", lambda: nested(50)),
    "a zip that inflates to 300 MB": ("application/zip", lambda: zipped("a.txt", ZEROS)),
    "a gzip that inflates to 300 MB": ("application/gzip", lambda: gzip.compress(ZEROS)),
    "a tar with a link to a file of the machine": ("application/x-tar", lambda: tar("a.txt", b"", "/etc/passwd")),
    "a tar that leaves its folder": ("application/x-tar", lambda: tar("../../../tmp/pgcatalog-evil", b"x")),
    "RTF without an end": ("application/rtf", lambda: b"{\\rtf1 " + b"{" * 200_000),
    "mail in mail in mail": (
        "message/rfc822",
        lambda: b"Content-Type: message/rfc822\n\n" * 5000 + b"Subject: quokka\n\nquokka",
    ),
}


@pytest.fixture(scope="module")
def extractor() -> Iterator[Kreuzberg]:
    made = Kreuzberg()
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_a_text_or_a_failure(
    name: str, extractor: Kreuzberg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 30.0)
    kind, make = HOSTILE[name]
    path = tmp_path / "hostile"
    path.write_bytes(make())
    try:
        said = extractor.extract(str(path), kind)
    except ExtractionError as error:
        said = str(error) or pytest.fail("no reason")
    assert len(said) <= LONGEST_TEXT
    assert "root:" not in said
    assert not Path("/tmp/pgcatalog-evil").exists()
    good = tmp_path / "good"
    good.write_bytes(files.pdf("quokka"))
    assert extractor.extract(str(good), files.PDF) == "quokka"


def sockets(process: str) -> set[str]:
    """Return the names of the sockets of *process*, a folder of /proc."""
    names = set()
    for link in Path(f"{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            names.add(os.readlink(link))
    return {name for name in names if name.startswith("socket:")}


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_extracting_process_has_no_dsn_and_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCATALOG_DSN", "password=secret")
    extractor = Kreuzberg()
    path = tmp_path / "good"
    path.write_bytes(files.pdf("quokka"))
    with socket.socket() as ours:
        ours.set_inheritable(True)
        extractor.extract(str(path), files.PDF)
        shared = sockets("/proc/self")
    [child] = extractor._idle
    process = f"/proc/{child._process.pid}"
    assert b"secret" not in Path(f"{process}/environ").read_bytes()
    # Its library has sockets for itself; none is ours.
    assert shared
    assert not shared & sockets(process)
    extractor.end()


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="needs Linux")
def test_process_that_reads_files_is_ended_first_when_memory_is_short(tmp_path: Path) -> None:
    extractor = Kreuzberg()
    path = tmp_path / "good"
    path.write_bytes(files.pdf("quokka"))
    extractor.extract(str(path), files.PDF)
    [child] = extractor._idle
    assert Path(f"/proc/{child._process.pid}/oom_score_adj").read_text().strip() == "1000"
    extractor.end()


def test_reason_of_a_broken_file_names_its_kind_once(tmp_path: Path, extractor: Kreuzberg) -> None:
    path = tmp_path / "broken"
    path.write_bytes(b"%PDF-1.4 {broken")
    with pytest.raises(ExtractionError) as told:
        extractor.extract(str(path), files.PDF)
    assert str(told.value).count("ParsingError:") == 1


def test_a_file_that_takes_too_long_costs_its_time_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = Kreuzberg()
    path = tmp_path / "good"
    path.write_bytes(files.pdf("quokka"))
    assert extractor.extract(str(path), files.PDF) == "quokka"
    [child] = extractor._idle
    os.kill(child._process.pid, signal.SIGSTOP)
    with monkeypatch.context() as patched:
        patched.setattr(module, "TIMEOUT", 1.0)
        with pytest.raises(ExtractionError, match="no text after 1 seconds"):
            extractor.extract(str(path), files.PDF)
    assert extractor.extract(str(path), files.PDF) == "quokka"
    extractor.end()
