"""Compares records of two storages by value, without loading the classes that they name or calling their functions.

After a copy, the pickle of an equal value may have other bytes, because zodb-json-codec transcodes records from JSON.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from random import Random
from typing import Any
from typing import NamedTuple
from ZODB._compat import PersistentUnpickler
from ZODB.utils import u64
from zoneinfo import ZoneInfo

import datetime
import itertools
import pickle
import pytz


#: Names of modules in records of Python 2 -> their present names.
RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg", "_datetime": "datetime"}
#: The first bytes after the class of a record, and the number of bytes within which they are searched.
END_OF_CLASS = b".\x80"
LONGEST_CLASS = 300
#: Maximum number of characters of a value that are shown.
SHOWN = 80


class Sample:
    """A random sample of up to *size* objects of each class, chosen while records are read; the same in each run."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._random = Random(0)
        self._counts: dict[bytes, int] = {}
        self._oids: dict[bytes, list[int]] = {}

    def add(self, oid: int, data: bytes) -> None:
        """Count the record *data* of the object *oid*, and choose it or not (reservoir sampling)."""
        kind = data[: max(data.find(END_OF_CLASS, 0, LONGEST_CLASS), 0)]
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        oids = self._oids.setdefault(kind, [])
        if count <= self.size:
            oids.append(oid)
        elif (place := self._random.randrange(count)) < self.size:
            oids[place] = oid

    def oids(self) -> list[int]:
        """Return the ids of the chosen objects, in order."""
        return sorted(set(itertools.chain.from_iterable(self._oids.values())))


class ValueChange(NamedTuple):
    """A value at *place* of the object *oid* that differs in the target; the place is "" for the object itself."""

    oid: int
    class_name: str
    place: str
    source: str
    target: str

    def __str__(self) -> str:
        place = f" {self.place}" if self.place else ""
        return f"0x{self.oid:x} ({self.class_name}){place}: {self.source} became {self.target}"


def change(oid: int, source: bytes, target: bytes) -> ValueChange | None:
    """Return the first value of the object *oid* that differs between the records, None if all values are equal."""
    if source == target:
        return None
    one, other = values(source), values(target)
    for place in itertools.chain(("",), one, other):
        if one.get(place) != other.get(place):
            left, right = (found.get(place, "nothing") for found in (one, other))
            return ValueChange(oid, one.get("class", "unknown"), place, *shortened(left, right))
    return None


def shortened(one: str, other: str) -> tuple[str, str]:
    """Return parts of two different texts that start shortly before the first difference, of SHOWN characters at most."""
    same = next((n for n, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1), 0)
    begin = max(same - SHOWN // 2, 0)
    return one[begin : begin + SHOWN], other[begin : begin + SHOWN]


def values(data: bytes) -> dict[str, str]:
    """Return place -> type and value for each value in the record *data*; a single text if the record is unreadable."""
    found: dict[str, str] = {}
    try:
        unpickler = PersistentUnpickler(_stand_in, _Reference, BytesIO(data))
        kind, state = unpickler.load(), unpickler.load()
    except (pickle.UnpicklingError, AttributeError, EOFError, LookupError, TypeError, ValueError) as error:
        return {"": f"an unreadable record ({error})"}
    found["class"] = _class_name(kind)
    for place, value in _flat("", state, ()):
        found[place] = value
    return found


def _class_name(kind: Any) -> str:
    """Return the class name of a record; *kind* is a tuple (module, name) in records of the codec."""
    if isinstance(kind, tuple) and len(kind) == 2 and not kind[1]:
        kind = kind[0]
    if isinstance(kind, tuple) and all(isinstance(part, str) for part in kind):
        return ".".join(kind)
    return _leaf(kind)


def _flat(place: str, value: Any, around: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each value in *value*; *around* are the ids of the values that contain it."""
    if id(value) in around:
        yield place, "a value that contains itself"
        return
    around = (*around, id(value))
    if isinstance(value, _StandIn):
        yield place, f"an object of {type(value).name}"
        for name, part in value.parts.items():
            # The state is the attributes of the object, so it needs no place of its own.
            yield from _flat(place if name == "state" and isinstance(part, dict) else f"{place}<{name}>", part, around)
    elif isinstance(value, Mapping):
        yield f"{place}{{}}", _type_name(value)
        for key, item in value.items():
            name = key if isinstance(key, str) else " ".join(text for _, text in _flat("", key, around))
            yield from _flat(f"{place}.{name}" if place else name, item, around)
    elif isinstance(value, list | tuple):
        yield f"{place}[]", f"{_type_name(value)} of {len(value)}"
        for number, item in enumerate(value):
            yield from _flat(f"{place}[{number}]", item, around)
    elif isinstance(value, set | frozenset):
        items = sorted(" ".join(text for _, text in _flat("", item, around)) for item in value)
        yield place, f"{_type_name(value)} {items}"
    else:
        yield place, _leaf(value)


def _leaf(value: Any) -> str:
    if isinstance(value, type) and issubclass(value, _StandIn):
        return value.name
    return f"{_type_name(value)} {value!r}"


def _type_name(value: Any) -> str:
    return type(value).__qualname__


class _StandIn:
    """An object whose class is not loaded; ``parts`` are the parts of its record."""

    name = ""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        self = super().__new__(cls)
        self.parts = {}
        if args or options:
            self.parts["args"] = (args, options)
        return self

    def __init__(self, *args: Any, **options: Any) -> None:
        """Ignore the arguments, which ``__new__`` has stored."""

    parts: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        self.parts["state"] = state

    def append(self, item: Any) -> None:
        self.parts.setdefault("appended", []).append(item)

    def extend(self, items: Any) -> None:
        self.parts.setdefault("appended", []).extend(items)

    def __setitem__(self, key: Any, item: Any) -> None:
        self.parts.setdefault("items", {})[key] = item

    def __call__(self, *args: Any) -> Any:
        return _stand_in("", "call")(self, args)


class _Reference(_StandIn):
    """A reference to another object."""

    name = "reference"

    def __new__(cls, reference: Any) -> Any:
        self = super().__new__(cls)
        if isinstance(reference, tuple) and len(reference) == 2 and isinstance(reference[0], bytes):
            self.parts["to"] = f"0x{u64(bytes(reference[0])):x} {_class_name(reference[1])}"
        else:
            self.parts["to"] = reference
        return self


def _bytes_of(text: str, encoding: str) -> bytes:
    """Return bytes from their form in pickle protocols before 3."""
    if encoding != "latin1":
        raise ValueError(encoding)
    return text.encode(encoding)


def _method(owner: Any, name: str) -> Any:
    """Return the function that creates a ZoneInfo: the only method that values of records refer to."""
    if owner is not _stand_in("zoneinfo", "ZoneInfo") or name != "_unpickle":
        raise ValueError(name)
    return lambda key, _from_cache: ZoneInfo(key)


#: Functions that are called, because they only create values, and different functions may create equal ones.
CALLED: dict[tuple[str, str], Callable[..., Any]] = {
    **{("builtins", kind.__name__): kind for kind in (bytearray, bytes, complex, float, frozenset, int, set, str)},
    **{
        ("datetime", kind.__name__): kind
        for kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)
    },
    ("_codecs", "encode"): _bytes_of,
    ("builtins", "getattr"): _method,
    ("pytz", "_UTC"): lambda: pytz.utc,
    ("pytz", "_p"): pytz._p,
}


@cache
def _stand_in(module: str, name: str) -> type[_StandIn]:
    """Return the stand-in class for the class or function *name* of *module*."""
    module = RENAMED.get(module, module)
    function = CALLED.get((module, name))
    full_name = f"{module}.{name}"

    def called(cls: Any, *args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)  # type: ignore[misc]
        except (AttributeError, LookupError, TypeError, ValueError):
            # For example an argument that is itself a stand-in.
            return _StandIn.__new__(cls, *args, **options)

    return type(name, (_StandIn,), {"name": full_name} | ({"__new__": called} if function else {}))
