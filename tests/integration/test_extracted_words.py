"""The words that a person sees in a file are in its text: a table of small files, each with one way to lose words."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.files.extractor import Xberg
from tests.integration.builders import DOCX
from tests.integration.builders import docx
from tests.integration.builders import mail
from tests.integration.builders import odf
from tests.integration.builders import ODP
from tests.integration.builders import ODS
from tests.integration.builders import ODT
from tests.integration.builders import p
from tests.integration.builders import pdf
from tests.integration.builders import PPTX
from tests.integration.builders import pptx
from tests.integration.builders import r
from tests.integration.builders import row
from tests.integration.builders import s
from tests.integration.builders import sp
from tests.integration.builders import XLSX
from tests.integration.builders import xlsx
from tests.integration.builders import zipped
from tests.integration.office_cases import coded
from tests.integration.office_cases import html
from tests.integration.office_cases import LINE
from tests.integration.office_cases import MAIL
from tests.integration.office_cases import OFFICE
from tests.integration.office_cases import PDF
from tests.integration.office_cases import rtf
from tests.integration.older_cases import container
from tests.integration.older_cases import DECK
from tests.integration.older_cases import msg
from tests.integration.older_cases import OLDER
from tests.integration.older_cases import ole
from tests.integration.older_cases import PPT
from tests.integration.older_cases import ppt
from tests.integration.older_cases import shape
from tests.integration.older_cases import SLIDES_95

import pytest
import re
import unicodedata


FIELDS = [
    "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Feldinhalt) /Rect [100 600 300 620] /DA (/F1 12 Tf 0 g) >>",
    "<< /Type /Annot /Subtype /FreeText /Contents (Freitext) /Rect [100 500 300 520] /DA (/F1 12 Tf 0 g) >>",
    "<< /Type /Annot /Subtype /Text /Contents (Notizzettel) /Rect [100 400 120 420] >>",
]
FORM = pdf(
    [LINE + "(Formular) Tj ET"],
    extra=FIELDS,
    annots="/Annots [4 0 R 5 0 R 6 0 R]",
    acro="/AcroForm << /Fields [4 0 R] /DR << /Font << /F1 3 0 R >> >> >>",
)
INNER = pdf([LINE + "(Beilage) Tj ET"])
PORTFOLIO = pdf(
    [LINE + "(Mappe) Tj ET"],
    extra=[
        b"<< /Type /EmbeddedFile /Length %d >>\nstream\n" % len(INNER) + INNER + b"\nendstream",
        "<< /Type /Filespec /F (b.pdf) /UF (b.pdf) /EF << /F 4 0 R >> >>",
    ],
    acro="/Names << /EmbeddedFiles << /Names [(b.pdf) 5 0 R] >> >>",
)
EPUB = zipped(
    {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="O/c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "O/c.opf": '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>B</dc:title><dc:identifier id="i">x</dc:identifier><dc:language>de</dc:language></metadata><manifest><item id="a" href="Kapitel%201.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>',
        "O/Kapitel 1.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Kapitelwort</p></body></html>',
    },
    stored=["mimetype"],
)
CMAP = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def 1 begincodespacerange <00> <FF> endcodespacerange 2 beginbfchar <41> <0142> <42> <FB01> endbfchar endcmap end end"
#: Name, content type, file, and texts that a person sees in it.
OTHERS: list[tuple[str, str, bytes, list[str]]] = [
    ("control-odt", ODT, odf(ODT, "<text:p>eins<text:tab/>zwei R&amp;D</text:p>", "text"), ["eins zwei R&D"]),
    ("control-eml", MAIL, mail("Klartext Köln"), ["Klartext Köln"]),
    ("control-rtf", "text/rtf", rtf(0, "cp1252", "Köln"), ["Köln"]),
    ("control-pdf", PDF, pdf([LINE + "(Zeile eins) Tj 0 -14 Td (Zeile zwei) Tj ET"]), ["Zeile eins", "Zeile zwei"]),
    ("control-xml", "text/xml", '<?xml version="1.0" encoding="UTF-8"?><a>Köln</a>'.encode(), ["Köln"]),
    (
        "ods-stray-cell",
        ODS,
        odf(
            ODS,
            '<table:table table:name="B"><table:table-row><table:table-cell office:value-type="string"><text:p>Obenwort</text:p></table:table-cell></table:table-row><table:table-row table:number-rows-repeated="200000"><table:table-cell/></table:table-row><table:table-row><table:table-cell office:value-type="string"><text:p>x</text:p></table:table-cell></table:table-row></table:table>',
            "spreadsheet",
        ),
        ["Obenwort"],
    ),
    (
        "odp",
        ODP,
        odf(
            ODP,
            '<draw:page draw:name="P"><draw:frame><draw:text-box><text:p>Folienwort</text:p></draw:text-box></draw:frame></draw:page>',
            "presentation",
        ),
        ["Folienwort"],
    ),
    ("odt-spaces", ODT, odf(ODT, "<text:p>eins<text:s/>zwei</text:p>", "text"), ["eins zwei"]),
    (
        "odt-frame-of-a-page",
        ODT,
        odf(ODT, "<draw:frame><draw:text-box><text:p>Rahmenwort</text:p></draw:text-box></draw:frame>", "text"),
        ["Rahmenwort"],
    ),
    ("eml-br", MAIL, html("eins<br>zwei"), ["eins zwei"]),
    ("eml-cells", MAIL, html("<table><tr><td>eins</td><td>zwei</td></tr></table>"), ["eins zwei"]),
    ("eml-entities", MAIL, html("Gr&uuml;&szlig;e aus M&#252;nchen"), ["Grüße aus München"]),
    ("eml-attachment", MAIL, mail("Text", attach=[("p.docx", docx(p(r("Anhangwort"))), DOCX)]), ["Anhangwort"]),
    ("eml-iso-2022-jp", MAIL, coded("iso-2022-jp", "東京都の会議"), ["東京都"]),
    ("eml-shift-jis", MAIL, coded("shift_jis", "東京都の会議"), ["東京都"]),
    ("eml-gb2312", MAIL, coded("gb2312", "北京会议"), ["北京"]),
    ("rtf-central-europe", "text/rtf", rtf(238, "cp1250", "příliš Łódź"), ["příliš Łódź"]),
    ("rtf-cyrillic", "text/rtf", rtf(204, "cp1251", "Москва"), ["Москва"]),
    ("rtf-turkish", "text/rtf", rtf(162, "cp1254", "ışık"), ["ışık"]),
    (
        "pdf-hyphen",
        PDF,
        pdf([LINE + "(Wegen der Donaudampfschiff-) Tj 0 -14 Td (fahrtsgesellschaft) Tj ET"]),
        ["Donaudampfschifffahrtsgesellschaft"],
    ),
    ("pdf-form", PDF, FORM, ["Feldinhalt", "Freitext", "Notizzettel"]),
    ("xml-latin-1", "text/xml", '<?xml version="1.0" encoding="ISO-8859-1"?><a>Köln</a>'.encode("latin-1"), ["Köln"]),
    (
        "odt-notes",
        ODT,
        odf(
            ODT,
            "<text:p>Haupt<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Fussnote</text:p></text:note-body></text:note>wort<office:annotation><dc:creator>Anna</dc:creator><dc:date>2023-01-01</dc:date><text:p>Anmerkung</text:p></office:annotation></text:p><text:p>Verkehrs<text:span>wende</text:span></text:p><text:tracked-changes><text:deletion><text:p>weg</text:p></text:deletion></text:tracked-changes>",
            "text",
            styles='<office:master-styles><style:master-page style:name="S"><style:header><text:p>Kopfzeile</text:p></style:header><style:footer><text:p>Fusszeile</text:p></style:footer></style:master-page></office:master-styles>',
        ),
        ["Hauptwort", "Fussnote", "Anmerkung", "Verkehrswende", "Kopfzeile", "Fusszeile"],
    ),
    (
        "odt-breaks",
        ODT,
        odf(
            ODT,
            '<text:p>eins<text:line-break/>zwei<text:s text:c="3"/>drei <text:date>31.12.2023</text:date></text:p>',
            "text",
        ),
        ["eins zwei drei 31.12.2023"],
    ),
    (
        "ods",
        ODS,
        odf(
            ODS,
            '<table:table table:name="Blattname"><table:table-row><table:table-cell office:value-type="float" office:value="1067"><text:p>01067</text:p></table:table-cell><table:table-cell><office:annotation><text:p>Zellnotiz</text:p></office:annotation><text:p>zwei</text:p></table:table-cell></table:table-row></table:table>',
            "spreadsheet",
        ),
        ["Blattname", "01067", "Zellnotiz"],
    ),
    (
        "odp-notes",
        ODP,
        odf(
            ODP,
            "<draw:page><draw:frame><draw:text-box><text:p>Eins</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>Sprechernotiz</text:p></draw:text-box></draw:frame></presentation:notes></draw:page><draw:page><draw:custom-shape><text:p>Zwei</text:p></draw:custom-shape></draw:page>",
            "presentation",
        ),
        ["Eins", "Sprechernotiz", "Zwei"],
    ),
    (
        "eml-subject",
        MAIL,
        mail("x", subject="Übergrößenträger für die Sitzung des Ausschusses am nächsten Donnerstag in München"),
        ["Übergrößenträger für die Sitzung des Ausschusses am nächsten Donnerstag in München", "Jörg Müller"],
    ),
    ("eml-latin", MAIL, mail("Köln Grüße", charset="iso-8859-1", cte="quoted-printable"), ["Köln Grüße"]),
    ("eml-raw8", MAIL, "From: a@b.c\r\nSubject: Gr\xfc\xdfe\r\n\r\nK\xf6ln".encode("latin-1"), ["Grüße", "Köln"]),
    ("eml-both", MAIL, mail("Nur Klartext", "<p>Nur HTML</p>".replace("Nur", "Bloß")), ["Nur Klartext", "Bloß HTML"]),
    (
        "eml-in-eml",
        MAIL,
        mail(
            "Außen",
            attach=[("i.eml", mail("Innenwort", attach=[("p.docx", docx(p(r("Tiefwort"))), DOCX)]), "message/rfc822")],
        ),
        ["Außen", "Innenwort", "Tiefwort"],
    ),
    ("eml-euc-kr", MAIL, coded("euc-kr", "서울 회의"), ["서울"]),
    ("eml-big5", MAIL, coded("big5", "台北會議"), ["台北"]),
    (
        "eml-broken-attachment",
        MAIL,
        mail(
            "Text",
            attach=[
                ("a.docx", b"PK broken", DOCX),
                ("b.txt", b"Danachwort", "text/plain"),
                ("Bericht_März.pdf", INNER, PDF),
            ],
        ),
        ["Text", "Danachwort", "Beilage", "Bericht_März.pdf"],
    ),
    ("pdf-portfolio", PDF, PORTFOLIO, ["Mappe", "Beilage"]),
    (
        "pdf-true-hyphen",
        PDF,
        pdf([LINE + "(ein well-) Tj 0 -14 Td (known Wort Nord-) Tj 0 -14 Td (Süd) Tj ET"]),
        ["wellknown", "well-known", "Nord-Süd"],
    ),
    (
        "pdf-tounicode",
        PDF,
        pdf(
            [LINE + "(A) Tj 0 -14 Td (B) Tj ET"],
            extra=[b"<< /Length %d >>\nstream\n%s\nendstream" % (len(CMAP), CMAP)],
            fonts="<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 4 0 R >>",
        ),
        ["ł", "fi"],
    ),
    ("pdf-umlauts", PDF, pdf([LINE + "(Grüße aus Köln) Tj ET"]), ["Grüße aus Köln"]),
    ("epub", "application/epub+zip", EPUB, ["Kapitelwort"]),
    (
        "zip",
        "application/zip",
        zipped(
            {"a/b.docx": docx(p(r("Zipwort"))), "x.txt": "Köln".encode("cp1252"), "i.zip": zipped({"p.pdf": INNER})}
        ),
        ["Zipwort", "Köln", "Beilage", "p.pdf"],
    ),
    (
        "xml-entities",
        "text/xml",
        b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY k "K&#246;ln">]><a>&k; R&amp;D</a>',
        ["Köln R&D"],
    ),
    ("xml-utf16", "text/xml", '<?xml version="1.0" encoding="UTF-16"?><a>Köln</a>'.encode("utf-16"), ["Köln"]),
    (
        "html",
        "text/html",
        '<html><head><meta charset="iso-8859-1"><title>Titelwort</title><style>x</style></head><body><p>Gr&uuml;&szlig;e aus Köln<br>zwei<script>nix</script><td>drei</td></body></html>'.encode(
            "latin-1"
        ),
        ["Titelwort", "Grüße aus Köln zwei", "drei"],
    ),
    ("csv", "text/csv", "Name;Köln".encode("cp1252"), ["Köln"]),
    ("txt-utf16", "text/plain", "Köln".encode("utf-16"), ["Köln"]),
    ("txt-utf16le", "text/plain", "Köln am Rhein".encode("utf-16-le"), ["Köln am"]),
    (
        "rtf-unicode",
        "text/rtf",
        rb"{\rtf1\ansi\ansicpg1252 Stra\'dfe \u321?\'f3d\u378? eins\tab zwei\line drei\par {\*\generator x;}{\header Kopf\par}{\footnote Fussnote}}",
        ["Straße", "Łódź", "eins zwei drei", "Kopf", "Fussnote"],
    ),
    ("rtf-greek", "text/rtf", rtf(161, "cp1253", "Αθήνα"), ["Αθήνα"]),
    ("rtf-jp", "text/rtf", rtf(128, "cp932", "東京都"), ["東京都"]),
    ("rtf-greek", "text/rtf", rtf(161, "cp1253", "Αθήνα"), ["Αθήνα"]),
    ("rtf-jp", "text/rtf", rtf(128, "cp932", "東京都"), ["東京都"]),
    (
        "rtf-ansicpg",
        "text/rtf",
        rb"{\rtf1\ansi\ansicpg1251 " + b"".join(b"\\'%02x" % b for b in "Москва".encode("cp1251")) + rb"\par}",
        ["Москва"],
    ),
]
FOOTER = "<style:footer><text:p>@</text:p></style:footer>"
SHEET_WITH_FOOTER = odf(
    ODS,
    '<table:table table:name="a"/>',
    "spreadsheet",
    styles="".join(
        FOOTER.replace("@", each + "<text:page-number>1</text:page-number>") for each in ("Seite ", "Vertraulich ")
    ),
)
CASES = [*OFFICE, *OLDER, *OTHERS, ("ods-footer", ODS, SHEET_WITH_FOOTER, ["Vertraulich"])]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Xberg]:
    made = Xberg()
    yield made
    made.end()


def words(text: str) -> str:
    return " ".join(re.findall(r"[\w&.-]+", unicodedata.normalize("NFKC", text)))


@pytest.mark.parametrize(("kind", "data", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_words_that_a_person_sees_are_in_the_text(
    extractor: Xberg, kind: str, data: bytes, expected: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    text = words(extractor.extract(str(path), kind))
    assert [each for each in expected if words(each) not in text] == [], text[:200]


@pytest.mark.parametrize(
    ("kind", "data", "pages"),
    [
        (PDF, pdf([LINE + f"({word}) Tj ET" for word in ("eins", "", "drei")]), ["eins", "", "drei"]),
        (PPTX, pptx([sp("eins"), "", sp("drei")], notes={1: "Notiz"}), ["eins Notiz", "", "drei"]),
        (
            XLSX,
            xlsx([(name, f"<sheetData>{row(1, s('A1', name))}</sheetData>", "") for name in ("eins", "zwei")]),
            ["eins eins", "zwei zwei"],
        ),
        (ODP, odf(ODP, "<draw:page/>" + "<draw:page><text:p>zwei</text:p></draw:page>", "presentation"), ["", "zwei"]),
        (ODS, odf(ODS, '<table:table table:name="a"/><table:table table:name="b"/>', "spreadsheet"), ["a", "b"]),
        (MAIL, mail("Text", attach=[("p.pdf", pdf([LINE + "(eins) Tj ET"] * 2), PDF)]), [None]),
        ("text/plain", b"eins\fzwei", ["eins zwei"]),
    ],
    ids=["pdf", "pptx", "xlsx", "odp", "ods", "attachment", "text"],
)
def test_a_form_feed_parts_pages_slides_and_sheets_only(
    extractor: Xberg, kind: str, data: bytes, pages: list[str | None], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(data)
    found = [words(page) for page in extractor.extract(str(tmp_path / "file"), kind).split("\f")]
    assert len(found) == len(pages)
    assert pages == [None] or found == pages


@pytest.mark.parametrize(
    ("kind", "data", "lost"),
    [
        (PPT, ppt(DECK), "Titel bearbeiten"),
        (PPT, ppt(DECK, ({2: container(1006, shape("Neu"))},)), "Zweite Folie"),
        (PPT, ole({"PowerPoint Document": SLIDES_95}), "Klicken"),
        (ODS, SHEET_WITH_FOOTER, "Seite"),
        (ODS, SHEET_WITH_FOOTER, "1"),
    ],
    ids=["prompt", "replaced slide", "prompt of 95", "word of a footer", "number of a footer"],
)
def test_words_that_nobody_sees_are_not_in_the_text(
    extractor: Xberg, kind: str, data: bytes, lost: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(data)
    assert lost not in words(extractor.extract(str(tmp_path / "file"), kind))


def test_attachment_of_an_outlook_mail_is_in_the_text_once(extractor: Xberg, tmp_path: Path) -> None:
    data = msg("Betreff", "Guten Tag", {"a.txt": b"Anhangwort", "b.csv": b"Name;Ort"})
    (tmp_path / "file").write_bytes(data)
    text = words(extractor.extract(str(tmp_path / "file"), "application/vnd.ms-outlook"))
    assert [text.count(word) for word in ("Betreff", "Guten Tag", "Anhangwort", "Name Ort")] == [1, 1, 1, 1], text


def nested(depth: int) -> bytes:
    """Return a zip in a zip, and so on."""
    data = zipped({"deep.txt": "Tiefe"})
    for _ in range(depth):
        data = zipped({"a.zip": data})
    return data


@pytest.mark.parametrize(
    ("data", "expected", "lost"),
    [
        (nested(3), "Tiefe", "?"),
        (nested(4), "deep.txt", "Tiefe"),
        (zipped({f"{n}.txt": f"Wort{n}" for n in range(1200)}), "Wort998", "Wort1001"),
        (zipped({"large.txt": "a" * (65 << 20), "b.txt": "Danach"}), "Danach", "aaa"),
        (zipped({"broken.docx": "none", "b.txt": "Danach"}), "broken.docx b.txt Danach", "none"),
    ],
    ids=["depth", "too-deep", "count", "size", "broken"],
)
def test_parts_are_read_up_to_a_depth_a_count_and_a_size(
    extractor: Xberg, data: bytes, expected: str, lost: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(data)
    text = words(extractor.extract(str(tmp_path / "file"), "application/zip"))
    assert expected in text
    assert lost not in text
