"""Values that are read from a snapshot when they are wanted, or earlier together with others."""

from collections.abc import Callable
from functools import cached_property


class Fetch[Value]:
    """A value that *read* returns; *read* is called once, when the value is first wanted.

    A ``results.view.RowsFetch`` is where a chain of fetches begins: in an open ``Session.batch`` its statement goes in the
    message of the batch.
    """

    def __init__(self, read: Callable[[], Value]) -> None:
        self._read = read

    @classmethod
    def of(cls, value: Value) -> "Fetch[Value]":
        """Return a fetch of *value*, for which nothing is read."""
        return Fetch(lambda: value)

    @cached_property
    def _value(self) -> Value:
        return self._read()

    def value(self) -> Value:
        """Return the value, which is read now if it was not read before.  Raises as ``RowsFetch.value``."""
        return self._value

    def then[Other](self, function: Callable[[Value], Other]) -> "Fetch[Other]":
        """Return a fetch of what *function* makes of the value."""
        return Fetch(lambda: function(self.value()))
