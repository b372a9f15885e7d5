"""The texts of a page that an embedder is sent: chunks of its stored text, each below title and description."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from itertools import batched
from itertools import chain
from itertools import takewhile
from plone.pgcatalog.fulltext.text_index import body_of
from plone.pgcatalog.fulltext.text_index import PAGE_END
from plone.pgcatalog.fulltext.text_index import SOURCE_LENGTH
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.settings import SOURCE_INDEX
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from typing import Any
from unicodedata import category

import re


#: Most characters of title and description before each chunk.
LONGEST_HEADING = 300
FILE_TEXT = "SELECT text FROM pgcatalog_file(%s)"
#: The index of roles and users that may see an object, and its value for all users.
WHO_MAY_SEE = "allowedRolesAndUsers"
ANONYMOUS = "Anonymous"


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A chunk of a page: its number, its *start* and *stop* in the stored text, and the *text* that the embedder is sent.

    A *start* from SOURCE_LENGTH on is SOURCE_LENGTH more than the place in the text of the page's file.
    """

    chunk: int
    start: int
    stop: int
    text: str

    @property
    def digest(self) -> bytes:
        return blake2b(self.text.encode(errors="replace"), digest_size=16).digest()


def passages_of(core: Any, zoid: int, of_private: bool) -> list[TextChunk]:
    """Return the passages of the object *zoid* in the snapshot of the catalog *core*.

    The list is empty for an object without a row, and, unless *of_private*, for one that Anonymous may not see.
    """
    view = core.view()
    where = Condition("zoid = %s", (zoid,))
    rows = view.select(f"rid, {source_column(core)}", where, "ORDER BY path LIMIT 1").value()
    if not rows or not (of_private or is_public(core, view, where)):
        return []
    [(rid, source)] = rows
    idx = view.idx([rid]).value().get(rid, {})
    has_more = len(source or "") == SOURCE_LENGTH and PAGE_END in source
    [(file,)] = (has_more and core.session.execute(FILE_TEXT, (zoid,))) or [("",)]
    id, title, description = (text_in(idx, name) for name in ("getId", "Title", "Description"))
    return passages(source or "", id, title, description, file)


def source_column(core: Any) -> str:
    """Return the SQL of the stored text of a row, from which passages and snippets are cut."""
    column = core.translator(SOURCE_INDEX).source if SOURCE_INDEX in core.indexes else None
    return "NULL::varchar" if column is None else str(column.quoted)


def is_public(core: Any, view: Any, where: Condition) -> bool:
    """True if Anonymous may see one of the rows *where*; False if the catalog has no index of who may see them."""
    if WHO_MAY_SEE not in core.indexes:
        return False
    seen = core.translator(WHO_MAY_SEE).where({WHO_MAY_SEE: [ANONYMOUS]})
    return seen is not None and bool(view.select("1", seen & where, "LIMIT 1").value())


def text_in(idx: dict[str, Any], name: str) -> str:
    """Return the metadata *name* in one line; "" if it is no string."""
    value = idx.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""


def passages(source: str, id: str, title: str, description: str, file: str = "") -> list[TextChunk]:
    """Return the passages of a page with the stored text *source*, which may begin with *id* and *title*.

    *file* is the text of its file if *source* has only the beginning of it.  A page without a text has one passage, of its
    title and description.
    """
    heading = title if description in source else f"{title}. {description}"
    heading = heading.strip()[:LONGEST_HEADING]
    begin = len(source) - len(body_of(source, (id, title)))
    room = MOST_PIECES - pieces_of(heading)
    spans = [(begin + start, begin + stop) for start, stop in chunks_of(source[begin:], pieces=room)]
    if not spans and heading:
        spans = [(begin, begin)]
    if file:
        file_begin, rest = source.index(PAGE_END) + 1, 0
        if spans and spans[-1][0] >= file_begin:
            # This passage is cut where the stored text ends: it is read again from the file.
            rest = spans.pop()[0] - file_begin
        behind = SOURCE_LENGTH + rest
        spans += [(behind + start, behind + stop) for start, stop in chunks_of(file[rest:], pieces=room)]
    text = source.ljust(SOURCE_LENGTH) + file
    return [
        TextChunk(number, start, stop, f"{heading}\n{text[start:stop].replace(PAGE_END, ' ')}".strip())
        for number, (start, stop) in enumerate(spans[:MOST_CHUNKS])
    ]


#: Most words of a chunk; and of one at the beginning, which mostly names the subject of a text, as a question does.
CHUNK_WORDS, LEAD_WORDS = 200, 100
#: Most words that a chunk repeats of the chunk before it, so that a sentence at the border is whole in one of them.
OVERLAP = 40
#: Most pieces of a chunk and its heading.  Models read no more than 512 tokens; docs/lab/searches.md compares both.
MOST_PIECES = 450
#: Most chunks of a text: enough for the text of a file.
MOST_CHUNKS = 1600

#: The letters of scripts without spaces; combining marks, which are no letters for re.
_DENSE = rx_all.pattern[1:-1]
_MARKS = "".join(char for char in map(chr, range(0x0300, 0x3000)) if category(char).startswith("M"))
#: A word; in a script without spaces two letters and the signs behind them.
_WORD = re.compile(rf"[{_DENSE}]{{1,2}}[^\w\s]*|[^\s{_DENSE}]+")
#: A part of a word, about as long as a token of a model.
_PIECE = re.compile(rf"[{_DENSE}]{{1,2}}|(?:[^\W\d_{_DENSE}]|[{_MARKS}]){{1,5}}|\d{{1,3}}|[^\w\s]|_")
_SENTENCE_END = re.compile(r"[.!?…]['\")\]»“”]*$|[。！？]['\")\]」』]*$")

#: (start, end) of a chunk in its text.
Span = tuple[int, int]
#: (start, end, number of pieces) of a word in its text.
Word = tuple[int, int, int]


def pieces_of(text: str) -> int:
    """Return the number of pieces of *text*."""
    return sum(1 for _ in _PIECE.finditer(text))


def chunks_of(text: str, words: int = CHUNK_WORDS, overlap: int = OVERLAP, pieces: int = MOST_PIECES) -> list[Span]:
    """Return the spans of the chunks of *text*, in order; together they cover all of its words, up to MOST_CHUNKS chunks.

    A chunk has at most *words* words and *pieces* pieces.  It ends with a page of a file if one ends in its last two thirds,
    else with a sentence if one ends in its last third; in both cases behind the chunk before it.  It begins at the first sentence
    that starts in the last *overlap* words of the chunk before it, else behind that chunk.  The first one is halved if it has more
    than LEAD_WORDS words.
    """
    found = list(_words(text, pieces))
    spans: list[Span] = []
    first, last = 0, -1
    while first < len(found) and len(spans) < MOST_CHUNKS:
        last = _end(text, found, first, last, words, pieces)
        if first == 0 and last >= LEAD_WORDS:
            half = _end(text, found, 0, -1, (last + 1) // 2, pieces)
            spans.append((found[0][0], found[half][1]))
            first = _begin(text, found, 0, half, overlap, pieces)
        spans.append((found[first][0], found[last][1]))
        if last == len(found) - 1:
            break
        first = _begin(text, found, first, last, overlap, pieces)
    return spans


def _words(text: str, pieces: int) -> Iterator[Word]:
    """Yield the words of *text*; one of more than *pieces* pieces in parts."""
    for match in _WORD.finditer(text):
        start, ends = match.start(), [piece.end() for piece in _PIECE.finditer(text, *match.span())]
        for part in batched(ends, pieces):
            yield start, part[-1], len(part)
            start = part[-1]


def _ends_sentence(text: str, word: Word) -> bool:
    is_end = _SENTENCE_END.search(text, max(word[0], word[1] - 8), word[1]) is not None
    return is_end or _ends_page(text, word)


def _ends_page(text: str, word: Word) -> bool:
    return text.startswith(PAGE_END, word[1])


def _end(text: str, found: list[Word], first: int, former: int, words: int, pieces: int) -> int:
    """Return the number of the last word of the chunk that begins with the word *first*, behind a chunk to the word *former*."""
    sums = accumulate(count for _, _, count in found[first : first + words])
    last = first - 1 + sum(1 for _ in takewhile(pieces.__ge__, sums))
    if last == len(found) - 1:
        return last
    third = (last - first) // 3
    # A page or a sentence that ends in the chunk before would make this one a part of it.
    pages = (number for number in range(last, max(first + third, former), -1) if _ends_page(text, found[number]))
    sentences = (number for number in range(last, max(last - third, former), -1) if _ends_sentence(text, found[number]))
    return next(chain(pages, sentences), last)


def _begin(text: str, found: list[Word], first: int, last: int, overlap: int, pieces: int) -> int:
    """Return the number of the first word of the chunk after the chunk of the words *first* to *last*."""
    earliest = max(first + 1, last + 1 - min(overlap, (last - first + 1) // 2))
    beginnings = (number for number in range(earliest, last + 1) if _ends_sentence(text, found[number - 1]))
    # A chunk reaches beyond the chunk before it.
    return next(
        (number for number in beginnings if sum(count for _, _, count in found[number : last + 2]) <= pieces), last + 1
    )
