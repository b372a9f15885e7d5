"""Keyset paging: the next rows are those behind the last one, told by its keys, wherever it is or whether it still is."""

from collections.abc import Sequence
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.predicate import equals


#: What a row has in the terms of a sort, as PostgreSQL writes it; None for NULL.
Keys = Sequence[str | None]


class Keyset:
    """The *terms* of a sort, to say which rows come behind a given one."""

    def __init__(self, terms: Sequence[Order]) -> None:
        self._terms = terms

    def __len__(self) -> int:
        return len(self._terms)

    def keys(self, view: CatalogView, rid: int) -> Keys:
        """Return the keys of the row *rid*, which is there."""
        [keys] = view.select(", ".join(f"({term.expression})::text" for term in self._terms), equals(RID, rid))
        return keys

    def behind(self, keys: Keys) -> Condition:
        """Return the condition for the rows behind one with *keys*."""
        pairs = list(zip(self._terms, keys, strict=True))
        first = self._compared(*pairs[0], inclusive=True)
        ways = (
            all_of([*(self._equal(*key) for key in pairs[:i]), self._compared(*pairs[i])]) for i in range(len(pairs))
        )
        # The first key alone bounds the rows, which an index can use.
        return first & any_of(ways)

    def _condition(self, term: Order, operator: str, key: str) -> Condition:
        placeholder = "%s" if term.type is None else f"%s::{term.type}"
        return Condition(f"{term.expression} {operator} {placeholder}", (key,))

    def _equal(self, term: Order, key: str | None) -> Condition:
        return Condition(f"{term.expression} IS NULL") if key is None else self._condition(term, "=", key)

    def _compared(self, term: Order, key: str | None, inclusive: bool = False) -> Condition:
        """Return the condition for rows behind *key*: NULL is higher than every other, as in ORDER BY."""
        if key is None:
            return Condition(f"{term.expression} IS NOT NULL") if term.descending else NOTHING
        condition = self._condition(term, ("<" if term.descending else ">") + ("=" if inclusive else ""), key)
        if term.descending or not term.nulls:
            return condition
        return condition | Condition(f"{term.expression} IS NULL")
