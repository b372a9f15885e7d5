"""Connections to the database of a backend, as in requests."""

from benchmarks.backends import Backend
from benchmarks.backends import close_db
from benchmarks.backends import open_db
from benchmarks.scenarios import Place
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


class Requests:
    """Requests to a catalog in the database of *backend*: one connection at a time in each thread.

    Subclasses implement the begin and the end of a request, and a concurrent write.
    """

    place: Place

    def __init__(self, backend: Backend, dsn: str, folder: Path, cache_size: int) -> None:
        self.backend = backend
        self.dsn = dsn
        self.folder = folder
        self.cache_size = cache_size
        self.app: Any = None
        self._writes = 0
        #: a separate thread for concurrent writes
        self._writer = ThreadPoolExecutor(1)
        self.open()

    def open(self) -> None:
        """Open the database, with empty caches."""
        self.db = open_db(self.backend, self.dsn, self.folder, self.cache_size)

    def use_cache(self, size: int) -> None:
        """Open the database with a ZODB cache of *size* objects."""
        self.close()
        self.cache_size = size
        self.open()

    def close(self) -> None:
        """End the request and close the database."""
        self.end_request()
        close_db(self.db)

    def enter(self, anonymous: bool = False) -> Any:
        """Begin a request by that user and set ``app`` to its application; return the application, or its site."""
        raise NotImplementedError

    def end_request(self) -> None:
        """End the current request, if there is one."""
        raise NotImplementedError

    def same(self, anonymous: bool) -> Any:
        """Return the catalog of the current request, ready for a search by that user."""
        raise NotImplementedError

    def _write(self) -> None:
        """Change a document in a separate connection, and commit."""
        raise NotImplementedError

    def request(self, anonymous: bool = False) -> Any:
        """Return the catalog in a new request."""
        self.end_request()
        self.enter(anonymous)
        return self.same(anonymous)

    def after_write(self, anonymous: bool) -> Any:
        """Return the catalog in a new request, after a concurrent write."""
        self.end_request()
        self._writes += 1
        self._writer.submit(self._write).result()
        return self.request(anonymous)

    def cold(self, anonymous: bool) -> Any:
        """Return the catalog in a newly opened database."""
        self.close()
        self.open()
        return self.request(anonymous)

    def forget_results(self) -> None:
        """Empty a result cache, if there is one."""
        self.backend.forget_results()
