"""ZODB's own tests of storages end on zodb-pgjsonb with this package as without it."""

from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.acceptance.zodb_suites.results import run
from tests.acceptance.zodb_suites.results import STORED
from tests.acceptance.zodb_suites.results import table

import json
import pytest


def test_stored_table_names_no_test_that_fails_with_this_package_only() -> None:
    stored = json.loads(STORED.read_text())
    assert stored["fail with only"] == []
    assert len(stored["fail without"]) < stored["tests"] > 300


@pytest.mark.slow
@pytest.mark.direct("the tests create databases of their own")
def test_same_tests_fail_with_this_package_and_without(postgres: EmbeddedPostgres) -> None:
    """As the stored table says; after a change: ``python -m tests.acceptance.zodb_suites``."""
    assert table(run(postgres.createdb("zodb_suites"))) == json.loads(STORED.read_text())
