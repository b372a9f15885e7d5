"""Edits between words: their number, and the patterns that find them."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.fulltext.word_lookup import allowed_edits
from plone.pgcatalog.fulltext.word_lookup import beginning
from plone.pgcatalog.fulltext.word_lookup import containing
from plone.pgcatalog.fulltext.word_lookup import distance
from plone.pgcatalog.fulltext.word_lookup import near_beginnings

import pytest
import re


WORDS = st.text("abc%_\\é", max_size=8)


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


@settings(max_examples=200, deadline=None, derandomize=True)
@given(word=WORDS, other=WORDS)
def test_distance_is_symmetric_and_bounded(word: str, other: str) -> None:
    far = distance(word, other, 20)
    assert far == distance(other, word, 20)
    assert far is not None
    assert (far == 0) == (word == other)
    assert abs(len(word) - len(other)) <= far <= max(len(word), len(other))
    assert distance(word, other, far) == far
    assert distance(word, other, far - 1) is None


@settings(max_examples=100, deadline=None, derandomize=True)
@given(word=WORDS)
def test_single_edit_has_distance_one(word: str) -> None:
    assert all(distance(word, other, 3) == 1 for other in edited(word))


@pytest.mark.parametrize(
    ("one", "other", "edits"), [("hosue", "house", 1), ("ca", "abc", 3), ("", "ab", 2), ("kitten", "sitting", 3)]
)
def test_distances_are_those_of_known_examples(one: str, other: str, edits: int) -> None:
    assert distance(one, other, 5) == edits


@settings(max_examples=100, deadline=None, derandomize=True)
@given(typed=WORDS, rest=WORDS)
def test_near_prefix_is_at_most_one_edit_away(typed: str, rest: str) -> None:
    for other in edited(typed) | {typed}:
        # After the first two letters, before the last one.
        if other[:2] == typed[:2] and other[-1:] == typed[-1:] and len(typed) > 3 and len(other) > 3:
            assert other == typed or any(matches(pattern, other + rest) for pattern in near_beginnings(typed))
    assert all(pattern.startswith(beginning(typed[:2])[:-1]) for pattern in near_beginnings(typed))


@given(text=WORDS, head=WORDS, tail=WORDS)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_containing_is_literal(text: str, head: str, tail: str) -> None:
    assert matches(containing(text), head + text + tail)
    assert not matches(containing(text + "x"), head + text + tail)


def test_short_words_are_unchanged() -> None:
    assert [allowed_edits("x" * length) for length in (1, 2, 3, 5, 6, 20)] == [0, 0, 1, 1, 2, 2]
