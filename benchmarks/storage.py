"""Workers of ``storage``, ``zodb`` and ``pack``: only storages, without Plone."""

from benchmarks.backends import close_db
from benchmarks.backends import STORES
from benchmarks.timing import repeated
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.worker import Progress
from BTrees.OOBTree import OOBTree
from pathlib import Path
from persistent.mapping import PersistentMapping
from typing import Any
from ZODB.Connection import TransactionMetaData
from ZODB.DB import DB
from ZODB.utils import z64

import pickle
import transaction


KILOBYTE = "x" * 1000


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the measures of the table that *options* name, for one storage."""
    storage = STORES[options["backend"]].storage(options["dsn"], Path(options["folder"]))
    table = {"storage": storage_api, "zodb": through_zodb, "pack": packing}[options["table"]]
    return {"measures": table(storage, options, progress)}


# -- the storage's own methods


def storage_api(storage: Any, options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the figures of store and load."""
    iterations, warmup = options["iterations"], options["warmup"]
    instance = storage.new_instance() if hasattr(storage, "new_instance") else storage
    measures = {}
    for count in (1, 10, 100):
        progress(f"store {count}")
        times = repeated(lambda n: store(instance, count), iterations, warmup)  # noqa: B023
        measures[f"store {count}"] = summary(times)
    oids = store(instance, 100)
    if hasattr(instance, "poll_invalidations"):
        instance.poll_invalidations()
    for count in (1, 100):
        progress(f"load {count}")
        times = repeated(lambda n: load(instance, oids[:count]), iterations, warmup)  # noqa: B023
        measures[f"load {count}"] = summary(times, "us")
    if instance is not storage:
        instance.close()
    storage.close()
    return measures


def store(storage: Any, count: int) -> list[bytes]:
    """Store *count* new objects in one transaction; return their oids."""
    metadata = TransactionMetaData()
    storage.tpc_begin(metadata)
    oids = [storage.new_oid() for _ in range(count)]
    for oid in oids:
        data = pickle.dumps(PersistentMapping, 3) + pickle.dumps({"data": {"title": oid.hex(), "text": KILOBYTE}}, 3)
        storage.store(oid, z64, data, "", metadata)
    storage.tpc_vote(metadata)
    storage.tpc_finish(metadata, lambda tid: None)
    return oids


def load(storage: Any, oids: list[bytes]) -> None:
    for oid in oids:
        storage.load(oid, "")


# -- through the ZODB


def through_zodb(storage: Any, options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the figures of writing and reading objects."""
    db = DB(storage)
    connection = db.open()
    root = connection.root()
    root["simple"], root["tree"], root["batch"] = PersistentMapping(), OOBTree(), PersistentMapping()
    transaction.commit()

    def simple(n: int) -> None:
        root["simple"]["n"] = n
        transaction.commit()

    def tree(n: int) -> None:
        root["tree"][f"key{n}"] = f"value {n}"
        transaction.commit()

    def batch(n: int) -> None:
        for number in range(10):
            root["batch"][f"{n}-{number}"] = PersistentMapping(n=n)
        transaction.commit()

    def cycle(n: int) -> None:
        other = db.open(transaction.TransactionManager())
        other.root()["simple"].get("n")
        other.close()

    measures = {}
    for name, action, unit in (
        ("write simple", simple, "ms"),
        ("write btree", tree, "ms"),
        ("write batch 10", batch, "ms"),
        ("read", lambda n: root["simple"]["n"], "us"),
        ("connection cycle", cycle, "us"),
    ):
        progress(name)
        measures[name] = summary(repeated(action, options["iterations"], options["warmup"]), unit)
    connection.close()
    close_db(db)
    return measures


# -- packing


def packing(storage: Any, options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the figure of packing *size* objects, half of them unreachable."""
    size = options["size"]
    progress(f"pack {size}")
    db = DB(storage)
    connection = db.open()
    root = connection.root()
    root["kept"], root["lost"] = PersistentMapping(), PersistentMapping()
    for number in range(size):
        root["lost" if number % 2 else "kept"][str(number)] = PersistentMapping(text=KILOBYTE)
    transaction.commit()
    del root["lost"]
    transaction.commit()
    connection.close()
    seconds = timed(db.pack)
    close_db(db)
    return {f"pack {size}": summary([seconds])}
