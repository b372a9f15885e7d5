"""SQL as a value: a text with ``%s`` placeholders, and the values for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Fragment:
    """A part of a statement, such as an expression; ``%%`` in it is a percent sign.

    Equal fragments have the same text and the same values.
    """

    sql: str
    params: tuple[Any, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fragment):
            return NotImplemented
        return self is other or (self.sql == other.sql and self.params == other.params)

    def __hash__(self) -> int:
        return hash(self.sql)


@dataclass(frozen=True, eq=False)
class Statement(Fragment):
    """A whole statement.  It unpacks as (sql, params), which is what ``cursor.execute`` takes.

    ``is_costly``: its condition compares long values, see ``Condition``; ``window`` is the (start, size) of the page of a
    sorted result that it reads, None if it reads no page, with size None for all rows from start on.  ``plans_once``: the
    same plan is good for any values.
    """

    is_costly: bool = False
    window: tuple[int, int | None] | None = None
    plans_once: bool = False

    def __iter__(self) -> Iterator[Any]:
        yield self.sql
        yield self.params
