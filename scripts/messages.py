"""Updates the catalogs of messages: the package's texts for users, and their German translation.

    .venv/bin/python scripts/messages.py

writes ``locales/plone.pgcatalog.pot``, adds missing messages to each ``.po`` with an empty translation, drops
unused ones, and compiles the ``.mo``.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from pythongettext.msgfmt import Msgfmt
from xml.dom import minidom

import ast
import gettext
import html
import json
import re


ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plone" / "pgcatalog"
LOCALES = PACKAGE / "locales"
DOMAIN = "plone.pgcatalog"
TAG = re.compile(r"<!--.*?-->|<(/?)([\w:-]+)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*?)(/?)>", re.S)
ATTRIBUTE = re.compile(r"([\w:-]+)=(?:\"([^\"]*)\"|'([^']*)')", re.S)
EMPTY_TAGS = {"br", "hr", "img", "input"}
HEAD = f"""msgid ""
msgstr ""
"Project-Id-Version: {DOMAIN}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Domain: {DOMAIN}\\n"
"""


class Element:
    """An element of a page template; *parts* are its texts and elements, in their order."""

    def __init__(self, tag: str, attributes: dict[str, str], domain: str = "") -> None:
        self.tag, self.attributes = tag, attributes
        self.domain = attributes.get("i18n:domain", domain)
        self.parts: list[str | Element] = []

    @property
    def elements(self) -> "Iterator[Element]":
        """Yield this element and all elements in it."""
        yield self
        for part in self.parts:
            if isinstance(part, Element):
                yield from part.elements

    @property
    def text(self) -> str:
        """Return the element's own text, without the text of nested elements."""
        return " ".join(part for part in self.parts if isinstance(part, str))

    @property
    def is_replaced(self) -> bool:
        """True if an expression replaces the content."""
        names = {"tal:content", "tal:replace"} | ({"content", "replace"} if self.tag.startswith("tal:") else set())
        return not names.isdisjoint(self.attributes)

    @property
    def message(self) -> tuple[str, str]:
        """Return message id and default text, as Zope's page templates build them."""
        parts = [
            part if isinstance(part, str) else f"${{{part.attributes.get('i18n:name', '')}}}" for part in self.parts
        ]
        default = html.unescape(re.sub(r"\s+", " ", "".join(parts)).strip())
        return self.attributes["i18n:translate"] or default, default


def parsed(path: Path) -> Element:
    """Return the page template at *path* as an element that contains its elements."""
    source, root = path.read_text("utf-8"), Element("", {})
    stack, end = [root], 0
    for tag in TAG.finditer(source):
        stack[-1].parts.append(source[end : tag.start()])
        end = tag.end()
        if tag[0].startswith("<!--"):
            continue
        if tag[1]:
            stack.pop()
            continue
        element = Element(
            tag[2], {name: one or other for name, one, other in ATTRIBUTE.findall(tag[3])}, stack[-1].domain
        )
        stack[-1].parts.append(element)
        if not tag[4] and tag[2] not in EMPTY_TAGS:
            stack.append(element)
    return root


def in_template(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (id, default text) of the messages of a page template, except messages of Plone."""
    for element in parsed(path).elements:
        if element.domain != DOMAIN:
            continue
        if "i18n:translate" in element.attributes and not element.is_replaced:
            yield element.message
        for name in filter(None, re.split(r"[;\s]+", element.attributes.get("i18n:attributes", ""))):
            text = html.unescape(element.attributes[name])
            yield text, text


def in_python(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (id, default text) of the messages of a module: the arguments of calls of ``_``."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_"):
            continue
        message = ast.literal_eval(node.args[0])
        default = next((ast.literal_eval(k.value) for k in node.keywords if k.arg == "default"), message)
        yield message, default


def in_xml(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the messages of an XML file: marked attributes, and titles and descriptions of profiles and behaviors."""
    document = minidom.parse(str(path))
    for element in document.getElementsByTagName("*"):
        names = element.getAttribute("i18n:attributes").split()
        if (
            element.tagName.startswith(("genericsetup:", "plone:behavior"))
            and element.tagName != "genericsetup:importStep"
        ):
            names = ["title", "description"]
        for name in names:
            if element.getAttribute(name):
                yield element.getAttribute(name), element.getAttribute(name)


READERS = {"*.pt": in_template, "*.py": in_python, "*.xml": in_xml, "*.zcml": in_xml}


def messages() -> dict[str, tuple[str, set[str]]]:
    """Return message id -> (default text, files that use it), ordered by id."""
    found: dict[str, tuple[str, set[str]]] = {}
    for pattern, read in READERS.items():
        for path in sorted(PACKAGE.rglob(pattern)):
            for message, default in read(path):
                found.setdefault(message, (default, set()))[1].add(path.relative_to(PACKAGE).as_posix())
    return dict(sorted(found.items()))


def compiled(path: Path) -> bytes:
    """Return the ``.po`` at *path*, compiled as a ``.mo``."""
    with path.open("rb") as file:
        return Msgfmt(file, name=DOMAIN).get()


def translations(path: Path) -> dict[str, str]:
    """Return message id -> translation in the ``.po`` at *path*, without empty translations."""
    catalog = gettext.GNUTranslations(BytesIO(compiled(path)))._catalog  # type: ignore[attr-defined]
    return {id: text for id, text in catalog.items() if id}


def written(translations: dict[str, str], language: str = "") -> str:
    """Return the text of a catalog with all messages and the *translations*."""
    head = HEAD + (f'"Language: {language}\\n"\n' if language else "")
    blocks = [head]
    for message, (default, files) in messages().items():
        lines = [f"#: {name}" for name in sorted(files)]
        if default != message:
            lines.append(f"#. Default: {json.dumps(default, ensure_ascii=False)}")
        lines.append(f"msgid {json.dumps(message, ensure_ascii=False)}")
        lines.append(f"msgstr {json.dumps(translations.get(message, ''), ensure_ascii=False)}\n")
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def main() -> None:
    """Write all catalogs."""
    (LOCALES / f"{DOMAIN}.pot").write_text(written({}), "utf-8")
    for path in sorted(LOCALES.glob(f"*/LC_MESSAGES/{DOMAIN}.po")):
        path.write_text(written(translations(path), path.parts[-3]), "utf-8")
        path.with_suffix(".mo").write_bytes(compiled(path))


if __name__ == "__main__":
    main()
