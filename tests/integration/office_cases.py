"""Small files of Office, each with one way to lose words, and functions that build others."""

from tests.integration.builders import A
from tests.integration.builders import DOCX
from tests.integration.builders import docx
from tests.integration.builders import mail
from tests.integration.builders import p
from tests.integration.builders import PPTX
from tests.integration.builders import pptx
from tests.integration.builders import r
from tests.integration.builders import rels
from tests.integration.builders import row
from tests.integration.builders import s
from tests.integration.builders import sp
from tests.integration.builders import STY
from tests.integration.builders import W
from tests.integration.builders import XLSX
from tests.integration.builders import xlsx

import base64
import io
import zipfile


MAIL = "message/rfc822"
PDF = "application/pdf"


def run(inner: str) -> str:
    return f"<w:r>{inner}</w:r>"


def t(text: str) -> str:
    return f'<w:t xml:space="preserve">{text}</w:t>'


def ar(text: str, properties: str = "") -> str:
    return f"<a:r>{properties}<a:t>{text}</a:t></a:r>"


def box(paragraphs: str) -> str:
    """Return a shape of PowerPoint with *paragraphs*."""
    name = '<p:nvSpPr><p:cNvPr id="2" name="T"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
    return f"<p:sp>{name}<p:txBody><a:bodyPr/>{paragraphs}</p:txBody></p:sp>"


def html(body: str) -> bytes:
    return mail(html=f"<html><body>{body}</body></html>")


def coded(charset: str, text: str) -> bytes:
    """Return a mail with *text* in *charset*."""
    head = f"Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    return b"From: a@example.org\r\nSubject: x\r\n" + head.encode() + base64.encodebytes(text.encode(charset))


def rtf(fcharset: int, encoding: str, text: str) -> bytes:
    """Return an RTF with *text* in a font of *fcharset*, whose code page is *encoding*."""
    fonts = r"{\fonttbl{\f0\fnil\fcharset0 Arial;}{\f1\fnil\fcharset@ Arial;}}".replace("@", str(fcharset))
    text = "".join(f"\\'{byte:02x}" if byte > 127 else chr(byte) for byte in text.encode(encoding))
    return (r"{\rtf1\ansi\ansicpg1252\deff0" + fonts + r"\f1 " + text + r"\par}").encode()


def with_parts(data: bytes, parts: dict[str, str]) -> bytes:
    """Return the archive *data* with further *parts*."""
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


TEXT_BOX = (
    "<w:r><w:pict><v:shape><v:textbox><w:txbxContent>"
    + p(r("Kasten"))
    + "</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
)
LINE = "BT /F1 12 Tf 72 720 Td "

CHART = '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Diagramm</a:t></a:r><a:r><a:t>titel</a:t></a:r></a:p></c:rich></c:tx></c:title><c:ser><c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>Rubrik</c:v></c:pt><c:pt idx="1"><c:v>Zwei</c:v></c:pt></c:strCache></c:strRef></c:cat></c:ser></c:chart></c:chartSpace>'
#: Name, content type, file, and texts that a person sees in it.
OFFICE: list[tuple[str, str, bytes, list[str]]] = [
    ("control-docx", DOCX, docx(p(run(t("links ")), run(t("rechts Mün") + t("chen")))), ["links rechts München"]),
    (
        "control-pptx",
        PPTX,
        pptx([box("<a:p>" + ar("R&amp;D München") + "</a:p>")], notes={1: "Sprechernotiz"}),
        ["R&D München", "Sprechernotiz"],
    ),
    (
        "control-xlsx",
        XLSX,
        xlsx(
            [("S", "<sheetData>" + row(1, s("A1", "Obenwort")) + row(9999, s("A9999", "R&amp;D")) + "</sheetData>", "")]
        ),
        ["Obenwort", "R&D"],
    ),
    ("docx-tab", DOCX, docx(p(run(t("links")), run("<w:tab/>"), run(t("rechts")))), ["links rechts"]),
    (
        "docx-ptab",
        DOCX,
        docx(p(run(t("links")), run('<w:ptab w:relativeTo="margin"/>'), run(t("rechts")))),
        ["links rechts"],
    ),
    (
        "docx-page-break",
        DOCX,
        docx(p(run(t("links")), run('<w:br w:type="page"/>'), run(t("rechts")))),
        ["links rechts"],
    ),
    ("docx-ampersand", DOCX, docx(p(r("Abteilung R&amp;D, AT&amp;T, Smith&amp;Sons"))), ["R&D", "AT&T", "Smith&Sons"]),
    ("docx-beside-a-text-box", DOCX, docx(p(r("Davor"), TEXT_BOX, r("Danach"))), ["Davor", "Kasten", "Danach"]),
    (
        "docx-header-footer",
        DOCX,
        docx(
            p(r("Text")),
            header1=f"<w:hdr {W}>{p(r('Kopfzeile'))}</w:hdr>",
            footer1=f"<w:ftr {W}>{p(r('Fusszeile'))}</w:ftr>",
        ),
        ["Kopfzeile", "Fusszeile"],
    ),
    (
        "pptx-runs",
        PPTX,
        pptx([box("<a:p>" + ar("M") + ar("ü", '<a:rPr sz="900"/>') + ar("nchen") + "</a:p>")]),
        ["München"],
    ),
    (
        "pptx-spelling",
        PPTX,
        pptx([box("<a:p>" + ar("Verkehrs", '<a:rPr dirty="0"/>') + ar("wende", '<a:rPr err="1"/>') + "</a:p>")]),
        ["Verkehrswende"],
    ),
    (
        "pptx-field",
        PPTX,
        pptx([box("<a:p>" + ar("Stand ") + '<a:fld id="{x}" type="datetime1"><a:t>31.12.2023</a:t></a:fld></a:p>')]),
        ["Stand 31.12.2023"],
    ),
    (
        "xlsx-stray-cell",
        XLSX,
        xlsx(
            [("S", "<sheetData>" + row(1, s("A1", "Obenwort")) + row(1048576, s("A1048576", "x")) + "</sheetData>", "")]
        ),
        ["Obenwort"],
    ),
    (
        "xlsx-stray-cell-in-the-corner",
        XLSX,
        xlsx(
            [
                (
                    "S",
                    "<sheetData>" + row(1, s("A1", "Obenwort")) + row(1048576, s("XFD1048576", "x")) + "</sheetData>",
                    "",
                )
            ]
        ),
        ["Obenwort"],
    ),
    (
        "docx-notes",
        DOCX,
        docx(
            p(r("Haupt"), '<w:r><w:footnoteReference w:id="1"/></w:r>', r("wort")),
            footnotes=f'<w:footnotes {W}><w:footnote w:id="1">{p(r("Fussnote"))}</w:footnote></w:footnotes>',
            endnotes=f'<w:endnotes {W}><w:endnote w:id="1">{p(r("Endnote"))}</w:endnote></w:endnotes>',
            comments=f'<w:comments {W}><w:comment w:id="1">{p(r("Randbemerkung"))}</w:comment></w:comments>',
        ),
        ["Hauptwort", "Fussnote", "Endnote", "Randbemerkung"],
    ),
    (
        "docx-sdt",
        DOCX,
        docx(
            "<w:sdt><w:sdtPr/><w:sdtContent>"
            + p(r("Blockfeld"))
            + "</w:sdtContent></w:sdt>"
            + p(r("Im "), "<w:sdt><w:sdtContent>" + r("Steuer") + "</w:sdtContent></w:sdt>", r("element"))
        ),
        ["Blockfeld", "Im Steuerelement"],
    ),
    (
        "docx-tracked",
        DOCX,
        docx(
            p(
                r("Alt"),
                '<w:ins w:id="1">' + r("Neu") + "</w:ins>",
                '<w:del w:id="2"><w:r><w:delText>Gelöscht</w:delText></w:r></w:del>',
            )
        ),
        ["AltNeu"],
    ),
    ("docx-math", DOCX, docx(p(r("Formel "), "<m:oMath><m:r><m:t>Energie</m:t></m:r></m:oMath>")), ["Formel Energie"]),
    (
        "docx-alt",
        DOCX,
        docx(
            p(
                '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="Bild" descr="Bildbeschreibung"/></wp:inline></w:drawing></w:r>'
            )
        ),
        ["Bildbeschreibung"],
    ),
    (
        "docx-wps",
        DOCX,
        docx(
            p(
                r("Vor"),
                '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic><a:graphicData><wps:wsp><wps:txbx><w:txbxContent>'
                + p(r("Formtext"))
                + "</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict/></mc:Fallback></mc:AlternateContent></w:r>",
                r("wort"),
            )
        ),
        ["Formtext", "Vorwort"],
    ),
    (
        "docx-ruby",
        DOCX,
        docx(
            p(
                "<w:r><w:ruby><w:rt><w:r><w:t>とう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r></w:rubyBase></w:ruby></w:r>",
                r("京"),
            )
        ),
        ["東京"],
    ),
    (
        "docx-hyphens",
        DOCX,
        docx(
            p(r("Nord"), "<w:r><w:noBreakHyphen/></w:r>", r("Süd Silben"), "<w:r><w:softHyphen/></w:r>", r("trennung"))
        ),
        ["Nord-Süd", "Silbentrennung"],
    ),
    (
        "docx-table",
        DOCX,
        docx("<w:tbl><w:tr><w:tc>" + p(r("eins")) + "</w:tc><w:tc>" + p(r("zwei")) + "</w:tc></w:tr></w:tbl>"),
        ["eins zwei"],
    ),
    ("docx-chart", DOCX, docx(p(r("x")), chart1=CHART), ["Diagrammtitel", "Rubrik Zwei"]),
    (
        "docx-link",
        DOCX,
        docx(
            p(
                '<w:hyperlink r:id="r9">' + r("Verweis") + "</w:hyperlink>",
                '<w:fldSimple w:instr="DATE">' + r("wort") + "</w:fldSimple>",
            )
        ),
        ["Verweiswort"],
    ),
    (
        "pptx-table",
        PPTX,
        pptx(
            [
                "<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>eins</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>zwei</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
            ]
        ),
        ["eins zwei"],
    ),
    (
        "pptx-hidden-group",
        PPTX,
        pptx([sp("Eins"), "<p:grpSp>" + sp("Versteckt") + "</p:grpSp>"], hidden=(2,)),
        ["Eins", "Versteckt"],
    ),
    ("pptx-br", PPTX, pptx([box("<a:p>" + ar("eins") + "<a:br/>" + ar("zwei") + "</a:p>")]), ["eins zwei"]),
    (
        "pptx-chart",
        PPTX,
        with_parts(
            pptx([sp("x")]),
            {
                "ppt/slides/_rels/slide1.xml.rels": rels(
                    ("chart", "../charts/chart1.xml"),
                    ("diagramData", "../diagrams/data1.xml"),
                    ("comments", "../comments/comment1.xml"),
                ),
                "ppt/charts/chart1.xml": CHART,
                "ppt/diagrams/data1.xml": f'<dgm:dataModel xmlns:dgm="urn:d" {A}><dgm:ptLst><dgm:pt><dgm:t><a:bodyPr/><a:p><a:r><a:t>Schau</a:t></a:r><a:r><a:t>bild</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>',
                "ppt/comments/comment1.xml": f"<p:cmLst {A}><p:cm><p:text>Kommentarwort</p:text></p:cm></p:cmLst>",
            },
        ),
        ["Diagrammtitel", "Schaubild", "Kommentarwort"],
    ),
    (
        "xlsx-formats",
        XLSX,
        xlsx(
            [
                (
                    "Blattname",
                    "<sheetData>"
                    + row(
                        1,
                        '<c r="A1" s="1"><v>1067</v></c>',
                        '<c r="B1" s="2"><v>45291</v></c>',
                        '<c r="C1" s="3"><v>45291</v></c>',
                        '<c r="D1"><v>0.30000000000000004</v></c>',
                        '<c r="E1" t="b"><v>1</v></c>',
                        '<c r="F1" t="str"><f>A1</f><v>Formelwert</v></c>',
                    )
                    + "</sheetData>",
                    "",
                )
            ],
            styles=STY,
        ),
        ["01067", "31.12.2023", "Blattname", "0.3", "Formelwert"],
    ),
    (
        "xlsx-1904",
        XLSX,
        xlsx(
            [("S", "<sheetData>" + row(1, '<c r="A1" s="2"><v>43829</v></c>') + "</sheetData>", "")],
            styles=STY,
            wb='<workbookPr date1904="1"/>',
        ),
        ["31.12.2023"],
    ),
    (
        "xlsx-shared",
        XLSX,
        xlsx(
            [
                (
                    "S",
                    "<sheetData>"
                    + row(1, '<c r="A1" t="s"><v>0</v></c>', '<c r="B1" t="s"><v>1</v></c>')
                    + "</sheetData>",
                    ' state="hidden"',
                )
            ],
            shared='<si><r><t>Verkehrs</t></r><r><rPr><b/></rPr><t>wende</t></r></si><si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></si>',
        ),
        ["Verkehrswende", "東京"],
    ),
    (
        "xlsx-comments",
        XLSX,
        xlsx(
            [
                (
                    "S",
                    "<sheetData>"
                    + row(1, s("A1", "x"))
                    + '</sheetData><headerFooter><oddHeader>&amp;L&amp;"Arial,Bold"Kopfwort&amp;R&amp;P</oddHeader><oddFooter>&amp;CFusswort</oddFooter></headerFooter>',
                    "",
                )
            ],
            extra={
                "xl/worksheets/_rels/sheet1.xml.rels": rels(
                    ("comments", "../comments1.xml"), ("drawing", "../drawings/drawing1.xml")
                ),
                "xl/comments1.xml": '<comments xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><authors><author>Anna</author></authors><commentList><comment ref="A1" authorId="0"><text><r><t>Zell</t></r><r><t>notiz</t></r></text></comment></commentList></comments>',
                "xl/drawings/drawing1.xml": f'<xdr:wsDr xmlns:xdr="urn:y" {A}><xdr:sp><xdr:txBody><a:p><a:r><a:t>Textfeld</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:wsDr>',
            },
        ),
        ["Kopfwort", "Fusswort", "Zellnotiz", "Textfeld"],
    ),
]
