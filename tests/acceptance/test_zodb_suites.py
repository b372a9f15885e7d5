"""ZODB's own tests of storages have the same results on zodb-pgjsonb with this package as without it."""

from checks.zodb_suites.results import PAGE
from checks.zodb_suites.results import page
from checks.zodb_suites.results import run
from checks.zodb_suites.results import STORED
from checks.zodb_suites.results import summary
from plone.pgcatalog.testing.embedded import EmbeddedPostgres

import json
import pytest


def test_stored_results_name_no_failure_of_this_package_alone() -> None:
    stored = json.loads(STORED.read_text("utf-8"))
    assert stored["fail with only"] == []
    assert len(stored["fail without"]) < sum(stored["tests"].values()) > 300


def test_page_shows_the_stored_results() -> None:
    assert PAGE.read_text("utf-8") == page(PAGE.read_text("utf-8"), json.loads(STORED.read_text("utf-8")))


@pytest.mark.slow
@pytest.mark.direct("the tests create databases of their own")
def test_same_tests_fail_with_this_package_and_without(postgres: EmbeddedPostgres) -> None:
    """As stored; after a change: ``make test-zodb``."""
    assert summary(run(postgres.createdb("zodb_suites"))) == json.loads(STORED.read_text("utf-8"))
