"""Worker of ``codec``: pickle against zodb-json-codec, for ten shapes of records and for a FileStorage."""

from benchmarks.timing import FACTORS
from benchmarks.timing import summary
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
from itertools import pairwise
from pathlib import Path
from persistent.mapping import PersistentMapping
from time import perf_counter
from typing import Any
from uuid import UUID
from ZODB.FileStorage import FileIterator

import io
import json
import pickle
import zodb_json_codec


#: Calls per sample: single ones are shorter than the clock can tell.
LOOPS = 20
PROTOCOL = 3
#: In the site whose FileStorage is gone through.
DOCUMENTS = 100


def shapes() -> dict[str, tuple[type, Any]]:
    """Return name -> (class, state) of the ten shapes."""
    moment = datetime(2026, 2, 7, 12, 30, 15, 123456, tzinfo=UTC)
    nested: Any = {"leaf": 1}
    for depth in range(12):
        nested = {f"level{depth}": nested, "n": depth}
    return {
        "simple_flat_dict": (PersistentMapping, {"title": "Hello", "count": 42, "active": True, "ratio": 0.5}),
        "nested_dict": (PersistentMapping, {"meta": {"author": "anna", "tags": ["a", "b", "c"]}, "n": {"x": {"y": 1}}}),
        "large_flat_dict": (PersistentMapping, {f"field{n}": f"value {n} " * 2 for n in range(100)}),
        "bytes_in_state": (PersistentMapping, {"data": bytes(range(256)) * 4, "name": "file.bin"}),
        "special_types": (
            PersistentMapping,
            {
                "at": moment,
                "day": date(2026, 2, 7),
                "long": timedelta(days=3, seconds=7),
                "price": Decimal("12.50"),
                "id": UUID(int=4711),
                "set": {1, 2, 3},
                "tuple": (1, "two", 3.0),
            },
        ),
        "btree_small": (OOBTree, ((((("a", 1, "b", 2, "c", 3, "d", 4),),),))),
        "btree_length": (Length, 42),
        "scalar_string": (PersistentMapping, "just a string as the state"),
        "wide_dict": (PersistentMapping, {f"key{n:04}": f"value{n:04}" for n in range(1000)}),
        "deep_nesting": (PersistentMapping, nested),
    }


def record_of(cls: type, state: Any) -> bytes:
    """Return a record as the ZODB stores it: two pickles."""
    return pickle.dumps(cls, PROTOCOL) + pickle.dumps(state, PROTOCOL)


def unpickle(record: bytes) -> tuple[Any, Any]:
    """Return class and state of *record*, which has no references."""
    unpickler = pickle.Unpickler(io.BytesIO(record))
    return unpickler.load(), unpickler.load()


class ReferringUnpickler(pickle.Unpickler):
    """Leaves references as they are."""

    def persistent_load(self, reference: Any) -> Any:
        return reference


def json_size(record: bytes) -> int:
    """Return how many bytes the state of *record* has as JSON."""
    return len(json.dumps(zodb_json_codec.decode_zodb_record(record), separators=(",", ":"), ensure_ascii=False))


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the figures of pickle and codec: ``{"pickle": result, "codec": result}``."""
    pickled: dict[str, Any] = {}
    coded: dict[str, Any] = {}
    for name, (cls, state) in shapes().items():
        progress(name)
        record = record_of(cls, state)
        decoded = zodb_json_codec.decode_zodb_record(record)
        samples = options["iterations"], options["warmup"]
        pickled |= {
            f"decode {name}": sample(lambda: unpickle(record), *samples),  # noqa: B023
            f"encode {name}": sample(lambda: record_of(cls, state), *samples),  # noqa: B023
            f"roundtrip {name}": sample(lambda: record_of(*unpickle(record)), *samples),  # noqa: B023
            f"size {name}": value(len(record), "B"),
        }
        decode, encode = zodb_json_codec.decode_zodb_record, zodb_json_codec.encode_zodb_record
        coded |= {
            f"decode {name}": sample(lambda: decode(record), *samples),  # noqa: B023
            f"encode {name}": sample(lambda: encode(decoded), *samples),  # noqa: B023
            f"roundtrip {name}": sample(lambda: encode(decode(record)), *samples),  # noqa: B023
            f"size {name}": value(json_size(record), "B"),
        }
    path = options.get("filestorage")
    if options.get("with_site"):
        progress("making a Plone site in a FileStorage")
        path = site_in_file(Path(options["folder"]))
    if path:
        progress("FileStorage")
        for figures, added in zip((pickled, coded), file_storage(path), strict=True):
            figures |= added
    return {"pickle": {"measures": pickled}, "codec": {"measures": coded}}


def sample(action: Callable[[], Any], iterations: int, warmup: int) -> dict[str, Any]:
    """Return the figures of *action* in microseconds per call."""
    times = []
    for number in range(warmup + iterations):
        started = perf_counter()
        for _ in range(LOOPS):
            action()
        if number >= warmup:
            times.append((perf_counter() - started) / LOOPS)
    return summary(times, "us")


def site_in_file(folder: Path) -> str:
    """Make a Plone site with documents in a FileStorage below *folder*; return its path."""
    # Plone is only loaded for this.
    from benchmarks.backends import FileStorageZCatalog
    from benchmarks.content import Author
    from benchmarks.content import make_folders
    from benchmarks.documents import documents
    from benchmarks.zope_site import make_application
    from benchmarks.zope_site import make_site
    from benchmarks.zope_site import PloneSite
    from tests.integration.site import load_zope

    load_zope(folder)
    place = PloneSite(FileStorageZCatalog(), "", folder, cache_size=4000)
    make_application(place.db)
    make_site(place)
    make_folders(place, 10)
    author = Author(place)
    for document in documents(DOCUMENTS):
        author.create(document)
    place.close()
    return str(folder / FileStorageZCatalog.file)


def file_storage(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures of pickle and codec for all records of the FileStorage *path*.

    A record counts when both can read and write it; the others are counted.
    """
    seconds = dict.fromkeys(("decode", "encode", "unpickle", "pickle"), 0.0)
    sizes = {"pickle": 0, "json": 0}
    records = failed = 0
    for transaction in FileIterator(path):
        for record in transaction:
            if record.data is None:
                continue
            taken = both(record.data)
            if taken is None:
                failed += 1
                continue
            records += 1
            for name, each in taken.items():
                seconds[name] += each
            sizes["pickle"] += len(record.data)
            sizes["json"] += json_size(record.data)
    counted = {"FileStorage, records": value(records, ""), "FileStorage, unreadable records": value(failed, "")}
    per_record = {name: value(each / max(records, 1) * FACTORS["us"], "us") for name, each in seconds.items()}
    return (
        counted
        | {"FileStorage, decode": per_record["unpickle"], "FileStorage, encode": per_record["pickle"]}
        | {"FileStorage, size": value(sizes["pickle"], "B")},
        counted
        | {"FileStorage, decode": per_record["decode"], "FileStorage, encode": per_record["encode"]}
        | {"FileStorage, size": value(sizes["json"], "B")},
    )


def both(data: bytes) -> dict[str, float] | None:
    """Return the seconds of each step for one record; None when one of the two cannot do it."""
    try:
        times = [perf_counter()]
        decoded = zodb_json_codec.decode_zodb_record(data)
        times.append(perf_counter())
        zodb_json_codec.encode_zodb_record(decoded)
        times.append(perf_counter())
        unpickler = ReferringUnpickler(io.BytesIO(data))
        cls, state = unpickler.load(), unpickler.load()
        times.append(perf_counter())
        pickler = pickle.Pickler(io.BytesIO(), PROTOCOL)
        pickler.dump(cls)
        pickler.dump(state)
        times.append(perf_counter())
    except (ImportError, AttributeError, TypeError, ValueError, pickle.PickleError):
        return None
    return dict(
        zip(
            ("decode", "encode", "unpickle", "pickle"),
            (b - a for a, b in pairwise(times)),
            strict=True,
        )
    )
