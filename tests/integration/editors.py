"""Several people who work at once: each in a thread or process of its own, stepped by the test."""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import Executor
from concurrent.futures import Future
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextlib import ExitStack
from contextlib import suppress
from plone.pgcatalog.indexing.verify import Verifier
from tests.integration import site as sites
from tests.integration.waiting import PATIENCE
from transaction.interfaces import TransientError
from typing import Any

import multiprocessing
import threading
import transaction
import warnings


ATTEMPTS = 3


class Place(threading.local):
    """The database, connection and site that a worker has open."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.site: Any = None


here = Place()


def enter(db: Any, site_id: str) -> None:
    from zope.component.hooks import setSite

    app = here.stack.enter_context(sites.application(db))
    sites.login(app)
    here.site = app[site_id]
    setSite(here.site)


def enter_database(dsn: str, site_id: str) -> None:
    enter(here.stack.enter_context(sites.opened(dsn)), site_id)


def leave() -> None:
    here.stack.close()


def step(action: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return action(here.site, *args)


class ForkedWorker(Executor):
    """Runs calls in one thread of another process, because the forked thread still has transactions of this process."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self._process = ProcessPoolExecutor(1, mp_context=context, initializer=start_thread)

    def submit(self, call: Callable[..., Any], /, *args: Any, **kw: Any) -> "Future[Any]":
        with warnings.catch_warnings():
            # fork warns about other threads; the child opens a database of its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._process.submit(in_thread, call, args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._process.shutdown(wait, cancel_futures=cancel_futures)


threads: list[ThreadPoolExecutor] = []


def start_thread() -> None:
    threads[:] = [ThreadPoolExecutor(1)]


def in_thread(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return threads[0].submit(call, *args).result()


class Editor:
    """Does things to a site, in a transaction of its own."""

    def __init__(self, worker: Executor) -> None:
        self._worker = worker

    def do(self, action: Callable[..., Any], *args: Any) -> Any:
        """Return the result of ``action(site, *args)``, or raise its exception."""
        return self.start(action, *args).result(PATIENCE)

    def start(self, action: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Begin ``action(site, *args)``."""
        return self._worker.submit(step, action, args)

    def begin(self) -> None:
        self.do(begin)

    def commit(self) -> None:
        self.do(commit)

    def finish(self, action: Callable[..., Any], *args: Any) -> int:
        """Commit the changes of *action*; repeat it after a conflict, as Zope does.  Return the number of repetitions."""
        for attempt in range(ATTEMPTS):
            try:
                self.commit()
                return attempt
            except TransientError:
                self.do(abort)
                self.do(action, *args)
        raise AssertionError(f"{action} conflicts for ever")


@contextmanager
def editor(db: Any, site_id: str = "plone") -> Iterator[Editor]:
    """Yield an Editor in a thread."""
    with working(ThreadPoolExecutor(1), enter, db, site_id) as opened:
        yield opened


@contextmanager
def distant_editor(dsn: str, site_id: str = "plone") -> Iterator[Editor]:
    """Yield an Editor in another process; actions are functions of a module, values are pickled."""
    with working(ForkedWorker(), enter_database, dsn, site_id) as opened:
        yield opened


@contextmanager
def working(worker: Executor, enter: Callable[..., None], *args: Any) -> Iterator[Editor]:
    with worker:
        worker.submit(enter, *args).result(PATIENCE)
        try:
            yield Editor(worker)
        finally:
            with suppress(BrokenProcessPool):
                worker.submit(leave).result(PATIENCE)


def begin(site: Any) -> None:
    transaction.begin()


def commit(site: Any) -> None:
    transaction.commit()


def abort(site: Any) -> None:
    transaction.abort()


def differences(site: Any) -> list[str]:
    """Return the differences between catalog and content, as seen by a new transaction."""
    transaction.begin()
    return [str(d) for d in Verifier(site.portal_catalog).differences()]
