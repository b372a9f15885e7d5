"""The calibration of a model, and its storage as JSON."""

from benchmarks.labelled import unanswered
from math import hypot
from math import sumprod
from plone.pgcatalog.meaning.calibration import calibrated
from plone.pgcatalog.meaning.calibration import Calibration
from plone.pgcatalog.meaning.calibration import first_direction
from plone.pgcatalog.meaning.calibration import general_questions
from plone.pgcatalog.meaning.calibration import ONE_OF
from plone.pgcatalog.meaning.calibration import threshold_of
from random import Random

import json
import pytest


def noisy(count: int = 60, dimension: int = 8) -> list[list[float]]:
    """Return vectors around a centre that differ most along the first axis, then along the next ones."""
    chance = Random(1)
    scales = [8.0, 5.0, 3.0, *[0.5] * (dimension - 3)]
    return [[2.0 + chance.gauss(0, scale) for scale in scales] for _ in range(count)]


def test_general_questions_are_many_and_no_question_of_the_benchmark() -> None:
    questions = general_questions()
    assert len(set(questions)) == len(questions) == 100
    for texts in unanswered():
        assert not set(questions) & set(texts)


def test_centred_general_questions_have_no_mean_and_no_part_along_the_directions() -> None:
    vectors = noisy()
    calibration = calibrated(vectors)
    assert len(calibration.directions) == 3
    centred = [calibration.centred(vector) for vector in vectors]
    assert max(abs(sum(values)) for values in zip(*centred, strict=True)) < 1e-9
    for direction in calibration.directions:
        assert hypot(*direction) == pytest.approx(1)
        assert max(abs(sumprod(vector, direction)) for vector in centred) < 1e-9


def test_directions_are_those_in_which_vectors_differ_most() -> None:
    for axis, direction in enumerate(calibrated(noisy()).directions):
        assert abs(direction[axis]) > 0.95


@pytest.mark.parametrize("vectors", [[[1.0, 0.0]], [[0.6, 0.8]] * 5])
def test_equal_vectors_have_a_centre_and_no_direction(vectors: list[list[float]]) -> None:
    calibration = calibrated(vectors)
    assert calibration.directions == ()
    assert calibration.centred(vectors[0]) == [0.0, 0.0]
    assert first_direction([[0.0, 0.0]]) is None


def test_one_in_eight_general_questions_reaches_the_threshold() -> None:
    chance = Random(2)
    similarities = [chance.gauss(0.05, 0.01) for _ in range(800)]
    threshold = threshold_of(similarities)
    assert sum(value >= threshold for value in similarities) == pytest.approx(800 / ONE_OF, abs=2)


def test_calibration_survives_json() -> None:
    calibration = Calibration((0.5, -0.25), ((1.0, 0.0),), 0.0625, 320)
    assert Calibration.from_json(json.loads(json.dumps(calibration.as_json())), 2) == calibration
    assert Calibration.from_json(None, 2) is None


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
    ],
)
def test_damaged_json_is_refused(value: object) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        Calibration.from_json(value, 2)  # type: ignore[arg-type]
