"""Texts by meaning: chunks contain all words of a text and end with sentences; the calibration of a model."""

from benchmarks.labelled import labelled
from benchmarks.labelled import stems
from benchmarks.labelled import unanswered
from dataclasses import replace
from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st
from itertools import pairwise
from math import hypot
from math import sumprod
from plone.pgcatalog.fulltext.text_index import in_one_line
from plone.pgcatalog.fulltext.text_index import PAGE_END
from plone.pgcatalog.fulltext.text_index import SOURCE_LENGTH
from plone.pgcatalog.fulltext.text_index import source_text
from plone.pgcatalog.fulltext.text_index import TextOfFile
from plone.pgcatalog.meaning import calibration
from plone.pgcatalog.meaning.text import CHUNK_WORDS
from plone.pgcatalog.meaning.text import chunks_of
from plone.pgcatalog.meaning.text import LEAD_WORDS
from plone.pgcatalog.meaning.text import MOST_CHUNKS
from plone.pgcatalog.meaning.text import MOST_PIECES
from plone.pgcatalog.meaning.text import passages
from plone.pgcatalog.meaning.text import pieces_of
from random import Random

import json
import pytest


PARTS = ["word", "end.", "what?", "語語語。", "語語「語", "x" * 40, "हिन्दी", "a_1234", "\n", "\f", "…"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=400).flatmap(
    lambda parts: st.sampled_from([" ".join(parts), "".join(parts)])
)


@example("word語語語。語語語。word\fend.語語語。", 6, 3, 8)
@given(TEXTS, st.integers(1, 30), st.integers(0, 20), st.integers(1, 60))
def test_chunks_have_all_words_in_order(text: str, words: int, overlap: int, pieces: int) -> None:
    spans = chunks_of(text, words, overlap, pieces)
    covered = [span for span in spans if span[0] < span[1]]
    assert covered == spans
    assert all(len(text[start:stop].split()) <= words for start, stop in spans)
    assert all(pieces_of(text[start:stop]) <= pieces for start, stop in spans)
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
    ("words", "lengths"),
    [
        (LEAD_WORDS, [LEAD_WORDS]),
        (LEAD_WORDS + 10, [LEAD_WORDS // 2 + 5] * 2),
        (2 * CHUNK_WORDS, [CHUNK_WORDS // 2, CHUNK_WORDS // 2, CHUNK_WORDS]),
    ],
)
def test_the_first_chunk_is_halved(words: int, lengths: list[int]) -> None:
    assert [len(text.split()) for text in passages_of_words(words)] == lengths


def passages_of_words(count: int) -> list[str]:
    """Return the texts of the passages of a page of *count* words without a sentence."""
    return [passage.text for passage in passages("word " * count, "", "", "")]


def test_a_chunk_ends_with_a_page_rather_than_a_sentence() -> None:
    text = "\f".join(["One two three. Four five six seven eight"] * 10)
    spans = chunks_of(text, words=20, overlap=0)
    assert [text[start:stop].count("\f") for start, stop in spans] == [1] * 5
    assert all(text[start:].startswith("One") for start, _ in spans)


@pytest.mark.parametrize(
    ("text", "number"), [("", 0), ("  ", 0), ("a", 1), ("語" * 5000, 14), ("a. " * 500_000, MOST_CHUNKS)]
)
def test_a_text_has_a_bounded_number_of_chunks(text: str, number: int) -> None:
    assert len(chunks_of(text)) == number


@pytest.mark.parametrize(
    "text",
    [
        "語" * 9000,
        "語語。" * 3000,
        "ไทย" * 3000,
        "x" * 9000,
        "1" * 9000,
        "-" * 9000,
        "a-b " * 3000,
        "हिन्दी " * 3000,
        "Wörterbuch " * 3000,
    ],
)
def test_a_chunk_and_its_heading_are_no_longer_than_models_read(text: str) -> None:
    found = passages(text, "page", "A title", "and a description")
    assert all(pieces_of(passage.text) <= MOST_PIECES for passage in found)
    assert pieces_of(found[1].text) > min(MOST_PIECES, CHUNK_WORDS) / 2


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
    assert passages("", "page", "", "") == []
    found = passages(source, "page", "Leave", "How to ask")
    assert [passage.text for passage in found] == texts
    assert all(0 <= passage.start <= passage.stop <= len(source) for passage in found)


WORDS = st.text("ab. \f", min_size=1, max_size=60).map(in_one_line)


@given(st.integers(0, 20_200), WORDS, WORDS, st.integers(0, 40_000))
def test_the_passages_of_a_long_file_have_all_of_its_words(head: int, word: str, other: str, length: int) -> None:
    texts = ["a title " * (head // 8), TextOfFile(in_one_line(f"{word} {other} " * (length // 20)))]
    source = source_text(texts)
    is_cut = len(source) == SOURCE_LENGTH and PAGE_END in source
    found = passages(source, "", "", "", texts[1] if is_cut else "")
    assert [passage.chunk for passage in found] == list(range(len(found)))
    spans = [(passage.start, passage.stop) for passage in found]
    whole = source.ljust(SOURCE_LENGTH) + (texts[1] if is_cut else "")
    inside = {place for start, stop in spans for place in range(start, stop)}
    behind = SOURCE_LENGTH + max([0, *(stop - source.find(PAGE_END) - 1 for _, stop in spans if stop <= SOURCE_LENGTH)])
    wanted = (
        [*range(min(source.find(PAGE_END), SOURCE_LENGTH)), *range(behind, len(whole))]
        if is_cut
        else range(len(source))
    )
    assert len(found) == MOST_CHUNKS or all(place in inside for place in wanted if not whole[place].isspace())


# -- the calibration, and its storage as JSON


def noisy(count: int = 60, dimension: int = 8) -> list[list[float]]:
    """Return vectors around a centre that differ most along the first axis, then along the next ones."""
    chance = Random(1)
    scales = [8.0, 5.0, 3.0, *[0.5] * (dimension - 3)]
    return [[2.0 + chance.gauss(0, scale) for scale in scales] for _ in range(count)]


def test_questions_of_the_benchmark_are_labelled_as_their_words_are() -> None:
    pages, questions = labelled()
    paraphrases = [question for question in questions if not question.in_own_words]
    assert len({page.id for page in pages}) == len(pages) >= 300
    assert len({question.text for question in questions}) == len(questions) == 200
    assert len(paraphrases) == 120
    assert sum(question.language == "de" for question in paraphrases) == 60
    assert sum(question.crosses for question in paraphrases) == 40
    for question in questions:
        words, answer = stems(question.text), stems(f"{question.page.title} {question.page.text}")
        assert words, question.text
        assert words <= answer if question.in_own_words else not words & answer, question.text
    for texts in unanswered():
        assert len(set(texts)) == 100
        assert not set(texts) & {question.text for question in questions}


def test_general_questions_are_many_and_no_question_of_the_benchmark() -> None:
    questions = calibration.general_questions()
    assert len(set(questions)) == len(questions) == 100
    for texts in unanswered():
        assert not set(questions) & set(texts)


def test_centred_general_questions_have_no_mean_and_no_part_along_the_directions() -> None:
    vectors = noisy()
    found = calibration.calibrated(vectors)
    # The directions are those in which vectors differ most.
    assert [abs(direction[axis]) > 0.95 for axis, direction in enumerate(found.directions)] == [True] * 3
    centred = [found.centred(vector) for vector in vectors]
    assert max(abs(sum(values)) for values in zip(*centred, strict=True)) < 1e-9
    for direction in found.directions:
        assert hypot(*direction) == pytest.approx(1)
        assert max(abs(sumprod(vector, direction)) for vector in centred) < 1e-9


@pytest.mark.parametrize("vectors", [[[1.0, 0.0]], [[0.6, 0.8]] * 5])
def test_equal_vectors_have_a_centre_and_no_direction(vectors: list[list[float]]) -> None:
    found = calibration.calibrated(vectors)
    assert found.directions == ()
    assert found.centred(vectors[0]) == [0.0, 0.0]
    assert calibration.first_direction([[0.0, 0.0]]) is None


@given(st.lists(st.lists(st.floats(-1, 1, width=16), min_size=5, max_size=5), max_size=5))
def test_languages_span_the_differences_of_their_means(means: list[list[float]]) -> None:
    found = calibration.language_directions(means)
    assert len(found) < max(len(means), 1)
    for place, direction in enumerate(found):
        assert hypot(*direction) == pytest.approx(1)
        assert all(abs(sumprod(direction, other)) < 1e-4 for other in found[:place])
    for mean in means:
        rest = [value - first for value, first in zip(mean, means[0], strict=True)]
        for direction in found:
            rest = calibration.without(rest, direction)
        assert hypot(*rest) <= 2 * calibration.LEAST_DIFFERENCE


def test_a_question_keeps_little_of_its_language_and_all_else() -> None:
    found = calibration.Calibration((0.0, 0.0, 0.0), (), languages=((1.0, 0.0, 0.0),))
    assert found.centred([0.5, 0.25, 1.0]) == pytest.approx([0.5 * (1 - calibration.LANGUAGE_SHARE), 0.25, 1.0])


def test_one_in_eight_general_questions_reaches_the_threshold() -> None:
    chance = Random(2)
    similarities = [chance.gauss(0.05, 0.01) for _ in range(800)]
    threshold = calibration.threshold_of(similarities)
    assert sum(value >= threshold for value in similarities) == pytest.approx(800 / calibration.ONE_OF, abs=2)


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"vectors": [], "threshold": 0.1, "chunks": 1},
        {"vectors": ["AAA="], "threshold": 0.1, "chunks": 1},
        {"vectors": ["?"], "threshold": 0.1, "chunks": 1},
        {"vectors": ["AAAAAA=="], "threshold": float("nan"), "chunks": 1},
        {"vectors": ["AAAAAA=="], "threshold": None, "chunks": 1},
        {"vectors": ["AAAAAA=="], "threshold": 0.1, "chunks": 1, "length_bias": float("inf")},
        {"vectors": ["AAAAAA=="], "languages": ["AAA="], "threshold": 0.1, "chunks": 1},
    ],
)
def test_calibration_survives_json_and_a_damaged_one_is_refused(value: object) -> None:
    found = calibration.Calibration((0.5, -0.25), ((1.0, 0.0),), 0.0625, 320, ((0.0, 1.0),), 0.03125)
    stored = json.loads(json.dumps(found.as_json()))
    assert calibration.Calibration.from_json(stored, 2) == found
    # An earlier version stored no languages and no bias.
    del stored["languages"], stored["length_bias"]
    assert calibration.Calibration.from_json(stored, 2) == replace(found, languages=(), length_bias=0.0)
    assert calibration.Calibration.from_json(None, 2) is None
    with pytest.raises((ValueError, LookupError, TypeError)):
        calibration.Calibration.from_json(value, 2)  # type: ignore[arg-type]
