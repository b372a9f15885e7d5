"""How many rows of the last pages the process's cache had, to guess what the next page needs to bring."""

from collections.abc import Hashable


#: How many rows with their idx take as long as another round trip.
ROUND_TRIP_ROWS = 25
#: How many pages make up what is believed.
MEMORY = 8


class HitRate:
    """What the cache had of the last pages of a catalog: the share of their ``rows``, and of whole ``pages``.

    Measured with 500 documents, pages of 25 (2026-11): without ``skip_metadata`` the first page after a write takes 1.17
    times as long, and a page of known rows that nobody has asked for yet 1.4 times; always skipping makes a page of unknown
    rows 1.17 times as long.  Without ``skip_versions`` that page of known rows takes 1.08 times as long.
    """

    def __init__(self) -> None:
        self.rows = 0.0
        self.pages = 0.0
        self._listed = 0.0
        self._seen = 0
        self._state: Hashable = None
        self._whole = 0

    def learn(self, known: int, size: int) -> None:
        """Take into account that *known* of a page's *size* rows, at least one, were in the cache."""
        self._seen = min(self._seen + 1, MEMORY)
        self.rows += (known / size - self.rows) / self._seen
        self.pages += ((known == size) - self.pages) / self._seen

    def skip_metadata(self, size: int) -> bool:
        """True if a page of *size* rows is expected to be faster without idx.

        If some row is unknown then, which has the chance ``1 - pages``, another round trip reads its idx.
        """
        return ROUND_TRIP_ROWS * (1 - self.pages) < self.rows * size

    def learn_listing(self, known: int, size: int) -> None:
        """Take into account that *known* of *size* rows, at least one, of a long result were in the cache."""
        self._listed = known / size

    def skip_paths(self) -> bool:
        """True if most rows of a long result are expected in the cache: where they are is known with their version."""
        return self._listed > 0.5

    def learn_state(self, state: Hashable, whole: bool) -> None:
        """Take into account whether the cache had the *whole* of a page for this *state* of the catalog."""
        if state != self._state:
            self._state, self._whole = state, 0
        self._whole = self._whole + 1 if whole else 0

    def skip_versions(self, state: Hashable) -> bool:
        """True if the last MEMORY pages in this *state* came wholly from the cache; None is an unknown state."""
        return state is not None and state == self._state and self._whole >= MEMORY
