"""Converts records of ZODB on their way through zodb-json-codec, which changes some values.

The codec stores `pytz.utc` as an offset and loads `datetime.timezone.utc`, stores NaN as null, and mistakes a dict with a
key such as ``@cls`` for a marker of its own.  `storable` writes such values in a form that the codec preserves; its result
is a pickle of the same value for any reader.  `loadable` repairs values that were stored before.  docs/reference/values.md
has the table.
"""

from base64 import b64encode
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import suppress
from datetime import time
from decimal import Decimal
from functools import wraps
from struct import pack
from struct import unpack_from
from typing import Any
from zodb_pgjsonb.serialization import _unsanitize_from_pg
from zoneinfo import ZoneInfo

import json
import math
import pickletools
import pytz
import re
import sys
import zodb_json_codec


#: Opcodes of a pickle.
GLOBAL, FLOAT, LONG, PROTO, SHORT_BYTES = b"cG\x8a\x80C"
#: The texts of a pickle: opcode -> bytes of their length.
TEXTS = {ord("X"): 4, ord("T"): 4, ord("U"): 1, 0x8C: 1}
#: The oldest protocol in which opcodes stand in frames of a fixed length; ZODB does not write it.
FRAMED = 4
#: The keys by which the codec recognises its own dicts.
MARKERS = (
    *("appends", "args", "b", "bi", "callable", "children", "cls", "d", "date", "dec", "dt", "first", "fset", "inst"),
    *("items", "ks", "kv", "kwargs", "newobj", "next", "ns", "obj", "pkl", "reduce", "ref", "s", "set", "state", "t"),
    *("td", "time", "tz", "uuid"),
)
MARKER = re.compile(rb"@(?:%b|ns:.*)" % "|".join(MARKERS).encode(), re.DOTALL)
#: JSON has floats of this size or more as integers.
LARGE = 1e16
LARGEST_FLOAT = sys.float_info.max
#: Opcode and number of bytes of an integer as large as the floats that `storable` does not change, from 1.2e77 on.
LARGE_INTEGER = re.compile(rb"\x8a[\x21-\x81]")
#: A pickled text with half of a surrogate pair.
SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
#: The bytes behind the name of the function that returns `pytz.utc`, in protocols 1 to 3.
CALLED = re.compile(rb"(q.|r.{4}|)\)R", re.DOTALL)
UTC = b"cpytz\n_p\n%bX\x03\x00\x00\x00UTC\x85R"
#: Other names of the same classes, which the codec does not recognise.
OTHER_NAMES = {b"datetime\ntimezone\n": b"c_datetime\ntimezone\n", b"datetime\ntime\n": b"c_datetime\ntime\n"}
#: Zones that the codec stores beside a time, and does not load.
NAMED_ZONES = re.compile(rb"pytz\n_p\n|zoneinfo\n")
#: How the codec begins and ends a date, or a time, with the offset 0: the zone is the second argument of two.
OFFSET_ZERO = b"cdatetime\ntimezone\ncdatetime\ntimedelta\nK\x00K\x00K\x00\x87R\x85R"
STORED_UTC = OFFSET_ZERO + b"\x86R"
LOADED_UTC = b"cpytz\n_UTC\n)R\x86R"


#: Keys of the dict that the codec loads for a time in a named zone.
TIME, ZONE = b"X\x05\x00\x00\x00@time", b"X\x03\x00\x00\x00@tz"


#: Opcode -> bytes of its argument; -1: up to the end of the line; less than -1: the argument begins with its length.
ARGUMENT_SIZES = {ord(opcode.code): 0 if opcode.arg is None else opcode.arg.n for opcode in pickletools.opcodes}
LENGTHS = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
TWO_LINES = b"ci"


def operations(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (opcode, begin of its argument, end of its argument) for each operation of the pickles in *data*.

    Raises ValueError for an unknown opcode.
    """
    position = 0
    try:
        while position < len(data):
            code = data[position]
            begin = position + 1
            size = ARGUMENT_SIZES[code]
            if size >= 0:
                position = begin + size
            elif size == pickletools.UP_TO_NEWLINE:
                position = data.index(b"\n", begin) + 1
                if code in TWO_LINES:
                    position = data.index(b"\n", position) + 1
            else:
                width = LENGTHS[size]
                position = begin + width + int.from_bytes(data[begin : begin + width], "little")
            yield code, begin, position
    except KeyError as error:
        raise ValueError(f"not an opcode of a pickle: {error}") from error


def _suspicious() -> Callable[[bytes], Any]:
    """Return a function that searches for bytes of values that the codec might change; texts may contain such bytes, too."""
    lengths: dict[int, list[str]] = {}
    for marker in MARKERS:
        lengths.setdefault(len(marker) + 1, []).append(marker)
    named = [
        rb"(?<=%b@)(?:%b)" % (re.escape(prefix), "|".join(names).encode())
        for length, names in lengths.items()
        for prefix in (pack("<I", length), b"U" + bytes([length]))
    ]
    markers = re.compile(rb"@(?:%b|ns:)" % b"|".join(named)).search
    # Large numbers only below 1.2e77: larger ones look like letters, and `loadable` repairs them.
    floats = re.compile(rb"G(?:[\x43\xc3][\x41-\xff]|[\x44-\x4f\xc4-\xcf]|[\x7f\xff][\xe0-\xff]|\x80\x00{7})").search
    surrogates = SURROGATE.search

    def search(data: bytes) -> Any:
        # Most records have none of these bytes; looking for them is faster than a pattern that fails.
        return (
            b"pytz\n_UTC\n" in data
            or b"datetime\ntime" in data
            or (b"G" in data and floats(data))
            or (b"@" in data and markers(data))
            or (b"\xed" in data and surrogates(data))
            or (b"\x8a" in data and any(float_at(data, found.start()) for found in LARGE_INTEGER.finditer(data)))
        )

    return search


suspicious = _suspicious()


def _integer(value: bytes) -> int:
    return int.from_bytes(value, "little", signed=True)


def float_at(data: bytes, position: int) -> float | None:
    """Return the float that JSONB stores as the integer at *position* of the record *data*: its digits, and zeros.

    None for an integer below 1.2e77, or one whose digits no float has.
    """
    if not LARGE_INTEGER.match(data, position):
        return None
    begin = position + 2
    number = _integer(data[begin : begin + data[begin - 1]])
    if abs(number) > LARGEST_FLOAT or number != int(Decimal(repr(float(number)))):
        return None
    return float(number)


def storable(data: bytes) -> bytes:
    """Return the record *data* with each value that the codec would change in a form that it preserves."""
    if not suspicious(data):
        return data
    pieces: list[bytes] = []
    copied = 0
    zones = NAMED_ZONES.search(data) or b"pytz\n_UTC\n" in data
    for code, begin, end in operations(data):
        new = None
        if code == GLOBAL:
            name = data[begin:end]
            if name == b"pytz\n_UTC\n":
                called = CALLED.match(data, end)
                if called:
                    new, end = UTC % called[1], called.end()
            elif name in OTHER_NAMES and (zones or name != b"datetime\ntime\n"):
                new = OTHER_NAMES[name]
        elif code == FLOAT:
            [number] = unpack_from(">d", data, begin)
            if not abs(number) < LARGE or (number == 0 and math.copysign(1, number) < 0):
                new = b"cbuiltins\nfloat\n%b\x85R" % _text(repr(number).encode())
        elif code == LONG and float_at(data, begin - 1):
            new = b"cbuiltins\nint\n%b\x85R" % _text(str(_integer(data[begin + 1 : end])).encode())
        elif code in TEXTS:
            text = data[begin + TEXTS[code] : end]
            if MARKER.fullmatch(text):
                new = b"cbuiltins\nstr\n%b%b\x86R" % (_bytes(text), _text(b"utf-8"))
            elif SURROGATE.search(text) and code != ord("U"):
                new = b"cbuiltins\nstr\n%b%b%b\x87R" % (_bytes(text), _text(b"utf-8"), _text(b"surrogatepass"))
        elif code == PROTO and data[begin] >= FRAMED:
            return data
        if new is not None:
            pieces += data[copied : begin - 1], new
            copied = end
    return b"".join([*pieces, data[copied:]])


def _text(value: bytes) -> bytes:
    return b"X" + pack("<I", len(value)) + value


def _bytes(value: bytes) -> bytes:
    return b"B" + pack("<I", len(value)) + value


def loadable(data: bytes) -> bytes:
    """Return the record *data*, as the codec returns it, with `pytz.utc` for the offset 0, and with large floats.

    Records stored before `storable` have `pytz.utc` and `datetime.timezone.utc` under that offset; Plone needs the former.
    """
    if STORED_UTC not in data and not (b"\x8a" in data and LARGE_INTEGER.search(data)):
        return data
    pieces: list[bytes] = []
    copied = before = 0
    for code, begin, end in operations(data):
        if code == GLOBAL and before == SHORT_BYTES and data.startswith(STORED_UTC, begin - 1):
            pieces += data[copied : begin - 1], LOADED_UTC
            copied = begin - 1 + len(STORED_UTC)
        elif code == LONG and (number := float_at(data, begin - 1)):
            pieces += data[copied : begin - 1], pack(">cd", b"G", number)
            copied = end
        before = code
    return b"".join([*pieces, data[copied:]])


def with_times(value: Any) -> Any:
    """Return the JSON *value* of a record with a call for each time in a named zone, which the codec stores as a dict.

    A dict whose text is no time, or whose zone is unknown, stays a dict.
    """
    if isinstance(value, list):
        return [with_times(item) for item in value]
    if not isinstance(value, dict):
        return value
    with suppress(ValueError, LookupError, TypeError):
        match value:
            case {"@time": str(text), "@tz": {"pytz": [*args]}} if len(value) == 2 and pytz._p(*args):
                return _time(text, _call({"@cls": ["pytz", "_p"]}, args))
            case {"@time": str(text), "@tz": {"zoneinfo": str(name)}} if len(value) == 2 and ZoneInfo(name):
                unpickle = _call({"@cls": ["builtins", "getattr"]}, [{"@cls": ["zoneinfo", "ZoneInfo"]}, "_unpickle"])
                return _time(text, _call(unpickle, [name, 1]))
    return {key: with_times(item) for key, item in value.items()}


def _time(text: str, zone: dict[str, Any]) -> dict[str, Any]:
    """Return the call that creates the time *text* in *zone*.  Raises ValueError."""
    reduced: Any = time.fromisoformat(text).__reduce_ex__(3)
    _, (packed,) = reduced
    return _call({"@cls": ["datetime", "time"]}, [{"@b": b64encode(packed).decode()}, zone])


def _call(function: dict[str, Any], args: list[Any]) -> dict[str, Any]:
    """Return the call of *function* with *args*, as the codec stores it."""
    return {"@reduce": {"callable": function, "args": {"@t": args}}}


def as_loaded(class_mod: str, class_name: str, state: str) -> bytes:
    """Return the record that is loaded for a stored object with the JSON *state*."""
    value = json.loads(state, object_pairs_hook=_as_jsonb)
    if '"@ns"' in state:
        value = _unsanitize_from_pg(value)
    return zodb_json_codec.encode_zodb_record({"@cls": [class_mod, class_name], "@s": value})  # type: ignore[no-any-return]


def _as_jsonb(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the dict of *pairs* in the order of keys in jsonb: by their number of bytes, then by these bytes."""
    return dict(sorted(pairs, key=lambda pair: (len(key := pair[0].encode()), key)))


def preserve_values() -> None:
    """Make zodb-pgjsonb preserve the values of all records that this process stores and loads.

    Its modules call the codec by the names of the module `zodb_json_codec`, on every path: single and multiple loads, older
    states, conflicts, undo, iteration, copies.
    """
    decode, encode = zodb_json_codec.decode_zodb_record_for_pg_json, zodb_json_codec.encode_zodb_record
    if hasattr(encode, "__wrapped__"):
        return

    @wraps(decode)
    def decode_storable(data: bytes) -> Any:
        return decode(storable(data))

    @wraps(encode)
    def encode_loadable(record: Any) -> bytes:
        data = encode(record)
        return loadable(encode(with_times(record)) if TIME in data and ZONE in data else data)

    zodb_json_codec.decode_zodb_record_for_pg_json = decode_storable
    zodb_json_codec.encode_zodb_record = encode_loadable
