"""Dictionaries that can go back to a marked state, at the cost of what changed since then.

Plone sets savepoints for each object of a tree it copies.  A copy of everything pending for each of them would
take time, and memory, that grow with the square of the tree.
"""

from typing import Any
from weakref import WeakSet


_absent = object()


class Mark:
    """A position in a journal; as long as it is referenced, the journal can go back to it."""

    def __init__(self, position: int, state: Any) -> None:
        self.position = position
        #: whatever the journal's owner wants to have back
        self.state = state


class Journal:
    """What undoes the changes of its dictionaries, newest last; empty while no mark is alive."""

    def __init__(self) -> None:
        self._marks: WeakSet[Mark] = WeakSet()
        self._undo: list[tuple[JournaledDict, Any, Any]] = []
        #: position of the first element of the list: older ones are forgotten
        self._start = 0

    def __len__(self) -> int:
        return len(self._undo)

    def mark(self, state: Any) -> Mark:
        """Return a mark of now, that keeps *state*; forget what no older mark needs."""
        position = self._start + len(self._undo)
        oldest = min((mark.position for mark in self._marks), default=position)
        del self._undo[: oldest - self._start]
        self._start = oldest
        mark = Mark(position, state)
        self._marks.add(mark)
        return mark

    def go_back(self, mark: Mark) -> None:
        """Undo everything since *mark*, which can be gone back to again."""
        while len(self._undo) > mark.position - self._start:
            target, key, value = self._undo.pop()
            if value is _absent:
                dict.pop(target, key, None)
            else:
                dict.__setitem__(target, key, value)

    def note(self, target: "JournaledDict", key: Any) -> None:
        """Note what *target* has at *key*, which is about to change."""
        if self._marks:
            self._undo.append((target, key, target.get(key, _absent)))


class JournaledDict(dict[Any, Any]):
    """A dict whose changes, by the methods defined here, *journal* can take back."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def __setitem__(self, key: Any, value: Any) -> None:
        self._journal.note(self, key)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self._journal.note(self, key)
        super().__delitem__(key)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Remove *key*; return what it had, *default* if it was not there."""
        if key in self:
            self._journal.note(self, key)
        return super().pop(key, default)

    def clear(self) -> None:
        """Remove everything."""
        for key in self:
            self._journal.note(self, key)
        super().clear()
