"""What is kept beside a slow query: why it was slow, its plan without values, who asked, and the history by hours."""

from collections.abc import Iterator
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.log import Choice
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import histogram
from plone.pgcatalog.observe.log import log_of
from plone.pgcatalog.observe.plan import PlanFigures
from plone.pgcatalog.observe.plan import why
from plone.pgcatalog.results.cache import result_cache
from psycopg.rows import dict_row
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import ROWS
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any

import json
import psycopg
import pytest
import transaction


SECRET = "creator7"


@pytest.fixture(scope="module")
def shared(site_template: str, postgres: Any) -> Iterator[Site]:
    """A site with generated rows."""
    dsn = sites.clone(postgres, site_template)
    generate_rows(dsn)
    with sites.opened(dsn) as db:
        yield Site(db)
        assert recorder.flush(10)


@pytest.fixture
def site(shared: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """That site, with an empty log; everything is slow."""
    assert recorder.flush(10)
    execute(shared, "DELETE FROM pgcatalog_slow_queries")
    execute(shared, "DELETE FROM pgcatalog_history")
    recorder.recorders[shared.db.storage._dsn]._plans.clear()
    result_cache().clear()
    monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
    yield shared
    assert recorder.flush(10)


def execute(site: Site, query: str, *values: Any) -> list[dict[str, Any]]:
    with psycopg.connect(site.db.storage._dsn, autocommit=True, row_factory=dict_row) as connection:
        cursor = connection.execute(query, values)
        return cursor.fetchall() if cursor.description else []


def recorded(site: Site, operation: str = "page") -> list[dict[str, Any]]:
    assert recorder.flush(10)
    return execute(site, "SELECT * FROM pgcatalog_slow_queries WHERE operation = %s ORDER BY id", operation)


def search(portal: Any, **query: Any) -> None:
    for _brain in portal.portal_catalog.unrestrictedSearchResults(**query)[:5]:
        break


def groups(site: Site, choice: Choice | None = None) -> dict[str, Group]:
    assert recorder.flush(10)
    with site.inside() as portal:
        found = log_of(portal.portal_catalog._core).groups(choice=choice or Choice())
    return {group.shape: group for group in found if group.operation == "page"}


def test_the_plan_is_kept_with_rows_and_without_values(site: Site) -> None:
    with site.inside() as portal:
        search(portal, Creator=SECRET, review_state="private", sort_on="modified")
    [row] = recorded(site)
    assert SECRET not in json.dumps(row["plan"])
    assert "private" not in json.dumps(row["plan"])
    figures = PlanFigures.of(row["plan"])
    assert figures is not None
    assert figures.server_ms > 0
    # Of 200 creators one has 20 rows; how they are found is for PostgreSQL to choose.
    assert figures.rows_returned == 5 <= figures.rows_read <= ROWS
    assert "Scan" in json.dumps(row["plan"])


def test_a_shape_is_explained_once_an_hour(site: Site) -> None:
    with site.inside() as portal:
        for number in range(3):
            search(portal, Creator=f"creator{number}", sort_on="modified")
            assert recorder.flush(10)
    assert [row["plan"] is not None for row in recorded(site)] == [True, False, False]
    [group] = groups(site).values()
    assert group.server_ms is not None
    found = why(group)
    assert sum(found.parts.values()) == pytest.approx(1)


def test_a_count_that_reads_all_rows_returns_those_it_counts(site: Site) -> None:
    with site.inside() as portal:
        assert len(portal.portal_catalog.unrestrictedSearchResults(review_state="private")) == ROWS // 2
    [row] = recorded(site, "count")
    figures = PlanFigures.of(row["plan"])
    assert figures is not None
    assert figures.rows_returned == ROWS // 2
    assert not figures.is_wasteful


def test_the_first_after_a_write_is_cold(site: Site) -> None:
    with site.inside() as portal:
        create(portal, "Document", f"page{portal.portal_catalog.getCounter()}")
    with site.inside() as portal:
        search(portal, Creator=SECRET, sort_on="created")
        search(portal, Creator="creator8", sort_on="created")
        search(portal, Creator="creator9", sort_on="created")
    colds = [row["cold"] for row in recorded(site) if row["shape"].startswith("Creator")]
    assert colds[0] == "write"
    # Not the state any more; whether the connection has met the statement depends on its life before.
    assert set(colds[1:]) <= {"", "connection"}
    assert colds[2] == ""


def test_the_first_in_a_process_is_cold(site: Site) -> None:
    with sites.opened(site.db.storage._dsn) as db, Site(db).inside() as portal:
        search(portal, Creator=SECRET, sort_on="Date")
    assert recorded(site)[0]["cold"] == "process"


def test_a_storage_that_keeps_history_is_cold_no_more_often(site_template: str, postgres: Any, site: Site) -> None:
    """*site* makes everything slow."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn, history_preserving=True) as db:
        kept = Site(db)
        for number in range(4):
            with kept.inside() as portal:
                search(portal, Creator=SECRET, sort_on="Date")
                if number == 2:
                    create(portal, "Document", "page")
                    transaction.commit()
        first, second, third, fourth = [row["cold"] for row in recorded(kept) if row["shape"].startswith("Creator")]
        assert first == "process"
        assert {second, third} <= {"", "connection"}
        assert fourth == "write"


def test_the_page_that_asked_is_kept_without_what_was_asked(site: Site) -> None:
    assert site.web.get("/plone/@@search", MANAGER, SearchableText="hedgehog").status == 200
    pages = {row["page"] for row in recorded(site)}
    assert pages == {"/plone/@@search"}
    with site.inside() as portal:
        log = log_of(portal.portal_catalog._core)
        assert log.pages(Choice(hours=24)) == ["/plone/@@search"]
        assert log.groups(choice=Choice(page="/plone/@@search"))
        assert log.groups(choice=Choice(page="/plone")) == []


def test_pending_rows_cannot_be_explained_by_others(site: Site) -> None:
    with site.inside() as portal:
        create(portal, "Document", "pending")
        search(portal, Creator=SECRET, sort_on="sortable_title")
        rows = [row for row in recorded(site) if row["shape"].startswith("Creator")]
        transaction.abort()
    assert rows
    assert {row["plan"] is None for row in rows} == {True}


def test_the_history_counts_every_query_of_an_hour(site: Site) -> None:
    with site.inside() as portal:
        for number in range(7):
            search(portal, Creator=f"creator{number}", sort_on="modified")
            if number == 3:
                assert recorder.flush(10)
    times = [row["total_ms"] for row in recorded(site)]
    [line] = execute(site, "SELECT figures FROM pgcatalog_history WHERE operation = 'page'")
    assert line["figures"] == histogram(times)
    # What is deleted from the log stays in the history.
    execute(site, "DELETE FROM pgcatalog_slow_queries")
    with site.inside() as portal:
        history = log_of(portal.portal_catalog._core).history(Choice(hours=24))
    [hour] = history.hours.values()
    assert hour.count == 7
    assert 0 < hour.p50_ms <= hour.p95_ms
    assert [figures.count for figures in history.now.values()] == [7]
    assert history.before == {}


def test_the_week_before_is_compared(site: Site) -> None:
    with site.inside() as portal:
        search(portal, Creator=SECRET, sort_on="modified")
    [group] = groups(site).values()
    execute(
        site,
        "INSERT INTO pgcatalog_history SELECT catalog, hour - interval '7 days', operation, shape, %s"
        " FROM pgcatalog_history WHERE operation = 'page'",
        histogram([20.0] * 9),
    )
    with site.inside() as portal:
        history = log_of(portal.portal_catalog._core).history(Choice(hours=24))
    assert history.before[group.key].count == 9
    assert len(history.hours) == 1
    [group] = groups(site).values()
    assert not group.is_new  # this shape was there before the last start


def test_new_is_what_was_not_slow_before_the_last_start(site: Site) -> None:
    with site.inside() as portal:
        search(portal, Creator=SECRET, sort_on="modified")
    assert [group.is_new for group in groups(site).values()] == [True]
    # A process that begins now: what is there was there before.
    execute(site, "UPDATE pgcatalog_slow_queries SET process_started = now() + interval '1 minute'")
    assert [group.is_new for group in groups(site).values()] == [False]


def test_the_history_of_one_page_is_counted_from_its_queries(site: Site) -> None:
    assert site.web.get("/plone/@@search", MANAGER, SearchableText="hedgehog").status == 200
    count = len(execute(site, "SELECT id FROM pgcatalog_slow_queries")) if recorder.flush(10) else 0
    with site.inside() as portal:
        log = log_of(portal.portal_catalog._core)
        found = log.history(Choice(hours=24, page="/plone/@@search"))
        assert sum(figures.count for figures in found.hours.values()) == count > 0
        assert log.history(Choice(hours=24, page="/elsewhere")).hours == {}


def test_slow_for_this_site_is_ten_times_the_median(site: Site) -> None:
    with site.inside() as portal:
        for number in range(4):
            search(portal, Creator=f"creator{number}", sort_on="modified")
    assert recorder.flush(10)
    execute(site, "UPDATE pgcatalog_slow_queries SET total_ms = 2")
    execute(
        site, "UPDATE pgcatalog_slow_queries SET total_ms = 21 WHERE id = (SELECT max(id) FROM pgcatalog_slow_queries)"
    )
    assert [group.long for group in groups(site).values()] == [1]


def test_the_history_is_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "KEPT_LINES", 2)
    execute(
        site,
        "INSERT INTO pgcatalog_history SELECT 1, now() - n * interval '1 hour', 'page', 'x', '{}'"
        " FROM generate_series(1, 10) n",
    )
    execute(site, "INSERT INTO pgcatalog_history SELECT 1, now() - interval '30 days', '', '', '{}'")
    execute(site, "INSERT INTO pgcatalog_history SELECT 1, now() - interval '50 days', '', '', '{}'")
    with site.inside() as portal:
        search(portal, Creator=SECRET, sort_on="modified")
    assert recorder.flush(10)
    lines = execute(site, "SELECT operation FROM pgcatalog_history ORDER BY hour")
    # The sizes are few, and not pushed out by queries.
    assert lines[0]["operation"] == ""
    assert len(lines) <= 4
