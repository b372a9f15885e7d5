"""Zopes whose machines' clocks differ."""

from persistent.TimeStamp import TimeStamp
from typing import Any

import time
import types


def set_clock(storage: Any, seconds: float) -> None:
    """Let the clock by which *storage* names its transactions be *seconds* ahead of ours, or behind."""

    def new_tid(self: Any) -> bytes:
        with self._lock:
            now = time.time() + seconds
            self._ts = tid = TimeStamp(*time.gmtime(now)[:5], now % 60).laterThan(self._ts)
            raw: bytes = tid.raw()
            return raw

    storage._new_tid = types.MethodType(new_tid, storage)
