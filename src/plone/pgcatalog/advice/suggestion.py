"""What advice consists of."""

from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.filters import Filter
from plone.pgcatalog.advice.trial import Measure
from plone.pgcatalog.advice.trial import Outcome
from plone.pgcatalog.i18n import _
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.sql.expression import Statement


@dataclass(frozen=True, slots=True)
class Question:
    """The queries of one shape, ready to be run again."""

    group: Group
    statements: tuple[Statement, ...]
    filters: tuple[Filter, ...]
    sort: tuple[str, ...]
    #: names of the columns that the statements read; None if nobody says which
    columns: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An index worth building, for the queries of one shape; *gain* is the part of their time it saves."""

    candidate: Candidate
    group: Group
    before: Measure
    after: Outcome
    ddl: str
    #: What the index costs those who save something, for people to read.
    write_cost: str
    #: Of the whole index; a sample's is projected.
    bytes: int

    @property
    def gain(self) -> float:
        if self.before.ms and self.after.ms is not None:
            return max(0.0, 1 - self.after.ms / self.before.ms)
        return max(0.0, 1 - self.after.cost / self.before.cost)

    @property
    def comparison(self) -> str:
        """Before and after, for people to read."""
        if self.before.ms is not None and self.after.ms is not None:
            return f"{self.before.ms:.2f} → {self.after.ms:.2f} ms"
        costs = {"before": f"{self.before.cost:.0f}", "after": f"{self.after.cost:.0f}"}
        return _("cost ${before} → ${after}", costs)


@dataclass(slots=True)
class Advice:
    """What came out: suggestions, the best first, how they were found, and shapes without one, with the reason."""

    method: str
    rows: int
    suggestions: list[Suggestion] = field(default_factory=list)
    without: list[tuple[Group, str]] = field(default_factory=list)
