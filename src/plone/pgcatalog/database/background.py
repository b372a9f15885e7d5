"""Background threads: every thread that the package starts in a Zope process is started here.

Each is a daemon with a database connection of its own, so no request waits for it, and none keeps a process alive.
"""

from collections.abc import Callable

import os
import threading


#: Longest time, in seconds, that a process which ends waits for a worker.
EXIT_SECONDS = 2.0

_threads: set[threading.Thread] = set()


def start(name: str, work: Callable[[], None], *, ends: bool = True) -> threading.Thread:
    """Run *work* in a new thread, called ``pgcatalog-`` and *name*; return the thread.

    Without *ends* it runs as long as the process, and ``wait`` leaves it out.
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
    """Wait for what ``start`` has begun in this process, *timeout* seconds for each thread; return whether all have ended."""
    for thread in list(_threads):
        thread.join(timeout)
    return not _threads


class BatchWorker[Item]:
    """Collects items, and gives them to *work* in batches, in a thread that ends when nothing is left.

    *linger* is how many seconds it waits for more before each batch.
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
        """Add *item*; False, and nothing is added, when *limit* items wait already.  Never waits for the work."""
        with self._changed:
            if limit is not None and len(self._items) >= limit:
                return False
            self._items.append(item)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=f"pgcatalog-{self.name}", daemon=True)
                self._thread.start()
        return True

    def clear(self) -> None:
        """Forget the items that wait."""
        with self._changed:
            self._items = []

    def flush(self, timeout: float = EXIT_SECONDS) -> bool:
        """Wait until no item is left, *timeout* seconds at most; return whether none is."""
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
    """The workers of this process, one per database: made by *make* from its DSN when they are first asked for.

    A forked child begins without any: items and threads are those of its parent.
    """

    def __init__(self, make: Callable[[str], Worker]) -> None:
        self._make = make
        self._workers: dict[str, Worker] = {}
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)

    def __getitem__(self, dsn: str) -> Worker:
        with self._lock:
            if dsn not in self._workers:
                self._workers[dsn] = self._make(dsn)
            return self._workers[dsn]

    def all(self) -> list[Worker]:
        """Return the workers there are."""
        with self._lock:
            return list(self._workers.values())

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._workers.clear()
