"""Records of a copy are compared by value, not by bytes."""

from datetime import datetime
from datetime import UTC
from pathlib import Path
from plone.pgcatalog.migration.values import change
from plone.pgcatalog.migration.values import Sample
from plone.pgcatalog.storage import records
from tests.integration.stored_values import cases
from tests.unit.stored import DECODE
from tests.unit.stored import ENCODE
from tests.unit.stored import number
from typing import Any

import json
import math
import pickle
import pytest
import pytz


NOON = datetime(2026, 6, 1, 12, 30)


def record(value: Any) -> bytes:
    return pickle.dumps(("app", "Page"), 3) + pickle.dumps({"value": value}, 3)


def copied(value: bytes, decode: Any, encode: Any) -> bytes:
    """Return the record after its conversion to JSONB and back."""
    module, name, state, _ = decode(value)
    return encode({"@cls": [module, name], "@s": json.loads(state, parse_float=number)})


#: The records are made before a test stores the values in a database, and closes it.
RECORDS = {name: record(value) for name, value in cases() if name.endswith((": attribute", ": key"))}


@pytest.mark.parametrize("data", RECORDS.values(), ids=RECORDS)
def test_preserved_value_is_no_change(data: bytes) -> None:
    found = copied(data, lambda each: DECODE(records.storable(each)), lambda each: records.loadable(ENCODE(each)))
    assert change(1, data, found) is None


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (NOON.replace(tzinfo=pytz.utc), "<UTC>", "datetime.timezone.utc"),
        (math.nan, "float nan", "NoneType None"),
        (1e16, "float 1e+16", "int 10000000000000000"),
        ({"@t": [1]}, "dict", "tuple"),
    ],
)
def test_value_that_the_codec_changes_is_named(value: Any, source: str, target: str) -> None:
    data = record(value)
    found = change(7, data, copied(data, DECODE, ENCODE))
    assert found is not None
    assert str(found).startswith("0x7 (app.Page) value")
    assert source in found.source
    assert target in found.target or found.target == "nothing"


class Other:
    """A class named in a record."""


def test_class_of_a_record_is_not_loaded_and_its_functions_are_not_called(tmp_path: Path) -> None:
    class Call:
        def __reduce__(self) -> Any:
            return (Path.mkdir, (tmp_path / "made",))

    data = record([Call(), Other()])
    assert change(1, data, record([Call()])) is not None
    assert not (tmp_path / "made").exists()


def test_list_that_contains_itself_ends() -> None:
    value: list[Any] = [1]
    value.append(value)
    assert change(1, record(value), record([1])) is not None


def test_record_that_cannot_be_read_is_a_change() -> None:
    found = change(1, record(1), b"\x80\x03X")
    assert found is not None
    assert "unreadable record" in found.target


def test_values_differ_by_their_zone_and_type_not_only_by_equality() -> None:
    assert change(1, record(NOON.replace(tzinfo=pytz.utc)), record(NOON.replace(tzinfo=UTC))) is not None
    assert change(1, record(1), record(True)) is not None
    assert change(1, record({"a": 1, "b": 2}), record({"b": 2, "a": 1})) is None


def test_sample_has_objects_of_each_class() -> None:
    sample = Sample(3)
    for oid in range(100):
        sample.add(oid, pickle.dumps(("app", "Page"), 3) + pickle.dumps({}, 3))
    sample.add(100, pickle.dumps(("app", "Event"), 3) + pickle.dumps({}, 3))
    chosen = sample.oids()
    assert len(chosen) == 4
    assert 100 in chosen
