"""Adapts zodb-pgjsonb beyond its public API: the only package that uses its private names."""

from collections.abc import Callable
from collections.abc import Container
from contextlib import AbstractContextManager
from contextlib import closing
from contextlib import ContextDecorator
from contextlib import suppress
from functools import partial
from functools import wraps
from importlib.metadata import version
from operator import attrgetter
from persistent.TimeStamp import TimeStamp
from plone.pgcatalog.sql.locks import HOLD_COMMITS
from plone.pgcatalog.storage.records import as_loaded
from plone.pgcatalog.storage.records import preserve_values
from plone.pgcatalog.storage.snapshots import Horizon
from plone.pgcatalog.storage.snapshots import PollMessages
from plone.pgcatalog.storage.snapshots import Snapshots
from plone.pgcatalog.storage.supported import unknown_code
from psycopg import IsolationLevel
from psycopg.errors import DeadlockDetected
from psycopg.errors import SerializationFailure
from psycopg.rows import tuple_row
from random import randrange
from tempfile import NamedTemporaryFile
from typing import Any
from ZODB.POSException import ConflictError
from ZODB.POSException import POSKeyError
from ZODB.POSException import ReadOnlyError
from ZODB.utils import p64
from ZODB.utils import u64
from zodb_pgjsonb.storage import PGJsonbStorage

import logging
import psycopg


logger = logging.getLogger(__name__)

#: Names of zodb-pgjsonb used here that are not public, as seen from the storage of a ZODB connection.
PRIVATE_NAMES = (
    *("_blob_cache", "_blob_temp_dir", "_conn", "_drop_conn", "_in_read_txn", "_load_cache", "_main"),
    *("_polled_tid", "_serial_cache", "_tmp"),
    *("_main._conn", "_main._dsn", "_main._ensure_admin_conn", "_main._instance_pool", "_main._lock"),
    *("_main._pending_ddl", "_main._shared_cache.consensus_tid"),
    *("_main._shared_cache._lock", "_main._shared_cache.get", "_main._shared_cache.poll_advance"),
    "_main._shared_cache.set",
    *("_main._state_processors", "_main._ts"),
)
#: A process whose clock is behind the newest id advances beyond it by a random number of units up to this, less than a
#: millisecond: otherwise two processes that commit at the same time would both use the very next id.
SPREAD = 1 << 16
#: Number of oids that a transaction gets at once: first, and at most; it doubles each time.
FIRST_OIDS, MOST_OIDS = 32, 1024
#: Attempts of a pack.
PACK_ATTEMPTS = 5
#: Sessions that wait for this one.
WAITING_SESSIONS = (
    "SELECT pid FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)) LIMIT 1"
)
#: Objects of an earlier transaction to which later ones refer; objects among some that no longer exist.
REFERRED_TO = (
    "SELECT DISTINCT o.zoid FROM object_state newer CROSS JOIN unnest(newer.refs) AS ref (zoid)"
    " JOIN object_state o ON o.zoid = ref.zoid WHERE newer.tid > %s AND o.tid <= %s"
)
REMOVED = (
    "SELECT zoid FROM unnest(%s::bigint[]) AS ref (zoid)"
    " WHERE NOT EXISTS (SELECT FROM object_state o WHERE o.zoid = ref.zoid) LIMIT 1"
)
OIDS = "SELECT nextval('zoid_seq') FROM generate_series(1, %s)"
#: Bytes of a blob that are in memory at once.
PIECE = 1 << 20
READ_PIECE = "SELECT substring(data FROM %s FOR %s) FROM blob_state WHERE (zoid, tid) = (%s, %s)"
#: Methods that read from the snapshot, besides the poll for a new one.
READS = ("load", "load_multiple", "loadBefore", "loadSerial", "loadBlob", "openCommittedBlobFile")


class PackConflict(SerializationFailure):
    """Each attempt of a pack has conflicted with other transactions; nothing was removed."""


class UnknownStorage(Exception):
    """The installed zodb-pgjsonb is not supported by this package."""


def require_supported_storage(database: Any) -> None:
    """Raise UnknownStorage if the storages of *database*, a ZODB.DB of zodb-pgjsonb, lack one of PRIVATE_NAMES."""

    def check(jar: Any) -> None:
        for name in PRIVATE_NAMES:
            try:
                attrgetter(name)(jar._normal_storage)
            except AttributeError as error:
                text = f"zodb-pgjsonb {version('zodb-pgjsonb')} has no {name}, which plone.pgcatalog uses"
                raise UnknownStorage(text) from error

    database._connectionMap(check)


def is_supported(jar: Any) -> bool:
    """Return whether *jar*, a ZODB connection, reads from zodb-pgjsonb."""
    return hasattr(getattr(jar, "_normal_storage", None), "pg_connection")


def snapshot_tid(jar: Any) -> int | None:
    """Return the newest transaction in the snapshot of *jar*, a ZODB connection; None without a snapshot, as in a commit."""
    storage = jar._normal_storage
    return storage._polled_tid if getattr(storage, "_in_read_txn", False) else None


def snapshots_of(jar: Any) -> Snapshots | None:
    """Return the snapshots of *jar*, a ZODB connection; None if its database is not adapted."""
    return getattr(jar._normal_storage, "snapshots", None)


def unchanged_tid(jar: Any) -> int | None:
    """Return ``snapshot_tid`` if the ZODB connection *jar* has changed no object since its transaction began, else None."""
    return snapshot_tid(jar) if jar is not None and jar._needs_to_join else None


def unsaved_oids(jar: Any) -> Container[bytes]:
    """Return the oids of the objects that a savepoint of the ZODB connection *jar*, or its running commit, has stored.

    Such an object no longer counts as changed, but still has the serial of its last commit.
    """
    if jar is None or jar._needs_to_join:
        return ()
    if jar._savepoint_storage is not None:
        return jar._savepoint_storage.index  # type: ignore[no-any-return]
    # In a snapshot the list belongs to the last commit, and may be long.
    return () if snapshot_tid(jar) is not None else set(jar._modified)


def preserves_history(jar: Any) -> bool:
    """Return whether the storage of *jar*, a ZODB connection, can undo; a pack may set it back to an older transaction."""
    return bool(jar._normal_storage.supportsUndo())


def serial_of(obj: Any) -> bytes:
    """Return the serial of the persistent *obj*, z64 before its first commit, without reading the bytes of a blob.

    ZODB would read them to activate a blob.  Raises POSKeyError if the object is gone.
    """
    if obj._p_changed is not None:
        return bytes(obj._p_serial)
    _, serial = obj._p_jar._storage.load(obj._p_oid)
    return bytes(serial)


def fetch_blob(connection: psycopg.Connection[Any], jar: Any, version: tuple[int, int]) -> None:
    """Download the blob *version*, (zoid, tid), into the blob cache of *jar*, a ZODB connection.

    The storage's own download has a whole blob in memory three times.  A blob that is gone, or is not in the database of
    *connection*, is left to it.
    """
    storage, (oid, serial) = jar._normal_storage, map(p64, version)
    if storage._blob_cache.get(oid, serial):
        return
    with (
        NamedTemporaryFile(dir=storage._blob_temp_dir, suffix=".tmp") as staging,
        connection.cursor(binary=True) as cursor,
    ):
        while True:
            row = cursor.execute(READ_PIECE, (staging.tell() + 1, PIECE, *version)).fetchone()
            if row is None or row[0] is None:
                return
            staging.write(row[0])
            if len(row[0]) < PIECE:
                break
        staging.flush()
        storage._blob_cache.put(oid, serial, staging.name)


def committed_tid(database: Any) -> int:
    """Return the newest transaction that this process has committed in *database*, a ZODB.DB; 0 if there is none."""
    return int(u64(database.storage.lastTransaction()))


def advance_clock(database: Any, tid: int) -> float:
    """Make the next transaction of this process in *database* get a later id than *tid*, the id of another machine.

    Returns the seconds by which the ids of this process were behind; 0.0 if they were not.
    """
    storage = database.storage
    if u64(storage._ts.raw()) >= tid:
        return 0.0
    with storage._lock:
        last = storage._ts
        if u64(last.raw()) >= tid:
            return 0.0
        storage._ts = TimeStamp(p64(tid + randrange(SPREAD)))
        return float(TimeStamp(p64(tid)).timeTime() - last.timeTime())


def adapt(database: Any, messages: PollMessages, reading: Callable[[], ContextDecorator]) -> None:
    """Make ZODB connections of *database*, of zodb-pgjsonb, send fewer messages.

    - Each read is decorated by the result of *reading*, which raises errors after which Zope repeats the request.
    - A snapshot begins by one of the *messages* instead of three, or two if other processes have changed objects; a request
      of Zope has one snapshot (``Snapshots``).
    - New objects get their ids in blocks (``NewOids``).
    - The first snapshot of a connection reads the changes that the shared cache of objects lacks; the storage would assume
      that the cache is current.
    - A commit puts the objects that it has stored into that cache.

    Special cases use the storage's own methods.
    """
    storage = database.storage
    make_instance = storage.new_instance
    horizon = Horizon(storage._shared_cache)
    if sentence := unknown_code():
        logger.warning(sentence)

    def change(instance: Any) -> None:
        new_oids = NewOids(instance)
        instance.new_oid = new_oids.next
        for name in READS:
            setattr(instance, name, reading()(getattr(instance, name)))
        instance.tpc_finish = partial(_finish, instance)
        instance.tryToResolveConflict = partial(_resolve_conflict, instance, instance.tryToResolveConflict)
        poll = reading()(instance.poll_invalidations)
        instance.snapshots = snapshots = Snapshots(instance, poll, messages, new_oids.forget, horizon)
        instance.sync = snapshots.sync
        instance.poll_invalidations = snapshots.poll
        instance.afterCompletion = snapshots.after_completion
        instance.release = snapshots.release

    def new_instance() -> Any:
        instance = make_instance()
        instance._polled_tid = horizon.tid
        change(instance)
        return instance

    storage.new_instance = new_instance
    database._connectionMap(lambda jar: change(jar._normal_storage))


class NewOids:
    """The oids for new objects of one transaction of *instance*, the storage of a ZODB connection.

    Unused oids are discarded: after a failover to a standby that lacks commits, the sequence returns the same oids again.
    """

    def __init__(self, instance: Any) -> None:
        self._instance = instance
        self._new_oid = instance.new_oid
        self._connection: Any = None
        self._oids: list[int] = []
        self._size = FIRST_OIDS

    def forget(self) -> None:
        """Discard unused oids before another transaction."""
        self._oids.clear()
        self._size = FIRST_OIDS

    def next(self) -> bytes:
        """Return an oid that no other connection gets."""
        connection = self._instance._conn
        if connection is None or self._instance.isReadOnly():
            return self._new_oid()  # type: ignore[no-any-return]
        if not self._oids or connection is not self._connection:
            try:
                with connection.cursor(row_factory=tuple_row) as cursor:
                    found = cursor.execute(OIDS, [self._size], prepare=True).fetchall()
            except psycopg.Error:  # a search has ended the transaction of this connection, or it is lost
                return self._new_oid()  # type: ignore[no-any-return]
            self._oids = sorted((oid for (oid,) in found), reverse=True)
            self._connection = connection
            self._size = min(2 * self._size, MOST_OIDS)
        return bytes(p64(self._oids.pop()))


def _finish(instance: Any, transaction: Any, f: Any = None) -> bytes:
    """Commit *transaction*, and put the stored objects into the cache of the process; return the transaction's id."""
    stored = [entry for entry in instance._tmp if isinstance(entry.get("state"), str)]
    # The method of the class, which another package may have patched since.
    tid: bytes = type(instance).tpc_finish(instance, transaction, f)
    for entry in stored:
        # The transaction is committed: loading the object raises the error again.
        with suppress(Exception):
            data = as_loaded(entry["class_mod"], entry["class_name"], entry["state"])
            instance._main._shared_cache.set(entry["zoid"], data, tid, u64(tid))
    return tid


def _resolve_conflict(
    instance: Any, resolve: Any, oid: bytes, committed: bytes, old: bytes, new: bytes, *args: Any, **options: Any
) -> Any:
    """Return the result of *resolve* for a conflict; raise ConflictError at once if the state that both began with is gone.

    A storage without history has that state only in a cache.  ZODB would raise the same, and log a traceback that looks like
    damage.
    """
    try:
        instance.loadSerial(oid, old)
    except POSKeyError as error:
        raise ConflictError(oid=oid, serials=(committed, old), data=new) from error
    return resolve(oid, committed, old, new, *args, **options)


def forget_objects(jar: Any) -> None:
    """Make the ZODB connection *jar* load objects anew when they are used; changed objects stay as they are."""
    storage = jar._normal_storage
    storage._load_cache.clear()
    storage._serial_cache.clear()
    jar.cacheMinimize()


def connection(jar: Any) -> Any:
    """Return the psycopg connection that *jar*, a ZODB connection, reads its snapshot from."""
    return jar._normal_storage.pg_connection


def dsn_of(jar: Any) -> str:
    """Return the connection string of the database that *jar*, a ZODB connection, reads from."""
    # From the storage of the snapshots, whatever may be wrapped around it.
    return str(jar._normal_storage._main._dsn)


def writable_dsn_of(jar: Any) -> str:
    """Return ``dsn_of`` of a database that *jar* may write to; raises ReadOnlyError if *jar* only reads."""
    require_writable(jar)
    return dsn_of(jar)


def is_read_only(jar: Any) -> bool:
    """Return whether *jar*, a ZODB connection, only reads; unlike ``jar.isReadOnly``, also if it is closed."""
    return bool(jar._normal_storage.isReadOnly())


def require_writable(jar: Any) -> None:
    """Raise ReadOnlyError if *jar*, a ZODB connection, only reads."""
    if is_read_only(jar):
        raise ReadOnlyError


def writer_url(jar: Any) -> str:
    """Return scheme and host of a Zope that saves, for the read-only ZODB connection *jar*; empty if there is none."""
    return str(getattr(jar.db().storage, "writer_url", ""))


def max_replay_lag(database: Any) -> float | None:
    """Return by how many seconds the standby of *database*, a ZODB.DB, may lag; None if *database* is not read-only."""
    return getattr(database.storage, "max_replay_lag", None)


def database_dsn(database: Any) -> str | None:
    """Return the connection string of *database*, a ZODB.DB; None if its storage is not zodb-pgjsonb's."""
    return getattr(database.storage, "_dsn", None)


def pooled_connection(database: Any) -> AbstractContextManager[Any]:
    """Return the context of a connection from the pool of *database*, a ZODB.DB of zodb-pgjsonb."""
    return pool_of(database).connection()  # type: ignore[no-any-return]


def pool_of(database: Any) -> Any:
    """Return the psycopg_pool of *database*, a ZODB.DB of zodb-pgjsonb."""
    return database.storage._instance_pool


def renew_connections(database: Any, connection_class: type, **options: Any) -> None:
    """Make the connections of *database*, a ZODB.DB of zodb-pgjsonb, use *connection_class* and psycopg's *options*.

    The storage's own connection and those of open ZODB connections stay: they only get the options, as attributes.
    """
    pool = pool_of(database)
    pool.connection_class = connection_class
    pool.kwargs = {**(pool.kwargs or {}), **options}
    pool.drain()
    open_connections = [database.storage._conn]

    def renew(jar: Any) -> None:
        if jar.opened is None:
            # The first ZODB connection was opened with the database, and is usually the one that requests get.
            if (snapshots := snapshots_of(jar)) is not None:
                snapshots.finish()
            jar._normal_storage._drop_conn()
        else:
            open_connections.append(connection(jar))

    database._connectionMap(renew)
    for each in filter(None, open_connections):
        for name, value in options.items():
            setattr(each, name, value)


def pack_by(connect: Callable[[str], Any]) -> None:
    """Make each pack of zodb-pgjsonb in this process use one snapshot, on a connection that *connect* opens for a DSN.

    The storage finds reachable objects with one statement and removes the rest with others, which would see, and remove,
    objects committed meanwhile.  The pack begins again if others have changed objects that it removes, or referred to them;
    after PACK_ATTEMPTS it raises PackConflict, and has removed nothing.
    """
    pack = PGJsonbStorage.pack
    if hasattr(pack, "__wrapped__"):
        return

    @wraps(pack)
    def pack_in_snapshot(storage: Any, *args: Any, **options: Any) -> Any:
        for _ in range(PACK_ATTEMPTS):
            with closing(connect(storage._dsn)) as connection, closing(connect(storage._dsn)) as other:
                _begin_pack(connection, other)
                try:
                    return pack(_StorageOfPack(storage, connection), *args, **options)
                except (SerializationFailure, DeadlockDetected):
                    logger.info("other transactions have changed or referenced objects that the pack removes")
        raise PackConflict(
            "the database was not packed: other transactions have changed or referenced objects that the pack removes,"
            f" {PACK_ATTEMPTS} times; pack again at a quieter time"
        )

    PGJsonbStorage.pack = pack_in_snapshot


def _begin_pack(connection: Any, other: Any) -> None:
    """Begin the snapshot of a pack on *connection*; before it commits, it checks on *other* what has been committed since.

    A transaction that began before an object was removed from its container may put it into another one.  The storage's lock
    holds back commits during the two statements of this check.  If a session waits for the pack, it may have this lock
    already: then the attempt fails.
    """
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.autocommit = False
    commit = connection.commit
    [(newest,)] = _rows(connection, "SELECT max(tid) FROM transaction_log")

    def commit_unless_referred_to() -> None:
        if _rows(connection, WAITING_SESSIONS):
            raise SerializationFailure("other transactions change objects that the pack removes")
        _rows(connection, HOLD_COMMITS)
        oids = [oid for (oid,) in _rows(other, REFERRED_TO, newest, newest)]
        if _rows(connection, REMOVED, oids):
            raise SerializationFailure("other transactions have referenced objects that the pack removes")
        commit()

    connection.commit = commit_unless_referred_to


def _rows(connection: Any, statement: str, *params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor(row_factory=tuple_row) as cursor:
        return list(cursor.execute(statement, params))


class _StorageOfPack:
    """*storage* as its own pack sees it: with *connection* instead of the connection that other threads use meanwhile."""

    def __init__(self, storage: Any, connection: Any) -> None:
        vars(self).update(_storage=storage, _ensure_admin_conn=lambda: connection)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._storage, name, value)


def processors(database: Any) -> Any:
    """Return the state processors of *database*, a ZODB.DB of zodb-pgjsonb, which process each stored object."""
    return database.storage._state_processors


# Done at import, because a script that copies, exports or packs only imports this module.
preserve_values()
