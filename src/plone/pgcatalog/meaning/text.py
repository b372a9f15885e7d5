"""What an embedder is sent of a page: its kept text in chunks, each below the title."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from plone.pgcatalog.fulltext.text_index import body_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.settings import SOURCE_INDEX
from typing import Any

import re


#: Characters of title and description that stand before each chunk.
LONGEST_HEADING = 300
#: The index of who may see an object, and what it has for everybody.
WHO_MAY_SEE = "allowedRolesAndUsers"
ANONYMOUS = "Anonymous"


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of a page: its number, where it stands in the kept text, and *text*, what the embedder is sent."""

    chunk: int
    start: int
    stop: int
    text: str

    @property
    def digest(self) -> bytes:
        return blake2b(self.text.encode(errors="replace"), digest_size=16).digest()


def passages_of(core: Any, zoid: int, of_private: bool) -> list[Passage]:
    """Return the passages of the object *zoid* as the snapshot of the catalog *core* has them; none for one without a row.

    Nor for one that anonymous may not see, unless *of_private*.
    """
    view = core.view()
    where = Condition("zoid = %s", (zoid,))
    rows = view.select(f"rid, {source_column(core)}", where, "ORDER BY path LIMIT 1").value()
    if not rows or not (of_private or is_public(core, view, where)):
        return []
    [(rid, source)] = rows
    idx = view.idx([rid]).value().get(rid, {})
    return passages(source or "", *(text_in(idx, name) for name in ("getId", "Title", "Description")))


def source_column(core: Any) -> str:
    """Return the SQL of the kept text."""
    column = core.translator(SOURCE_INDEX).source if SOURCE_INDEX in core.indexes else None
    return "NULL::varchar" if column is None else str(column.quoted)


def is_public(core: Any, view: Any, where: Condition) -> bool:
    """True if everybody may see one of the rows *where*; a catalog that does not know is one of private pages."""
    if WHO_MAY_SEE not in core.indexes:
        return False
    seen = core.translator(WHO_MAY_SEE).where({WHO_MAY_SEE: [ANONYMOUS]})
    return seen is not None and bool(view.select("1", seen & where, "LIMIT 1").value())


def text_in(idx: dict[str, Any], name: str) -> str:
    """Return the metadata *name*, one line; "" for what is no text."""
    value = idx.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""


def passages(source: str, id: str, title: str, description: str) -> list[Passage]:
    """Return the passages of a page with the kept text *source*, which may begin with id and title.

    A page without a text has one, of its title and description.
    """
    heading = title if description in source else f"{title}. {description}"
    heading = heading.strip()[:LONGEST_HEADING]
    begin = len(source) - len(body_of(source, (id, title)))
    spans: Sequence[tuple[int, int]] = [(begin + start, begin + stop) for start, stop in chunks_of(source[begin:])]
    if not spans and heading:
        spans = [(begin, begin)]
    return [
        Passage(number, start, stop, f"{heading}\n{source[start:stop]}".strip())
        for number, (start, stop) in enumerate(spans)
    ]


#: Words of a chunk, about.
WORDS = 200
#: Words that a chunk repeats of the one before it, at most: what stands on the border is whole in one of them.
OVERLAP = 40
#: Characters of a chunk at most: scripts without spaces have long "words", a model has a limit of tokens.
LONGEST = 1600
#: Chunks of a text at most.
MOST = 200

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?…]['\")\]»“”]*$|[。！？]['\")\]」』]*$")

#: Where a chunk begins and ends in its text.
Span = tuple[int, int]


def chunks_of(text: str, words: int = WORDS, overlap: int = OVERLAP) -> list[Span]:
    """Return the spans of the chunks of *text*, in order: together they have all of its words, up to MOST chunks.

    A chunk ends with a sentence if one ends in its last third, and begins with the sentences of the one before that
    end in the last *overlap* words.
    """
    tokens = list(_tokens(text))
    spans: list[Span] = []
    first = 0
    while first < len(tokens) and len(spans) < MOST:
        last = _end(text, tokens, first, words)
        spans.append((tokens[first][0], tokens[last][1]))
        if last == len(tokens) - 1:
            break
        first = _begin(text, tokens, first, last, overlap)
    return spans


def _tokens(text: str) -> Iterator[Span]:
    """Yield the spans of the words of *text*; one longer than a chunk in pieces."""
    for match in _WORD.finditer(text):
        for start in range(match.start(), match.end(), LONGEST):
            yield start, min(start + LONGEST, match.end())


def _ends_sentence(text: str, token: Span) -> bool:
    return _SENTENCE_END.search(text, max(token[0], token[1] - 8), token[1]) is not None


def _end(text: str, tokens: list[Span], first: int, words: int) -> int:
    """Return the number of the last token of the chunk that begins with the token *first*."""
    begin = tokens[first][0]
    last = first
    while last + 1 < min(len(tokens), first + words) and tokens[last + 1][1] - begin <= LONGEST:
        last += 1
    if last == len(tokens) - 1:
        return last
    third = first + (last - first) * 2 // 3
    return next((number for number in range(last, third, -1) if _ends_sentence(text, tokens[number])), last)


def _begin(text: str, tokens: list[Span], first: int, last: int, overlap: int) -> int:
    """Return the number of the first token of the chunk after the one from *first* to *last*."""
    earliest = max(first + 1, last + 1 - min(overlap, (last - first + 1) // 2))
    beginnings = (number for number in range(earliest, last + 1) if _ends_sentence(text, tokens[number - 1]))
    return next(beginnings, last + 1)
