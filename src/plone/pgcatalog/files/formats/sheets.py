"""Excel: the cells of each sheet as shown, its comments, drawings, headers and footers, and a form feed."""

from collections.abc import Iterator
from plone.pgcatalog.files.formats.biff import HEADER_CODES
from plone.pgcatalog.files.formats.markup import Full
from plone.pgcatalog.files.formats.markup import local
from plone.pgcatalog.files.formats.markup import Text
from plone.pgcatalog.files.formats.markup import xml_text
from plone.pgcatalog.files.formats.numbers import BUILT_IN
from plone.pgcatalog.files.formats.numbers import shown
from plone.pgcatalog.files.formats.package import OFFICE
from plone.pgcatalog.files.formats.package import office_rules
from plone.pgcatalog.files.formats.package import Package
from plone.pgcatalog.files.formats.package import STORIES
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from plone.pgcatalog.files.formats.word import embedded
from typing import Any


#: A shared string: the text, and its sound in Japanese, in lines of their own.
STRINGS = office_rules("rPh")
HEADERS = frozenset(f"{which}{place}" for which in ("odd", "even", "first") for place in ("Header", "Footer"))
VALUES = frozenset({"v", "t", *HEADERS})
#: Most characters of all shared strings.
LONGEST_STRINGS = 100_000_000


class Strings(Text):
    """Target of a parser that collects the shared strings, each as one text."""

    def __init__(self) -> None:
        super().__init__(STRINGS, LONGEST_STRINGS)
        self.strings: list[str] = []

    def end(self, tag: str) -> None:
        super().end(tag)
        if local(tag) == "si":
            self.flush()
            self.strings.append(" ".join(self.lines))
            self.lines.clear()


class Cells(Text):
    """Target of a parser that collects the cells of a sheet; *formats* are the codes by style."""

    def __init__(self, strings: list[str], formats: list[str], starts_1904: bool, longest: int) -> None:
        super().__init__(office_rules("is", *HEADERS), longest)
        self.strings, self.formats, self.starts_1904 = strings, formats, starts_1904
        self.row: list[str] = []
        self.cell: dict[str, str] = {}
        self.value: list[str] | None = None
        self.texts: list[str] = []

    def start(self, tag: str, attributes: Any) -> None:
        name = local(tag)
        if name == "c":
            self.cell, self.texts = dict(attributes), []
        elif name == "rPh":
            self.texts.append(" ")
        elif name in VALUES:
            self.value = []
        elif name == "dataValidation":
            for key in ("promptTitle", "prompt"):
                self.line(attributes.get(key, ""))

    def data(self, data: str) -> None:
        if self.value is not None:
            self.value.append(data)

    def end(self, tag: str) -> None:
        name = local(tag)
        if name in VALUES and self.value is not None:
            value, self.value = "".join(self.value), None
            if name in HEADERS:
                self.line(HEADER_CODES.sub(" ", value))
            else:
                self.texts.append(self.shown(value) if name == "v" else value)
        elif name == "rPh":
            self.texts.append(" ")
        elif name == "c":
            self.row.append(text := " ".join("".join(self.texts).split()))
            self.left -= len(text)
            if self.left < 0:
                self.lines.append("\t".join(filter(None, self.row)))
                raise Full
        elif name == "row":
            if any(self.row):
                self.lines.append("\t".join(filter(None, self.row)))
            self.row = []

    def shown(self, value: str) -> str:
        """Return the *value* of the open cell as the sheet shows it."""
        kind, style = self.cell.get("t", "n"), self.cell.get("s", "")
        if kind == "s":
            index = int(value) if value.strip().isdecimal() else -1
            return self.strings[index] if 0 <= index < len(self.strings) else ""
        if kind == "b":
            return "TRUE" if value.strip() == "1" else "FALSE"
        if kind != "n":
            return value
        index = int(style) if style.isdecimal() else -1
        return shown(value.strip(), self.formats[index] if 0 <= index < len(self.formats) else "", self.starts_1904)


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the workbook at *path*.  Raises Unreadable."""
    package = Package(path, parts)
    main = package.main()
    related = package.related(main)
    workbook = package.tree(main)
    starts_1904 = any(element.get("date1904") in ("1", "true") for element in workbook.iter("{*}workbookPr"))
    strings, formats = Strings(), []
    for part in related:
        if part.kind == "sharedStrings" and part.name in package:
            xml_text(package.chunks(part.name), strings)
        elif part.kind == "styles" and part.name in package:
            formats = list(codes(package.tree(part.name)))
    targets = {part.id: part.name for part in related}
    texts, errors, left = [], [], parts.longest
    for element in workbook.iter("{*}sheet"):
        [*ids] = (value for key, value in element.attrib.items() if local(key) == "id")
        cells = Cells(strings.strings, formats, starts_1904, left)
        cells.line(element.get("name", ""))
        place = targets.get(ids[0], "") if ids else ""
        try:
            text = xml_text(package.chunks(place), cells)
            linked = package.related(place)
            for part in list(linked):
                linked += package.related(part.name) if part.kind == "drawing" else []
            stories = STORIES | {"drawing"}
            more = package.text_of([part.name for part in linked if part.kind in stories], OFFICE)
            texts.append("\n".join([text, *more, *embedded(package, place)]))
        except Unreadable as error:
            errors.append(error)
            texts.append(element.get("name", ""))
        left = max(0, left - len(texts[-1]))
    if errors and len(errors) == len(texts):
        raise errors[0]
    return "\n".join(["\n\f".join(texts), *package.properties("docProps/core.xml")])


def codes(styles: Any) -> Iterator[str]:
    """Yield the code of the format of each style in *styles*, the root of the part with styles."""
    own = {element.get("numFmtId"): element.get("formatCode", "") for element in styles.iter("{*}numFmt")}
    for formats in styles.iter("{*}cellXfs"):
        for style in formats.iter("{*}xf"):
            number = style.get("numFmtId", "")
            yield own.get(number, BUILT_IN.get(int(number), "") if number.isdecimal() else "")
