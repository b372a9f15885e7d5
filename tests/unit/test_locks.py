"""Advisory locks: no two kinds of work can wait for each other by accident."""

from plone.pgcatalog.sql import locks
from tests.unit.sources import SOURCE
from zodb_pgjsonb.cache_warmer import WARMER_LOCK_NS
from zodb_pgjsonb.startup_locks import STARTUP_DDL_LOCK_NS

import re


KEYS = {name: value for name, value in vars(locks).items() if name.isupper() and isinstance(value, int)}


def test_no_two_kinds_of_work_have_the_same_key() -> None:
    assert len(KEYS) > 1
    assert len({*KEYS.values(), WARMER_LOCK_NS, STARTUP_DDL_LOCK_NS}) == len(KEYS) + len(
        {WARMER_LOCK_NS, STARTUP_DDL_LOCK_NS}
    )


def test_keys_are_integers_of_postgresql() -> None:
    for key in KEYS.values():
        for zoid in (0, 2**31 - 1, 2**31, 2**63 - 1):
            assert all(0 <= part < 2**31 for part in locks.of_catalog(key, zoid))


def test_every_key_is_in_one_module() -> None:
    """No statement has a key of its own, and no module another number that looks like one."""
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sql")]:
        if path != SOURCE / "sql" / "locks.py":
            text = path.read_text("utf-8")
            assert not re.search(r"advisory\w*lock\w*\s*\(\s*\d", text), path
            assert "0x7067" not in text.lower(), path
