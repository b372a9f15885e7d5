"""Starts all background threads that the package runs in a Zope process.

Each is a daemon with a database connection of its own: no request waits for it, and the process can end while it runs.
"""

from collections.abc import Callable

import os
import threading


#: Longest time, in seconds, that an ending process waits for a worker.
EXIT_SECONDS = 2.0

_threads: set[threading.Thread] = set()


def start(name: str, work: Callable[[], None], *, ends: bool = True) -> threading.Thread:
    """Run *work* in a new thread, named ``pgcatalog-`` and *name*; return the thread.

    If *ends* is false it runs as long as the process, and ``wait`` ignores it.
    """

    def run() -> None:
        try:
            work()
        finally:
            _threads.discard(thread)

    thread = threading.Thread(target=run, name=f"pgcatalog-{name}", daemon=True)
    if ends:
        _threads.add(thread)
    thread.start()
    return thread


def wait(timeout: float) -> bool:
    """Wait for the threads begun by ``start``, *timeout* seconds for each; return whether all have ended."""
    for thread in list(_threads):
        thread.join(timeout)
    return not _threads


class BatchWorker[Item]:
    """Collects items, and passes them to *work* in batches, in a thread that ends when no item is left.

    *linger* is how many seconds it waits for more items before each batch.
    """

    def __init__(self, name: str, work: Callable[[list[Item]], None], linger: float = 0.0) -> None:
        self.name = name
        self._work = work
        self._linger = linger
        self._items: list[Item] = []
        self._changed = threading.Condition()
        self._hurry = False
        self._thread: threading.Thread | None = None

    def put(self, item: Item, limit: int | None = None) -> bool:
        """Add *item*; return False without adding it if *limit* items already wait.  Never waits for the work."""
        with self._changed:
            if limit is not None and len(self._items) >= limit:
                return False
            self._items.append(item)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=f"pgcatalog-{self.name}", daemon=True)
                self._thread.start()
        return True

    def clear(self) -> None:
        """Discard the items that wait."""
        with self._changed:
            self._items = []

    def flush(self, timeout: float = EXIT_SECONDS) -> bool:
        """Wait until no item is left, at most *timeout* seconds; return whether all work is done."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._thread is None, timeout)
            self._hurry = False
        return done

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._linger:
                    self._changed.wait_for(lambda: self._hurry, self._linger)
                items, self._items = self._items, []
                if not items:
                    self._thread = None
                    self._changed.notify_all()
                    return
            self._work(items)


class PerDatabase[Worker]:
    """The workers of this process, one per database, each created on first use by *create* from a DSN.

    A forked child begins without workers: items and threads belong to its parent.
    """

    def __init__(self, create: Callable[[str], Worker]) -> None:
        self._create = create
        self._workers: dict[str, Worker] = {}
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)

    def __getitem__(self, dsn: str) -> Worker:
        with self._lock:
            if dsn not in self._workers:
                self._workers[dsn] = self._create(dsn)
            return self._workers[dsn]

    def all(self) -> list[Worker]:
        """Return the existing workers."""
        with self._lock:
            return list(self._workers.values())

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._workers.clear()
