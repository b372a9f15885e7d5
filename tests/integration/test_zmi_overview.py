"""The tab Overview and the head of the control panel: figures that are right."""

from collections.abc import Iterator
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.direct import session_of
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.observe import health
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.log import Choice
from plone.pgcatalog.observe.log import histogram
from plone.pgcatalog.observe.log import log_of
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.zmi.overview import FiguresView
from psycopg.rows import dict_row
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.waiting import background_ended
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any

import psycopg
import pytest
import re


TOOL = "/plone/portal_catalog"
OVERVIEW = f"{TOOL}/manage_catalogOverview"
PANEL = "/plone/@@pgcatalog-controlpanel"
#: More rows than are counted.
ROWS = 1200


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Site]:
    """A site with too many rows for a count."""
    with shared_site.inside() as portal:
        create(portal, "Document", "page", title="Page")
    generate_rows(shared_site.dsn, ROWS)
    yield shared_site
    assert background_ended()
    assert recorder.flush(10)


def figures(site: Site, url: str = OVERVIEW) -> dict[str, str]:
    parts = [text(part) for part in site.page(url).xpath("//dl[@id='figures']/*")]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def connected(site: Site) -> Any:
    return psycopg.connect(site.db.storage._dsn, autocommit=True, row_factory=dict_row)


@pytest.mark.parametrize("url", [OVERVIEW, PANEL])
def test_the_figures_are_those_of_postgresql(site: Site, url: str) -> None:
    with connected(site) as connection:
        [state] = connection.execute("SELECT * FROM pgcatalog_state").fetchall()
    found = figures(site, url)
    assert state["relation"] in found["Table"]
    assert f"(number {state['generation']:,})" in found["Last change"]
    assert found["Rows"].startswith("about 1,")


def test_few_rows_are_counted_also_before_the_first_analyze(db: Any) -> None:
    site = Site(db)
    with site.inside() as portal:
        rows = len(portal.portal_catalog)
    assert figures(site)["Rows"] == str(rows)


def test_growth_is_shown_from_the_history(site: Site) -> None:
    queue = recorder.Recorder(site.db.storage._dsn)
    queue.tick()
    assert queue.flush(10)
    assert "(" not in figures(site)["Rows"]  # a process records nothing in its first minutes
    queue.sizes_due = 0.0
    queue.tick()
    queue.tick()
    assert queue.flush(10)
    with connected(site) as connection:
        [line] = connection.execute("SELECT * FROM pgcatalog_history").fetchall()
        assert (line["operation"], line["shape"]) == ("", "")
        rows, _table, indexes, _generation = line["figures"]
        earlier = [rows - 17, 0, indexes + 5000, 1]
        connection.execute(
            "INSERT INTO pgcatalog_history SELECT catalog, hour - interval '6 days', '', '', %s FROM pgcatalog_history",
            [earlier],
        )
    found = figures(site)
    assert "(+17 in 6 days)" in found["Rows"]
    assert "(-5.0 kB in 6 days)" in found["SQL indexes"]


def test_hit_rates_are_shown_by_kind(site: Site) -> None:
    result_cache().clear()
    with site.inside() as portal:
        for _ in range(2):
            assert len(portal.portal_catalog.unrestrictedSearchResults(portal_type="Document"))
    assert "searches " in figures(site)["Cache hit rate of this process"]


def test_old_transaction_is_named_with_its_locks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plone.pgcatalog.zmi.overview.OLD", 0)
    monkeypatch.setattr(health, "OLDEST_SECONDS", 0)
    with psycopg.connect(site.db.storage._dsn, application_name="a report") as connection:
        connection.execute("LOCK TABLE pgcatalog_history IN SHARE MODE")
        tree = site.page(OVERVIEW)
        oldest = text(tree.get_element_by_id("oldest"))
        assert "a report idle in transaction has locked pgcatalog_history" in oldest
        line = text(tree.get_element_by_id("health"))
        assert line.startswith("Needs attention: the transaction of process ")
        assert f"process {session_of(connection)} " in line


def test_the_line_about_the_health_is_the_same_everywhere(site: Site) -> None:
    with connected(site) as connection:
        assert english(health.line(health.collect(connection))) == "Healthy: nothing needs attention"
    for url in (OVERVIEW, PANEL):
        assert text(site.page(url).get_element_by_id("health")) == "Healthy: nothing needs attention"
    with connected(site) as connection:
        connection.execute(
            "INSERT INTO pgcatalog_queue (kind, catalog, subject, priority, due, reason, finished)"
            " SELECT 'verify', catalog, catalog, 1, 'infinity', 'broken', now() FROM pgcatalog_state"
        )
        assert "the last verify failed" in english(health.line(health.collect(connection)))
        assert "the last verify failed" in text(site.page(OVERVIEW).get_element_by_id("health"))
        connection.execute("DELETE FROM pgcatalog_queue")


def test_line_has_the_number_of_unusually_slow_queries(site: Site) -> None:
    """As on the tab: slow for this site are those over 100 ms, or ten times the median of their shape."""
    row = (
        "INSERT INTO pgcatalog_slow_queries (catalog, path, operation, shape, query, left_out, total_ms, embed_ms, compile_ms,"
        " execute_ms, decode_ms, result_rows, statement, page, cold, process_started)"
        " SELECT catalog, '/plone/portal_catalog', 'page', 'x', '{}', '{}', ms, 0, 0, ms, 0, 1, 'SELECT', '', '', now()"
        " FROM pgcatalog_state, unnest(%s::float8[]) AS ms"
    )
    usual = (
        "INSERT INTO pgcatalog_history SELECT catalog, date_trunc('hour', now(), 'UTC') - %s * interval '1 day', 'page', 'x', %s"
        " FROM pgcatalog_state"
    )

    def line() -> str:
        collected = english(health.line(health.collect(connection)))
        assert text(site.page(OVERVIEW).get_element_by_id("health")) == collected
        return collected

    with connected(site) as connection:
        try:
            connection.execute(row, ([2.0] * 20 + [30.0] * 3 + [200.0],))
            queries = "24 slow queries in 24 hours, 4 of them slow for this site"
            assert line() == f"Healthy: nothing needs attention; {queries} (the usual number is not known yet)"
            with site.inside() as portal:
                [group] = log_of(portal.portal_catalog._core).groups(choice=Choice(hours=24))
            assert (group.count, group.long) == (24, 4)
            connection.execute(row, ([150.0],))
            assert line().startswith(
                "Needs attention: /plone: 25 slow queries in 24 hours, 5 of them slow for this site"
            )
            assert "pgcatalog slow --since 24h" in line()
            for days in range(2, 9):
                connection.execute(usual, (days - 0.5, histogram([20.0] * 22)))
            queries = "25 slow queries in 24 hours, 5 of them slow for this site (usually 22)"
            assert line() == f"Healthy: nothing needs attention; {queries}"
        finally:
            connection.execute("DELETE FROM pgcatalog_slow_queries")
            connection.execute("DELETE FROM pgcatalog_history WHERE operation <> ''")


def test_times_carry_their_zone(site: Site) -> None:
    assert re.search(r"\d\d:\d\d:\d\d [A-Z+-]\w*", figures(site)["Last change"])


@pytest.mark.direct("a session that stays open reports its dead rows later")
def test_maintenance_is_started_here_and_its_result_shown(site: Site) -> None:
    tree = site.page(OVERVIEW)
    [form] = [form for form in tree.forms if form.xpath(".//button[@name='vacuum']")]
    assert form.method == "POST"
    assert form.action.endswith("/manage_catalogAdvanced")
    address = f"{TOOL}/manage_catalogAdvanced"
    for action in ("vacuum", "verify"):
        answer = site.web.post(address, MANAGER, _authenticator=form.fields["_authenticator"], **{action: "1"})
        assert answer.status == 302
        assert background_ended()
    lines = [text(line) for line in site.page(OVERVIEW).xpath("//table[@id='maintenance']/tbody/tr")]
    assert "objects compared" in lines[0]
    assert lines[1].endswith("–")
    assert lines[2].startswith("Vacuum 20")
    assert " Dead rows: 0; statistics of 20" in lines[2]
    with connected(site) as connection:
        [catalog] = statistics.overview(statistics.executing(connection))["catalogs"]
    assert english(restored(catalog["jobs"]["vacuum"]["message"])).startswith("Vacuumed; ")


def test_a_manager_of_a_catalog_sees_that_catalog_only(site: Site) -> None:
    with site.inside() as portal:
        found = FiguresView(portal.portal_catalog, portal.REQUEST).overview["catalogs"]
        assert [one["catalog"] for one in found] == [portal.portal_catalog._core.zoid]
        other = statistics.overview(portal.portal_catalog._core.session.execute, 12345)
        assert other["catalogs"] == []
