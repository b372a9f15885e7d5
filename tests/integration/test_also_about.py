"""*Related results*: pages close in meaning to a question, beside the hits of its words."""

from collections.abc import Iterator
from demo import documents as files
from plone.pgcatalog.discovery.file_pages import FilePage
from plone.pgcatalog.discovery.passages import also_about
from plone.pgcatalog.discovery.passages import MOST_PAGES
from plone.pgcatalog.discovery.passages import passages
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.meaning.question import paused_until
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import tune
from tests.integration.embedders import Answers
from tests.integration.examples import assert_example
from tests.integration.meanings import embedder
from tests.integration.meanings import fill
from tests.integration.meanings import page
from tests.integration.meanings import setting
from tests.integration.people import publish
from tests.integration.search_pages import Page
from tests.integration.traffic import traced
from tests.integration.uploads import AsIs
from tests.integration.uploads import extracting
from tests.integration.uploads import upload
from tests.integration.waiting import PATIENCE
from tests.integration.web import MANAGER
from tests.integration.web import Web
from typing import Any

import pytest
import threading
import transaction


PAGES = {
    "leave": ("Annual leave", "Fill in the application for leave before your holiday begins."),
    "urlaub": ("Jahresurlaub", "Wer Urlaub nehmen will, beantragt den Urlaub rechtzeitig."),
    "pool": ("Pool cars", "Borrow one of our cars. Each car has a logbook."),
    "climate": ("Climate", "How the town saves money."),
}


@pytest.fixture(scope="module")
def place(site_template: str, postgres: Any) -> Iterator[Any]:
    """A site that searches by meaning, with PAGES and their vectors; one page with the same meaning is private."""
    dsn = sites.clone(postgres, site_template)
    with (
        sites.opened(dsn) as db,
        sites.inside(db) as portal,
        embedder(search_by_meaning=True, search_facets=("Subject",)) as answers,
    ):
        portal.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
        for id, (title, text) in PAGES.items():
            publish(page(portal, id, title, text, subject=("paper",) if id == "urlaub" else ("other",)))
        pages = f"{'wages and flames ' * 50}\f{'quiet hound ' * 75}\f{'wagen for wages ' * 50}"
        upload(portal, "hounds", f"%PDF-{pages}".encode())
        manual = "\f".join(["wages and flames " * 50] * 60 + ["old ship " * 75] * 2)
        upload(portal, "manual", f"%PDF-{manual}".encode())
        page(portal, "secret", "Unpaid leave", "Ask for leave of more than a month before that holiday.")
        with extracting(AsIs()):
            fill(portal)
        counted(dsn, portal.portal_catalog)
        yield portal, answers, Web(db)


@pytest.fixture
def portal(place: tuple[Any, Answers, Web]) -> Iterator[Any]:
    transaction.begin()
    yield place[0]
    transaction.abort()


def also(portal: Any, SearchableText: str, **query: Any) -> dict[str, str]:
    """Return id -> passage, in order."""
    found = also_about(portal.portal_catalog.searchResults(SearchableText=SearchableText, **query)).value()
    return {each.brain.getId: each.passage for each in found}


class Shown(Page):
    """A search page: the ids of its *hits*, id -> passage of *also*, and the *corrected* text."""

    def __init__(self, web: Web, text: str, who: Any = None, **query: str) -> None:
        super().__init__(web.get("/plone/@@search", who, "text/html", SearchableText=text, **query))
        self.hits = [link.split("/")[-1] for link in self.tree.xpath('//*[@id="searchform"]//ol//h3/a/@href')]
        also = [link.split("/")[-1] for link in self.tree.xpath('//*[@id="search-also"]//li//h3/a/@href')]
        self.also = dict(
            zip(also, self.texts('//*[@id="search-also"]//li/p[contains(@class, "result-text")]'), strict=True)
        )
        self.corrected = self.texts('//*[@id="search-corrected"]//strong')


@pytest.mark.parametrize(
    ("text", "hits", "near"),
    [("leave", ["leave"], {"urlaub"}), ("vacation days", [], {"leave", "urlaub"}), ("asdfghjk", [], set())],
)
def test_pages_found_by_meaning_only_are_shown_apart_with_their_passages(
    place: Any, text: str, hits: list[str], near: set[str]
) -> None:
    shown = Shown(place[2], text)
    assert (shown.total, shown.hits, shown.also) == (len(hits), hits, {id: PAGES[id][1] for id in near})
    assert "paper" not in shown.labels


def test_passages_of_a_file_name_their_page(place: Any, portal: Any) -> None:
    found = also(portal, "dog")
    assert found["hounds"].page == FilePage(2, files.PDF)
    assert Shown(place[2], "dog").texts('//*[@id="search-also"]//a[contains(@href, "#page=2")]') == ["Page 2"]
    results = portal.portal_catalog.searchResults(SearchableText="dog", rank="hybrid")
    [passage] = passages(results, 3)
    assert passage.page == FilePage(2, files.PDF)
    assert "quiet hound quiet hound" in passage.text
    assert "\f" not in passage.text
    [snippet] = results.snippets(results).values()
    assert snippet.page == FilePage(2, files.PDF)


def test_the_end_of_a_long_file_is_found_by_its_meaning(place: Any, portal: Any) -> None:
    last = FilePage(61, files.PDF)
    assert also(portal, "boat")["manual"].page == last
    results = portal.portal_catalog.searchResults(SearchableText="boat", rank="hybrid")
    assert [(passage.page, passage.text[:18]) for passage in passages(results, 1)] == [(last, "old ship old ship ")]
    assert [snippet.page for snippet in results.snippets(results).values()] == [last]


def test_hidden_page_is_not_found_by_its_meaning(portal: Any) -> None:
    catalog = portal.portal_catalog
    question = as_site_searches(catalog, {"SearchableText": "vacation days"})

    def by_meaning() -> tuple[Any, ...]:
        hybrid = catalog.searchResults(**question, rank="hybrid")
        near = passages(hybrid, 9), catalog.more_like_this(portal.leave, 9, **as_site_searches(catalog, {}))
        return also(portal, **question), hybrid, [passage.brain for passage in near[0]], near[1]

    def ids(found: Any) -> set[str]:
        return {each if isinstance(each, str) else each.getId for each in found}

    assert all("urlaub" in ids(found) for found in by_meaning())
    tune(hidden_pages="/urlaub")
    assert [ids(found) & {"urlaub", "secret"} for found in by_meaning()] == [{"secret"}] * 4
    assert "urlaub" in also(portal, "vacation days")


def test_only_the_first_page_of_a_question_has_near_pages(place: Any) -> None:
    similar = {"similar": place[0].leave.UID()}
    for text, query in (("NOT leave", {}), ("", {}), ("*", {}), ("leave", {"b_start": "10"}), ("leave", similar)):
        assert not Shown(place[2], text, **query).also, (text, query)


@pytest.mark.parametrize(("typed", "meant", "page"), [("climte", "climate", "climate"), ("leabe", "leave", "leave")])
def test_typo_is_corrected_and_the_corrected_text_is_the_question(
    place: Any, typed: str, meant: str, page: str
) -> None:
    shown = Shown(place[2], typed)
    assert (shown.corrected, shown.hits) == ([meant], [page])
    assert shown.also == Shown(place[2], meant).also


def test_hits_and_counts_are_those_of_a_site_without_meaning(place: Any) -> None:
    def searches() -> list[Shown]:
        return [Shown(place[2], title) for title, _ in PAGES.values()]

    on = searches()
    try:
        setting(search_by_meaning=False)
        off = searches()
    finally:
        setting(search_by_meaning=True)
    assert [(s.total, s.hits, s.facets) for s in on] == [(s.total, s.hits, s.facets) for s in off]
    assert not any(shown.also for shown in off)
    assert not any(shown.also.keys() & set(shown.hits) for shown in on)


def test_criteria_of_the_search_hold_for_near_pages(portal: Any) -> None:
    assert set(also(portal, "vacation", Subject="paper")) == {"urlaub"}
    assert not also(portal, "vacation", path="/plone/pool")
    assert not also(portal, "vacation", portal_type="Event")
    assert set(also(portal, "vacation -urlaub")) == {"leave", "secret"}
    assert set(also(portal, "vacation", sort_on="modified")) == {"leave", "urlaub", "secret"}


def test_hidden_page_is_never_near(place: Any) -> None:
    portal, _, web = place
    assert set(Shown(web, "vacation", MANAGER).also) == {"leave", "urlaub", "secret"}
    assert set(Shown(web, "vacation").also) == {"leave", "urlaub"}
    transaction.begin()
    portal.portal_workflow.doActionFor(portal.urlaub, "retract")
    transaction.commit()
    try:
        assert set(Shown(web, "vacation").also) == {"leave"}
    finally:
        publish(portal.urlaub)
        transaction.commit()


def test_pending_changes_of_the_transaction_count(portal: Any) -> None:
    portal.leave.title = "Changed in this transaction"
    portal.leave.reindexObject()
    portal.manage_delObjects(["secret"])
    found = also_about(portal.portal_catalog.searchResults(SearchableText="vacation")).value()
    assert {each.brain.Title for each in found} == {"Changed in this transaction", "Jahresurlaub"}


def test_there_are_few_near_pages(portal: Any) -> None:
    many = [page(portal, f"rest{number}", f"Rest {number}", "A holiday") for number in range(MOST_PAGES)]
    fill(portal)
    try:
        assert len(also(portal, "vacation")) == MOST_PAGES
    finally:
        portal.manage_delObjects([each.getId() for each in many])
        transaction.commit()


@pytest.mark.parametrize("luck", ["broken", "slow"])
def test_page_of_a_failing_embedder_has_no_near_pages(place: Any, luck: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, answers, web = place
    answer, go_on = answers.answer, threading.Event()

    def slow(request: Any) -> Any:
        go_on.wait(PATIENCE)
        return answer(request)

    monkeypatch.setattr(answers, "answer", slow if luck == "slow" else lambda request: (500, {}, b""))
    assert Shown(web, f"leave OR {luck}").also == {}
    go_on.set()
    paused_until.clear()


def test_near_pages_take_no_round_trip_of_their_own(portal: Any) -> None:
    """Fetched with the snippets of the hits and their metadata; the table of vectors is looked up once per snapshot."""
    also(portal, "vacation")
    results = portal.portal_catalog.searchResults(SearchableText="leave", b_start=0, b_size=10)
    brains = list(results)
    with traced(portal) as traffic:
        with results.catalog.session.batch():
            near = also_about(results)
            snippets = results.snippets(brains)
        assert [each.brain.Title for each in near.value()] == ["Jahresurlaub"]
    assert snippets
    assert traffic[0].round_trips == 1


def test_pgsearch_has_near_pages_beside_its_hits(place: Any) -> None:
    _, _, web = place
    query = {"q": "annual leave", "rows": "2"}
    response = web.get("/plone/@pgsearch", MANAGER, accept="application/json", **query)
    assert [document["title"] for document in response.json["response"]["docs"]] == ["Annual leave"]
    assert {document["title"] for document in response.json["also_about"]} == {"Jahresurlaub", "Unpaid leave"}
    assert_example("pgsearch-also-about", "/plone/@pgsearch", query, response)
    behind = web.get("/plone/@pgsearch", MANAGER, accept="application/json", start="1", **query)
    assert "also_about" not in behind.json
