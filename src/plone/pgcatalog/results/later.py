"""Statements that go along in another one's message: what a page shows beside its hits is asked together with them."""

from collections.abc import Callable
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.sql.expression import Statement
from typing import Any

import psycopg


Rows = list[tuple[Any, ...]]
#: The protocol counts the values of a statement in two bytes.
MAX_PARAMS = 65535


class Later:
    """A statement of *view*, a CatalogView, made by *statement* for a state of the catalog, None being the snapshot's.

    It is sent with the next page, count or list of rows that this transaction reads of the catalog, or alone if its
    ``rows`` are wanted before.  It does no harm to the other if it fails: then it is repeated alone, and raises.
    *seconds* is its time limit, None for the view's.  With changes of its own, the transaction sends each alone.
    """

    def __init__(
        self,
        view: Any,
        statement: Callable[[CatalogState | None], Statement | None],
        seconds: float | None = None,
    ) -> None:
        self.statement = statement
        self.seconds: float | None = view.limit if seconds is None else seconds
        self.answer: Rows | None = None
        self.is_too_slow = False
        self._view = view
        self._waiting: list[Later] = view.session.waiting.setdefault(view.zoid, [])
        self._waiting.append(self)

    def rows(self) -> Rows:
        """Return what the statement brings, nothing if there is nothing to ask.  Raises as ``CatalogView.ask``."""
        if self.is_too_slow:
            raise SearchTimeout(f"the search took longer than {self.seconds} s")
        if self.answer is None:
            if self in self._waiting:
                self._waiting.remove(self)
            statement = self.statement(None)
            self.answer = [] if statement is None else self._view.ask(statement, seconds=self.seconds)
        return self.answer


def ask_along(view: Any, statement: Statement, guess: CatalogState | None = None) -> Rows | None:
    """Run *statement* of *view*, a CatalogView, and in its message those that wait for one; return its rows.

    With a *guess* the states are read in the same message; None if the guess was wrong.  Raises as ``CatalogView.ask``.
    """
    waiting = view.session.waiting.get(view.zoid, [])
    along = [(later, sent) for later in waiting if (sent := later.statement(guess))] if view.is_committed else []
    waiting.clear()
    if not along or any(len(sent.params) > MAX_PARAMS for sent in (statement, *(sent for _, sent in along))):
        rows: Rows = view.ask(statement, with_states=guess is not None)
        return rows if is_right(view, guess) else None
    asked = [(statement, view.limit), *((sent, later.seconds) for later, sent in along)]
    too_slow = False
    try:
        rows, *others = view.session.ask_all(asked, guess is not None)
        if not is_right(view, guess):
            return None
        for (later, _), answer in zip(along, others, strict=True):
            later.answer = answer
        return rows
    except psycopg.Error as error:
        too_slow = isinstance(error, psycopg.errors.QueryCanceled)
    # Each by itself says which of them has failed; of two, one that succeeds tells of the other.
    found = ask_along(view, statement, guess)
    if too_slow and len(along) == 1:
        along[0][0].is_too_slow = True
    return found


def is_right(view: Any, guess: CatalogState | None) -> bool:
    """True if the snapshot of *view* shows the catalog as *guess* has it, None being no guess."""
    state = None if guess is None else view.read_state()
    return guess is None or (state is not None and state.form == guess.form)
