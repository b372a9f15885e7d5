"""The tabs Slow Queries and Index Advice over HTTP: for managers only; changes need POST and a token."""

from collections.abc import Iterator
from lxml import html
from plone.pgcatalog.advice.builder import IndexTarget
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.settings import slow_query_ms
from plone.pgcatalog.zmi.page import readable
from tests.integration.people import add_plain_users
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import slow_listing
from tests.integration.waiting import background_ended
from tests.integration.web import location
from tests.integration.web import MANAGER
from tests.integration.web import REFUSED
from tests.integration.web import Site
from tests.integration.web import text
from tests.integration.web import wrongly_seen
from typing import Any

import ast
import pytest
import re


SLOW = "/plone/portal_catalog/manage_slow_queries"
ADVICE = "/plone/portal_catalog/manage_index_advice"
PLAN = "/plone/portal_catalog/manage_catalogPlan"
REPORT = "/plone/portal_catalog/manage_catalogReport"


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Site]:
    """A site with generated rows, users, and one slow query in its log."""
    generate_rows(shared_site.dsn)
    with shared_site.inside() as portal:
        add_plain_users(portal)
    with shared_site.inside() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        slow_listing(portal)
    yield shared_site
    assert recorder.flush(10)
    assert background_ended()


def log_size(site: Site) -> int:
    with site.inside() as portal:
        return sum(group.count for group in log_of(portal).groups())


def log_of(portal: Any) -> Any:
    from plone.pgcatalog.observe.log import log_of

    return log_of(portal.portal_catalog._core)


def key_of(site: Site, shape: str) -> str:
    """Return the key of the group whose shape begins with *shape*."""
    with site.inside() as portal:
        return str(next(group.key for group in log_of(portal).groups() if group.shape.startswith(shape)))


def test_only_managers_see_the_pages(site: Site) -> None:
    assert wrongly_seen(site, SLOW, ADVICE, PLAN, REPORT) == []
    for url in (SLOW, ADVICE, PLAN, REPORT):
        for action in ("clear", "explain", "advise", "apply", "drop"):
            for login in (None, "mara:secret"):
                answer = site.web.post(url, login, _authenticator=site.token(), **{action: "1"})
                assert answer.status in REFUSED


@pytest.mark.parametrize(
    ("url", "form"),
    [
        *((SLOW, {"clear": "1"}), (SLOW, {"explain": "1"}), (ADVICE, {"advise": "1"})),
        *((ADVICE, {"apply": "advice_1"}), (ADVICE, {"build": "advice_1"}), (ADVICE, {"cancel": "advice_1"})),
        (ADVICE, {"drop": "advice_1"}),
    ],
)
def test_actions_need_post_and_token(site: Site, url: str, form: dict[str, str]) -> None:
    before = log_size(site)
    assert site.web.post(url, MANAGER, **form).status == 403
    assert site.web.post(url, MANAGER, _authenticator="0" * 40, **form).status == 403
    # A GET only shows the page.
    response = site.web.get(url, MANAGER, _authenticator=site.token(), **form)
    assert response.status == 200
    assert "plan" not in html.fromstring(response.body).xpath("//pre/@id")
    assert log_size(site) == before


def test_the_log_by_shape_and_an_explained_example(site: Site) -> None:
    tree = site.page(SLOW)
    [group] = tree.xpath("//table[@id='groups']/tbody/tr")
    assert text(group).startswith("Creator =; portal_type =; sort modified desc; limit page ")
    assert "100 %" in text(group)
    [link] = group.xpath("./td/a/@href")
    tree = site.page(SLOW, shape=link.rpartition("shape=")[2])
    [example] = tree.xpath("//table[@id='examples']/tbody/tr")
    assert "'Creator': 'creator7'" in text(example)
    [form] = [form for form in tree.forms if form.xpath(".//button[@name='explain']")]
    assert form.method == "POST"
    [number] = form.xpath(".//button/@value")
    explained = html.fromstring(site.post(SLOW, explain=number).body)
    assert "Time on the server:" in explained.xpath("//pre[@id='plan']")[0].text
    assert "'creator7', 'File'" in text(explained.xpath("//section[@id='explained']")[0])


@pytest.mark.parametrize("number", ["0", "-1", "x", "", "1; DROP TABLE object_state", "9" * 40, "١", "SELECT 1"])
def test_only_a_number_is_explained(site: Site, number: str) -> None:
    response = site.post(SLOW, explain=number)
    assert response.status == 200
    assert "This query is no longer in the log." in response.text
    assert "<pre" not in response.text
    assert site.web.get(SLOW, MANAGER, shape=number, page=number, hours=number).status == 200


def test_values_are_escaped(site: Site) -> None:
    evil = "<script>alert(1)</script>"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        with site.inside() as portal:
            for _brain in portal.portal_catalog.unrestrictedSearchResults(getId=evil):
                raise AssertionError
            recorder.flush(10)
    response = site.web.get(SLOW, MANAGER, shape=key_of(site, "getId ="))
    assert "&lt;script&gt;alert(1)" in response.text
    assert evil not in response.text
    message = site.web.get(SLOW, MANAGER, manage_tabs_message=evil)
    assert evil not in message.text


def test_a_query_is_shown_as_code_writes_it(site: Site) -> None:
    tree = site.page(SLOW, shape=key_of(site, "Creator ="))
    shown = text(tree.xpath("//table[@id='examples']/tbody/tr[last()]/td[2]/code")[0])
    query = ast.literal_eval(shown)
    assert (query["sort_on"], query["sort_order"]) == (["modified"], ["descending"])
    assert query["portal_type"] == "File"


def test_characters_that_no_font_shows_are_written_out() -> None:
    assert readable("a\x02en\tb\n\U0010ffff ü中\ud800") == "a\\x02en\tb\n\\U0010ffff ü中\\ud800"


def test_the_tabs_are_in_the_management_interface(site: Site) -> None:
    for url in (SLOW, ADVICE, "/plone/portal_catalog/manage_catalogAdvanced"):
        tabs = site.page(url).xpath("//*[@id='main-menu' or contains(@class, 'nav')]//a/text()")
        assert {"Slow Queries", "Index Advice"} <= {tab.strip() for tab in tabs}


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


@pytest.mark.parametrize("action", ["apply", "build", "cancel", "drop"])
@pytest.mark.parametrize("name", ["x", "advice_000000000000", "modified", '"; DROP TABLE object_state; --', ""])
def test_no_name_from_a_form_becomes_sql(site: Site, action: str, name: str) -> None:
    response = site.post(ADVICE, **{action: name})
    assert "Not+done" in location(response)
    with site.inside() as portal:
        assert IndexTarget.of(portal.portal_catalog._core).relation


def test_a_list_in_a_form_is_no_name(site: Site) -> None:
    assert site.post(ADVICE, drop=["a", "b"]).status == 200
    assert site.post(SLOW, explain=["1", "2"]).status == 200


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
