"""PowerPoint before .pptx: the slides in their order, each with its notes and comments, and a form feed; masters; objects."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from io import BytesIO
from plone.pgcatalog.files.formats.ole import properties
from plone.pgcatalog.files.formats.ole import stream_of
from plone.pgcatalog.files.formats.parts import LARGEST_PART
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Unreadable
from struct import error as StructError
from struct import unpack_from

import zlib


#: Streams of a file, whose PowerPoint 95 has another one beside it, or is alone.
STREAMS = ("PP97_DUALSTORAGE/PowerPoint Document", "PowerPoint Document")
USERS = ("PP97_DUALSTORAGE/Current User", "Current User")
#: The mark of an encrypted file in the stream of the current user.
ENCRYPTED = 0xF3D1C4DF
#: Most records of a stream, and most containers around a record.
MOST_RECORDS = 5_000_000
DEEPEST = 50
#: Most slides, and numbers in the directories.
MOST_SLIDES = 100_000
#: Numbers of records [MS-PPT].
DOCUMENT, SLIDE, NOTES, NOTES_ATOM, MASTER, OBJECT, EDIT = 1000, 1006, 1008, 1009, 1016, 4113, 4085
SLIDE_LIST, SLIDE_PLACE, PLACEHOLDER, HEADERS, COMMENT, TAG = 4080, 1011, 3011, 4057, 12000, 5003
WIDE_TEXT, TEXT, STRING = 4000, 4008, 4026
SHAPE, SHAPE_PROPERTIES = 0xF004, 0xF00B
#: Lists of slides by their instance.
SLIDES, ALL_NOTES = 0, 2
#: Properties of a shape that are texts: of WordArt, and the description of a picture.
SHAPE_TEXTS = frozenset({0x00C0, 0x0381})
#: PowerPoint 95: the mark of a container; the containers of a placeholder and of a text, and the text.
CONTAINER_95, PLACEHOLDER_95, TEXT_95, STRING_95 = 0xFFFF, 4068, 4064, 2030


@dataclass(frozen=True)
class Record:
    """A record of the number *kind* and *instance*, whose content is between *start* and *end*."""

    kind: int
    instance: int
    start: int
    end: int
    is_container: bool


@dataclass
class Place:
    """A slide in a list: the number *ref* of its record, its *id*, and those of its texts that the list has."""

    ref: int
    id: int
    texts: list[str] = field(default_factory=list)


class Stream:
    """The records of the stream *data* of PowerPoint 97, or of 95; no more than MOST_RECORDS are read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.is_95 = data[4:8] == b"\xff\xff\0\0"
        self.head = 16 if self.is_95 else 8
        self.left = MOST_RECORDS

    def record(self, at: int) -> Record:
        """Return the record at *at*.  Raises StructError."""
        if self.is_95:
            kind, mark, size = unpack_from("<3I", self.data, at)
            return Record(kind, 0, at + 16, at + 16 + size, mark == CONTAINER_95)
        mark, kind, size = unpack_from("<HHI", self.data, at)
        return Record(kind, mark >> 4, at + 8, at + 8 + size, mark & 15 == 15 or kind == TAG)

    def records(self, start: int, end: int, deepest: int = DEEPEST) -> Iterator[tuple[Record, list[Record]]]:
        """Yield each record between *start* and *end*, a container before its content, and the containers around it."""
        inside: list[Record] = []
        ends = [min(end, len(self.data))]
        at = start
        while ends and self.left:
            if at + self.head > ends[-1]:
                at = ends.pop()
                inside = inside[:-1]
                continue
            self.left -= 1
            found = self.record(at)
            yield found, inside
            at = found.end
            if found.is_container and len(inside) < deepest:
                inside = [*inside, found]
                ends.append(min(found.end, ends[-1]))
                at = found.start

    def top(self) -> list[Record]:
        """Return the records that are in no container."""
        return [each for each, _ in self.records(0, len(self.data), 0)]

    def texts(self, within: Record, is_master: bool = False) -> list[str]:
        """Return the texts of the slide or notes *within*; those in places of a master are prompts, which no slide shows."""
        found: list[str] = []
        is_prompt = False
        for each, inside in self.records(within.start, within.end):
            if each.kind == SHAPE:
                is_prompt = False
            elif each.kind == PLACEHOLDER:
                is_prompt = is_master
            elif each.kind == SHAPE_PROPERTIES:
                found += self.shape_texts(each)
            elif self.is_shown(each, inside) and not is_prompt:
                found.append(self.text(each))
        return [line for text in found if (line := lines(text))]

    def is_shown(self, each: Record, inside: list[Record]) -> bool:
        """True if *each* is a text; a string is one *inside* of a header, a footer or a comment, where it is the second."""
        within = inside[-1].kind if inside else 0
        is_string = within == HEADERS or (within == COMMENT and each.instance == 1)
        return each.kind in (TEXT, WIDE_TEXT) or (each.kind == STRING and is_string)

    def text(self, text: Record) -> str:
        """Return the text of the record *text*."""
        return self.data[text.start : text.end].decode("cp1252" if text.kind == TEXT else "utf-16-le", "replace")

    def shape_texts(self, properties: Record) -> Iterator[str]:
        """Yield those of the *properties* of a shape that are texts."""
        at = properties.start + 6 * properties.instance
        with suppress(StructError):
            for place in range(properties.start, min(at, properties.end), 6):
                kind, size = unpack_from("<HI", self.data, place)
                if kind & 0x8000:
                    if kind & 0x3FFF in SHAPE_TEXTS:
                        yield self.data[at : min(at + size, properties.end)].decode("utf-16-le", "replace").strip("\0")
                    at += size


def read(path: str, name: str, parts: Parts) -> str:
    """Return the text of the presentation at *path*.  Raises Unreadable."""
    stream = Stream(stream_of(path, STREAMS))
    try:
        pages, more = slides_95(stream) if stream.is_95 else Presentation(stream, current_edit(path)).read(parts)
    except StructError as error:
        raise Unreadable(f"a broken presentation: {error}") from error
    return "\n".join(filter(None, ["\n\f".join(pages), *dict.fromkeys(more), *properties(path)]))


def current_edit(path: str) -> int:
    """Return the place of the newest edit of the file at *path*, 0 if it is not known.  Raises Unreadable if it is encrypted."""
    try:
        mark, place = unpack_from("<2I", stream_of(path, USERS), 12)
    except (Unreadable, StructError):
        return 0
    if mark == ENCRYPTED:
        raise Unreadable("the file is encrypted")
    return int(place)


class Presentation:
    """The presentation in *stream*, whose newest edit is at *edit*, 0 for an unknown one."""

    def __init__(self, stream: Stream, edit: int) -> None:
        self.stream = stream
        self.top = stream.top()
        edits = [each.start - 8 for each in self.top if each.kind == EDIT]
        self.records, document = self.directory(edit if edit in edits else edits[-1] if edits else 0)
        self.lists: dict[int, list[Place]] = {}
        self.more: list[str] = []
        current = self.records.get(document)
        if current is None or current.kind != DOCUMENT:
            # Without its directory, the presentation is all that is in the file.
            self.records = {}
            current = next((each for each in reversed(self.top) if each.kind == DOCUMENT), None)
        if current:
            self.read_lists(current)

    def directory(self, edit: int) -> tuple[dict[int, Record], int]:
        """Return the newest record of each number, from the directories of the edits up to *edit*, and that of the document."""
        found: dict[int, Record] = {}
        document, seen = 0, set()
        with suppress(StructError):  # a truncated directory
            while edit and edit not in seen:
                seen.add(edit)
                edit, place, number = unpack_from("<3I", self.stream.data, edit + 16)
                document = document or number
                directory = self.stream.record(place)
                at = directory.start
                while at < directory.end and len(found) < MOST_SLIDES:
                    (head,) = unpack_from("<I", self.stream.data, at)
                    for number in range(head & 0xFFFFF, (head & 0xFFFFF) + (head >> 20)):
                        at += 4
                        (place,) = unpack_from("<I", self.stream.data, at)
                        if number not in found:
                            found[number] = self.stream.record(place)
                    at += 4
        return found, document

    def read_lists(self, document: Record) -> None:
        """Read the lists of slides in *document*, with their texts, and headers and footers of all slides."""
        for each, inside in self.stream.records(document.start, document.end):
            within = inside[-1] if inside else document
            places = self.lists.setdefault(within.instance, []) if within.kind == SLIDE_LIST else []
            if each.kind == SLIDE_PLACE and within.kind == SLIDE_LIST:
                ref, _, _, number = unpack_from("<4I", self.stream.data, each.start)
                places.append(Place(ref, number))
            elif each.kind in (TEXT, WIDE_TEXT) and places:
                places[-1].texts.append(lines(self.stream.text(each)))
            elif each.kind == STRING and within.kind == HEADERS:
                self.more.append(lines(self.stream.text(each)))

    def read(self, parts: Parts) -> tuple[list[str], list[str]]:
        """Return the texts of the slides, and further ones: of masters, of records that no list has, and of objects."""
        of_notes: dict[int, list[str]] = {}
        used = set()
        for place in self.lists.get(ALL_NOTES, []):
            notes = self.records.get(place.ref)
            if notes and notes.kind == NOTES:
                used.add(notes.start)
                of_notes.setdefault(self.slide_of(notes), []).extend([*place.texts, *self.stream.texts(notes)])
        pages = []
        for place in self.lists.get(SLIDES, [])[:MOST_SLIDES]:
            slide = self.records.get(place.ref)
            texts = list(place.texts)
            if slide and slide.kind == SLIDE and slide.start not in used:
                used.add(slide.start)
                texts += self.stream.texts(slide)
            pages.append("\n".join(filter(None, [*texts, *of_notes.pop(place.id, [])])))
        for each in self.records.values() or self.top:
            if each.start in used:
                continue
            used.add(each.start)
            if each.kind in (SLIDE, NOTES, MASTER):
                self.more += self.stream.texts(each, is_master=bool(self.records))
            elif each.kind == OBJECT:
                self.more.append(self.object_text(each, parts))
        return pages, self.more

    def slide_of(self, notes: Record) -> int:
        """Return the id of the slide of *notes*, 0 for the master of notes."""
        for each, _ in self.stream.records(notes.start, notes.end, 0):
            if each.kind == NOTES_ATOM:
                return int(unpack_from("<I", self.stream.data, each.start)[0])
        return 0

    def object_text(self, stored: Record, parts: Parts) -> str:
        """Return the text of the object in the record *stored*, such as a chart; it is compressed as a rule."""
        data = self.stream.data[stored.start : stored.end]
        if stored.instance == 1:
            try:
                data = zlib.decompressobj().decompress(data[4:], LARGEST_PART)
            except zlib.error as error:
                parts.errors.append(f"object: {error}")
                return ""
        return parts.text("", "", BytesIO(data))


def slides_95(stream: Stream) -> tuple[list[str], list[str]]:
    """Return the texts of the slides of PowerPoint 95, and none."""
    pages: dict[int, list[str]] = {}
    for each, inside in stream.records(0, len(stream.data)):
        kinds = [container.kind for container in inside]
        if SLIDE in kinds:
            page = pages.setdefault(inside[kinds.index(SLIDE)].start, [])
            if each.kind == STRING_95 and kinds[-1] == TEXT_95 and PLACEHOLDER_95 not in kinds:
                page.append(lines(stream.data[each.start : each.end].decode("cp1252", "replace")))
    return ["\n".join(filter(None, texts)) for texts in pages.values()], []


def lines(text: str) -> str:
    """Return *text* with its ends of lines and paragraphs; "" for the mark of a date or of a slide's number."""
    text = text.replace("\r", "\n").replace("\x0b", "\n").replace("\f", "\n").strip("\0 \n")
    return "" if text == "*" else text
