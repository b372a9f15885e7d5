"""Waiting for other processes and threads: by condition, never for a fixed time."""

from collections.abc import Callable
from plone.pgcatalog.database import background

import time


#: Seconds before a test counts as hung; a busy machine needs a lot.
PATIENCE = 600.0
#: Seconds between two checks of the condition.
PAUSE = 0.02


def until[Found](condition: Callable[[], Found]) -> Found:
    """Return the first true result of *condition*; raise AssertionError after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(PAUSE)
    return found


def background_ended() -> bool:
    """Wait for all background threads of this process; return True when they have ended."""
    return background.wait(PATIENCE)
