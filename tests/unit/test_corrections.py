"""The benchmark of corrections: its lists, and how it judges a correction."""

from benchmarks.corrections import halves
from benchmarks.corrections import outcome
from benchmarks.misspellings import german_misspellings
from benchmarks.misspellings import Misspelling
from benchmarks.misspellings import mistyped
from benchmarks.misspellings import public_misspellings
from random import Random

import pytest


PAIR = Misspelling("componens", ("components",))


@pytest.mark.parametrize(
    ("corrected", "judged"),
    [("components", "right"), ("component", "same stem"), ("opponents", "otherwise"), (None, "not at all")],
)
def test_only_the_meant_word_is_right(corrected: str | None, judged: str) -> None:
    assert outcome(PAIR, corrected) == judged


def test_public_pairs_have_a_known_right_word_and_an_unknown_wrong_one() -> None:
    pairs = public_misspellings({"believe": 3, "cache": 1, "recieve": 1, "receive": 1}, str)
    assert Misspelling("belive", ("believe",)) in pairs
    assert "recieve" not in {pair.typed for pair in pairs}
    assert {word for pair in pairs for word in pair.meant} == {"believe", "cache", "receive"}


def test_german_words_are_mistyped_the_same_way_each_time() -> None:
    counts = dict.fromkeys(("verzeichnis", "datei", "zeile", "strasse"), 100) | {"selten": 1, "ab": 100}
    pairs = german_misspellings(counts, counts, 1)
    assert pairs == german_misspellings(counts, counts, 1)
    assert {pair.meant[0] for pair in pairs} <= {"verzeichnis", "datei", "zeile", "strasse"}
    assert all(pair.typed not in counts for pair in pairs)


def test_mistyped_word_begins_with_its_letter() -> None:
    chance = Random(1)
    assert all(mistyped("verzeichnis", chance)[0] == "v" for _ in range(100))


def test_halves_have_no_pair_in_common() -> None:
    pairs = [Misspelling(f"wrong{n}", ("right",)) for n in range(50)]
    tuned, measured = halves(pairs, 20)
    assert len(tuned) == len(measured) == 20
    assert not set(tuned) & set(measured)
