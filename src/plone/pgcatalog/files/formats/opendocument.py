"""OpenDocument: texts, sheets, presentations and drawings, as an archive or as one XML; a form feed after slides and sheets."""

from dataclasses import replace
from plone.pgcatalog.files.formats.markup import local
from plone.pgcatalog.files.formats.markup import Rules
from plone.pgcatalog.files.formats.markup import Text
from plone.pgcatalog.files.formats.markup import xml_text
from plone.pgcatalog.files.formats.package import Package
from plone.pgcatalog.files.formats.parts import CHUNK
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from typing import Any

import zipfile


#: Deleted text is in "tracked-changes".
RULES = Rules(
    blocks=frozenset({"p", "h", "table-cell", "list-item", "text-box", "annotation", "note", "ruby-text"}),
    blanks=frozenset({"s", "tab", "line-break", "frame", "creator", "date", "title", "desc"}),
    skipped=frozenset({"tracked-changes", "binary-data", "script", "styles", "automatic-styles", "settings", "meta"}),
    attributes=frozenset({"current-value", "label"}),
)
#: Headers and footers of sheets: by default "???" for the name of the sheet, and "Page 1" in the author's language.
STYLES = replace(RULES, skipped=RULES.skipped | {"page-number", "page-count", "sheet-name", "file-name"})
PAGE = frozenset(
    {"Page", "Seite", "Página", "Pagina", "Pàgina", "Sida", "Side", "Sivu", "Strona", "Stránka", "Strana", "Oldal"}
    | {"Страница", "Сторінка", "ページ", "页", "頁", "/"}
)
#: Kind of document -> the element that is one of its pages.
PAGES = {"spreadsheet": "table", "presentation": "page", "drawing": "page"}


class Document(Text):
    """Target of a parser that collects the text of a document, with the names of sheets."""

    page = ""

    def start(self, tag: str, attributes: Any) -> None:
        name = local(tag)
        if name in PAGES and not self.page:
            self.page = PAGES[name]
            self.rules = replace(self.rules, pages=frozenset({self.page}))
        elif name == self.page == "table":
            self.line(next((value for key, value in attributes.items() if local(key) == "name"), ""))
        super().start(tag, attributes)


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the document at *path*.  Raises Unreadable."""
    if not zipfile.is_zipfile(path):
        with open(path, "rb") as stream:
            return xml_text(iter(lambda: stream.read(CHUNK), b""), Document(RULES, parts.longest)).rstrip()
    package = Package(path, parts)
    manifest = "META-INF/manifest.xml"
    if manifest in package and any(True for _ in package.tree(manifest).iter("{*}encryption-data")):
        raise Unreadable("the file is encrypted")
    texts = [xml_text(package.chunks("content.xml"), Document(RULES, parts.longest)).rstrip()]
    # Headers, footers and the background of slides; charts and formulas.
    for styles in package.text_of(["styles.xml"] if "styles.xml" in package else [], STYLES):
        texts.append("\n".join(line for line in styles.splitlines() if line not in PAGE))
    texts += package.text_of([name for name in package.names if name.endswith("/content.xml")], RULES)
    texts += package.properties("meta.xml")
    return "\n".join(texts)
