"""Each message of an operation fails once: the operation is done whole, or not at all, and the process goes on."""

from checks.fails.anomalies import anomalies
from checks.fails.anomalies import Status
from checks.fails.histories import histories
from checks.fails.histories import Place
from checks.fails.operations import OPERATIONS
from checks.fails.relay import Relay
from checks.fails.trial import make_template
from checks.fails.trial import trials
from collections.abc import Iterator
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS

import pytest


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(zope: None) -> Iterator[EmbeddedPostgres]:
    """A server of its own with a site as template."""
    with EmbeddedPostgres(settings=TEST_SETTINGS) as server:
        make_template(server)
        yield server


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_whose_message_fails_is_done_whole_or_not_at_all(server: EmbeddedPostgres, name: str) -> None:
    """The COMMIT of each operation (``make fails``: all messages)."""
    with Relay(server.dsn()) as relay:
        results = list(trials(server, relay, OPERATIONS[name](), 1))
    assert [str(result) for result in results if result.wrong] == []
    assert [result.has_failed for result in results] == [True, True]
    # A job that is done, and still queued, is done again.
    states = {"before", "after"} if OPERATIONS[name].acknowledges else {"before"}
    assert {result.state for result in results} == states


def test_history_over_a_failover_has_no_anomaly(zope: None) -> None:
    history = histories(Place.FAILOVER, transactions=5, failovers=1, seed=1)
    assert anomalies(history) == []
    assert sum(txn.status is Status.COMMITTED for txn in history) >= 30
