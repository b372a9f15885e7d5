"""Monitors the soak: memory of the Zope processes, and their connections to PostgreSQL."""

from collections import Counter
from pathlib import Path
from typing import Any

import contextlib
import psycopg
import threading
import time


INTERVAL = 1.0
#: Prefix of the application names of the catalog's short connections.
SHORT = "pgcatalog"
APPLICATIONS = "SELECT application_name, count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1"


def rss(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    fields = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()
    return int(fields[0]) * 1024


class Monitor:
    """Samples every second during the load.

    ``memory``: name -> [(time, bytes)]; ``connections``: name -> highest number at a time.
    """

    def __init__(self, dsn: str, pids: dict[str, int]) -> None:
        self.dsn = dsn
        self.pids = pids
        self.memory: dict[str, list[tuple[float, int]]] = {name: [] for name in pids}
        self.connections: Counter[str] = Counter()
        self._connection: Any = None

    def run(self, ended: threading.Event) -> None:
        """Sample until *ended*."""
        while not ended.wait(INTERVAL):
            for name, pid in self.pids.items():
                self.memory[name].append((time.monotonic(), rss(pid)))
            # While PostgreSQL is down there is nothing to count.
            with contextlib.suppress(psycopg.OperationalError):
                self._count()
        if self._connection is not None:
            self._connection.close()

    def _count(self) -> None:
        if self._connection is None or self._connection.broken:
            self._connection = psycopg.connect(self.dsn, autocommit=True, application_name="monitor")
        for name, count in self._connection.execute(APPLICATIONS).fetchall():
            if name in self.pids or name.startswith(SHORT):
                self.connections[name] = max(self.connections[name], count)
