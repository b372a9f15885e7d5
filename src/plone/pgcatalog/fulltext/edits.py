"""How far a word is from another, in edits: a letter more, a letter less, another letter, two letters exchanged."""

#: LIKE's own signs, to be taken literally.
_LIKE = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})
#: Letters at the beginning of a word that nobody mistypes, as far as completing it is concerned: an index finds by them.
EXACT_PREFIX = 2


def allowed_edits(word: str) -> int:
    """Return how many edits a word may be away from *word* to be meant by it: the shorter, the fewer."""
    return 0 if len(word) < 3 else 1 if len(word) < 6 else 2


def distance(one: str, other: str, most: int) -> int | None:
    """Return the number of edits between two words (optimal string alignment), None when there are more than *most*."""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, theirs in enumerate(other, 1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                edits = min(edits, earlier[j - 2] + 1)
            row.append(edits)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


def beginning(text: str) -> str:
    """Return the LIKE pattern of what begins with *text*."""
    return text.translate(_LIKE) + "%"


def containing(text: str) -> str:
    """Return the LIKE pattern of what has *text* in it."""
    return "%" + beginning(text)


def near_beginnings(text: str) -> list[str]:
    """Return the LIKE patterns of what begins with *text*, one edit behind its first EXACT_PREFIX letters aside.

    Its last letter is taken as it is: without it everything would fit that begins with the rest.
    """
    patterns: list[str] = []
    for i in range(EXACT_PREFIX, len(text)):
        head, letter, rest = text[:i], text[i], text[i + 1 :]
        # A letter is missing; it is another one, there is one too many, or it stands on the wrong side of the next.
        patterns.append(head.translate(_LIKE) + "_" + beginning(letter + rest))
        if rest:
            patterns.append(head.translate(_LIKE) + "_" + beginning(rest))
            patterns += [beginning(head + rest), beginning(head + rest[0] + letter + rest[1:])]
    return list(dict.fromkeys(patterns))
