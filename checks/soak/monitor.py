"""Monitors the soak: memory of processes, their connections to PostgreSQL, sizes of tables, and the queue."""

from collections import Counter
from pathlib import Path
from typing import Any

import contextlib
import psycopg
import threading
import time


INTERVAL = 1.0
#: One of so many samples of memory and connections has sizes, too.
SIZES_EVERY = 5
#: Prefix of the application names of the catalog's short connections.
SHORT = "pgcatalog"
APPLICATIONS = "SELECT application_name, count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1"
#: Name -> bytes with indexes and TOAST, and dead rows.  The relations of a catalog are "rows", those of vectors "vectors".
TABLES = """
SELECT CASE WHEN relname ~ '^pgcatalog_[0-9a-f]+_chunks_' THEN 'vectors'
    WHEN relname ~ '^pgcatalog_[0-9a-f]+(_[0-9]+)*(_idx)?(_empty)?$' THEN 'rows'
    ELSE relname END AS name,
    coalesce(sum(pg_total_relation_size(oid)), 0)::bigint, coalesce(sum(pg_stat_get_dead_tuples(oid)), 0)::bigint
FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relnamespace <> 'pg_catalog'::regnamespace GROUP BY 1
"""
#: Class of objects -> bytes of their states, compressed, without dead rows. They show why the table of objects grows.
STATES = "SELECT class_mod || '.' || class_name, sum(pg_column_size(state))::bigint FROM object_state GROUP BY 1"
COUNTS = """
SELECT (SELECT count(*) FROM pgcatalog_queue WHERE due < 'infinity') AS waiting,
    (SELECT count(*) FROM pgcatalog_queue WHERE due = 'infinity' AND reason <> '') AS failed,
    (SELECT count(*) FROM object_state) AS objects,
    (SELECT pg_indexes_size('object_state')) AS indexes,
    (SELECT count(*) FROM pg_stat_activity
     WHERE backend_type = 'client backend' AND datname = current_database()) AS connections
"""


def rss(pid: int) -> int:
    """Return the resident memory of a process in bytes.  Raises OSError or IndexError if it has ended."""
    fields = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()
    return int(fields[0]) * 1024


class Monitor:
    """Samples every second during the load.

    - ``memory``: name -> [(time, bytes)]
    - ``connections``: name -> highest number at a time
    - ``samples``: every five seconds: the ``time``, ``bytes`` and ``dead`` rows by table, bytes of ``states`` by class, and
      the names of COUNTS
    - *pids*: name -> process id, which changes if the process is started again
    """

    def __init__(self, dsn: str, pids: dict[str, int]) -> None:
        self.dsn = dsn
        self.pids = pids
        self.memory: dict[str, list[tuple[float, int]]] = {}
        self.connections: Counter[str] = Counter()
        self.samples: list[dict[str, Any]] = []
        self._connection: Any = None

    def run(self, ended: threading.Event) -> None:
        """Sample until *ended*."""
        number = 0
        while not ended.wait(INTERVAL):
            for name, pid in list(self.pids.items()):
                with contextlib.suppress(OSError, IndexError):
                    self.memory.setdefault(name, []).append((time.monotonic(), rss(pid)))
            # While PostgreSQL is down there is nothing to count.
            with contextlib.suppress(psycopg.OperationalError):
                self._count()
                if number % SIZES_EVERY == 0:
                    self._measure()
            number += 1
        if self._connection is not None:
            self._connection.close()

    def _count(self) -> None:
        if self._connection is None or self._connection.broken:
            self._connection = psycopg.connect(self.dsn, autocommit=True, application_name="monitor")
        for name, count in self._connection.execute(APPLICATIONS).fetchall():
            if name in self.pids or name.startswith(SHORT):
                self.connections[name] = max(self.connections[name], count)

    def _measure(self) -> None:
        tables = self._connection.execute(TABLES).fetchall()
        cursor = self._connection.execute(COUNTS)
        counts = dict(zip((column.name for column in cursor.description), cursor.fetchone(), strict=True))
        sizes = {name: size for name, size, _ in tables}
        dead = {name: number for name, _, number in tables}
        states = dict(self._connection.execute(STATES).fetchall())
        self.samples.append({"time": time.monotonic(), "bytes": sizes, "dead": dead, "states": states, **counts})
