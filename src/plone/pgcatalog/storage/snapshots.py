"""Decides when a ZODB connection begins a snapshot, and when it reuses the current one.

ZODB polls when a connection is opened, at ``begin()`` and after each commit or abort.  Each poll begins a snapshot, except
two of a request.  Zope's publisher opens a connection, begins at once, and commits or aborts right before it closes the
connection:

- the begin reuses the snapshot of the opening, which is younger than the request;
- the end leaves the snapshot of the request open until the close, unless the request has stored something.

The end is the first commit or abort behind IPubBeforeCommit or IPubBeforeAbort, also if a later subscriber of these events
calls it.  In all other code each poll shows all transactions committed by then, as with a FileStorage.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from enum import Enum
from psycopg.pq import TransactionStatus
from typing import Any
from typing import NamedTuple
from ZODB.utils import p64

import psycopg
import threading


class Stage(Enum):
    """The stage of a request at which its ZODB connection is."""

    #: the connection is not the publisher's, or the request has begun or ended a transaction itself
    NONE = 0
    #: the publisher has opened the connection, and begins the request next
    OPENED = 1
    #: the request runs
    BEGUN = 2
    #: the publisher commits or aborts next, and then closes the connection
    ENDING = 3
    #: the publisher has committed or aborted, and the snapshot of the request is still there
    ENDED = 4


class Publishing(threading.local):
    """The request of Zope that a thread is publishing."""

    def __init__(self) -> None:
        #: whether the publisher is opening connections
        self.is_opening = False
        #: the snapshots of the connections that it has opened
        self.opened: list[Snapshots] = []

    @contextmanager
    def request(self) -> Iterator[None]:
        """Assign connections opened by this thread to a new request, until ``is_opening`` is set to false."""
        former = self.is_opening, self.opened
        self.is_opening, self.opened = True, []
        try:
            yield
        finally:
            self.is_opening, self.opened = former

    def end(self) -> None:
        """Announce that the publisher commits or aborts next, and then closes the connections of its request."""
        for each in self.opened:
            each.end_request()


publishing = Publishing()


class PollMessages(NamedTuple):
    """The messages that begin and end a snapshot of a psycopg connection; they raise psycopg.Error."""

    #: ends the former snapshot if the flag is true, begins the next one and returns its newest transaction
    begin: Callable[[Any, bool], int]
    #: returns the zoids of objects that were changed after one transaction, up to another one, and by which one
    read_changes: Callable[[Any, int, int], list[tuple[int, int]]]
    #: ends the snapshot; the result is read with the next message
    end: Callable[[Any], None]
    #: reads a result that is still unread
    finish: Callable[[Any], None]


class Horizon:
    """The newest transaction up to which the changes of all processes have left *cache*, the shared cache of a storage.

    The cache's own ``consensus_tid`` may be newer: a commit of this process sets it to its own id, even if earlier changes
    of other processes are still unread.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._tid: int = cache.consensus_tid or 0

    @property
    def tid(self) -> int | None:
        """The transaction at which the first snapshot of a connection begins; None for an empty cache."""
        newest: int | None = self._cache.consensus_tid
        return min(self._tid, newest) if newest and self._tid else newest

    def advance(self, tid: int) -> None:
        """Note that all changes up to the transaction *tid* have been read."""
        # Of two threads at once the earlier transaction may remain: then the next connection reads some changes again.
        # A cache that was emptied begins anew, maybe in an earlier history.
        self._tid = min(max(self._tid, tid), self._cache.consensus_tid or 0)


class Snapshots:
    """The snapshots of *instance*, the storage of a ZODB connection.

    *poll* is the storage's own method that begins a snapshot, for special cases.  *forget* is called at each poll.
    """

    def __init__(
        self,
        instance: Any,
        poll: Callable[[], Any],
        messages: PollMessages,
        forget: Callable[[], None],
        horizon: Horizon,
    ) -> None:
        self._instance = instance
        self._own_poll = poll
        self._own_completion = instance.afterCompletion
        self._own_release = instance.release
        self._messages = messages
        self._forget = forget
        self._horizon = horizon
        self._stage = Stage.NONE
        self._is_forced = False

    @property
    def is_ending(self) -> bool:
        """Whether the publisher commits or aborts next."""
        return self._stage is Stage.ENDING

    @property
    def stays_open(self) -> bool:
        """Whether the snapshot stays open beyond the end of the request, or has stayed open."""
        return self._stage in (Stage.ENDING, Stage.ENDED) and self._is_usable()

    def end_request(self) -> None:
        """Let the snapshot stay open at the next commit or abort."""
        if self._stage is Stage.BEGUN:
            self._stage = Stage.ENDING

    def end_with_transaction(self) -> None:
        """End the snapshot with its transaction, also at the end of a request."""
        self._stage = Stage.NONE

    # -- the storage's methods

    def sync(self, force: bool = True) -> None:
        """Note whether ``begin()`` causes the next poll: *force*."""
        self._is_forced = force

    def poll(self) -> Any:
        """Begin the next snapshot, unless the current one is reused; return the oids of objects that others have changed.

        Raises psycopg.Error, as the storage's own method does.
        """
        self._forget()
        forced, self._is_forced = self._is_forced, False
        if self._stage is Stage.OPENED and forced and self._is_usable():
            self._stage = Stage.BEGUN
            return []
        if self._stage is Stage.ENDED and not forced:
            return []
        self._stage = Stage.NONE
        oids = self._next()
        self._horizon.advance(self._instance._polled_tid or 0)
        if publishing.is_opening:
            self._stage = Stage.OPENED
            publishing.opened.append(self)
        return oids

    def after_completion(self) -> None:
        """End the snapshot after a commit or an abort; at the end of a request only when the connection is closed."""
        if self._stage is Stage.ENDING and self._is_usable():
            self._stage = Stage.ENDED
        else:
            self._stage = Stage.NONE
            self._end()
            self._own_completion()

    def release(self) -> None:
        """Return the psycopg connection to its pool, and remove temporary files."""
        self.finish()
        self._own_release()

    def finish(self) -> None:
        """Read an unread result of the connection: its pool accepts it only then."""
        if self._instance._conn is not None:
            self._messages.finish(self._instance._conn)

    def _end(self) -> None:
        """Send the end of the snapshot, if one is open, without waiting for the result."""
        instance = self._instance
        if instance._in_read_txn and instance._conn.pgconn.transaction_status == TransactionStatus.INTRANS:
            # The storage reports a lost connection itself.
            with suppress(psycopg.Error):
                self._messages.end(instance._conn)
                instance._in_read_txn = False

    def _is_usable(self) -> bool:
        """Return whether the snapshot is open, without an error or a pending change of the schema."""
        instance = self._instance
        return bool(
            instance._in_read_txn
            and not instance._main._pending_ddl
            and instance._conn.pgconn.transaction_status == TransactionStatus.INTRANS
        )

    def _next(self) -> Any:
        """Begin the next snapshot; return the same as ``poll``."""
        instance = self._instance
        connection, polled = instance._conn, instance._polled_tid
        if connection is None or instance._main._pending_ddl:
            return self._own_poll()
        had_begun, instance._in_read_txn = instance._in_read_txn, True
        try:
            newest = self._messages.begin(connection, had_begun)
            is_old = newest != polled and polled is not None
            changed = self._messages.read_changes(connection, polled, newest) if is_old else []
        except psycopg.Error:
            # The storage replaces lost connections.
            return self._own_poll()
        shared = instance._main._shared_cache
        for zoid, _ in changed:
            instance._load_cache.invalidate(zoid)
        # This process may have stored or loaded the version that the snapshot shows.
        old = [zoid for zoid, tid in changed if (shared.get(zoid, tid) or (b"", b""))[1] != p64(tid)]
        with shared._lock:
            # Also behind a later commit of this process, or objects older than this snapshot would stay in the cache.
            shared.poll_advance(max(newest, shared.consensus_tid or 0), old)
        instance._polled_tid = newest
        return [p64(zoid) for zoid, _ in changed]
