"""Plain text, HTML, XML and books of HTML, in their encodings."""

from collections.abc import Iterator
from io import BytesIO
from plone.pgcatalog.files.charset import encoding_of
from plone.pgcatalog.files.formats.markup import html_text
from plone.pgcatalog.files.formats.markup import local
from plone.pgcatalog.files.formats.markup import Rules
from plone.pgcatalog.files.formats.markup import Text
from plone.pgcatalog.files.formats.markup import xml_text
from plone.pgcatalog.files.formats.package import Package
from plone.pgcatalog.files.formats.parts import CHUNK
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from typing import Any
from urllib.parse import unquote

import posixpath


_BLOCKS = """
address article aside blockquote body button caption center dd details dialog div dl dt fieldset figcaption
figure footer form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol optgroup option p pre rt section select
summary table tbody td textarea tfoot th thead title tr ul
"""
HTML = Rules(
    blocks=frozenset(_BLOCKS.split()),
    blanks=frozenset({"br", "img", "input"}),
    skipped=frozenset({"script", "style", "template", "rp", "noframes"}),
    attributes=frozenset({"alt"}),
)
#: Most bytes of a text that are decoded.
LONGEST_BYTES = 8 << 20


def decoded(data: bytes, stated: str = "") -> str:
    """Return the text of *data*, in the encoding *stated* or found; other bytes become replacement characters."""
    encoding, _ = encoding_of(BytesIO(data), f"charset={stated}" if stated else "")
    return data.decode(encoding, "replace").replace("\0", "")


def html(data: bytes, longest: int, stated: str = "") -> str:
    """Return the text of the HTML *data*, in the encoding *stated* by a mail, or by the HTML."""
    return html_text(pieces(decoded(data, stated)), Text(HTML, longest), "utf-8")


def pieces(text: str) -> Iterator[bytes]:
    """Yield *text* in UTF-8, in pieces."""
    for start in range(0, len(text), CHUNK):
        yield text[start : start + CHUNK].encode("utf-8", "replace")


def head(path: str) -> bytes:
    """Return the bytes of the file at *path* that are decoded."""
    with open(path, "rb") as stream:
        return stream.read(LONGEST_BYTES)


def read_html(path: str, name: str, parts: Parts) -> str:
    """Return the text of the page at *path*."""
    return html(head(path), parts.longest)


def read_text(path: str, name: str, parts: Parts) -> str:
    """Return the plain text at *path*."""
    return decoded(head(path)).replace("\f", "\n")


class Elements(Text):
    """Target of a parser that collects the text of each element of an unknown XML as a line."""

    def start(self, tag: str, attributes: Any) -> None:
        self.flush()

    def end(self, tag: str) -> None:
        self.flush()


def read_xml(path: str, name: str, parts: Parts) -> str:
    """Return the text of the XML at *path*, in the encoding that it states.  Raises Unreadable."""
    with open(path, "rb") as stream:
        return xml_text(iter(lambda: stream.read(CHUNK), b""), Elements(Rules(), parts.longest))


def read_book(path: str, name: str, parts: Parts) -> str:
    """Return the text of the EPUB at *path*: its chapters in the order of reading.  Raises Unreadable."""
    package = Package(path, parts)
    root = next(package.tree("META-INF/container.xml").iter("{*}rootfile"), None)
    main = "" if root is None else root.get("full-path", "")
    book = package.tree(main)
    hrefs = {item.get("id"): item.get("href", "") for item in book.iter("{*}item")}
    texts: list[str] = []
    for item in book.iter("{*}itemref"):
        href = hrefs.get(item.get("idref"), "")
        places = (posixpath.normpath(posixpath.join(posixpath.dirname(main), part)) for part in (href, unquote(href)))
        place = next((place for place in places if place in package), None)
        if place is not None and sum(map(len, texts)) < parts.longest:
            try:
                texts.append(html(b"".join(package.chunks(place)), parts.longest))
            except Unreadable as error:
                parts.errors.append(str(error))
    kinds = {"title", "creator", "subject", "description", "publisher"}
    texts += [
        element.text or ""
        for element in book.iter("{http://purl.org/dc/elements/1.1/}*")
        if local(element.tag) in kinds
    ]
    if not any(texts):
        raise Unreadable("a book without a chapter that can be read")
    return "\n".join(filter(None, texts))
