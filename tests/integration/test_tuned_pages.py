"""Tuning by age, period, section and page: half-lives, pins with conditions, and pages that searches leave out."""

from collections.abc import Iterator
from DateTime import DateTime
from datetime import timedelta
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from plone.app.textfield import RichTextValue
from plone.dexterity.schema import SCHEMA_CACHE
from plone.pgcatalog.discovery.preview import preview
from plone.pgcatalog.discovery.suggest import suggest
from plone.pgcatalog.fulltext.site import midnight
from plone.pgcatalog.interfaces import INotInSearch
from plone.pgcatalog.meaning.question import as_site_searches
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.plans import page_statement
from tests.integration.web import Site
from typing import Any
from zope.component import getUtility

import pytest
import transaction


PATHS = ("news-1", "news-2", "en", "en/intranet", "en/intranet/page", "en/old", "other")
TEXT = "Hedgehogs are busy at night, and hedgehogs sleep in winter"


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    """(portal, Web): public pages with the same text; the tests leave no change."""
    with sites.inside(shared_site.db) as portal:
        add_users(portal)
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
        portal.portal_workflow.setChainForPortalTypes(("News Item",), ("simple_publication_workflow",))
        for path in PATHS:
            above, _, name = path.rpartition("/")
            kind = "News Item" if path.startswith("news") else "Folder" if path in ("en", "en/intranet") else "Document"
            text = f"{TEXT}, and xylophones play" if path == "en/old" else TEXT
            fields = {} if kind == "Folder" else {"text": RichTextValue(text, "text/plain")}
            folder = portal.unrestrictedTraverse(above) if above else portal
            publish(create(folder, kind, name, title=f"Hedgehogs {kind}", **fields))
        transaction.commit()
        counted(shared_site.dsn, portal.portal_catalog)
        yield portal, shared_site.web


@pytest.fixture
def portal(site: Any) -> Iterator[Any]:
    with sites.rolled_back(site[0]) as portal:
        yield portal
    SCHEMA_CACHE.clear()


def order(portal: Any, query: dict[str, Any] | None = None) -> list[str]:
    results = portal.portal_catalog.unrestrictedSearchResults(**(query or {"SearchableText": "hedgehogs"}))
    paths = [brain.getPath().removeprefix("/plone/") for brain in results]
    assert len(paths) == results.actual_result_count
    return paths


def as_site(portal: Any, context: Any = None, **more: Any) -> list[str]:
    query = {"SearchableText": "hedgehogs"} | more
    return order(portal, as_site_searches(portal.portal_catalog, query, context))


def date_of(page: Any, days: float) -> None:
    """Publish *page* so many *days* before today's midnight, in UTC."""
    page.setEffectiveDate(DateTime(midnight("UTC") - timedelta(days=days)))
    page.reindexObject(idxs=["effective"])


def scores(portal: Any) -> dict[str, float]:
    found = portal.portal_catalog.unrestrictedSearchResults(SearchableText="hedgehogs")
    return {brain.getPath().removeprefix("/plone/"): brain.data_record_score_ for brain in found}


# -- half-lives


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(-50, 19_000) | st.floats(21_000, 40_000), st.integers(1, 99_999))
def test_relevance_is_halved_with_each_half_life(portal: Any, age: float, half_life: int) -> None:
    tune(half_lives="")
    date_of(portal["news-1"], age)
    date_of(portal.other, age)
    plain = scores(portal)
    tune(half_lives=f"News Item = {half_life} days\nNo such type = 1 day")
    tuned = scores(portal)
    # Scores are whole numbers, in thousandths.
    halvings = max(0, age) / half_life if age < 20_000 else 0
    assert tuned["news-1"] == pytest.approx(plain["news-1"] * 0.5**halvings, abs=1)
    assert tuned["other"] == plain["other"]
    assert tuned.keys() == plain.keys()


@pytest.mark.parametrize("effective", [None, DateTime("2499/12/31"), DateTime("1969/12/31")])
def test_page_without_a_date_counts_fully(portal: Any, effective: Any) -> None:
    portal["news-1"].setEffectiveDate(effective)
    portal["news-1"].reindexObject(idxs=["effective"])
    plain = scores(portal)
    tune(half_lives="News Item = 1 day")
    assert scores(portal)["news-1"] == plain["news-1"]


def test_newer_page_comes_first_in_search_and_preview(portal: Any) -> None:
    date_of(portal["news-1"], 400)
    date_of(portal["news-2"], 10)
    line = "News Item = 90 days"
    for days in (10, 400):
        date_of(portal["news-1"], days)
        date_of(portal["news-2"], 410 - days)
        new, old = ("news-1", "news-2") if days == 10 else ("news-2", "news-1")
        hits = preview(portal.portal_catalog, {"SearchableText": "hedgehogs"}, {"half_lives": line})
        ids = [hit.brain.getId for hit in hits]
        assert ids.index(new) < ids.index(old)
        assert [hit.place_before for hit in hits] != list(range(1, len(hits) + 1))


def test_searches_without_these_settings_have_the_same_sql(portal: Any) -> None:
    def statements() -> list[Any]:
        searches = [portal.portal_catalog.unrestrictedSearchResults(**query) for query in queries]
        return [page_statement(results.view, results.compiled, 0, 10) for results in searches]

    text = {"SearchableText": "hedgehogs"}
    queries = [
        text,
        *(as_site_searches(portal.portal_catalog, q, portal.en) for q in (text, {"portal_type": "Document"})),
    ]
    before = statements()
    tune(pins="other words = /en below /en\nhedgehogs = /en until 2001-01-01\nothers => -/en")
    assert statements() == before
    tune(half_lives="News Item = 9 days", hidden_pages="/en/old", pins="hedgehogs => -/other")
    assert all(now != old for now, old in zip(statements()[1:2], before[1:2], strict=True))
    tune(half_lives="", pins="")
    # Hidden pages are left out of the site's own searches only.
    assert statements()[0] == before[0]
    assert all(now != old for now, old in zip(statements()[1:], before[1:], strict=True))


# -- pins


@pytest.mark.parametrize(("zone", "is_first"), [("Pacific/Kiritimati", True), ("Pacific/Pago_Pago", False)])
def test_period_of_a_pin_is_in_the_time_zone_of_the_site(portal: Any, zone: str, is_first: bool) -> None:
    day = midnight("Pacific/Kiritimati").date()
    getUtility(IRegistry)["plone.portal_timezone"] = zone
    tune(pins=f"hedgehogs = /other from {day} until {day}")
    assert (scores(portal)["other"] > 1e6) == is_first
    tune(pins=f"hedgehogs = /other until {day - timedelta(days=1)}")
    assert (scores(portal)["other"] > 1e6) != is_first


@pytest.mark.parametrize(
    ("query", "context", "is_pinned"),
    [
        *(({"path": path}, None, True) for path in ("/plone/en/intranet", "/plone/en/intranet/page")),
        ({"path": {"query": ["/plone/en/intranet", "/plone/en/intranet/page"], "depth": 5}}, None, True),
        *(({"path": path}, None, False) for path in ("/plone/en", ["/plone/en/intranet", "/plone/other"], [], 7)),
        ({"path": "/plone/en/intranet-2"}, None, False),
        *(
            ({}, None, False),
            ({}, "", False),
            ({}, "en", False),
            ({}, "en/intranet", True),
            ({}, "en/intranet/page", True),
        ),
        ({"path": "/plone"}, "en/intranet", True),
    ],
)
def test_pin_of_a_section_is_for_searches_from_there(
    portal: Any, query: dict[str, Any], context: str | None, is_pinned: bool
) -> None:
    tune(pins="spines = /en/intranet/page below /en/intranet")
    page = None if context is None else portal.unrestrictedTraverse(context) if context else portal
    found = as_site(portal, page, SearchableText="spines", **query) if query.get("path") != 7 else []
    assert found == (["en/intranet/page"] if is_pinned else [])


# -- pages that are left out


def mark(portal: Any) -> None:
    """Leave a page out by the behavior of its type."""
    fti = portal.portal_types.Document
    fti._updateProperty("behaviors", (*fti.behaviors, "plone.pgcatalog.search"))
    portal.en.old.not_in_search = True
    portal.en.old.reindexObject()


@pytest.mark.parametrize(
    ("left_out", "gone"),
    [
        (lambda portal: tune(hidden_pages="hide = /en/old"), {"en/old"}),
        (lambda portal: tune(hidden_pages="/en/intranet"), {"en/intranet", "en/intranet/page"}),
        (lambda portal: tune(hidden_pages=f"/e\nhide = {portal.en.UID()}\n/no/such"), {"en"}),
        (lambda portal: tune(pins="hedgehogs => -/en/old\nhedgehogs = /en/old"), {"en/old"}),
        (lambda portal: tune(pins="other => -/en/old\nhedgehogs => -/en/old until 2001-01-01"), set()),
        (mark, {"en/old"}),
    ],
)
def test_pages_are_left_out_of_searches_of_visitors_only(portal: Any, left_out: Any, gone: set[str]) -> None:
    before = order(portal)
    assert set(as_site(portal)) == set(before) == {*PATHS}
    left_out(portal)
    assert set(order(portal)) == set(before)
    assert set(as_site(portal)) == set(as_site(portal, sort_on="getId")) == set(before) - gone
    facets = portal.portal_catalog.unrestrictedSearchResults(
        **as_site_searches(portal.portal_catalog, {"SearchableText": "hedgehogs"})
    ).facets(["getId"], exclude_own=True)
    assert len(facets["getId"]) == len(PATHS) - len(gone)


def test_hidden_page_is_not_pinned_suggested_or_similar(portal: Any) -> None:
    catalog = portal.portal_catalog
    site = as_site_searches(catalog, {"portal_type": "Document"})
    assert suggest(catalog, "xyl", 5, site) == ["xylophones"]
    assert "old" in [brain.getId for brain in catalog.more_like_this(portal.other, 9, **site)]
    tune(hidden_pages="/en/old", pins="hedgehogs = /en/old")
    assert suggest(catalog, "xyl", 5, site) == []
    assert "old" not in [brain.getId for brain in catalog.more_like_this(portal.other, 9, **site)]
    assert "old" in [brain.getId for brain in catalog.more_like_this(portal.other, 9, portal_type="Document")]
    assert "en/old" not in as_site(portal)
    assert order(portal)[0] == "en/old"


def test_preview_leaves_out_what_the_form_hides(portal: Any) -> None:
    query = as_site_searches(portal.portal_catalog, {"SearchableText": "hedgehogs"})
    with acting_as(portal, "mara"):
        for form in ({"hidden_pages": "/en/old"}, {"pins": "hedgehogs => -/en/old"}):
            assert "old" not in [hit.brain.getId for hit in preview(portal.portal_catalog, query, form)]
        tune(hidden_pages="/en/old")
        [hit] = [h for h in preview(portal.portal_catalog, query, {"hidden_pages": ""}) if h.brain.getId == "old"]
        assert hit.place_before is None


def test_marked_page_is_in_the_catalog_and_unmarked_by_its_editor(portal: Any) -> None:
    mark(portal)
    query = {"object_provides": INotInSearch.__identifier__}
    assert order(portal, query) == ["en/old"]
    assert "en/old" not in as_site(portal)
    portal.en.old.not_in_search = False
    portal.en.old.reindexObject()
    assert order(portal, query) == []
    assert "en/old" in as_site(portal)


@pytest.mark.parametrize("path", ["@@search", "@@ajax-search", "@search", "@pgsearch", "@pgsearch?all"])
def test_pages_of_the_site_leave_hidden_pages_out(site: Any, path: str) -> None:
    _portal, web = site
    query = {"@search": {"use_site_search_settings": "1"}, "@@ajax-search": {"perPage": "50"}}.get(path, {})
    words = {} if path.endswith("?all") else {"q" if path == "@pgsearch" else "SearchableText": "hedgehogs"}
    accept = "application/json" if path.startswith("@") and not path.startswith("@@") else "text/html"

    def page() -> str:
        answer = web.get(f"/plone/{path.removesuffix('?all')}", None, accept, **query, **words)
        assert answer.status == 200
        # Not Plone's navigation, which shows hidden pages.
        return str(answer.text).partition('id="search-results"')[2 if path == "@@search" else 0]

    assert "/plone/en/old" in page()
    try:
        tune(hidden_pages="/en/old")
        transaction.commit()
        assert "/plone/en/old" not in page()
        assert "/plone/en/intranet/page" in page()
    finally:
        tune(hidden_pages="")
        transaction.commit()


def test_editor_checks_the_box_in_both_user_interfaces(site: Any) -> None:
    portal, web = site
    fti, login = portal.portal_types.Document, "edith:secret"
    before = fti.behaviors
    fti._updateProperty("behaviors", (*before, "plone.pgcatalog.search"))
    transaction.commit()
    try:
        for value in (True, False):
            assert web.patch("/plone/en/old", login, {"not_in_search": value}).status == 204
            transaction.begin()
            assert ("en/old" in as_site(portal)) != value
            assert "en/old" in order(portal)
        # The form locks the page.
        assert "Not in search results" in web.get("/plone/en/old/edit", login, "text/html").text
    finally:
        transaction.begin()
        fti._updateProperty("behaviors", before)
        transaction.commit()
        SCHEMA_CACHE.clear()
