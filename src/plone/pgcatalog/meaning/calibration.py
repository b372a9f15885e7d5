"""Calibration of a model to a site: which similarity means something there.

Models find all texts similar: with multilingual-e5-small, two texts without anything in common have 0.75 to 0.8.  A list of
general questions, which no site is made to answer, shows how similar a question is to a text for no reason:

- The *centre* of their vectors, and the directions in which they differ most, are taken out of the vector of a question ("all but
  the top", Mu and Viswanath, 2018).  The vectors of the site stay as they are, so an index of neighbours serves as before.
- The *threshold* is the similarity that one in eight of them reaches with the text of the site that is nearest to it.

docs/explanation/decisions.md has the figures of this rule and of others.
"""

from base64 import b64decode
from base64 import b64encode
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import hypot
from math import isfinite
from math import sumprod
from plone.pgcatalog.meaning.embedder import Vector
from statistics import quantiles
from struct import pack
from struct import unpack
from typing import Any
from typing import Self


#: Directions that are taken out; decisions.md compares one to three.
DIRECTIONS = 3
#: Of so many general questions one reaches the threshold.
ONE_OF = 8
#: Steps of the power iteration; the directions need not be exact.
STEPS = 50


@cache
def general_questions() -> tuple[str, ...]:
    """Return the questions of ``background.txt``: of general knowledge, in several languages."""
    return tuple((files(__package__) / "background.txt").read_text("utf-8").splitlines())


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured for a model and the *chunks* of a site; *centre* and *directions* are vectors of the model's dimension.

    *threshold* is the similarity of a vector that was ``centred``, from which on a text counts as near.
    """

    centre: tuple[float, ...]
    directions: tuple[tuple[float, ...], ...]
    threshold: float = 0.0
    chunks: int = 0

    def centred(self, vector: Sequence[float]) -> Vector:
        """Return *vector*, of a question, without the centre, and without its parts along the directions."""
        centred = [value - mean for value, mean in zip(vector, self.centre, strict=True)]
        for direction in self.directions:
            centred = without(centred, direction)
        return centred

    def as_json(self) -> dict[str, Any]:
        """Return its parts for JSON; vectors as base64 of half-precision numbers."""
        vectors = [_packed(vector) for vector in (self.centre, *self.directions)]
        return {"vectors": vectors, "threshold": round(self.threshold, 6), "chunks": self.chunks}

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None, dimension: int) -> Self | None:
        """Return the calibration that ``as_json`` has made *value* of, None for None; raises ValueError, LookupError, TypeError."""
        if value is None:
            return None
        centre, *directions = (_unpacked(vector, dimension) for vector in value["vectors"])
        threshold, chunks = float(value["threshold"]), int(value["chunks"])
        if not isfinite(threshold):
            raise ValueError("a threshold that is no number")
        return cls(centre, tuple(directions), threshold, chunks)


def calibrated(vectors: Sequence[Sequence[float]]) -> Calibration:
    """Return centre and directions of *vectors*, those of the general questions, without a threshold."""
    centre = tuple(sum(values) / len(vectors) for values in zip(*vectors, strict=True))
    rest = [[value - mean for value, mean in zip(vector, centre, strict=True)] for vector in vectors]
    directions = []
    for _ in range(DIRECTIONS):
        direction = first_direction(rest)
        if direction is None:
            break
        directions.append(tuple(direction))
        rest = [without(vector, direction) for vector in rest]
    return Calibration(centre, tuple(directions))


def threshold_of(similarities: Sequence[float]) -> float:
    """Return the threshold that one in ONE_OF of *similarities* reaches: those of general questions to the nearest text."""
    return quantiles(similarities, n=ONE_OF, method="inclusive")[-1]


def first_direction(vectors: Sequence[Sequence[float]]) -> Vector | None:
    """Return the unit vector along which *vectors*, whose mean is zero, differ most; None if they do not differ.

    Power iteration of their covariance.
    """
    direction = list(max(vectors, key=lambda vector: hypot(*vector)))
    for _ in range(STEPS):
        parts = [sumprod(vector, direction) for vector in vectors]
        direction = [sumprod(parts, values) for values in zip(*vectors, strict=True)]
        length = hypot(*direction)
        if length < 1e-9:
            return None
        direction = [value / length for value in direction]
    return direction


def without(vector: Sequence[float], direction: Sequence[float]) -> Vector:
    """Return *vector* without its part along *direction*, a unit vector."""
    part = sumprod(vector, direction)
    return [value - part * along for value, along in zip(vector, direction, strict=True)]


def _packed(vector: Sequence[float]) -> str:
    return b64encode(pack(f"<{len(vector)}e", *vector)).decode()


def _unpacked(text: str, dimension: int) -> tuple[float, ...]:
    data = b64decode(text, validate=True)
    if len(data) != 2 * dimension:
        raise ValueError(f"no vector of {dimension} numbers")
    return unpack(f"<{dimension}e", data)
