"""Chunks contain all words of a text, and break at the ends of sentences."""

from hypothesis import given
from hypothesis import strategies as st
from itertools import pairwise
from plone.pgcatalog.meaning.text import chunks_of
from plone.pgcatalog.meaning.text import LONGEST_CHUNK
from plone.pgcatalog.meaning.text import MOST_CHUNKS
from plone.pgcatalog.meaning.text import passages

import pytest


TEXTS = st.lists(st.sampled_from(["word", "end.", "what?", "語語語。", "x" * 40, "\n", "…"]), max_size=400).map(
    " ".join
)


@given(TEXTS, st.integers(1, 30), st.integers(0, 20))
def test_chunks_have_all_words_in_order(text: str, words: int, overlap: int) -> None:
    spans = chunks_of(text, words, overlap)
    covered = [span for span in spans if span[0] < span[1]]
    assert covered == spans
    assert all(len(text[start:stop].split()) <= words and stop - start <= LONGEST_CHUNK for start, stop in spans)
    assert all(first[0] < second[0] and first[1] < second[1] for first, second in pairwise(spans))
    if len(spans) < MOST_CHUNKS:
        inside = {place for start, stop in spans for place in range(start, stop)}
        assert all(place in inside for place, char in enumerate(text) if not char.isspace())


def test_a_chunk_ends_with_a_sentence_and_the_next_one_repeats_the_last() -> None:
    text = "It has eight words, and here they end. " * 10
    spans = chunks_of(text, words=20, overlap=10)
    assert all(text[start:stop].endswith("end.") for start, stop in spans)
    assert all(second[0] < first[1] for first, second in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "number"), [("", 0), ("  ", 0), ("a", 1), ("語" * 5000, 4), ("a. " * 100_000, MOST_CHUNKS)]
)
def test_a_text_has_a_bounded_number_of_chunks(text: str, number: int) -> None:
    assert len(chunks_of(text)) == number


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("page Leave How to ask", ["Leave\nHow to ask"]),
        ("page Leave", ["Leave. How to ask"]),
        ("", ["Leave. How to ask"]),
        ("Something else", ["Leave. How to ask\nSomething else"]),
    ],
)
def test_passage_follows_the_title_and_repeats_nothing(source: str, texts: list[str]) -> None:
    found = passages(source, "page", "Leave", "How to ask")
    assert [passage.text for passage in found] == texts
    assert all(0 <= passage.start <= passage.stop <= len(source) for passage in found)


def test_page_without_text_has_no_passage() -> None:
    assert passages("", "page", "", "") == []
