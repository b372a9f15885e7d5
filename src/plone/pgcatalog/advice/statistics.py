"""What PostgreSQL knows of a catalog's relation: columns, SQL indexes, size, writes."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.observe.log import Execute
from plone.pgcatalog.observe.log import log_sql


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What ANALYZE found in a column; *common* are frequent values, as text, and the part of the rows that has them."""

    name: str
    type: str
    distinct: float = 0
    null_fraction: float = 0
    common: Mapping[str, float] = field(default_factory=dict)

    def fraction(self, value: object) -> float:
        """Return which part of the rows probably has *value*, from 0 to 1."""
        if str(value) in self.common:
            return self.common[str(value)]
        rest = max(0.0, 1 - self.null_fraction - sum(self.common.values()))
        others = self.distinct - len(self.common) if self.distinct > 0 else 100.0
        return rest / max(others, 1.0)


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """An SQL index; *definition* is what comes behind ``ON table``, *columns* are all that it reads."""

    name: str
    definition: str
    method: str
    keys: tuple[str, ...]
    included: tuple[str, ...]
    predicate: str
    is_unique: bool
    is_valid: bool
    bytes: int
    scans: int
    comment: str
    columns: Sequence[str] = ()


class Statistics:
    """Reads about *relation* with *execute*."""

    def __init__(self, execute: Execute, relation: str) -> None:
        self._execute = execute
        self._names = {"relation": quote(relation)}

    def columns(self) -> dict[str, ColumnStatistics]:
        rows = self._execute(log_sql("columns"), self._names)
        return {
            name: ColumnStatistics(name, type, distinct, nulls, dict(zip(values, fractions, strict=False)))
            for name, type, distinct, nulls, values, fractions in rows
        }

    def indexes(self) -> list[IndexStatistics]:
        rows = self._execute(log_sql("inventory"), self._names)
        return [
            IndexStatistics(name, definition, method, tuple(keys), tuple(included), *rest)
            for name, definition, method, keys, included, *rest in rows
        ]


def duplicates(indexes: list[IndexStatistics]) -> dict[str, str]:
    """Return for each index that another one makes superfluous the name of that one."""
    found: dict[str, str] = {}
    for index in indexes:
        for other in indexes:
            if other.name != index.name and other.name not in found and covers(other, index):
                found[index.name] = other.name
                break
    return found


def covers(larger: IndexStatistics, smaller: IndexStatistics) -> bool:
    """True when *larger* answers all that *smaller* does."""
    if smaller.is_unique or not (larger.is_valid and smaller.is_valid) or larger.method != smaller.method:
        return False
    if larger.predicate != smaller.predicate or "" in smaller.keys:
        return False
    if smaller.method == "gin":
        return set(smaller.keys) <= set(larger.keys)
    same_start = larger.keys[: len(smaller.keys)] == smaller.keys
    return same_start and set(smaller.included) <= {*larger.included, *larger.keys}
