"""Values of content are loaded as they were stored, whatever zodb-json-codec does to them."""

from BTrees.OOBTree import OOBTree
from datetime import datetime
from persistent.mapping import PersistentMapping
from plone.pgcatalog.migration import copying
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.integration.stored_values import run
from tests.integration.upstream_check import Process
from ZODB.utils import p64
from ZODB.utils import u64
from zodb_pgjsonb.storage import PGJsonbStorage

import json
import psycopg
import pytest
import pytz
import subprocess
import sys


NOON = datetime(2026, 6, 1, 12, 30, tzinfo=pytz.utc)


@pytest.mark.parametrize("keeps_history", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_each_value_is_loaded_as_it_was_stored(database: str, keeps_history: bool) -> None:
    run("store", database, keeps_history)
    assert json.loads(run("load", database, keeps_history)) == {}


#: A state stored before zones were stored, in the tables of objects that have a date.
OLD_DATES = """
UPDATE {} SET state = regexp_replace(state::text,
    '\\{{"@dt": "([^"]*)", "@tz": \\{{"name": "UTC", "pytz": \\["UTC"\\]\\}}\\}}', '{{"@dt": "\\1+00:00"}}', 'g')::jsonb
"""


def make_old(dsn: str) -> None:
    """Replace all dates in `pytz.utc` by the form stored by zodb-json-codec alone."""
    with psycopg.connect(dsn) as connection:
        for table in ("object_state", "object_history"):
            [[is_there]] = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchall()
            if is_there:
                connection.execute(OLD_DATES.format(table))
        [[old]] = connection.execute("SELECT count(*) FROM object_state WHERE state::text LIKE '%+00:00%'").fetchall()
        assert old


def zones_in(data: bytes) -> int:
    """Return the number of `pytz` dates in the record *data*; check that none has another zone."""
    assert b"timezone" not in data
    return data.count(b"pytz\n")


@pytest.mark.parametrize("is_old", [False, True], ids=["stored now", "stored before"])
@pytest.mark.parametrize("keeps_history", [False, True])
def test_object_has_its_zone_however_it_is_loaded(database: str, keeps_history: bool, is_old: bool) -> None:
    one = Process(database, history_preserving=keeps_history)
    with one.manager:
        one.root["dates"] = OOBTree({"first": NOON})
        one.root["page"] = PersistentMapping(date=NOON)
    with one.manager:
        one.root["page"]["title"] = "Changed"
        oid = one.root["page"]._p_oid
    one.close()
    if is_old:
        make_old(database)

    one, other = (Process(database, history_preserving=keeps_history) for _ in range(2))
    with one.manager, other.manager:
        storage = one.root._p_jar._normal_storage
        data, tid = storage.load(oid)
        ways = {
            "load": data,
            "load_multiple": other.root._p_jar._normal_storage.load_multiple([oid])[oid][0],
            "loadBefore": storage.loadBefore(oid, p64(u64(tid) + 1))[0],
            "loadSerial": storage.loadSerial(oid, tid),
        }
    for found in one.db.storage.iterator():
        for record in found:
            if record.oid == oid:
                ways["iterator"] = record.data
    assert {name: zones_in(data) for name, data in ways.items()} == dict.fromkeys(ways, 1)

    # A conflict of two additions to a BTree is resolved from its three states.
    one.manager.begin()
    other.manager.begin()
    one.root["dates"]["second"] = other.root["dates"]["third"] = NOON
    one.manager.commit()
    other.manager.commit()
    with one.manager:
        assert [date.tzinfo for date in one.root["dates"].values()] == [pytz.utc] * 3
    if keeps_history:
        with one.manager:
            one.root["page"]["title"] = "Changed again"
        with one.manager:
            one.db.undo(one.db.undoLog(0, 1)[0]["id"], one.manager.get())
    third = Process(database, history_preserving=keeps_history)
    with third.manager:
        page = third.root["page"]
        assert page["title"] == "Changed"
        assert page["date"].tzinfo is pytz.utc
    for process in (one, other, third):
        process.close()


#: A process that opens its database before it imports plone.pgcatalog, as Zope does.
LATE = """
from types import SimpleNamespace
from ZODB.DB import DB
from zodb_pgjsonb.storage import PGJsonbStorage

import sys

database = DB(PGJsonbStorage(sys.argv[1], cache_warm_pct=0))


def zones():
    with database.transaction() as one, database.transaction() as other:
        return [type(connection.root()["page"]["date"].tzinfo).__name__ for connection in (one, other)]


before = zones()

from plone.pgcatalog.subscribers import register_processors

register_processors(SimpleNamespace(database=database))
print(*before, *zones())
database.close()
"""


def test_object_loaded_before_the_import_is_loaded_again(database: str) -> None:
    one = Process(database)
    with one.manager:
        one.root["page"] = PersistentMapping(date=NOON)
    one.close()
    make_old(database)
    done = subprocess.run(
        [sys.executable, "-c", LATE, database], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["timezone", "timezone", "UTC", "UTC"]


def test_copy_has_equal_values(database: str, postgres: EmbeddedPostgres) -> None:
    run("store", database, False)
    target = postgres.createdb("copied_values")
    source = PGJsonbStorage(database, cache_warm_pct=0)
    copying.copy_to_scratch(source, target)
    source.close()
    assert json.loads(run("load", target, False)) == {}
