"""Parts a text into chunks that a model can take: about 200 words each, ended at sentences where there are some."""

from collections.abc import Iterator

import re


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
