"""A table of the values that content of Plone has; run by test_stored_values in processes of their own.

Arguments: ``store`` or ``load``, a DSN or the path of a FileStorage, and whether history is stored.  ``load`` prints as
JSON, for each value in each place that differs from the stored one, the difference.
"""

from BTrees.IOBTree import IOBTree
from BTrees.LOBTree import LOBTree
from BTrees.OOBTree import OOBTree
from BTrees.OOBTree import OOTreeSet
from collections import Counter
from collections import defaultdict
from collections import deque
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from DateTime import DateTime
from datetime import date
from datetime import datetime
from datetime import time
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from dateutil import tz
from decimal import Decimal
from fractions import Fraction
from http import HTTPStatus
from pathlib import Path
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from plone.app.textfield.value import RichTextValue
from plone.namedfile.file import NamedBlobFile
from plone.namedfile.interfaces import IStorage
from plone.namedfile.storages import BytesStorable
from plone.pgcatalog.storage import require_writable  # noqa: F401 -- installs the codec of values
from re import IGNORECASE
from typing import Any
from uuid import UUID
from z3c.relationfield import RelationValue
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage
from zodb_pgjsonb.storage import PGJsonbStorage
from zoneinfo import ZoneInfo
from zope.component import provideUtility
from zope.i18nmessageid import Message

import json
import math
import pytz
import subprocess
import sys
import transaction


ROOT = Path(__file__).parents[2]

provideUtility(BytesStorable(), IStorage, name="builtins.bytes")

NOON = datetime(2026, 6, 1, 12, 30, 0, 5)
BERLIN, SAO_PAULO = pytz.timezone("Europe/Berlin"), pytz.timezone("America/Sao_Paulo")
#: Hashable, so also tested as keys and in sets.
HASHABLE: dict[str, Any] = {
    "none": None,
    "true": True,
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "minus zero": -0.0,
    "zero": 0.0,
    "whole float": 3.0,
    "large float": 1e16,
    "larger float": -1.5e22,
    "huge float": -1e100,
    "float like letters": 2.5e300,
    "largest float": sys.float_info.max,
    "smallest float": 5e-324,
    "small float": 1e-7,
    "complex": 1j,
    "big int": 2**70,
    "huge int": 10**100,
    "int of 64 bits": -(2**63),
    "int of 63 bits": 2**63 - 1,
    "int above 53 bits": 2**53 + 1,
    "decimal": Decimal("1.10"),
    "decimal NaN": Decimal("NaN"),
    "fraction": Fraction(1, 3),
    "bytes": b"a\x00\xff",
    "text": "ä",
    "empty text": "",
    "NUL": "a\x00b",
    "surrogate": "a\ud800",
    "emoji": "\U0001f600",
    "marker": "@dt",
    "NUL marker": "@ns:YQ==",
    "tuple": (1, ("a", NOON.replace(tzinfo=pytz.utc))),
    "frozenset": frozenset([1, "a"]),
    "UUID": UUID(int=5),
    "enum member": HTTPStatus.NOT_FOUND,
    "flag": IGNORECASE,
    "message": Message("a", domain="plone", default="A ${x}", mapping={"x": 1}),
    "date": date(2026, 6, 1),
    "first date": date.min,
    "last date": date.max,
    "timedelta": timedelta(-1, 5, 6),
    "naive": NOON,
    "first": datetime.min,
    "last": datetime.max.replace(tzinfo=UTC),
    "pytz.utc": NOON.replace(tzinfo=pytz.utc),
    "pytz UTC": pytz.timezone("UTC").localize(NOON),
    "pytz Etc/UTC": pytz.timezone("Etc/UTC").localize(NOON),
    "pytz GMT": pytz.timezone("GMT").localize(NOON),
    "pytz Berlin": BERLIN.localize(NOON),
    "pytz Berlin in winter": BERLIN.localize(NOON.replace(month=1)),
    "pytz Sao Paulo": SAO_PAULO.localize(NOON),
    "pytz local mean time": NOON.replace(tzinfo=BERLIN),
    "pytz offset": NOON.replace(tzinfo=pytz.FixedOffset(90)),
    "timezone.utc": NOON.replace(tzinfo=UTC),
    "timezone": NOON.replace(tzinfo=timezone(timedelta(hours=-3))),
    "timezone of seconds": NOON.replace(tzinfo=timezone(timedelta(seconds=5, microseconds=3))),
    "timezone with a name": NOON.replace(tzinfo=timezone(timedelta(0), "GMT")),
    "zoneinfo": NOON.replace(tzinfo=ZoneInfo("Europe/Berlin")),
    "zoneinfo UTC": NOON.replace(tzinfo=ZoneInfo("UTC")),
    "dateutil": NOON.replace(tzinfo=tz.tzutc()),
    "dateutil offset": NOON.replace(tzinfo=tz.tzoffset("X", 3600)),
    "dateutil local": NOON.replace(tzinfo=tz.tzlocal()),
    "dateutil zone": NOON.replace(tzinfo=tz.gettz("Europe/Berlin")),
    "zone itself": pytz.utc,
    "zone Berlin itself": BERLIN,
    "timezone.utc itself": UTC,
    "time": time(1, 2, 3, 4),
    "time in pytz.utc": time(8, tzinfo=pytz.utc),
    "time in timezone.utc": time(8, tzinfo=UTC),
    "time in Berlin": time(8, tzinfo=BERLIN),
    "time in zoneinfo": time(8, tzinfo=ZoneInfo("Europe/Berlin")),
    "DateTime": DateTime("2026/06/01 12:00:00 Europe/Berlin"),
    "DateTime UTC": DateTime("2026/06/01 12:00:00 UTC"),
    "DateTime naive": DateTime("2026-06-01T12:00:00"),
    "DateTime far": DateTime("9999/12/31 23:59:59 UTC"),
}
CONTAINERS: dict[str, Any] = {
    "two zones": [NOON.replace(tzinfo=pytz.utc), NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=pytz.utc)],
    "times": [time(8), time(8, tzinfo=pytz.utc)],
    "dict of dates": {NOON.replace(tzinfo=pytz.utc): 1, NOON.replace(tzinfo=BERLIN): 2},
    "odd keys": {None: 1, 2: 3, (4, "a"): 5, b"b": 6, True: 7, 1.5: 8},
    "block": {"@type": "slate", "@id": "/a", "value": [{"type": "p"}]},
    "class marker": {"@cls": ["os", "system"], "@s": {}},
    "reduce marker": {"@reduce": {"callable": {"@cls": ["os", "getpid"]}, "args": {"@t": []}}},
    "date marker": {"@dt": "2026-06-01T00:00:00+00:00"},
    "reference marker": {"@ref": "0000000000000001"},
    **{f"marker {name}": {name: ["YQ=="]} for name in ("@t", "@b", "@bi", "@d", "@set", "@fset", "@pkl", "@ns", "@kv")},
    "bytearray": bytearray(b"a"),
    "set": {1, "a", NOON.replace(tzinfo=pytz.utc)},
    "OrderedDict": OrderedDict([("b", 1), ("a", math.nan)]),
    "defaultdict": defaultdict(list, a=[1]),
    "Counter": Counter("aab"),
    "deque": deque([1, math.inf]),
    "PersistentList": PersistentList([math.nan, {"@t": [1]}]),
    "PersistentMapping": PersistentMapping({"@cls": NOON.replace(tzinfo=pytz.utc)}),
    "OOBTree": OOBTree({"@cls": math.nan, "a": NOON.replace(tzinfo=pytz.utc)}),
    "OOBTree of dates": OOBTree({date(2026, 6, 1): 1}),
    "OOBTree of tuples": OOBTree({("a", -1): -0.0}),
    "IOBTree": IOBTree({-(2**31): math.nan, 2**31 - 1: None}),
    "LOBTree": LOBTree({-(2**63): 1}),
    "OOTreeSet": OOTreeSet(["@t", "a", "\ud800"]),
    "long OOBTree": OOBTree({f"{n:04}": NOON.replace(tzinfo=pytz.utc) for n in range(100)}),
    "RichTextValue": RichTextValue("<p>ä\x00</p>", "text/html", "text/x-html-safe"),
    "NamedBlobFile": NamedBlobFile(b"a\x00", "application/pdf", "ä.pdf"),
    "RelationValue": RelationValue(2**31 - 1),
}
#: Places for a value.
PLACES: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda value: value,
    "list": lambda value: [1, value, value],
    "dict": lambda value: {"a": {"b": value}},
}
PLACES_OF_HASHABLE: dict[str, Callable[[Any], Any]] = {
    "key": lambda value: {value: 1, "other": 2},
    "set": lambda value: {value},
}


def cases() -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each value in each place."""
    for table, places in ((HASHABLE, PLACES | PLACES_OF_HASHABLE), (CONTAINERS, PLACES)):
        for name, value in table.items():
            for place, wrap in places.items():
                yield f"{name}: {place}", wrap(value)


def described(value: Any) -> str:
    """Return type and value of *value*, and the properties of it that Plone reads."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind is float or kind is DateTime or issubclass(kind, timedelta):
        return f"{name} {value!r} {value.timezone() if kind is DateTime else ''}"
    if isinstance(value, datetime | time):
        zone = value.tzinfo
        plone = zone and [getattr(zone, attribute, None) for attribute in ("zone", "key")]
        if isinstance(value, datetime) and hasattr(zone, "normalize"):
            plone = [*(plone or ()), repr(zone.normalize(value)), repr(zone.localize(NOON))]
        singleton = zone is pytz.utc or zone is UTC
        return f"{name} {value!r} {value.isoformat()} {singleton} {plone}"
    if isinstance(value, Message):
        return f"{name} {value!r} {value.domain} {value.default} {value.mapping}"
    if isinstance(value, Mapping | OOBTree | IOBTree | LOBTree | PersistentMapping):
        pairs = [f"{described(key)}: {described(item)}" for key, item in value.items()]
        # JSONB has its own order of the keys of a dict.
        return f"{name} {pairs if kind is OrderedDict else sorted(pairs)}"
    if isinstance(value, list | tuple | PersistentList | deque | OOTreeSet):
        return f"{name} {[described(item) for item in value]}"
    if isinstance(value, set | frozenset):
        return f"{name} {sorted(map(described, value))}"
    if isinstance(value, RichTextValue):
        return f"{name} {value.raw!r} {value.mimeType} {value.outputMimeType} {value.encoding}"
    if isinstance(value, NamedBlobFile):
        return f"{name} {value.data!r} {value.contentType} {value.filename} {value.getSize()}"
    if isinstance(value, RelationValue):
        return f"{name} {value.to_id} {value.from_attribute}"
    return f"{name} {value!r}"


def differences(root: Any) -> dict[str, str]:
    """Return name -> difference, of the values below *root* that differ from those of `cases`."""
    found = {}
    for name, value in cases():
        try:
            loaded = described(root[name].value)
        except Exception as error:  # noqa: BLE001 -- whatever a record that the codec has changed raises
            loaded = repr(error)
        if loaded != described(value):
            found[name] = loaded
    return found


class Holder(PersistentMapping):  # type: ignore[misc]
    """An object of its own, so that one value cannot spoil others."""

    @property
    def value(self) -> Any:
        return vars(self)["odd"]


def run(action: str, target: str, keeps_history: bool = False) -> str:
    """Return the output of this script in a process of its own, with cold caches."""
    command = [sys.executable, "-m", "tests.integration.stored_values", action, target, str(keeps_history)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main(action: str, target: str, keeps_history: str) -> None:
    if target.endswith(".fs"):
        database = DB(FileStorage(target, blob_dir=target.replace(".fs", "-blobs")))
    else:
        database = DB(PGJsonbStorage(target, cache_warm_pct=0, history_preserving=keeps_history == "True"))
    connection = database.open()
    root = connection.root()
    if action == "store":
        for name, value in cases():
            root[name] = holder = Holder()
            holder.odd = value
        transaction.commit()
    else:
        print(json.dumps(differences(root)))
    transaction.abort()
    connection.close()
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
