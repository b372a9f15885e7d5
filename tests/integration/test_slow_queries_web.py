"""The tabs Slow Queries and Index Advice over HTTP: explained examples, advised indexes, and an empty log."""

from collections.abc import Iterator
from lxml import html
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.log import log_of
from plone.pgcatalog.settings import slow_query_ms
from plone.pgcatalog.zmi.page import readable
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import slow_listing
from tests.integration.waiting import background_ended
from tests.integration.web import location
from tests.integration.web import Site
from tests.integration.web import text

import ast
import pytest
import re


SLOW = "/plone/portal_catalog/manage_slow_queries"
ADVICE = "/plone/portal_catalog/manage_index_advice"
PLAN = "/plone/portal_catalog/manage_catalogPlan"
REPORT = "/plone/portal_catalog/manage_catalogReport"


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Site]:
    """A site with generated rows, and one slow query in its log."""
    generate_rows(shared_site.dsn)
    with shared_site.inside() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        slow_listing(portal)
    yield shared_site
    assert recorder.flush(10)
    assert background_ended()


def log_size(site: Site) -> int:
    with site.inside() as portal:
        return sum(group.count for group in log_of(portal.portal_catalog._core).groups())


def test_the_log_by_shape_and_an_explained_example(site: Site) -> None:
    """A query is shown as code writes it."""
    tree = site.page(SLOW)
    [group] = tree.xpath("//table[@id='groups']/tbody/tr")
    assert text(group).startswith("Creator =; portal_type =; sort modified desc; limit page ")
    assert "100 %" in text(group)
    [link] = group.xpath("./td/a/@href")
    tree = site.page(SLOW, shape=link.rpartition("shape=")[2])
    [example] = tree.xpath("//table[@id='examples']/tbody/tr")
    query = ast.literal_eval(text(example.xpath("./td[2]/code")[0]))
    assert (query["Creator"], query["portal_type"]) == ("creator7", "File")
    assert (query["sort_on"], query["sort_order"]) == (["modified"], ["descending"])
    [form] = [form for form in tree.forms if form.xpath(".//button[@name='explain']")]
    assert form.method == "POST"
    [number] = form.xpath(".//button/@value")
    explained = html.fromstring(site.post(SLOW, explain=number).body)
    assert "Time on the server:" in explained.xpath("//pre[@id='plan']")[0].text
    assert "'creator7', 'File'" in text(explained.xpath("//section[@id='explained']")[0])


def test_characters_that_no_font_shows_are_written_out() -> None:
    assert readable("a\x02en\tb\n\U0010ffff ü中\ud800") == "a\\x02en\tb\n\\U0010ffff ü中\\ud800"


def test_advised_index_is_applied_and_dropped(site: Site) -> None:
    assert not site.page(ADVICE).xpath("//section[@id='made']")
    advised = html.fromstring(site.post(ADVICE, advise="1").body)
    assert "copy of 4,0" in text(advised.xpath("//section[@id='advice']")[0])
    [name] = advised.xpath("//button[@name='apply']/@value")
    assert re.fullmatch(r"advice_[0-9a-f]{12}", name)
    answer = site.post(ADVICE, apply=name)
    assert location(answer).split("?")[0].endswith(ADVICE)
    assert background_ended()
    [row] = site.page(ADVICE).xpath("//section[@id='made']//tbody/tr")
    assert row.get("data-state") == "ready"
    assert row.xpath(".//button/@name") == ["drop"]
    assert site.post(ADVICE, drop=name).status == 302
    assert background_ended()
    assert not site.page(ADVICE).xpath("//section[@id='made']")


def test_the_pages_of_zcatalog_show_it_and_the_report_stays_for_code(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of the report is the threshold of the control panel."""
    monkeypatch.delenv("PGCATALOG_SLOW_QUERY_MS")
    with site.inside() as portal:
        # The value of the replaced ZCatalog has not become the setting.
        assert portal.portal_registry["plone.pgcatalog.slow_query_ms"] == 10
        portal.portal_catalog.long_query_time = 0
    with site.inside() as portal:
        list(portal.portal_catalog.unrestrictedSearchResults(getId="<b>x</b>", review_state="private"))
        assert ("getId", "review_state") in [entry["query"] for entry in portal.portal_catalog.getCatalogReport()]
        portal.portal_catalog.long_query_time = 100
        assert slow_query_ms(portal.portal_catalog) == 100_000
    with site.inside() as portal:
        assert portal.portal_registry["plone.pgcatalog.slow_query_ms"] == 100_000
        portal.portal_catalog.long_query_time = 0.01
    answer = site.post("/plone/portal_catalog/manage_resetCatalogReport")
    assert location(answer).endswith("manage_catalogReport?manage_tabs_message=Report%20cleared")
    with site.inside() as portal:
        assert portal.portal_catalog.getCatalogReport() == []
    for url in (PLAN, REPORT):
        assert site.page(url, manage_tabs_message="Report cleared").get_element_by_id("groups") is not None


def test_pages_show_that_there_is_no_log(site: Site) -> None:
    """Runs last: empties the log."""
    before = log_size(site)
    answer = site.post(SLOW, clear="1")
    # On a slow machine the pages have recorded some more.
    [deleted] = re.findall(r"(\d+)\+slow\+queries\+deleted", location(answer))
    assert int(deleted) >= before
    for url in (SLOW, REPORT):
        assert text(site.page(url).get_element_by_id("empty")) == "No slow query is recorded."
    problem = html.fromstring(site.post(ADVICE, advise="1").body).xpath("//div[@id='problem']")[0]
    assert text(problem) == "No advice: no slow query of this catalog has been recorded yet."
