"""Worker of ``codec``: pickle against zodb-json-codec, for ten kinds of record and for the records of a FileStorage."""

from benchmarks.timing import FACTORS
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from BTrees.Length import Length
from BTrees.OOBTree import OOBTree
from collections.abc import Callable
from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from persistent.mapping import PersistentMapping
from typing import Any
from uuid import UUID
from ZODB.FileStorage import FileIterator

import io
import json
import pickle
import zodb_json_codec


#: Calls per sample: a single call is shorter than the clock can resolve.
LOOPS = 20
PROTOCOL = 3
#: Number of documents in the Plone site of ``--with-site``.
DOCUMENTS = 100
#: The functions of a side: (read a record, write one).
Side = tuple[Callable[[bytes], Any], Callable[[Any], bytes]]


def records() -> dict[str, tuple[type, Any]]:
    """Return name -> (class, state) of the ten kinds of record."""
    nested: Any = {"leaf": 1}
    for depth in range(12):
        nested = {f"level{depth}": nested, "n": depth}
    special = {
        "at": datetime(2026, 2, 7, 12, 30, 15, 123456, tzinfo=UTC),
        "day": date(2026, 2, 7),
        "long": timedelta(days=3, seconds=7),
        "price": Decimal("12.50"),
        "id": UUID(int=4711),
        "set": {1, 2, 3},
        "tuple": (1, "two", 3.0),
    }
    states = {
        "simple_flat_dict": {"title": "Hello", "count": 42, "active": True, "ratio": 0.5},
        "nested_dict": {"meta": {"author": "anna", "tags": ["a", "b", "c"]}, "n": {"x": {"y": 1}}},
        "large_flat_dict": {f"field{n}": f"value {n} " * 2 for n in range(100)},
        "bytes_in_state": {"data": bytes(range(256)) * 4, "name": "file.bin"},
        "special_types": special,
        "btree_small": ((((("a", 1, "b", 2, "c", 3, "d", 4),),),)),
        "btree_length": 42,
        "scalar_string": "just a string as the state",
        "wide_dict": {f"key{n:04}": f"value{n:04}" for n in range(1000)},
        "deep_nesting": nested,
    }
    classes: dict[str, type] = {"btree_small": OOBTree, "btree_length": Length}
    return {name: (classes.get(name, PersistentMapping), state) for name, state in states.items()}


def reference(oid: Any) -> Any:
    """Return a reference unchanged."""
    return oid


def unpickle(record: bytes) -> tuple[Any, Any]:
    """Return class and state of *record*: two pickles in sequence."""
    unpickler = pickle.Unpickler(io.BytesIO(record))
    unpickler.persistent_load = reference  # type: ignore[method-assign]
    return unpickler.load(), unpickler.load()


def pickled(record: tuple[Any, Any]) -> bytes:
    """Return class and state as the ZODB stores them."""
    cls, state = record
    return pickle.dumps(cls, PROTOCOL) + pickle.dumps(state, PROTOCOL)


SIDES: dict[str, Side] = {
    "pickle": (unpickle, pickled),
    "codec": (zodb_json_codec.decode_zodb_record, zodb_json_codec.encode_zodb_record),
}


def size(side: str, record: bytes) -> int:
    """Return the bytes of *record* as a pickle or as JSON."""
    if side == "pickle":
        return len(record)
    decoded = zodb_json_codec.decode_zodb_record(record)
    return len(json.dumps(decoded, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the figures of both sides: ``{"pickle": result, "codec": result}``."""
    figures: dict[str, dict[str, Any]] = {side: {} for side in SIDES}
    if options["what"] != "filestorage":
        for name, record in records().items():
            progress(name)
            for side in SIDES:
                figures[side] |= synthetic(side, name, pickled(record), options["iterations"], options["warmup"])
    path = options["filestorage"]
    if options["with_site"]:
        progress("making a Plone site in a FileStorage")
        path = site_in_file(Path(options["folder"]))
    if path:
        progress("FileStorage")
        for side, added in scanned(path).items():
            figures[side] |= added
    return {side: {"measures": measures} for side, measures in figures.items()}


def synthetic(side: str, name: str, record: bytes, iterations: int, warmup: int) -> dict[str, Any]:
    """Return the figures of one kind of record: microseconds per call, and bytes."""
    read, write = SIDES[side]
    decoded = read(record)
    steps = {"decode": lambda: read(record), "encode": lambda: write(decoded), "roundtrip": lambda: write(read(record))}
    measures = {}
    for step, action in steps.items():
        times = [timed(looped, action) / LOOPS for _ in range(warmup + iterations)]
        measures[f"{step} {name}"] = summary(times[warmup:], "us")
    return measures | {f"size {name}": value(size(side, record), "B")}


def looped(action: Callable[[], Any]) -> None:
    for _ in range(LOOPS):
        action()


def scanned(path: str) -> dict[str, dict[str, Any]]:
    """Return side -> figures of all records of the FileStorage *path*.

    A record counts if both sides can read and write it; the number of other records is a figure as well.
    """
    totals = {side: {"decode": 0.0, "encode": 0.0, "size": 0} for side in SIDES}
    count = unreadable = 0
    for transaction in FileIterator(path):
        for data in (record.data for record in transaction if record.data is not None):
            try:
                measured = {side: seconds(side, data) for side in SIDES}
            except (ImportError, AttributeError, TypeError, ValueError, pickle.PickleError):
                unreadable += 1
                continue
            count += 1
            for side, (decode, encode) in measured.items():
                totals[side]["decode"] += decode
                totals[side]["encode"] += encode
                totals[side]["size"] += size(side, data)
    per_record = FACTORS["us"] / max(count, 1)
    return {
        side: {
            "FileStorage, records": value(count, ""),
            "FileStorage, unreadable records": value(unreadable, ""),
            "FileStorage, decode": value(total["decode"] * per_record, "us"),
            "FileStorage, encode": value(total["encode"] * per_record, "us"),
            "FileStorage, size": value(total["size"], "B"),
        }
        for side, total in totals.items()
    }


def seconds(side: str, data: bytes) -> tuple[float, float]:
    """Return the seconds for reading and for writing the record *data* once."""
    read, write = SIDES[side]
    decoded: list[Any] = []
    return timed(lambda: decoded.append(read(data))), timed(lambda: write(decoded[0]))


def site_in_file(folder: Path) -> str:
    """Create a Plone site with documents in a FileStorage below *folder*; return the path of its file."""
    # Plone is loaded only for this.
    from benchmarks.backends import FileStorageZCatalog
    from benchmarks.content import Author
    from benchmarks.content import make_folders
    from benchmarks.documents import documents
    from benchmarks.texts import folder_titles
    from benchmarks.zope_site import make_application
    from benchmarks.zope_site import make_site
    from benchmarks.zope_site import PloneSite
    from tests.integration.site import load_zope

    load_zope(folder)
    place = PloneSite(FileStorageZCatalog(), "", folder, cache_size=4000)
    make_application(place.db)
    make_site(place)
    make_folders(place, folder_titles(10))
    author = Author(place)
    for document in documents(DOCUMENTS):
        author.create(document)
    place.close()
    return str(folder / FileStorageZCatalog.file)
