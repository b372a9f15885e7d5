"""Guesses whether the process knows the rows of the next page already, by what it knew of the last ones."""

from collections.abc import Hashable


#: How many rows with their idx take as long as another round trip.
ROUND_TRIP_ROWS = 25
#: How many pages make up what is believed.
MEMORY = 8


class Familiarity:
    """What the process knew of the last pages of a catalog: the share of their ``rows``, and of whole ``pages``."""

    def __init__(self) -> None:
        self.rows = 0.0
        self.pages = 0.0
        self._seen = 0
        self._state: Hashable = None
        self._whole = 0

    def learn(self, known: int, size: int) -> None:
        """Take into account that *known* of a page's *size* rows, at least one, were known."""
        self._seen = min(self._seen + 1, MEMORY)
        self.rows += (known / size - self.rows) / self._seen
        self.pages += ((known == size) - self.pages) / self._seen

    def spares_idx(self, size: int) -> bool:
        """Return whether reading a page of *size* rows without their idx is expected to be faster.

        If some row is unknown then, which is so with the chance ``1 - pages``, another round trip reads its idx.
        """
        return ROUND_TRIP_ROWS * (1 - self.pages) < self.rows * size

    def learn_state(self, state: Hashable, whole: bool) -> None:
        """Take into account whether the *whole* of a page was known as it is in this *state* of the catalog."""
        if state != self._state:
            self._state, self._whole = state, 0
        self._whole = self._whole + 1 if whole else 0

    def spares_version(self, state: Hashable) -> bool:
        """Return whether the rows of a page need not even say their versions: all of the last pages in this *state* were known.

        None is a state that nobody knows yet.
        """
        return state is not None and state == self._state and self._whole >= MEMORY
