"""Waiting for what others do: for as long as it takes, and never for a fixed time."""

from collections.abc import Callable
from plone.pgcatalog.database import background

import time


#: Seconds after which a test takes what it waits for for hung.  A busy machine is no hang.
PATIENCE = 600.0
#: Seconds between two looks.
PAUSE = 0.02


def until[Found](condition: Callable[[], Found]) -> Found:
    """Return what *condition* returns as soon as that is true; AssertionError when it never is."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(PAUSE)
    return found


def background_ended() -> bool:
    """Wait for all background threads of this process; True when they have ended."""
    return background.wait(PATIENCE)
