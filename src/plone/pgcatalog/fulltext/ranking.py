"""What ranking is about: the terms of a query, the weights of a site, and the backends that make a score of them."""

from abc import ABC
from abc import abstractmethod
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.settings import weight_body
from plone.pgcatalog.settings import weight_description
from plone.pgcatalog.settings import weight_keywords
from plone.pgcatalog.settings import weight_title
from plone.pgcatalog.sql.fragment import Fragment
from typing import Any
from typing import Self


@dataclass(frozen=True, slots=True)
class Term:
    """A word that a query wants; with ``prefix`` all that begin with it.

    ``related`` are groups of other lexemes that are about as good, such as stems; no position of a text has two lexemes
    of a group.
    """

    word: str
    prefix: bool = False
    related: tuple[tuple[str, ...], ...] = ()

    @property
    def tsquery(self) -> str:
        return quoted(self.word) + (":*" if self.prefix else "")


@dataclass(frozen=True, slots=True)
class Weights:
    """What an occurrence of a word counts in each part of a page; only their proportions matter."""

    title: float = weight_title.default
    description: float = weight_description.default
    keywords: float = weight_keywords.default
    body: float = weight_body.default

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return those in the *settings* ``weight_title``, ``weight_description`` …, defaults for what is not there."""
        found = {field.name: settings.get(f"weight_{field.name}") for field in fields(cls)}
        return cls(**{name: max(0.0, float(value)) for name, value in found.items() if value is not None})

    @property
    def least(self) -> float:
        return min(self._parts)

    @property
    def more(self) -> float:
        """How much the heaviest part counts more than the lightest."""
        return max(self._parts) - min(self._parts)

    @property
    def labels(self) -> list[float]:
        """Return how much more than the lightest the labels D, C, B, A of a tsvector count, 1 for the heaviest."""
        least, more = self.least, self.more or 1.0
        return [(weight - least) / more for weight in self._parts]

    @property
    def _parts(self) -> tuple[float, ...]:
        return self.body, self.keywords, self.description, self.title


#: All parts count the same.
NEUTRAL = Weights(1.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class RankedText:
    """A text index as SQL: quoted names of its tsvector and of the column with the number of its words.

    ``catalog`` is the zoid of the tool and ``column`` the plain name of the tsvector, by which its words are counted.
    """

    vector: str
    words: str
    column: str
    catalog: int | None = None


class SearchBackend(ABC):
    """Ranks what a text search has found; it does not choose the rows."""

    @abstractmethod
    def score(self, text: RankedText, terms: Sequence[Term], weights: Weights) -> Fragment | None:
        """Return an SQL number, the higher the better, for a row of *text* that has *terms*; None for no ranking.

        It is evaluated for every row that is found, committed or not, inside of the search's statement.
        """
