"""Zopes whose machines' clocks differ."""

from persistent.TimeStamp import TimeStamp
from typing import Any

import time
import types


#: What counts is how far clocks are apart against the time between two commits; a machine that runs tests is slow.
SPEED = 0.001


def set_clock(storage: Any, seconds: float, start: float | None = None) -> None:
    """Let the clock by which *storage* names its transactions be *seconds* ahead of ours, or behind.

    With *start* it is slow: a thousand seconds behind *start* it is one second behind it.
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
