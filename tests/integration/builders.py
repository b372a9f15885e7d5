"""Builders of small Office, OpenDocument, mail and PDF files from bits of XML, for the cases beside it."""

import email
import email.message
import email.policy
import io
import zipfile


OX = "application/vnd.openxmlformats-officedocument."
DOCX, XLSX, PPTX = OX + "wordprocessingml.document", OX + "spreadsheetml.sheet", OX + "presentationml.presentation"
ODT, ODS, ODP = ("application/vnd.oasis.opendocument." + k for k in ("text", "spreadsheet", "presentation"))
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(parts, stored=()):
    """Return a zip of *parts*, name -> content; those in *stored* come first and are not packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for n in stored:
            z.writestr(n, parts.pop(n), zipfile.ZIP_STORED)
        for n, d in parts.items():
            z.writestr(n, d)
    return out.getvalue()


def rels(*r):
    """Return the relationships *r*, each a kind and a target, as XML."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(f'<Relationship Id="r{i}" Type="{REL}/{t}" Target="{x}"/>' for i, (t, x) in enumerate(r, 1))
        + "</Relationships>"
    )


def types(**o):
    """Return the content types of parts as XML; "__" stands for "/" in the names *o*."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
        + "".join(f'<Override PartName="/{k.replace("__", "/")}" ContentType="{v}"/>' for k, v in o.items())
        + "</Types>"
    )


W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="'
    + REL
    + '" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)


def docx(body, **more):
    """Return a Word document with *body*, and *more* parts such as header1 or footnotes."""
    parts = {
        "[Content_Types].xml": types(
            **{
                "word__document.xml": OX + "wordprocessingml.document.main+xml",
                **{f"word__{n}.xml": OX + f"wordprocessingml.{n.rstrip('0123456789')}+xml" for n in more},
            }
        ),
        "_rels/.rels": rels(("officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": rels(*[(n.rstrip("0123456789"), n + ".xml") for n in more]),
        "word/document.xml": f'<?xml version="1.0" encoding="UTF-8"?><w:document {W}><w:body>{body}<w:sectPr/></w:body></w:document>',
    }
    for n, x in more.items():
        parts[f"word/{n}.xml"] = f'<?xml version="1.0" encoding="UTF-8"?>{x}'
    return zipped(parts)


def p(*runs):
    """Return a paragraph of *runs*."""
    return "<w:p>" + "".join(runs) + "</w:p>"


def r(t):
    """Return a run with the text *t*."""
    return f'<w:r><w:t xml:space="preserve">{t}</w:t></w:r>'


def xlsx(sheets, shared=None, styles=None, extra=None, wb=""):
    """Return a workbook of *sheets*, each a name, the XML in its worksheet, and attributes of its entry."""
    ov = {
        "xl__workbook.xml": OX + "spreadsheetml.sheet.main+xml",
        **{f"xl__worksheets__sheet{i}.xml": OX + "spreadsheetml.worksheet+xml" for i in range(1, len(sheets) + 1)},
    }
    parts = {
        "_rels/.rels": rels(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{REL}">{wb}<sheets>'
        + "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"{st}/>' for i, (n, _, st) in enumerate(sheets, 1))
        + "</sheets></workbook>",
    }
    rl = [("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(sheets) + 1)]
    if shared:
        parts["xl/sharedStrings.xml"] = (
            f'<?xml version="1.0"?><sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{shared}</sst>'
        )
        ov["xl__sharedStrings.xml"] = OX + "spreadsheetml.sharedStrings+xml"
        rl.append(("sharedStrings", "sharedStrings.xml"))
    if styles:
        parts["xl/styles.xml"] = styles
        ov["xl__styles.xml"] = OX + "spreadsheetml.styles+xml"
        rl.append(("styles", "styles.xml"))
    parts["xl/_rels/workbook.xml.rels"] = rels(*rl)
    for i, (_, x, _) in enumerate(sheets, 1):
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{REL}">{x}</worksheet>'
        )
    parts["[Content_Types].xml"] = types(**ov)
    parts.update(extra or {})
    return zipped(parts)


def row(n, *c):
    """Return the row *n* with the cells *c*."""
    return f'<row r="{n}">' + "".join(c) + "</row>"


def s(ref, t):
    """Return the cell *ref* with the text *t*."""
    return f'<c r="{ref}" t="inlineStr"><is><t>{t}</t></is></c>'


STY = '<?xml version="1.0"?><styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="3"><numFmt numFmtId="164" formatCode="00000"/><numFmt numFmtId="165" formatCode="dd\\.mm\\.yyyy"/><numFmt numFmtId="166" formatCode="0.00%"/></numFmts><fonts count="1"><font/></fonts><fills count="1"><fill/></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="164" applyNumberFormat="1"/><xf numFmtId="165" applyNumberFormat="1"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>'
O = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'  # noqa: E741


def odf(kind, body, tag, styles=""):
    """Return an OpenDocument of the content type *kind* with *body* in the element *tag*."""
    man = f'<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    return zipped(
        {
            "mimetype": kind,
            "content.xml": f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {O} office:version="1.3"><office:body><office:{tag}>{body}</office:{tag}></office:body></office:document-content>',
            "styles.xml": f'<?xml version="1.0" encoding="UTF-8"?><office:document-styles {O} office:version="1.3">{styles}</office:document-styles>',
            "META-INF/manifest.xml": man,
        },
        stored=["mimetype"],
    )


A = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="'
    + REL
    + '" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
)


def sp(t):
    """Return a shape with the text *t*, in runs parted by "|"."""
    return f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="T"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p>{"".join(f"<a:r><a:t>{x}</a:t></a:r>" for x in t.split("|"))}</a:p></p:txBody></p:sp>'


def pptx(slides, notes=None, hidden=()):
    """Return a presentation of *slides*, with *notes* by the number of the slide."""
    ov = {
        "ppt__presentation.xml": OX + "presentationml.presentation.main+xml",
        **{f"ppt__slides__slide{i}.xml": OX + "presentationml.slide+xml" for i in range(1, len(slides) + 1)},
    }
    parts = {
        "_rels/.rels": rels(("officeDocument", "ppt/presentation.xml")),
        "ppt/_rels/presentation.xml.rels": rels(
            *[("slide", f"slides/slide{i}.xml") for i in range(1, len(slides) + 1)]
        ),
        "ppt/presentation.xml": f'<?xml version="1.0"?><p:presentation {A}><p:sldIdLst>'
        + "".join(f'<p:sldId id="{255 + i}" r:id="r{i}"/>' for i in range(1, len(slides) + 1))
        + "</p:sldIdLst></p:presentation>",
    }
    for i, x in enumerate(slides, 1):
        parts[f"ppt/slides/slide{i}.xml"] = (
            f'<?xml version="1.0"?><p:sld {A}{' show="0"' if i in hidden else ""}><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{x}</p:spTree></p:cSld></p:sld>'
        )
        if notes and i in notes:
            parts[f"ppt/slides/_rels/slide{i}.xml.rels"] = rels(("notesSlide", f"../notesSlides/notesSlide{i}.xml"))
            ov[f"ppt__notesSlides__notesSlide{i}.xml"] = OX + "presentationml.notesSlide+xml"
            parts[f"ppt/notesSlides/notesSlide{i}.xml"] = (
                f'<?xml version="1.0"?><p:notes {A}><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{sp(notes[i])}</p:spTree></p:cSld></p:notes>'
            )
    parts["[Content_Types].xml"] = types(**ov)
    return zipped(parts)


def mail(text=None, html=None, charset="utf-8", cte=None, subject="Betreff", attach=(), raw=None):
    """Return a mail with the bodies *text* and *html*, and attachments of (name, data, content type)."""
    m = email.message.EmailMessage(policy=email.policy.SMTP)
    m["From"], m["To"], m["Subject"] = "Jörg Müller <a@example.org>", "b@example.org", subject
    if text is not None:
        m.set_content(text, charset=charset, **({"cte": cte} if cte else {}))
    if html is not None:
        (m.add_alternative if text is not None else m.set_content)(
            html, subtype="html", charset=charset, **({"cte": cte} if cte else {})
        )
    for name, data, kind in attach:
        if kind == "message/rfc822":
            m.add_attachment(email.message_from_bytes(data, policy=email.policy.SMTP), filename=name)
        else:
            a, b = kind.split("/")
            m.add_attachment(data, maintype=a, subtype=b, filename=name)
    return m.as_bytes()


def pdf(pages, extra=(), fonts=None, annots="", acro="", trailer=""):
    """Return a PDF with *pages*, each a content stream in the font F1: Helvetica, or the object *fonts*."""
    objs = [
        f"<< /Type /Catalog /Pages 2 0 R {acro} >>",
        None,
        fonts or "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    objs += list(extra)
    kids = []
    for c in pages:
        data = c if isinstance(c, bytes) else c.encode("cp1252")
        objs.append(b"<< /Length %d >>\nstream\n" % len(data) + data + b"\nendstream")
        n = len(objs)
        objs.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {n} 0 R /Resources << /Font << /F1 3 0 R >> >> {annots} >>"
        )
        kids.append(f"{len(objs)} 0 R")
    objs[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out = b"%PDF-1.7\n"
    pos = []
    for i, o in enumerate(objs, 1):
        pos.append(len(out))
        out += b"%d 0 obj\n" % i + (o if isinstance(o, bytes) else o.encode("latin-1")) + b"\nendobj\n"
    end = len(out)
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objs) + 1)
        + b"".join(b"%010d 00000 n \n" % x for x in pos)
        + b"trailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF" % (len(objs) + 1, trailer.encode(), end)
    )
