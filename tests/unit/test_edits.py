"""Edits between words: their number, and the patterns that find them."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.fulltext.typing_errors import effort
from plone.pgcatalog.fulltext.typing_errors import FIRST
from plone.pgcatalog.fulltext.typing_errors import REPLACED
from plone.pgcatalog.fulltext.typing_errors import unlikelihood
from plone.pgcatalog.fulltext.word_lookup import allowed_edits
from plone.pgcatalog.fulltext.word_lookup import containing
from plone.pgcatalog.fulltext.word_lookup import distance
from plone.pgcatalog.fulltext.word_lookup import near_pattern
from plone.pgcatalog.fulltext.word_lookup import SEPARATOR

import pytest
import re


WORDS = st.text("abc%_\\é", max_size=8)
FIXED = settings(max_examples=100, derandomize=True)


def edited(word: str) -> set[str]:
    """Return the words one edit, with a letter of the alphabet, away from *word*."""
    found = {word[:i] + word[i + 1 :] for i in range(len(word))}
    found |= {word[:i] + x + word[i:] for i in range(len(word) + 1) for x in "ab"}
    found |= {word[:i] + x + word[i + 1 :] for i in range(len(word)) for x in "ab"}
    found |= {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    return found - {word}


def matches(pattern: str, text: str) -> bool:
    """Return the result of LIKE."""
    parts = re.findall(r"\\.|.", pattern, re.S)
    regex = "".join({"%": ".*", "_": "."}.get(p) or re.escape(p[-1]) for p in parts)
    return re.fullmatch(regex, text, re.S) is not None


@FIXED
@given(word=WORDS, other=WORDS)
def test_distance_is_symmetric_and_bounded(word: str, other: str) -> None:
    far = distance(word, other, 20)
    assert far == distance(other, word, 20)
    assert far is not None
    assert (far == 0) == (word == other)
    assert abs(len(word) - len(other)) <= far <= max(len(word), len(other))
    assert distance(word, other, far) == far
    assert distance(word, other, far - 1) is None


@FIXED
@given(word=WORDS)
def test_single_edit_has_distance_one(word: str) -> None:
    assert all(distance(word, other, 3) == 1 for other in edited(word))


def test_distances_are_those_of_known_examples() -> None:
    for one, other, edits in (("hosue", "house", 1), ("ca", "abc", 3), ("", "ab", 2), ("kitten", "sitting", 3)):
        assert distance(one, other, 5) == edits
    # Short words have no typo.
    assert [allowed_edits("x" * length) for length in (1, 2, 3, 5, 6, 9, 10, 20)] == [0, 0, 1, 1, 2, 2, 3, 3]


@FIXED
@given(word=WORDS, other=WORDS)
def test_effort_is_zero_for_equal_words_only_and_is_bounded(word: str, other: str) -> None:
    assert (effort(word, other) == 0) == (word == other)
    # No edit weighs more than another letter, except for the first letter.
    assert effort(word, other) <= REPLACED * (distance(word, other, 20) or 0) + 2 * FIRST


@pytest.mark.parametrize(
    ("typed", "meant", "other"),
    [
        # Doubled, swapped, missing, alike, a vowel, a neighbour on the keyboard; the first letter is right.
        ("comming", "coming", "combing"),
        ("beleive", "believe", "belies"),
        ("belive", "believe", "belize"),
        ("componens", "components", "component"),
        ("sentense", "sentence", "sentende"),
        ("hause", "house", "haute"),
        ("telefon", "telefom", "telefox"),
        ("hall", "hail", "call"),
    ],
)
def test_likely_errors_weigh_less(typed: str, meant: str, other: str) -> None:
    assert effort(typed, meant) < effort(typed, other)


def test_word_in_many_texts_is_more_likely() -> None:
    assert unlikelihood("seprate", "separate", 40) < unlikelihood("seprate", "separate", 1)
    # The other word is nearer, but in one text only.
    assert effort("sperate", "seperate") < effort("sperate", "separate")
    assert unlikelihood("sperate", "separate", 135) < unlikelihood("sperate", "seperate", 1)


@given(text=WORDS, head=WORDS, tail=WORDS)
@FIXED
def test_containing_is_literal(text: str, head: str, tail: str) -> None:
    assert matches(containing(text), head + text + tail)
    assert not matches(containing(text + "x"), head + text + tail)


def deletions(word: str) -> set[str]:
    """Return the value of ``pgcatalog_deletions``."""
    head = word[:6]
    return {head[:i] + head[i + 1 :] for i in range(len(head))} | ({head} if len(head) < 6 else set())


@FIXED
@given(word=WORDS.filter(bool), block=st.lists(WORDS.filter(bool), min_size=1, max_size=4))
def test_near_pattern_finds_words_that_share_a_deletion(word: str, block: list[str]) -> None:
    pattern = near_pattern(word)
    near = [bool(deletions(word) & deletions(other)) for other in block]
    assert [re.search(pattern, other) is not None for other in block] == near
    assert (re.search(pattern, SEPARATOR.join(block)) is not None) == any(near)
