"""Keeps the log readable when the same thing happens all the time."""

from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Hashable
from time import monotonic

import threading


#: Seconds between two lines about the same thing.
PAUSE = 60.0
#: Things that are remembered; of more, those are forgotten whose last line is longest ago.
SIZE = 1000


class Throttle:
    """Lets one line for each thing through in *pause* seconds, and counts the others; safe for threads.

    *clock* returns seconds, which only grow.
    """

    def __init__(self, pause: float = PAUSE, size: int = SIZE, clock: Callable[[], float] = monotonic) -> None:
        self._pause = pause
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        #: thing -> when it had its last line, and how many have been left out since
        self._lines: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def left_out(self, thing: Hashable) -> int | None:
        """Return how many lines about *thing* were left out since its last one, None if this one is to be left out, too."""
        now = self._clock()
        with self._lock:
            written, count = self._lines.get(thing, (None, 0))
            if written is not None and now - written < self._pause:
                self._lines[thing] = written, count + 1
                return None
            self._lines[thing] = now, 0
            self._lines.move_to_end(thing)
            if len(self._lines) > self._size:
                self._lines.popitem(last=False)
            return count

    def clear(self) -> None:
        """Forget all lines."""
        with self._lock:
            self._lines.clear()
