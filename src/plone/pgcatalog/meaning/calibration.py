"""Calibration of a model to a site: the similarity from which on a text of the site counts as near.

Models find all texts similar: even unrelated ones have a high similarity.  A list of general questions, which the site is
not expected to answer, serves as a background:

- The mean of their vectors (*centre*), and the *directions* in which they differ most, are subtracted from the vector of a
  question ("all but the top", Mu and Viswanath, 2018).  The vectors of the site do not change, so their HNSW index stays
  valid.
- Models find texts in the same language more similar.  The *languages* are directions from one language of the site's texts
  to another, and most of a question's components along them are subtracted, too (Yang et al., "A Simple and Effective Method
  to Eliminate the Self Language Bias in Multilingual Representations", 2021).
- The more chunks a page has, the more similar is the nearest of them, whatever the question.  The *length_bias* is by how much,
  for the general questions, and is subtracted from the similarities of the site's texts.
- The *threshold* is the similarity to the nearest text of the site that one in eight general questions reaches.

docs/lab/searches.md compares this rule with others.
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


#: Number of directions that are subtracted; docs/lab/searches.md compares it with others.
DIRECTIONS = 3
#: Share of a question's components along the languages that is subtracted: the higher, the more pages in other languages
#: are found, and the fewer in its own; docs/lab/searches.md compares it with others.
LANGUAGE_SHARE = 0.8
#: Least length of the difference between the means of two languages: shorter ones are rounding errors.
LEAST_DIFFERENCE = 1e-3
#: One of this many general questions reaches the threshold.
ONE_OF = 8
#: Steps of the power iteration; the directions need not be exact.
STEPS = 50


@cache
def general_questions() -> tuple[str, ...]:
    """Return the questions in ``background.txt``: general knowledge, in several languages."""
    return tuple((files(__package__) / "background.txt").read_text("utf-8").splitlines())


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of a model to a site.

    - *centre*, *directions* and *languages*: vectors of the model's dimension.
    - *threshold*: the least similarity of a ``centred`` question to a text that counts as near.
    - *chunks*: the number of chunks of the site at the time.
    - *length_bias*: the rise of a page's similarity, the largest of its chunks, with the natural logarithm of their number.
    """

    centre: tuple[float, ...]
    directions: tuple[tuple[float, ...], ...]
    threshold: float = 0.0
    chunks: int = 0
    languages: tuple[tuple[float, ...], ...] = ()
    length_bias: float = 0.0

    def centred(self, vector: Sequence[float]) -> Vector:
        """Return the vector of a question minus the centre, its components along the directions, and most of its language."""
        centred = [value - mean for value, mean in zip(vector, self.centre, strict=True)]
        for direction in self.directions:
            centred = without(centred, direction)
        for direction in self.languages:
            centred = without(centred, direction, LANGUAGE_SHARE)
        return centred

    def as_json(self) -> dict[str, Any]:
        """Return the calibration as a value for JSON; vectors are base64 of half-precision numbers."""
        vectors, languages = [*map(_packed, (self.centre, *self.directions))], [*map(_packed, self.languages)]
        return {
            "vectors": vectors,
            "languages": languages,
            "threshold": round(self.threshold, 6),
            "chunks": self.chunks,
            "length_bias": round(self.length_bias, 6),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None, dimension: int) -> Self | None:
        """Return the calibration in *value*, a result of ``as_json``; None if *value* is None.

        One of an earlier version has no languages, and no bias.  Raises ValueError, LookupError or TypeError for an invalid value.
        """
        if value is None:
            return None
        centre, *directions = (_unpacked(vector, dimension) for vector in value["vectors"])
        languages = tuple(_unpacked(vector, dimension) for vector in value.get("languages", ()))
        threshold, chunks = float(value["threshold"]), int(value["chunks"])
        length_bias = float(value.get("length_bias", 0.0))
        if not (isfinite(threshold) and isfinite(length_bias)):
            raise ValueError("a threshold or a bias that is not a number")
        return cls(centre, tuple(directions), threshold, chunks, languages, length_bias)


def calibrated(vectors: Sequence[Sequence[float]]) -> Calibration:
    """Return a calibration with the centre and directions of *vectors*, of the general questions; its threshold is 0."""
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
    """Return the threshold that one in ONE_OF of *similarities*, of general questions to their nearest text, reaches."""
    return quantiles(similarities, n=ONE_OF, method="inclusive")[-1]


def first_direction(vectors: Sequence[Sequence[float]]) -> Vector | None:
    """Return the first principal component of *vectors*, whose mean is zero, as a unit vector; None if they do not differ.

    By power iteration of their covariance.
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


def language_directions(means: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return orthogonal unit vectors that span the differences of *means*: the mean vectors of texts, one for each language.

    By Gram-Schmidt; empty for fewer than two languages.
    """
    found: list[tuple[float, ...]] = []
    for mean in means[1:]:
        difference = [value - first for value, first in zip(mean, means[0], strict=True)]
        for direction in found:
            difference = without(difference, direction)
        length = hypot(*difference)
        if length > LEAST_DIFFERENCE:
            found.append(tuple(value / length for value in difference))
    return tuple(found)


def without(vector: Sequence[float], direction: Sequence[float], share: float = 1.0) -> Vector:
    """Return *vector* minus *share* of its component along *direction*, a unit vector."""
    part = share * sumprod(vector, direction)
    return [value - part * step for value, step in zip(vector, direction, strict=True)]


def _packed(vector: Sequence[float]) -> str:
    return b64encode(pack(f"<{len(vector)}e", *vector)).decode()


def _unpacked(text: str, dimension: int) -> tuple[float, ...]:
    data = b64decode(text, validate=True)
    if len(data) != 2 * dimension:
        raise ValueError(f"not a vector of {dimension} numbers")
    return unpack(f"<{dimension}e", data)
