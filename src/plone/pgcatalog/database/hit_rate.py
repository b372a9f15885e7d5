"""What the last searches needed, to guess what the next statement needs to bring."""

from collections.abc import Hashable


#: How many rows with their idx take as long as another round trip.
ROUND_TRIP_ROWS = 25
#: How many pages make up what is believed.
MEMORY = 8
#: Kinds of searches that are remembered, of each catalog.
MOST_HABITS = 1000


class HitRate:
    """What the cache had of the last pages of a catalog: the share of their ``rows``, and of whole ``pages``.

    Measured with 500 documents, pages of 25 (2026-11): without ``skip_metadata`` the first page after a write takes 1.17
    times as long, and a page of known rows that nobody has asked for yet 1.4 times; always skipping makes a page of unknown
    rows 1.17 times as long.  Without ``skip_versions`` that page of known rows takes 1.08 times as long.
    """

    def __init__(self) -> None:
        self.rows = 0.0
        self.pages = 0.0
        #: how full a page was: a search for a rare word finds fewer rows than a page has room for
        self._fullness = 1.0
        self._listed = 0.0
        self._seen = 0
        self._state: Hashable = None
        self._whole = 0

    def learn(self, known: int, size: int, room: int = 0) -> None:
        """Take into account that *known* of a page's *size* rows, at least one, were in the cache; it has *room* for more."""
        self._seen = min(self._seen + 1, MEMORY)
        self._fullness += (size / max(size, room) - self._fullness) / self._seen
        self.rows += (known / size - self.rows) / self._seen
        self.pages += ((known == size) - self.pages) / self._seen

    def skip_metadata(self, size: int) -> bool:
        """True if a page of up to *size* rows is expected to be faster without idx.

        If some row is unknown then, which has the chance ``1 - pages``, another round trip reads its idx.  The page will
        be about as full as the last ones.
        """
        return ROUND_TRIP_ROWS * (1 - self.pages) < self.rows * size * self._fullness

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


class Habits:
    """Which parts of an answer are asked for one after the other, by a key for the kind of search and the first part.

    A process counts the hits of a search and reads their first rows in one statement if it expects both.
    """

    def __init__(self) -> None:
        #: how likely a second part follows, later searches counting more, and how many rows that had
        self._expected: dict[Hashable, tuple[float, int]] = {}

    def expects(self, key: Hashable) -> int:
        """Return how many rows the second part had, which mostly follows; 0 if it does not."""
        share, rows = self._expected.get(key, (0.0, 0))
        return rows if share > 0.5 else 0

    def begin(self, key: Hashable) -> None:
        """Note that somebody has asked for the first part."""
        if len(self._expected) > MOST_HABITS:
            self._expected.clear()
        share, rows = self._expected.get(key, (0.0, 0))
        self._expected[key] = 0.75 * share, rows

    def follow(self, key: Hashable, rows: int) -> None:
        """Note that he has asked for the second part, too, of so many *rows*."""
        share, _ = self._expected.get(key, (0.0, 0))
        self._expected[key] = (share + 1) / 2, rows
