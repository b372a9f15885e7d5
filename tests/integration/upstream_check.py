"""Shows how two storages see each other's changes.

Run by test_upstream in a process of its own, with or without the patches.  Arguments: the name of a check, and the DSN of an
empty database.  Prints its observations.
"""

from BTrees.OOBTree import OOBTree
from BTrees.OOBTree import OOBucket
from BTrees.OOBTree import OOSet
from BTrees.OOBTree import OOTreeSet
from concurrent.futures import ThreadPoolExecutor
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from tests.integration.traffic import traced_connection
from transaction.interfaces import TransientError
from typing import Any
from ZODB.blob import Blob
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage
from ZODB.POSException import ConflictError
from ZODB.POSException import POSError
from ZODB.POSException import POSKeyError
from ZODB.POSException import ReadOnlyError
from zodb_pgjsonb.storage import PGJsonbStorage

import logging
import psycopg
import sys
import tempfile
import time
import transaction


COMMITS = 20
#: As a standby ends reads that conflict with its replay.
END_OTHERS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
BEHIND_SECONDS = 2.0
CROWD, SAVES = 6, 30
NEW_OBJECTS = 100
#: More reads than psycopg sends before it prepares a statement.
READS = 10
#: Number of dangling references.
LOST = (
    "SELECT count(*) FROM object_state o CROSS JOIN unnest(o.refs) AS ref (zoid)"
    " WHERE NOT EXISTS (SELECT FROM object_state t WHERE t.zoid = ref.zoid)"
)
#: Settings set by the session itself, not by the server.
OF_THE_SESSION = "SELECT name FROM pg_settings WHERE source = 'session' ORDER BY name"


class Process:
    """A database opened as another process would: with a storage, caches and transactions of its own."""

    def __init__(self, dsn: str, **options: Any) -> None:
        self.db = DB(PGJsonbStorage(dsn, cache_warm_pct=0, **options))
        # Explicit: a snapshot left open between transactions would block others that open the database.
        self.manager = transaction.TransactionManager(explicit=True)
        self._connection = self.db.open(self.manager)

    @property
    def root(self) -> Any:
        return self._connection.root()

    @property
    def session(self) -> Any:
        """The connection to PostgreSQL."""
        return self._connection._storage.pg_connection

    def make(self, *keys: str) -> None:
        with self.manager:
            for key in keys:
                self.root[key] = PersistentMapping(value="kept")

    def read(self, key: str) -> Any:
        with self.manager:
            return self.root[key]["value"]

    def write(self, key: str, value: Any) -> None:
        with self.manager:
            self.root[key]["value"] = value

    def close(self) -> None:
        self._connection.close()
        self.db.close()


class SlowClock:
    """``time`` on a machine whose clock is behind."""

    def time(self) -> float:
        return time.time() - BEHIND_SECONDS

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def clocks(dsn: str) -> None:
    """Print the number of commits of a process with a late clock that another one has missed."""
    from zodb_pgjsonb import storage

    ahead = Process(dsn)
    ahead.make("a", "b")
    behind = Process(dsn)
    ahead.read("b")
    missed = 0
    for number in range(COMMITS):
        ahead.write("a", number)
        storage.time = SlowClock()  # type: ignore[attr-defined]
        behind.write("b", number)
        storage.time = time  # type: ignore[attr-defined]
        missed += ahead.read("b") != number
    print("missed", missed)


def history(dsn: str) -> None:
    """Print the content shown by a process, and whether it can save, after the database has lost its last transaction."""
    one = Process(dsn)
    one.make("page", "other")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE saved_log AS TABLE transaction_log")
        connection.execute("CREATE TABLE saved_state AS TABLE object_state")
    one.write("page", "lost")
    assert one.read("page") == "lost"
    with psycopg.connect(dsn) as connection:
        connection.execute("TRUNCATE transaction_log, object_state CASCADE")
        connection.execute("INSERT INTO transaction_log SELECT * FROM saved_log")
        connection.execute("INSERT INTO object_state SELECT * FROM saved_state")
    print("shown", one.read("page"))
    fresh = Process(dsn)
    fresh.write("other", "new")
    print("shown", one.read("page"))
    try:
        one.write("page", "saved")
    except ConflictError:
        print("conflict")
    print("stored", fresh.read("page"))


class LateSchema:
    """A state processor whose table is created by the storage at its first use."""

    def get_extra_columns(self) -> list[Any]:
        return []

    def get_schema_sql(self) -> str:
        return "CREATE TABLE IF NOT EXISTS late ()"

    def process(self, *_: Any) -> None:
        return None


def pooler(dsn: str, direct_dsn: str = "", prepare_threshold: str = "") -> None:
    """Print the results of a crowd of clients through a pooler; *direct_dsn* bypasses it."""
    options: dict[str, Any] = {"direct_dsn": direct_dsn} if direct_dsn else {}
    if prepare_threshold:
        options["prepare_threshold"] = int(prepare_threshold)
    storage = PGJsonbStorage(dsn, cache_warm_pct=0, **options)
    storage.register_state_processor(LateSchema())
    db = DB(storage)
    with db.transaction() as connection:
        connection.root()["page"] = PersistentMapping(value=0)

    def work(_: int) -> set[str]:
        met = set()
        for _ in range(SAVES):
            manager = transaction.TransactionManager()
            connection = db.open(manager)
            try:
                connection.root()["page"]["value"] += 1
                manager.commit()
            except (POSError, psycopg.Error) as error:
                met.add(type(error).__name__)
                manager.abort()
            finally:
                connection.close()
        return met

    with ThreadPoolExecutor(CROWD) as crowd:
        met = set().union(*crowd.map(work, range(CROWD)))
    print("met", *sorted(met))
    db.close()


def fresh(dsn: str) -> None:
    """Print the content shown by an unused new connection of a process, after another process has written."""
    one, other = Process(dsn), Process(dsn)
    one.make("page")
    one.read("page")
    other.write("page", "new")
    connection = one.db.open(transaction.TransactionManager())
    print("shown", connection.root()["page"]["value"])
    connection.close()


class Asked:
    """Counts the statements of this process that contain *word*, as ``number``."""

    def __init__(self, word: str) -> None:
        self.number = 0
        execute = psycopg.Cursor.execute

        def counted(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
            self.number += word in str(query)
            return execute(cursor, query, *args, **kwargs)

        psycopg.Cursor.execute = counted  # type: ignore[method-assign]


def oids(dsn: str) -> None:
    """Print the number of fetches of new oids, and the remaining oids of two processes after a failover."""
    one, other = Process(dsn), Process(dsn)
    asked = Asked("nextval")
    one.make(*map(str, range(NEW_OBJECTS)))
    print("asked", asked.number)
    # A promoted standby may lack the newest WAL, and with it the last value of the sequence.
    with psycopg.connect(dsn) as connection:
        newest = "SELECT setval('zoid_seq', max(zoid)) FROM object_state"
        connection.execute(newest)
    for number in range(COMMITS):
        (one, other)[number % 2].make(f"later {number}")
    fresh = Process(dsn)
    with fresh.manager:
        print("objects", len({value._p_oid for value in fresh.root.values()}))


def polled(dsn: str) -> None:
    """Print the number of messages of a transaction that reads a loaded object, and its content after a lost session."""
    one, other = Process(dsn), Process(dsn)
    one.make("page")
    one.read("page")
    with traced_connection(one.session) as traffic:
        one.read("page")
    print("messages", traffic[0].round_trips)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(END_OTHERS)
    other.write("page", "new")
    print("shown", one.read("page"))


def prepared(dsn: str) -> None:
    """Print whether a connection of the storage has prepared statements, by the threshold that is configured."""
    from ZConfig import ConfigurationError
    from ZODB.config import storageFromString

    for threshold in (5, -1):
        try:
            db = DB(storageFromString(CONF.format(dsn=dsn, key=f"prepare-threshold {threshold}")))
        except ConfigurationError:
            print("no such key")
            return
        for _ in range(READS):
            with db.transaction() as connection:
                connection.root()["page"] = PersistentMapping()
                found = connection._storage.pg_connection.execute("SELECT name FROM pg_prepared_statements").fetchall()
        print("prepared", "some" if found else "nothing")
        db.close()


def session(dsn: str) -> None:
    """Print the settings of the storage's sessions, between transactions and in one."""
    one = Process(dsn)
    one.make("page")
    again = Process(dsn)
    with one.manager:
        one.root["page"]
        own = one.session
        timeout = own.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        print("in a transaction", *timeout.values())
    found: set[str] = set()
    for connection in (own, one.db.storage._conn, again.db.storage._conn):
        found.update(row["name"] for row in connection.execute(OF_THE_SESSION))
    print("between", *sorted(found))


def copied(dsn: str) -> None:
    """Print the losses in a copy of the transactions of a history-preserving storage, and of its older states."""
    one = Process(dsn, history_preserving=True)
    kinds = {"tree": OOBTree, "tree set": OOTreeSet, "bucket": OOBucket, "set": OOSet, "list": PersistentList}
    with one.manager:
        one.root.update({name: kind() for name, kind in kinds.items()}, blob=Blob(b"a file"))
    before = one.db.lastTransaction()
    one.make("page")
    with tempfile.TemporaryDirectory() as folder:
        target = FileStorage(f"{folder}/Data.fs", blob_dir=f"{folder}/blobs")
        target.copyTransactionsFrom(one.db.storage)
        with DB(target).transaction() as connection:
            print("lacks", *(name for name in (*kinds, "blob") if not is_there(connection.root(), name)))
    old = one.db.open(transaction.TransactionManager(), at=before)
    print("lacks", *(name for name in kinds if not is_there(old.root(), name)))


def is_there(root: Any, name: str) -> bool:
    """Return whether *root* has the object *name* with its content."""
    try:
        return bool(root[name].open().read() == b"a file" if name == "blob" else len(root[name]) == 0)
    except POSKeyError:
        return False


def packed(dsn: str) -> None:
    """Print the number of dangling references after packs: during a save, and before an undo."""
    one, other = Process(dsn), Process(dsn)
    one.make("page")
    handler = logging.Handler()
    handler.emit = lambda record: "trace complete" in record.msg and other.make("new")  # type: ignore[method-assign]
    logger = logging.getLogger("zodb_pgjsonb.packer")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    one.db.pack()
    logger.removeHandler(handler)
    print("lost", lost(dsn))
    for process in (one, other):
        process.close()
    one = Process(dsn, history_preserving=True)
    one.make("deleted")
    time.sleep(0.01)
    before = time.time()
    time.sleep(0.01)
    with one.manager:
        del one.root["deleted"]
    one.db.pack(before)
    one.db.undo(one.db.undoInfo(0, 1)[0]["id"], one.manager.begin())
    one.manager.commit()
    print("lost", lost(dsn))
    one.close()


def lost(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        [(number,)] = connection.execute(LOST).fetchall()
        return int(number)


def make(dsn: str) -> None:
    """Create the content that a standby will show."""
    Process(dsn).make("page", "other")
    print("made")


CONF = """
%import zodb_pgjsonb
<pgjsonb>
  dsn {dsn}
  {key}
</pgjsonb>
"""


def standby(dsn: str) -> None:
    """Print the content shown by a process on the standby *dsn*, and the results of its saves and of an interrupted read."""
    from ZConfig import ConfigurationError
    from ZODB.config import storageFromString

    try:
        storageFromString(CONF.format(dsn=dsn, key="read-only true")).close()
        reader = Process(dsn, read_only=True)
    except ConfigurationError:
        print("no such key")
        try:
            Process(dsn)
        except psycopg.errors.ReadOnlySqlTransaction:
            print("cannot be opened")
        return
    print("shown", reader.read("page"))
    for save in (lambda: reader.write("page", "lost"), lambda: reader.make("new")):
        try:
            save()
        except ReadOnlyError:
            print("refused")
            reader.manager.abort()
    print("shown", reader.read("page"))
    try:
        with reader.manager:
            page = reader.root["page"]
            page._p_deactivate()
            page._p_jar._storage._load_cache.clear()
            reader.db.storage.clear_caches()
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(END_OTHERS)
            page["value"]
    except TransientError:
        print("repeated")


if __name__ == "__main__":
    checks = (clocks, history, pooler, fresh, oids, polled, prepared, session, copied, packed, make, standby)
    {check.__name__: check for check in checks}[sys.argv[1]](*sys.argv[2:])
