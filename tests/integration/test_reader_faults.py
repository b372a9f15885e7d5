"""A Zope on a standby whose reads are cancelled, or that lags, is promoted, or goes away."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.metrics.observability import CatalogReadiness
from plone.pgcatalog.metrics.prometheus import text
from plone.pgcatalog.observe import health
from plone.pgcatalog.storage import max_replay_lag
from plone.pgcatalog.unavailable import unavailable_filter
from tests.integration import readers
from tests.integration.publishing import handlers
from tests.integration.readers import PAGE
from tests.integration.readers import Servers
from tests.integration.readers import servers as servers
from tests.integration.readers import titles
from tests.integration.readers import writer as writer
from tests.integration.servers import execute
from tests.integration.servers import fetch
from tests.integration.storage import clear_storage_cache
from tests.integration.waiting import until
from tests.integration.web import application
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any

import psycopg
import psycopg.rows
import pytest


pytestmark = pytest.mark.slow

#: A read may block the standby's replay for a moment only.
STANDBY = {"max_standby_streaming_delay": "100ms"}
#: Occasional actions of a primary whose replay conflicts with reads on a standby.
CONFLICTS = {
    "VACUUM": (
        "UPDATE object_state SET state_size = state_size",
        "UPDATE {relation} SET portal_type = portal_type",
        "VACUUM object_state",
        "VACUUM {relation}",
    ),
    "ALTER": (
        "ALTER TABLE object_state ADD COLUMN IF NOT EXISTS of_a_test int",
        "ALTER TABLE {relation} ADD COLUMN IF NOT EXISTS of_a_test int",
        "ALTER TABLE object_state DROP COLUMN of_a_test",
        "ALTER TABLE {relation} DROP COLUMN of_a_test",
    ),
}


@pytest.fixture
def reader(servers: Servers) -> Iterator[Site]:
    with readers.reading(servers.standby_dsn, max_replay_lag=1.0, pool_timeout=2.0) as db:
        yield Site(db)


def conflict(servers: Servers, kind: str) -> None:
    """Do an action of *kind* on the primary, and wait until the standby has replayed it."""
    relation = fetch(servers.dsn, "SELECT relation FROM pgcatalog_state")
    for statement in CONFLICTS[kind]:
        execute(servers.dsn, statement.format(relation=relation))
    servers.standby.catch_up()


def conflicts(servers: Servers) -> int:
    """Return the number of reads cancelled by the standby."""
    query = "SELECT confl_lock + confl_snapshot FROM pg_stat_database_conflicts WHERE datname = 'site'"
    return int(fetch(servers.standby_dsn, query))


@contextmanager
def within_requests(action: Callable[[], None], times: int) -> Iterator[list[int]]:
    """Do *action* in each of the next requests, *times* at most, before the page is rendered.

    Objects that the page then needs are in no cache.  Yields a list with a number for each.
    """
    done: list[int] = []

    def subscriber(event: Any) -> None:
        if len(done) < times:
            done.append(len(done))
            action()
            page, folder, *_ = event.request["PARENTS"]
            clear_storage_cache(page._p_jar)
            page._p_deactivate()
            folder._p_deactivate()

    with handlers(IPubAfterTraversal=subscriber):
        yield done


@pytest.mark.parametrize("kind", CONFLICTS)
def test_a_request_whose_reads_are_ended_is_repeated(servers: Servers, reader: Site, kind: str) -> None:
    expected = readers.body(reader.web.open(PAGE))
    before = conflicts(servers)
    for times in (1, 2, 3):
        with within_requests(lambda: conflict(servers, kind), times) as done:
            answer = reader.web.open(PAGE)
        assert (len(done), answer.status, readers.body(answer)) == (times, 200, expected)
    until(lambda: conflicts(servers) > before)  # the server's statistics are slightly delayed


def test_request_whose_reads_are_always_cancelled_is_answered_503(servers: Servers, reader: Site) -> None:
    with within_requests(lambda: conflict(servers, "ALTER"), 100) as done:
        answer = reader.web.open(PAGE)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
    assert len(done) == 4
    assert reader.web.open(PAGE).status == 200


# -- lag


def ready(site: Site) -> tuple[bool, str]:
    """Return the result of Zope's readiness probe for the database of *site*."""
    probe = CatalogReadiness()
    probe.dsn, probe.max_replay_lag = site.db.storage._dsn, max_replay_lag(site.db) or health.MAX_REPLAY_LAG
    return probe()


def told(dsn: str) -> str:
    """Return the attention list of ``pgcatalog status`` for the database *dsn*, in one line."""
    with psycopg.connect(dsn, autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
        return "; ".join(health.collect(connection)["attention"])


def change(site: Site, title: str) -> None:
    with site.inside() as portal:
        portal.folder.page1.title = title
        portal.folder.page1.reindexObject()


def test_a_standby_that_replays_nothing_shows_one_state_and_is_not_ready(
    servers: Servers, writer: Site, reader: Site
) -> None:
    change(writer, "first")
    servers.standby.catch_up()
    assert titles(reader.db) == ("first", "first")
    assert ready(reader)[0]
    assert told(servers.standby_dsn) == told(servers.dsn) == ""
    with servers.paused():
        change(writer, "second")
        assert titles(reader.db) == ("first", "first")
        until(lambda: not ready(reader)[0])
        assert "behind its primary" in ready(reader)[1]
        metrics = text(servers.standby_dsn)
        assert "pgcatalog_standby 1.0" in metrics
        assert "pgcatalog_standby_streaming 1.0" in metrics
        assert ready(writer)[0]
    servers.standby.catch_up()
    assert titles(reader.db) == ("second", "second")
    assert ready(reader)[0]
    assert "pgcatalog_standby 0.0" in text(servers.dsn)


def test_killed_standby_is_waited_for(servers: Servers, writer: Site) -> None:
    with readers.reading_until_killed(servers.standby_dsn, max_replay_lag=1.0, pool_timeout=2.0) as db:
        reader, web = Site(db), Web(db, unavailable_filter(application(db)))
        assert web.open(PAGE).status == 200
        servers.standby.kill()
        until(lambda: web.open(PAGE).status == 503)
        assert web.open(PAGE).headers["Retry-After"] == "10"
        assert not ready(reader)[0]
        servers.standby.start()
        change(writer, "after the kill")
        servers.standby.catch_up()
        # Each pooled connection that the kill has broken may fail a request.
        until(lambda: web.open(PAGE).status == 200)
        assert titles(reader.db) == ("after the kill", "after the kill")
        assert ready(reader)[0]


def test_cut_off_standby_is_not_ready_and_a_promoted_one_is(servers: Servers, writer: Site, reader: Site) -> None:
    """A reader saves nothing, even when its server could."""
    change(writer, "before")
    servers.standby.catch_up()
    servers.standby.cut_off()
    change(writer, "lost")
    until(lambda: not ready(reader)[0])
    assert "not connected to its primary" in ready(reader)[1]
    assert titles(reader.db) == ("before", "before")
    servers.standby.promote()
    assert ready(reader)[0]
    assert reader.web.patch(PAGE, MANAGER, {"title": "saved"}).status == 503
    with readers.sites.opened(servers.standby_dsn) as db:
        change(Site(db), "new")
    assert titles(reader.db) == ("new", "new")
