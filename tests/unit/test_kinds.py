"""A file is known by its bytes, then by its name, then by what the upload said; and reading it is bounded."""

from demo import documents as files
from hypothesis import given
from hypothesis import strategies as st
from io import BytesIO
from pathlib import Path
from plone.pgcatalog.files import kinds
from plone.pgcatalog.files.kinds import by_name
from plone.pgcatalog.files.kinds import kind_of
from plone.pgcatalog.files.kinds import KINDS
from plone.pgcatalog.files.kinds import may_have_text
from plone.pgcatalog.files.kinds import READ
from struct import pack
from time import perf_counter
from typing import Any
from zipfile import ZIP_DEFLATED
from zipfile import ZipFile

import mimetypes
import pytest
import tracemalloc


XLS, DOC, PPT, MSG = (
    f"application/{kind}" for kind in ("vnd.ms-excel", "msword", "vnd.ms-powerpoint", "vnd.ms-outlook")
)
CSV, TSV, HTML, TEXT, XML = "text/csv", "text/tab-separated-values", "text/html", "text/plain", "application/xml"
OOXML, ODF = "application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."
ZIP, RTF, MAIL, EPUB = "application/zip", "application/rtf", "message/rfc822", "application/epub+zip"
MAC = "application/vnd.ms-powerpoint.presentation.macroenabled.12"
TABLE = b"Name;Ort\nAnna;Wombat\n"
PAGE = b"<html><body><table><tr><td>Wombat</td></tr></table></body></html>"


def zipped(**members: bytes | str) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def odf(kind: str) -> bytes:
    return zipped(mimetype=ODF + kind, **{"content.xml": "<x/>"})


def package(kind: str) -> bytes:
    """Return an Office package with a main part of *kind*, which is not its first part."""
    types = f'<Types><Override PartName="/a.xml" ContentType="{kind}"/></Types>'
    return zipped(**{"docProps/app.xml": "x", "[Content_Types].xml": types})


def ole(*names: str, inside: str = "") -> bytes:
    """Return an OLE file with streams *names* at its top, and a stream *inside* of its first one."""
    head = kinds.OLE + bytes(16) + pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(10) + pack("<II", 1, 1) + bytes(4)
    head += pack("<IIIII", 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0) + pack("<I", 0) + pack("<I", 0xFFFFFFFF) * 108
    table = pack("<II", 0xFFFFFFFD, 2) + pack("<I", 0xFFFFFFFE) + pack("<I", 0xFFFFFFFF) * 125
    none = 0xFFFFFFFF
    entries = [("Root Entry", none, 1)] + [
        (name, n + 1 if n < len(names) else none, len(names) + 1 if inside and n == 1 else none)
        for n, name in enumerate(names, 1)
    ]
    entries += [(inside, none, none)] if inside else []
    data = b""
    for name, right, child in entries:
        coded = (name + "\0").encode("utf-16-le")
        data += coded.ljust(64, b"\0") + pack("<HBBIII", len(coded), 2, 1, none, right, child) + bytes(48)
    return head + table + data.ljust(1024, b"\0")


@pytest.mark.parametrize(
    ("data", "name", "said", "kind"),
    [
        (files.pdf("x"), "a.pdf", "application/pdf; charset=binary", files.PDF),
        (files.pdf("x"), "", "application/octet-stream", files.PDF),
        (files.pdf("x"), "a.doc", DOC, files.PDF),
        (b"HTTP header\n" + files.pdf("x"), "a.pdf", "", files.PDF),
        (b"no PDF", "a.pdf", files.PDF, TEXT),
        (b"Dear Ann", "", "image/jpeg", TEXT),
        (b"\xff\xd8\xff\xe0", "a.pdf", files.PDF, "image/jpeg"),
        (b"\x09\x04\x06\0\0\x04\x10\0\0\0", "", "", XLS),
        (b"About %PDF-1.7", "a.txt", TEXT, TEXT),
        (files.docx("x"), "a.docx", ZIP, files.DOCX),
        (files.docx("x"), "a.zip", ZIP, files.DOCX),
        (files.docx("x"), "letter.doc", DOC, files.DOCX),
        (files.docx("x")[:300], "letter.docx", ZIP, files.DOCX),
        (files.odt("x"), "a.bin", "application/octet-stream", files.ODT),
        (odf("text-template"), "a.ott", ODF + "text-template", files.ODT),
        (odf("spreadsheet-template"), "a.zip", ZIP, ODF + "spreadsheet"),
        (odf("presentation"), "a.odp", "", ODF + "presentation"),
        (odf("graphics"), "a.odg", "", ODF + "graphics"),
        (package(f"{OOXML}presentationml.template.main+xml"), "", ZIP, f"{OOXML}presentationml.template"),
        (package(f"{OOXML}spreadsheetml.template.main+xml"), "", ZIP, f"{OOXML}spreadsheetml.template"),
        (package("application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml"), "a.ppsm", "", MAC),
        (
            package("application/vnd.ms-excel.sheet.binary.macroEnabled.main"),
            "",
            ZIP,
            f"{XLS}.sheet.binary.macroenabled.12",
        ),
        (zipped(mimetype="application/epub+zip"), "a.zip", ZIP, EPUB),
        (zipped(**{"META-INF/container.xml": "x"}), "", "", EPUB),
        (zipped(a="x"), "a.docx", files.DOCX, ZIP),
        (zipped(a="x"), "a.key", "", "application/x-iwork-keynote-sffkey"),
        (ole("WordDocument", inside="Workbook"), "a.xls", XLS, DOC),
        (ole("Workbook"), "a.bin", "application/octet-stream", XLS),
        (ole("Book"), "a.doc", DOC, XLS),
        (ole("x", "PowerPoint Document"), "", "", PPT),
        (ole("__properties_version1.0"), "a.bin", "", MSG),
        (ole("EncryptedPackage", "EncryptionInfo"), "a.docx", files.DOCX, kinds.ENCRYPTED),
        (ole("x"), "a.msg", "application/octet-stream", MSG),
        (TABLE, "list.csv", XLS, CSV),
        (TABLE, "list.csv", "text/comma-separated-values", CSV),
        (TABLE, "list.xls", XLS, CSV),
        (TABLE.replace(b";", b"\t"), "list.xls", XLS, TSV),
        (TABLE.decode().encode("utf-16"), "list.csv", "", CSV),
        (PAGE, "export.xls", XLS, HTML),
        (PAGE, "a.doc", DOC, HTML),
        (PAGE, "a.pdf", files.PDF, HTML),
        (PAGE, "a.txt", TEXT, TEXT),
        (b"<p>A <b>word</b>", "a.md", "text/markdown", "text/markdown"),
        (rb"{\rtf1\ansi Wombat\par}", "letter.doc", DOC, RTF),
        (rb"{\rtf1\ansi Wombat\par}", "", "application/x-rtf", RTF),
        (b"Dear Ann", "letter.doc", DOC, TEXT),
        (b"Dear Ann", "letter.pdf", TEXT, TEXT),
        (TABLE, "list.csv", files.PDF, CSV),
        (b"Dear Ann", "", "application/octet-stream", TEXT),
        ("Grüße".encode("cp1252"), "", "", TEXT),
        ("Grüße".encode("utf-16-le"), "", "", TEXT),
        (b'<?xml version="1.0"?><!-- a --><a/>', "", "", XML),
        (b'<?xml version="1.0"?><svg/>', "", "", "image/svg+xml"),
        (b'<?xml version="1.0"?><book/>', "a.dbk", "text/xml", "application/docbook+xml"),
        (b"From: a@example.org\nSubject: b\n\nc", "", "", MAIL),
        (b"Received: x\r\nDate: y\r\n\r\nc", "mail.eml", "application/octet-stream", MAIL),
        (b"To: you\nc", "", "", TEXT),
        (b"\x1f\x8b\x08", "a.gz", "", "application/gzip"),
        (b"\x89PNG\r\n\x1a\n", "a.pdf", files.PDF, "image/png"),
        (b"\0\1\2", "", "", kinds.UNKNOWN),
        (b"\0\1\2", "a.dbf", "application/x-dbf", "application/vnd.dbf"),
        (b"", "a.csv", "", CSV),
    ],
)
def test_a_file_is_known_by_what_it_is(tmp_path: Path, data: bytes, name: str, said: str, kind: str) -> None:
    path = tmp_path / "blob"
    path.write_bytes(data)
    assert kind_of(str(path), name, said) == kind


@pytest.mark.parametrize(
    ("said", "name", "needed"),
    [
        (files.PDF, "", True),
        ("APPLICATION/PDF; charset=binary", None, True),
        ("application/octet-stream", None, True),
        ("application/octet-stream", "a.pdf", True),
        ("application/octet-stream", "a.mp4", False),
        ("image/png", "a.png", False),
        ("image/png", "a.pdf", True),
        ("image/png", None, False),
        ("application/x-nobody-knows", "a", True),
        ("application/javascript", "a.js", False),
        ("text/x-nobody-knows", "a", False),
        (None, 7, True),
        (b"application/pdf", [], True),
        ("x" * 10_000, "y" * 10_000, True),
        ("application/pdé", "a.pdf\0", True),
    ],
)
def test_a_save_decides_by_type_and_name_whether_a_file_needs_a_job(said: Any, name: Any, needed: bool) -> None:
    assert may_have_text(said, name, KINDS.__contains__) is needed


EDIT = st.tuples(st.integers(0, 1 << 13), st.binary(min_size=1, max_size=4))


@given(
    st.sampled_from([b"", kinds.OLE, b"%PDF-", b"<?xml", b"\xff\xfe", files.docx("x"), odf("text"), ole("Book", "x")]),
    st.binary(max_size=600),
    st.lists(EDIT, max_size=8),
)
def test_any_bytes_are_of_some_kind(
    tmp_path_factory: pytest.TempPathFactory, start: bytes, end: bytes, edits: list[tuple[int, bytes]]
) -> None:
    data = bytearray(start or end)
    for place, new in edits:
        place %= len(data) + 1
        data[place : place + len(new)] = new
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    for name, said in (("a.docx", ""), ("", "application/octet-stream"), ("a.xls", XLS)):
        assert "/" in kind_of(str(path), name, said)


def bomb() -> bytes:
    """Return an archive whose [Content_Types].xml inflates to 300 MB."""
    return zipped(**{"[Content_Types].xml": bytes(300 << 20)})


def crowd() -> bytes:
    """Return an archive with 200,000 members, whose directory has 10 MB."""
    out = BytesIO()
    with ZipFile(out, "w") as archive:
        for number in range(200_000):
            archive.writestr(str(number), "")
    return out.getvalue()


def circle() -> bytes:
    """Return an OLE file whose directory is a circle of sectors and of entries."""
    data = bytearray(ole("x", "y"))
    data[512 + 4 : 512 + 8] = pack("<I", 1)
    data[1024 + 128 + 68 : 1024 + 128 + 76] = pack("<II", 1, 1)
    return bytes(data)


@pytest.mark.parametrize(
    "make", [bomb, crowd, circle, lambda: bytes(50 << 20), lambda: b"<!--" * 500_000, lambda: b"<?" * 500_000]
)
def test_a_look_at_a_hostile_file_costs_little(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "blob"
    path.write_bytes(make())
    tracemalloc.start()
    begin = perf_counter()
    kind_of(str(path), "a.docx", ZIP)
    seconds, (_, peak) = perf_counter() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    assert seconds < 2


def test_each_name_of_the_table_stands_once_and_is_in_lower_case() -> None:
    lines = (Path(kinds.__file__).with_name("kinds.txt")).read_text().split()
    assert sorted(lines) == sorted(set(lines)) == sorted({word.lower() for word in lines})


@pytest.mark.parametrize(
    "ending",
    [
        "pdf",
        "doc",
        "docx",
        "xls",
        "xlsx",
        "ppt",
        "pptx",
        "odt",
        "ods",
        "odp",
        "odg",
        "ott",
        "rtf",
        "epub",
        "eml",
        "msg",
        "csv",
    ],
)
def test_a_file_of_an_office_is_known_by_its_name_and_by_each_table_of_types(ending: str) -> None:
    assert by_name(f"A.{ending.upper()}") in READ
    guessed, _ = mimetypes.guess_type(f"a.{ending}")
    assert guessed is None or guessed in KINDS
