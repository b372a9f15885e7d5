"""The code of zodb-pgjsonb and zodb-json-codec that this package replaces or wraps, with digests of its tested versions."""

from functools import cache
from hashlib import sha256
from importlib.metadata import version
from inspect import getsource
from inspect import unwrap
from operator import attrgetter
from pickle import dumps
from typing import Any

import zodb_json_codec
import zodb_pgjsonb.config
import zodb_pgjsonb.instance
import zodb_pgjsonb.storage


#: The versions of zodb-pgjsonb whose methods are replaced.
SUPPORTED = "1.19."
#: The version that the tests were run with.
TESTED = "1.19.0"
#: Methods of zodb-pgjsonb that ``storage`` or ``reader`` replaces or decorates -> beginning of the SHA-256 of their source
#: in TESTED.
METHODS = {
    "config.PGJsonbStorageFactory.open": "a2390acc3001",
    "instance.PGJsonbStorageInstance.load": "0ecac270042d",
    "instance.PGJsonbStorageInstance.load_multiple": "06a3f3874828",
    "instance.PGJsonbStorageInstance.loadBefore": "719e2d483cb0",
    "instance.PGJsonbStorageInstance.loadSerial": "b231293f2908",
    "instance.PGJsonbStorageInstance.loadBlob": "e44bc0053fa7",
    "instance.PGJsonbStorageInstance.openCommittedBlobFile": "de7d26f30097",
    "instance.PGJsonbStorageInstance.new_oid": "3aa0a1aff25e",
    "instance.PGJsonbStorageInstance.poll_invalidations": "3856b0e57a79",
    "instance.PGJsonbStorageInstance._poll": "8a26ac4193aa",
    "instance.PGJsonbStorageInstance.sync": "317e9445d267",
    "instance.PGJsonbStorageInstance.afterCompletion": "6021573bec12",
    "instance.PGJsonbStorageInstance.release": "bb6adf2cc61c",
    "instance.PGJsonbStorageInstance.isReadOnly": "630f62120c05",
    "instance.PGJsonbStorageInstance.tpc_abort": "376afa43f23a",
    "instance.PGJsonbStorageInstance.pack": "8c4b6e437966",
    "instance.PGJsonbStorageInstance.tpc_begin": "ff37e517c976",
    "instance.PGJsonbStorageInstance.tpc_finish": "dddb794c8aa6",
    "instance.PGJsonbStorageInstance.tryToResolveConflict": "8e0387a7b6f4",
    "instance.PGJsonbStorageInstance.undo": "d913d918232c",
    "storage.install_schema": "707ddfe44df9",
    "storage.PGJsonbStorage.pack": "083ab7cbad6b",
    "storage.PGJsonbStorage.new_instance": "8ac930666a7c",
    "storage.PGJsonbStorage._apply_pending_ddl": "9319173a296f",
    "storage.PGJsonbStorage.__init__": "9a42d970d2dc",
    "storage.PGJsonbStorage._ensure_admin_conn": "b7bf63cf4182",
    "storage.PGJsonbStorage.new_oid": "d19633d93c77",
    "storage.PGJsonbStorage.undo": "77f3882ade25",
}
#: Functions of the codec that ``storage.records`` wraps -> beginning of the SHA-256 of their results for SAMPLES.
CODEC = {
    "zodb_json_codec.decode_zodb_record_for_pg_json": "4b47108e5cd4",
    "zodb_json_codec.encode_zodb_record": "c0933fed0c6c",
}
_STATE: dict[str, Any] = {
    "text": "a",
    "number": 1,
    "float": 2.5,
    "tuple": (1, b"x", None, True),
    "keys": {1: 2},
    "set": {1},
}
#: The argument of each of these functions: a record of ZODB, and its JSON.
SAMPLES: dict[str, Any] = {
    "zodb_json_codec.decode_zodb_record_for_pg_json": dumps((("module", "Class"), None), 3) + dumps(_STATE, 3),
    "zodb_json_codec.encode_zodb_record": {
        "@cls": ["module", "Class"],
        "@s": {
            "tuple": {"@t": [1, {"@b": "eA=="}, None, True]},
            "keys": {"@d": [[1, 2]]},
            "set": {"@set": [1]},
            "date": {"@dt": "2026-01-02T03:04:05+00:00"},
            "object": {"@ref": "0000000000000001"},
        },
    },
}


def unknown_version() -> str:
    """Return a sentence if this package does not replace methods of the installed zodb-pgjsonb, else empty text."""
    installed = version("zodb-pgjsonb")
    return (
        ""
        if installed.startswith(SUPPORTED)
        else f"plone.pgcatalog replaces methods of zodb-pgjsonb {SUPPORTED}*, not {installed}"
    )


@cache
def unknown_methods() -> tuple[str, ...]:
    """Return the names in METHODS and CODEC whose installed code is not the tested code."""
    methods = [name for name, digest in METHODS.items() if _digest(_source(name)) != digest]
    return (*methods, *(name for name, digest in CODEC.items() if _digest(_answer(name)) != digest))


def _source(name: str) -> str:
    """Return the source of a method in METHODS, empty text if there is none."""
    try:
        return getsource(attrgetter(name)(zodb_pgjsonb))
    except (AttributeError, OSError, TypeError):
        return ""


def _answer(name: str) -> str:
    """Return the result of a function in CODEC, which has no Python source, for its sample; empty text if it is missing."""
    function = getattr(zodb_json_codec, name.rpartition(".")[2], None)
    return "" if function is None else repr(unwrap(function)(SAMPLES[name]))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def unknown_code() -> str:
    """Return a sentence about installed code that differs from the tested code, else empty text."""
    if sentence := unknown_version():
        return sentence
    if names := unknown_methods():
        return (
            f"zodb-pgjsonb {version('zodb-pgjsonb')} and zodb-json-codec {version('zodb-json-codec')} differ from"
            f" zodb-pgjsonb {TESTED}, with which plone.pgcatalog was tested: {', '.join(names)}"
        )
    return ""
