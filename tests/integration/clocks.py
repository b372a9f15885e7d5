"""Zope processes on machines with different clocks."""

from persistent.TimeStamp import TimeStamp
from typing import Any

import time
import types


#: The clocks' difference relative to the time between two commits matters; a machine that runs tests is slow.
SPEED = 0.001


def set_clock(storage: Any, seconds: float, start: float | None = None) -> None:
    """Set the clock by which *storage* names its transactions to *seconds* ahead of ours (negative: behind).

    With *start* the clock runs slowly: a thousand seconds after *start* it shows one second after it.
    """

    def now() -> float:
        passed = time.time()
        return seconds + (passed if start is None else start + (passed - start) * SPEED)

    def new_tid(self: Any) -> bytes:
        with self._lock:
            moment = now()
            self._ts = tid = TimeStamp(*time.gmtime(moment)[:5], moment % 60).laterThan(self._ts)
            raw: bytes = tid.raw()
            return raw

    storage._new_tid = types.MethodType(new_tid, storage)
