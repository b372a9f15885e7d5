"""A part of `make test-pooler`, with the installed PgBouncer."""

from checks.through_pooler import count
from checks.through_pooler import run

import pytest


#: Prepared statements, and connections that end.
MODULES = ("test_prepared", "test_snapshots")


@pytest.mark.slow
def test_tests_pass_through_a_pooler(pgbouncer: str) -> None:
    found = run(pgbouncer, tuple(f"tests/integration/{module}.py" for module in MODULES), ["-m", "not slow"])
    assert sorted(found) == sorted(MODULES)
    counts = count(found)
    assert counts["tests that fail"] == 0, found
    assert counts["tests that pass"] > 30
