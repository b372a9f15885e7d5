"""Text of XML and HTML, as a stream: no tree is in memory, and no entity is read from elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass
from lxml import etree
from plone.pgcatalog.files.formats.parts import Unreadable
from typing import Any


@dataclass(frozen=True)
class Rules:
    """How the elements of a format become text; elements and attributes are known by their local names.

    - *texts*: elements whose characters are text; None: all.
    - *blocks*: elements with a text of their own, in lines of their own; the text around them is one text.
    - *blanks*: elements that part words.
    - *marks*: element -> the characters that it stands for.
    - *skipped*: elements without a text.
    - *attributes*: attributes whose values are texts, in lines of their own.
    - *pages*: elements that end with a form feed.
    """

    texts: frozenset[str] | None = None
    blocks: frozenset[str] = frozenset()
    blanks: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    pages: frozenset[str] = frozenset()
    marks: dict[str, str] | None = None


class Full(Exception):
    """The text has the most characters that are stored."""


class Text:
    """Target of a parser of lxml, which collects the text of its input by *rules*, up to *longest* characters."""

    def __init__(self, rules: Rules, longest: int) -> None:
        self.rules = rules
        self.left = longest
        self.lines: list[str] = []
        #: The texts of the open blocks, the innermost last.
        self.open: list[list[str]] = [[]]
        self.skipped = 0
        self.counted = 0

    def start(self, tag: str, attributes: Any) -> None:
        name, rules = local(tag), self.rules
        if self.skipped or name in rules.skipped:
            self.skipped += 1
            return
        if name in rules.blocks:
            self.open.append([])
        if rules.texts is not None and name in rules.texts:
            self.counted += 1
        if name in rules.blanks:
            self.open[-1].append(" ")
        if rules.marks and name in rules.marks:
            self.open[-1].append(rules.marks[name])
        if rules.attributes and attributes:
            for key, value in attributes.items():
                if local(key) in rules.attributes:
                    self.line(value)

    def end(self, tag: str) -> None:
        if self.skipped:
            self.skipped -= 1
            return
        name, rules = local(tag), self.rules
        if rules.texts is not None and name in rules.texts:
            self.counted -= 1
        if name in rules.blanks:
            self.open[-1].append(" ")
        # HTML has ends without a start.
        if name in rules.blocks and len(self.open) > 1:
            self.line("".join(self.open.pop()))
        if name in rules.pages:
            self.flush()
            self.lines.append("\f")

    def data(self, data: str) -> None:
        if not self.skipped and (self.rules.texts is None or self.counted):
            self.left -= len(data)
            self.open[-1].append(data)
            if self.left < 0:
                raise Full

    def comment(self, text: str) -> None:
        pass

    def pi(self, target: str, data: str | None = None) -> None:
        pass

    def line(self, text: str) -> None:
        """Append *text* as a line, without form feeds and repeated blanks."""
        text = " ".join(text.split())
        if text:
            self.lines.append(text)

    def flush(self) -> None:
        """Append the texts of all open blocks."""
        for block in self.open:
            self.line("".join(block))
            block.clear()

    def close(self) -> str:
        self.flush()
        return "\n".join(self.lines)


def local(tag: str) -> str:
    """Return the local name of *tag*."""
    return tag.rpartition("}")[2]


def xml_text(chunks: Iterable[bytes], target: Text) -> str:
    """Return the text of the XML in *chunks*, collected by *target*.  Raises Unreadable for broken XML without a text."""
    return feed(etree.XMLParser(target=target, resolve_entities="internal", no_network=True), target, chunks)


def html_text(chunks: Iterable[bytes], target: Text, encoding: str | None = None) -> str:
    """Return the text of the HTML in *chunks*, in *encoding*, or in the one that it states, collected by *target*."""
    return feed(etree.HTMLParser(target=target, no_network=True, encoding=encoding), target, chunks)


def feed(parser: Any, target: Text, chunks: Iterable[bytes]) -> str:
    """Return the text that *target* collects while *parser* reads *chunks*: all before an error, or up to the limit."""
    try:
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
    except Full:
        pass
    except etree.XMLSyntaxError as error:
        # HTML is never well-formed.
        text = target.close()
        if not text and isinstance(parser, etree.XMLParser):
            raise Unreadable(f"not well-formed: {error}") from error
        return text
    return target.close()


def tree(data: bytes) -> Any:
    """Return the root of the XML *data*, a small part such as a list of relationships.  Raises Unreadable."""
    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise Unreadable(f"not well-formed: {error}") from error
