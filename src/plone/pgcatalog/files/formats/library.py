"""Formats that xberg reads: Word before .docx, RTF, Outlook's mails, and the rest."""

from plone.pgcatalog.files.charset import in_utf8
from plone.pgcatalog.files.formats.parts import MOST_PARTS
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from typing import Any
from xberg import ExtractInput
from xberg import ExtractionConfig
from xberg import PageConfig
from xberg import XbergError

import asyncio
import re
import xberg


MSG = "application/vnd.ms-outlook"
CONFIG = ExtractionConfig(
    use_cache=False,
    enable_quality_processing=False,
    disable_ocr=True,
    pages=PageConfig(extract_pages=True),
    output_format="plain",
)
#: RTF: a byte, and a letter that may be the second byte of the same character, which xberg reads in hexadecimal only.
SECOND_BYTE = re.compile(rb"(\\'[89a-f][0-9a-f])([@-\[\]-z|~])", re.IGNORECASE)


def read_rtf(path: str, name: str, parts: Parts) -> str:
    """Return the text of the RTF at *path*.  Raises Unreadable."""
    with open(path, "rb") as stream:
        data = SECOND_BYTE.sub(lambda match: match[1] + b"\\'%02x" % ord(match[2]), stream.read())
    return extracted(ExtractInput(kind="bytes", bytes=data, mime_type="application/rtf"), parts)


def read(path: str, kind: str, parts: Parts) -> str:
    """Return the text of the file at *path*, of the content type *kind*.  Raises Unreadable."""
    with in_utf8(path, kind, "") as readable:
        return extracted(ExtractInput(kind="uri", uri=readable, mime_type=kind), parts)


def extracted(document: Any, parts: Parts) -> str:
    """Return the text of *document*, an input of xberg.  Raises Unreadable."""
    try:
        result = asyncio.run(xberg.extract(document, CONFIG))
    except (XbergError, ValueError, RuntimeError) as error:
        raise Unreadable(str(error).removeprefix("Parsing error: ")) from error
    if not result.results:
        raise Unreadable("; ".join(f"{error.error_type}: {error.message}" for error in result.errors) or "no text")
    return text_of(result.results[0], parts)


def text_of(document: Any, parts: Parts) -> str:
    """Return the text of *document*, of xberg, and those of the documents in it."""
    content, children = document.content, (document.children or [])[:MOST_PARTS]
    if document.mime_type == MSG:
        # Attachments are read by our own readers, but not mails in a mail, and those in them.
        for child in reversed(children):
            content = content.removesuffix(f"{child.path}\n{child.result.content}").rstrip()
        children = [child for child in children if child.mime_type == MSG]
        texts = [content, *(text for child in children for text in (child.path, child.result.content))]
        return "\n".join(filter(None, texts)).replace("\f", "\n")
    texts = [content.replace("\f", "\n")]
    if document.pages and len(document.pages) > 1:
        texts = ["\n\f".join(page.content.replace("\f", "\n") for page in document.pages)]
    for child in children:
        texts += [child.path, text_of(child.result, parts).replace("\f", "\n")]
    return "\n".join(filter(None, texts))
