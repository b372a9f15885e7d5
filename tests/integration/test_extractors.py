"""Extraction of texts: a hostile file is a text or a failure that says why, in bounded time and memory; workers retry."""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from demo import documents as files
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from plone.pgcatalog.files import extractor as module
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import ITextExtractor
from plone.pgcatalog.files.extractor import Xberg
from plone.pgcatalog.queue.worker import Worker
from tests.integration.uploads import Counted
from tests.integration.uploads import due
from tests.integration.uploads import extractor as extractor
from tests.integration.uploads import queued
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.integration.uploads import worker as worker
from tests.integration.waiting import until
from typing import Any
from zipfile import ZIP_DEFLATED
from zipfile import ZipFile
from zope.interface.verify import verifyObject

import gzip
import os
import pytest
import re
import signal
import socket
import tarfile
import threading
import tracemalloc
import transaction
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


def tar(name: str, link: str = "") -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo(name)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        archive.addfile(member)
    return out.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    return with_part(b"", name, content)


def nested(depth: int) -> bytes:
    data = zipped("a.txt", b"quokka")
    for _ in range(depth):
        data = zipped("a.zip", data)
    return data


def edited(old: bytes, new: bytes) -> Callable[[], bytes]:
    """Return a function that returns a PDF in which *old* is *new*."""
    return lambda: files.pdf("quokka").replace(old, new)


def with_action(action: bytes) -> Callable[[], bytes]:
    """Return a function that returns a PDF with *action* for its opening."""
    return edited(b"/Catalog", b"/Catalog /OpenAction << %s >>" % action)


ENCRYPTION = b"/Encrypt << /Filter /Standard /V 2 /R 3 /P -4 /O (x) /U (y) >> /ID [(a) (b)]"
ZEROS = b"\0" * (300 << 20)
#: Content type -> name of a case -> file.
HOSTILE: dict[str, dict[str, Callable[[], bytes]]] = {
    files.PDF: {
        "nothing": lambda: b"",
        "noise as PDF": lambda: os.urandom(100_000),
        "head of a PDF": lambda: files.pdf("quokka", 9)[:700],
        "tail of a PDF": lambda: files.pdf("quokka", 9)[700:],
        "text as PDF": lambda: b"only words\n" * 1000,
        "docx as PDF": lambda: files.docx("quokka"),
        "page tree in a circle": edited(b"/Kids [5 0 R]", b"/Kids [2 0 R]"),
        "count of pages is a lie": edited(b"/Count 1", b"/Count 999999999"),
        "length of a stream is a lie": edited(b"/Length ", b"/Length 99999999"),
        "a stream that inflates to 300 MB": lambda: flate_pdf(zlib.compress(ZEROS, 9)),
        "a script in a PDF": with_action(b"/S /JavaScript /JS (while(1){})"),
        "a PDF that starts a program": with_action(b"/S /Launch /F (/bin/sh)"),
        "a PDF that is encrypted": edited(b"/Root 1 0 R", b"/Root 1 0 R " + ENCRYPTION),
    },
    files.DOCX: {
        "noise as docx": lambda: os.urandom(100_000),
        "half a docx": lambda: files.docx("quokka " * 999)[:400],
        "PDF as docx": lambda: files.pdf("quokka"),
        "a document that inflates to 300 MB": lambda: replaced(files.docx("x"), "word/document.xml", ZEROS),
        "a text that inflates to 300 MB": lambda: word(paragraph("ha " * (100 << 20))),
        "a billion laughs": lambda: word(laughs() + paragraph("&l9;")),
        "a file of the machine by an entity": lambda: word(external(Path("/etc/passwd").as_uri()) + paragraph("&x;")),
        "an address of the network by an entity": lambda: word(external("http://127.0.0.1:9/x") + paragraph("&x;")),
        "elements 100,000 deep": lambda: word("<w:p>" * 100_000),
        "a million attributes": lambda: word("<a " + " ".join(f'b{n}="1"' for n in range(1_000_000)) + "/>"),
        "a part that leaves its folder": lambda: with_part(files.docx("quokka"), "../../../tmp/pgcatalog-evil", b"x"),
        "a macro": lambda: with_part(files.docx("quokka"), "word/vbaProject.bin", os.urandom(9999)),
        "two documents in one": lambda: with_part(files.docx("quokka"), "word/document.xml", b"<other/>"),
    },
    files.ODT: {
        "a billion laughs in OpenDocument": lambda: replaced(
            files.odt("x"), "content.xml", (laughs() + "<d>&l9;</d>").encode()
        ),
    },
    XLSX: {"sheets that are none": lambda: files.docx("quokka")},
    PPTX: {"slides that are none": lambda: files.odt("quokka")},
    EPUB: {"a book that is none": lambda: files.docx("quokka")},
    "application/zip": {
        "zip in zip in zip": lambda: nested(50),
        "a zip that inflates to 300 MB": lambda: zipped("a.txt", ZEROS),
    },
    "application/gzip": {"a gzip that inflates to 300 MB": lambda: gzip.compress(ZEROS)},
    "application/x-tar": {
        "a tar with a link to a file of the machine": lambda: tar("a.txt", "/etc/passwd"),
        "a tar that leaves its folder": lambda: tar("../../../tmp/pgcatalog-evil"),
    },
    "application/rtf": {"RTF without an end": lambda: b"{\\rtf1 " + b"{" * 200_000},
    "message/rfc822": {
        "mail in mail in mail": lambda: b"Content-Type: message/rfc822\n\n" * 5000 + b"Subject: quokka\n\nquokka"
    },
}


@pytest.fixture(scope="module")
def xberg() -> Iterator[Xberg]:
    made = Xberg()
    yield made
    made.end()


@pytest.fixture
def good(tmp_path: Path) -> str:
    """Path of a PDF."""
    (tmp_path / "good").write_bytes(files.pdf("quokka"))
    return str(tmp_path / "good")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, cases in HOSTILE.items() for name in cases])
def test_a_hostile_file_is_a_text_or_a_failure(
    kind: str, name: str, xberg: Xberg, tmp_path: Path, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 30.0)
    path = tmp_path / "hostile"
    path.write_bytes(HOSTILE[kind][name]())
    try:
        said = xberg.extract(str(path), kind)
    except ExtractionError as error:
        said = str(error) or pytest.fail("no reason")
    assert len(said) <= module.LONGEST_TEXT
    assert "root:" not in said
    assert not Path("/tmp/pgcatalog-evil").exists()
    assert xberg.extract(good, files.PDF) == "quokka"


def sockets(process: str) -> set[str]:
    """Return the names of the sockets of *process*, a folder of /proc."""
    names = set()
    for link in Path(f"{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            names.add(os.readlink(link))
    return {name for name in names if name.startswith("socket:")}


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="needs Linux")
def test_extracting_process_has_no_dsn_and_no_connection_and_is_ended_first_when_memory_is_short(
    xberg: Xberg, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCATALOG_DSN", "password=secret")
    # A Python may not start without its own libraries.
    monkeypatch.setenv("LD_LIBRARY_PATH", libraries := f"{os.environ.get('LD_LIBRARY_PATH', '')}:/of/python")
    xberg.end()
    with socket.socket() as ours:
        ours.set_inheritable(True)
        xberg.extract(good, files.PDF)
        shared = sockets("/proc/self")
    [child] = xberg._idle
    process = f"/proc/{child._process.pid}"
    environment = Path(f"{process}/environ").read_bytes()
    assert b"secret" not in environment
    assert f"LD_LIBRARY_PATH={libraries}\0".encode() in environment
    # Its library has sockets for itself; none is ours.
    assert shared
    assert not shared & sockets(process)
    assert Path(f"{process}/oom_score_adj").read_text().strip() == "1000"


def test_reason_of_a_broken_file_names_its_kind_once(tmp_path: Path, xberg: Xberg) -> None:
    path = tmp_path / "broken"
    path.write_bytes(b"%PDF-1.4 {broken")
    with pytest.raises(ExtractionError, match=r"^not a PDF: "):
        xberg.extract(str(path), files.PDF)


def test_a_file_that_takes_too_long_costs_its_time_and_no_more(xberg: Any, good: str, monkeypatch: Any) -> None:
    assert xberg.extract(good, files.PDF) == "quokka"
    [child] = xberg._idle
    os.kill(child._process.pid, signal.SIGSTOP)
    with monkeypatch.context() as patched:
        patched.setattr(module, "TIMEOUT", 0.1)
        with pytest.raises(ExtractionError, match="no text after 0 seconds"):
            xberg.extract(good, files.PDF)
    assert xberg.extract(good, files.PDF) == "quokka"


class Tika(BaseHTTPRequestHandler):
    """Answers as Tika does."""

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(422 if b"broken" in data else 200)
        self.end_headers()
        self.wfile.write(f"{data.decode()} {self.headers['Content-Type']}".encode())


def test_extractor_of_the_page_about_tika_works(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "files.md"
    [code] = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    assert len(code.splitlines()) <= 33
    names: dict[str, Any] = {"__name__": "tika"}
    exec(code, names)
    extractor, path = names["Tika"](), tmp_path / "file"
    assert verifyObject(ITextExtractor, extractor)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tika)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    extractor.url = f"http://127.0.0.1:{server.server_port}/tika"
    path.write_bytes(b"quokka")
    assert extractor.extract(str(path), files.PDF) == f"quokka {files.PDF}"
    path.write_bytes(b"broken")
    with pytest.raises(ExtractionError, match="Tika: 422") as broken:
        extractor.extract(str(path), files.PDF)
    server.shutdown()
    server.server_close()
    with pytest.raises(ExtractionError, match="Tika: ") as unreachable:
        extractor.extract(str(path), files.PDF)
    assert (broken.value.for_good, unreachable.value.for_good) == (True, False)


# -- workers


def quokkas(portal: Any) -> int:
    """Return the number of files with the word quokka."""
    transaction.begin()
    return len(portal.portal_catalog(SearchableText="quokka"))


def test_two_workers_extract_a_file_once(portal: Any, worker: Any, extractor: Any) -> None:
    counted = Counted()
    extractor(counted)
    for number in range(6):
        upload(portal, f"file-{number}", b"same")
    transaction.commit()
    workers = [Worker(worker.database, worker.dsn) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(Worker.run_until_empty, workers)) == 6
    assert counted.count == 1
    assert quokkas(portal) == 6
    assert queued(worker.dsn) == []


@pytest.mark.parametrize("size", [16 << 20, pytest.param(200 << 20, marks=pytest.mark.slow)])
def test_large_file_is_never_in_memory_as_a_whole(portal: Any, worker: Any, extractor: Any, size: int) -> None:
    sizes: list[int] = []

    class Sized(Counted):
        def extract(self, path: str, kind: str) -> str:
            sizes.append(os.path.getsize(path))
            return super().extract(path, kind)

    extractor(Sized())
    for name in ("first", "large"):
        upload(portal, name, os.urandom(size) if name == "large" else b"x")
        transaction.commit()
        tracemalloc.start()
        assert work(worker) == 1
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 << 20
    assert (sizes, quokkas(portal)) == ([1, size], 2)


def test_file_whose_extracting_process_is_killed_is_retried(
    portal: Any, worker: Any, extractor: Any, xberg: Any, good: str
) -> None:
    extractor(xberg)
    xberg.extract(good, files.PDF)
    [child] = xberg._idle
    before = child.files
    # A stopped process is in the middle of a file for as long as needed.
    os.kill(child._process.pid, signal.SIGSTOP)
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    thread = threading.Thread(target=worker.run_until_empty)
    thread.start()
    until(lambda: child.files > before)
    os.kill(child._process.pid, signal.SIGKILL)
    until(lambda: not thread.is_alive())
    [(reason,)] = queued(worker.dsn)
    assert reason == "the extraction process was killed"
    assert work(worker) == 0
    due(worker.dsn)
    assert work(worker) == 1
    assert quokkas(portal) == 1
