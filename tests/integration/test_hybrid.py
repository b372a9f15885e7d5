"""Searches by meaning: their hits beside hits by words, the order, and the consistency of all properties of a result."""

from collections.abc import Iterator
from plone.pgcatalog.discovery.preview import preview
from plone.pgcatalog.meaning import question
from plone.pgcatalog.meaning.question import counts
from plone.pgcatalog.meaning.question import paused_until
from plone.pgcatalog.meaning.question import QUESTION_PAUSE
from plone.pgcatalog.meaning.question import WrongRank
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import tune
from tests.integration.embedders import Answers
from tests.integration.embedders import vectors
from tests.integration.examples import assert_example
from tests.integration.meanings import embed
from tests.integration.meanings import embedder
from tests.integration.meanings import fill
from tests.integration.meanings import page
from tests.integration.meanings import setting
from tests.integration.traffic import traced
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
    "dogs": ("Dogs at work", "A dog may come along if the dog is quiet."),
    "pay": ("Payslips", "The salary is paid on the 25th. Money for trips comes with the salary."),
    "plan": ("Plan of the building", "Nothing here is about any of it."),
}
QUESTION = "vacation days"


@pytest.fixture(scope="module")
def place(site_template: str, postgres: Any) -> Iterator[Any]:
    """A site with PAGES and their vectors."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal, embedder() as answers:
        for id, (title, text) in PAGES.items():
            page(portal, id, title, text, subject=("paper",) if id in ("leave", "pool") else ("other",))
        fill(portal)
        counted(dsn, portal.portal_catalog)
        yield portal, answers, Web(db)


@pytest.fixture
def portal(place: tuple[Any, Answers, Web]) -> Iterator[Any]:
    transaction.begin()
    yield place[0]
    transaction.abort()


def hybrid(portal: Any, text: str = QUESTION, **query: Any) -> Any:
    return portal.portal_catalog.searchResults(SearchableText=text, rank="hybrid", **query)


def ids(results: Any) -> list[str]:
    return [brain.getId for brain in results]


def test_hybrid_search_also_finds_pages_with_the_same_meaning(portal: Any) -> None:
    assert ids(portal.portal_catalog.searchResults(SearchableText=QUESTION)) == []
    assert set(ids(hybrid(portal))) == {"leave", "urlaub"}


@pytest.mark.parametrize("text", ["Which vacation days?", "vacation unheardof*", "unheard?of vacation"])
def test_wildcards_without_matching_words_leave_the_meaning(portal: Any, text: str) -> None:
    assert ids(portal.portal_catalog.searchResults(SearchableText=text)) == []
    assert set(ids(hybrid(portal, text))) == {"leave", "urlaub"}
    assert len(hybrid(portal, text)) == hybrid(portal, text).facets(["Subject"]).total == 2
    assert set(ids(hybrid(portal, text, sort_on="getId"))) == {"leave", "urlaub"}


def test_all_pages_without_a_word_have_no_meaning(portal: Any) -> None:
    words = portal.portal_catalog.searchResults(SearchableText="NOT dog")
    assert ids(hybrid(portal, "NOT dog")) == ids(words) != []


@pytest.mark.parametrize("text", ["vacation days AND NOT urlaub", "vacation -urlaub", 'vacation -"den urlaub" days'])
def test_page_with_an_excluded_word_is_not_found_by_its_meaning(portal: Any, text: str) -> None:
    assert ids(hybrid(portal, text)) == ["leave"]
    assert len(hybrid(portal, text)) == hybrid(portal, text).facets(["Subject"]).total == 1


def test_stop_words_alone_have_no_meaning_on_search_pages(portal: Any) -> None:
    assert set(ids(hybrid(portal, "the vacation", as_site=True))) == {"leave", "urlaub"}
    tune(stop_words="en: vacation")
    assert ids(hybrid(portal, "vacation", as_site=True)) == []
    assert set(ids(hybrid(portal, "vacation"))) == {"leave", "urlaub"}


def test_hit_by_words_and_meaning_comes_first(portal: Any) -> None:
    assert ids(hybrid(portal, "annual"))[0] == "leave"
    assert ids(hybrid(portal, "Urlaub"))[0] == "urlaub"
    assert set(ids(hybrid(portal, "Urlaub"))) == {"leave", "urlaub"}


@pytest.mark.parametrize(
    "sort", [{}, {"sort_on": "sortable_title"}, {"sort_on": "modified", "sort_order": "descending"}]
)
@pytest.mark.parametrize("text", [QUESTION, "leave", "salary OR cars", "holi*", "dog AND quiet", "work"])
def test_pages_counts_and_ids_are_of_the_same_hits(portal: Any, text: str, sort: dict[str, str]) -> None:
    whole = ids(hybrid(portal, text, **sort))
    assert len(set(whole)) == len(whole) == len(hybrid(portal, text, **sort))
    assert hybrid(portal, text, **sort).actual_result_count == len(whole)
    paged = [hybrid(portal, text, b_start=start, b_size=1, **sort) for start in range(len(whole) + 1)]
    assert [id for part in paged for id in ids(part)] == whole
    assert {part.actual_result_count for part in paged[: len(whole)]} <= {len(whole)}
    if sort:
        assert [brain.getId for brain in hybrid(portal, text, **sort).iterate()] == whole
    assert set(ids(hybrid(portal, text))) == set(whole)


def test_facets_count_the_same_hits_whatever_is_chosen(portal: Any) -> None:
    for query in ({}, {"Subject": "paper"}, {"Subject": "other", "portal_type": "Document"}):
        results = hybrid(portal, "vacation OR automobile", **query)
        facets = results.facets(["Subject", "portal_type"], exclude_own=True)
        assert facets.total == len(results) == results.actual_result_count
        assert sum(facets["portal_type"].values()) == len(results)
        for subject, count in facets["Subject"].items():
            assert count == len(hybrid(portal, "vacation OR automobile", **query | {"Subject": subject}))


def test_other_criteria_apply_to_both_halves(portal: Any) -> None:
    assert ids(hybrid(portal, Subject="other")) == ["urlaub"]
    assert ids(hybrid(portal, "leave", Subject="other")) == ["urlaub"]
    assert ids(hybrid(portal, portal_type="Event")) == []


def test_threshold_limits_hits_by_meaning(portal: Any) -> None:
    try:
        setting(meaning_threshold=0.999)
        assert ids(hybrid(portal)) == []
        assert ids(hybrid(portal, "leave")) == ["leave"]
    finally:
        setting(meaning_threshold=0.7)


def test_pending_page_is_found_by_its_words_until_it_is_removed(portal: Any) -> None:
    page(portal, "new", "Sabbatical", "A long holiday")
    assert ids(hybrid(portal, "sabbatical"))[0] == "new"
    portal.manage_delObjects(["leave"])
    assert ids(hybrid(portal)) == ["urlaub"]
    assert hybrid(portal).actual_result_count == 1


def test_the_snippet_of_a_hit_by_meaning_is_its_nearest_chunk(portal: Any) -> None:
    long = " ".join(f"Paragraph {number} of the rules says nothing of interest." for number in range(200))
    page(portal, "long", "Rules", f"{long} Who has a puppy, hound or dog brings the dog along. {long}")
    transaction.commit()
    fill(portal)
    results = hybrid(portal, "Hund", path={"query": "/plone/long"})
    [snippet] = results.snippets(list(results)).values()
    assert ids(results) == ["long"]
    assert len(snippet) < 400
    source = portal.portal_catalog._core.search_view().select("searchable_text_source", results.condition).value()[0][0]
    at = source.index(snippet.strip("…")[:60])
    assert abs(at - source.index("puppy")) < 2000
    portal.manage_delObjects(["long"])
    transaction.commit()


def test_snippet_of_a_hit_by_meaning_marks_whole_words(portal: Any) -> None:
    """Plone searches for prefixes: without the question's words on the page, prefixes would match other words."""
    results = hybrid(portal, "vacation* AND for* AND app*", path={"query": "/plone/leave"})
    [snippet] = results.snippets(list(results)).values()
    assert snippet.startswith("Fill in the application <mark>for</mark> leave before")
    assert snippet.count("<mark>") == 1


def test_hit_by_words_has_its_usual_snippet(portal: Any) -> None:
    results = hybrid(portal, "application")
    snippets = results.snippets(list(results))
    assert any("<mark>application</mark>" in snippet for snippet in snippets.values())


def test_a_wrong_rank_is_a_bad_request_and_words_are_the_default(portal: Any) -> None:
    catalog = portal.portal_catalog
    with pytest.raises(WrongRank, match="hybrid"):
        catalog.searchResults(SearchableText="leave", rank="hybird")
    for rank in ("words", "", None):
        assert ids(catalog.searchResults(SearchableText="leave", rank=rank)) == ["leave"]
    # Without a text there is nothing to rank.
    assert ids(catalog.searchResults(portal_type="Document", rank="hybrid")) == ids(
        catalog.searchResults(portal_type="Document")
    )


def test_words_answer_when_the_embedder_fails(place: tuple[Any, Answers, Web], portal: Any) -> None:
    answer, place[1].answer = place[1].answer, lambda request: (500, {}, b"")
    failed = counts["failed"]
    try:
        assert ids(hybrid(portal, "leave unheard")) == []
        assert ids(hybrid(portal, "salary paid")) == ["pay"]
        assert counts["failed"] > failed
    finally:
        place[1].answer = answer
    # An answer by words is cached for all parts of a page, and not for the next page.
    assert ids(hybrid(portal, "leave unheard")) == []
    transaction.begin()
    assert set(ids(hybrid(portal, "leave unheard"))) == {"leave", "urlaub"}


#: Fault -> what the embedder does with a question.
BAD_LUCK: dict[str, Any] = {
    "busy": lambda request: (429, {"Retry-After": "60"}, b""),
    "broken": lambda request: (500, {}, b""),
    "of another dimension": lambda request: vectors(request, dimension=7),
    "without a number": lambda request: (200, {}, b'{"data": [{"embedding": [NaN, 1, 1, 1, 1, 1]}]}'),
    "elsewhere": lambda request: (307, {"Location": "http://127.0.0.1:1/v1/embeddings"}, b""),
    "closed": lambda request: (200, {"Content-Length": "100", "Connection": "close"}, b"{}"),
    "with an index that is a dict": lambda request: (200, {}, b'{"data": [{"index": {}, "embedding": [1]}]}'),
    "no embedder": lambda request: (200, {}, b"<html></html>"),
    "slow": None,
}


@pytest.mark.parametrize("luck", BAD_LUCK)
def test_words_answer_whatever_the_embedder_does(place: tuple[Any, Answers, Web], portal: Any, luck: str) -> None:
    """The page shows no error, the metric counts it; a slow embedder is not waited for."""
    _, answers, web = place
    answer, failed, go_on = answers.answer, counts["failed"], threading.Event()

    def slow(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        go_on.wait(PATIENCE)
        return embed(request)

    try:
        answers.answer = BAD_LUCK[luck] or slow
        text = f"salary unheard{luck.replace(' ', '')} OR salary"
        assert ids(hybrid(portal, text)) == ["pay"]
        assert ids(hybrid(portal, text, portal_type="Document")) == ["pay"]
        assert counts["failed"] == failed + 1
        told = web.get("/plone/@pgsearch", MANAGER, accept="application/json", q=text, mode="hybrid", passages="3").json
        assert (told["response"]["numFound"], [each["similarity"] for each in told["passages"]]) == (1, [None])
    finally:
        go_on.set()
        answers.answer = answer
        paused_until.clear()
    assert counts["failed"] == failed + 2


def test_embedder_that_is_down_gets_no_question_until_a_pause_is_over(
    place: tuple[Any, Answers, Web], portal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words answer meanwhile, and questions with cached vectors are answered by meaning."""
    _, answers, _ = place
    answer, now = answers.answer, 1000.0
    monkeypatch.setattr(question, "monotonic", lambda: now)
    assert set(ids(hybrid(portal))) == {"leave", "urlaub"}
    try:
        for failing, pause in (((503, {}, b""), QUESTION_PAUSE), ((429, {"Retry-After": "60"}, b""), 60)):
            answers.answer = lambda request, failing=failing: failing
            answers.requests.clear()
            for number in range(5):
                transaction.begin()
                assert ids(hybrid(portal, f"salary never{number} OR salary")) == ["pay"]
                assert set(ids(hybrid(portal))) == {"leave", "urlaub"}
            assert len(answers.requests) == 1
            now += pause - 0.1
            assert ids(hybrid(portal, "salary soon OR salary")) == ["pay"]
            assert len(answers.requests) == 1
            now += 0.2
            answers.answer = answer
            assert set(ids(hybrid(portal, f"vacation {pause:g}"))) == {"leave", "urlaub"}
    finally:
        answers.answer = answer
        paused_until.clear()


def test_question_refused_by_an_embedder_pauses_no_other(place: tuple[Any, Answers, Web], portal: Any) -> None:
    _, answers, _ = place
    answer = answers.answer
    answers.answer = lambda request: (400, {}, b"") if "poison" in str(request["input"]) else embed(request)
    try:
        for text in ("poison OR salary", "poison \ud800 OR salary"):
            assert ids(hybrid(portal, text)) == ["pay"]
        assert set(ids(hybrid(portal, "vacation unpaused \ud800"))) == {"leave", "urlaub"}
    finally:
        answers.answer = answer


def test_words_answer_for_another_model_of_the_same_dimension(place: tuple[Any, Answers, Web], portal: Any) -> None:
    """Its vectors are unrelated to those of the pages: near pages would be random."""
    _, answers, _ = place
    answer, failed = answers.answer, counts["failed"]
    try:
        answers.answer = lambda request: vectors(request, dimension=6, model="others")
        assert ids(hybrid(portal, "salary unheardof OR salary")) == ["pay"]
        assert counts["failed"] == failed + 1
    finally:
        answers.answer = answer


def test_a_question_is_embedded_once_for_all_pages_of_a_result(place: tuple[Any, Answers, Web], portal: Any) -> None:
    place[1].requests.clear()
    for start in range(3):
        ids(hybrid(portal, "wages of sin", b_start=start, b_size=1))
    assert [request["input"] for request in place[1].requests] == [["wages of sin"]]
    assert place[1].requests[0]["model"] == "e5-query"


def test_pgsearch_ranks_by_meaning_if_requested(place: tuple[Any, Answers, Web], portal: Any) -> None:
    web = place[2]
    assert web.get("/plone/@pgsearch", MANAGER, accept="application/json", q=QUESTION).json["response"]["numFound"] == 0
    answer = web.get("/plone/@pgsearch", MANAGER, accept="application/json", q=QUESTION, mode="hybrid").json
    assert {doc["id"] if "id" in doc else doc["@id"].rpartition("/")[2] for doc in answer["response"]["docs"]} == {
        "leave",
        "urlaub",
    }
    assert "passages" not in answer
    for wrong in ({"mode": "vectors"}, {"passages": "21"}, {"passages": "-1"}, {"passages": "many"}):
        assert web.get("/plone/@pgsearch", MANAGER, accept="application/json", q=QUESTION, **wrong).status == 400


def test_passages_are_the_nearest_chunks_or_else_those_of_words(place: tuple[Any, Answers, Web], portal: Any) -> None:
    web = place[2]
    nearest, *_ = found = web.get(
        "/plone/@pgsearch", MANAGER, accept="application/json", q=QUESTION, passages="2", rows="0"
    ).json["passages"]
    assert {passage["@id"].rpartition("/")[2] for passage in found} == {"leave", "urlaub"}
    query = {"q": QUESTION, "passages": "2", "rows": "0"}
    answered = web.get("/plone/@pgsearch", MANAGER, accept="application/json", **query)
    assert_example("pgsearch-passages", "/plone/@pgsearch", query, answered)
    assert nearest["headings"][-1] == nearest["title"]
    assert nearest["text"].startswith((PAGES["leave"][1], PAGES["urlaub"][1]))
    assert 0.7 <= nearest["similarity"] <= 1
    answer, place[1].answer = place[1].answer, lambda request: (500, {}, b"")
    try:
        [words] = web.get(
            "/plone/@pgsearch",
            MANAGER,
            accept="application/json",
            q="logbook unasked OR logbook",
            passages="3",
            rows="0",
        ).json["passages"]
    finally:
        place[1].answer = answer
    assert words["similarity"] is None
    assert "logbook" in words["text"]
    assert "<" not in words["text"]


def test_setting_of_the_site_adds_near_pages_to_the_hits(place: tuple[Any, Answers, Web], portal: Any) -> None:
    web = place[2]
    site = {"SearchableText": QUESTION, "use_site_search_settings": "1"}

    def finds() -> list[bool]:
        live = web.get("/plone/@@ajax-search", MANAGER, SearchableText=QUESTION).text
        page = web.get("/plone/@@search", MANAGER, SearchableText=QUESTION).text.partition('id="search-results"')[2]
        rest = web.get("/plone/@search", MANAGER, accept="application/json", **site).text
        ours = web.get("/plone/@pgsearch", MANAGER, accept="application/json", q=QUESTION).text
        return ["Jahresurlaub" in text for text in (live, page, rest, ours)]

    assert finds() == [False] * 4
    try:
        setting(search_by_meaning=True)
        assert finds() == [True] * 4
        del site["use_site_search_settings"]
        assert "Jahresurlaub" not in web.get("/plone/@search", MANAGER, accept="application/json", **site).text
    finally:
        setting(search_by_meaning=False)


def test_similar_pages_are_the_nearest_ones(portal: Any) -> None:
    catalog = portal.portal_catalog
    assert ids(catalog.more_like_this(portal.leave, 1)) == ["urlaub"]
    assert "leave" not in ids(catalog.more_like_this(portal.leave, 10))
    assert ids(catalog.more_like_this(portal.leave, 5, Subject="paper")) == ["pool"]


def test_preview_shows_the_place_of_each_hit_in_both_rankings(portal: Any) -> None:
    query = {"SearchableText": "leave", "rank": "hybrid"}
    first, second = preview(portal.portal_catalog, query, {})
    assert (first.brain.getId, first.by_words, first.by_meaning) == ("leave", 1, 2 if second.by_meaning == 1 else 1)
    assert second.by_words is None
    assert second.similarity is not None
    assert second.similarity >= 0.7
    assert [hit.brain.getId for hit in preview(portal.portal_catalog, query, {"meaning_threshold": 1.0})] == ["leave"]


def test_preview_shows_no_words_for_a_page_found_by_meaning_only(place: tuple[Any, Answers, Web], portal: Any) -> None:
    query = {"SearchableText": "vacation AND application", "rank": "hybrid", "path": "/plone/leave"}
    [hit] = preview(portal.portal_catalog, query, {})
    assert (hit.by_words, hit.by_meaning, hit.shares) == (None, 1, {})
    try:
        setting(search_by_meaning=True)
        panel = (
            place[2]
            .get("/plone/@@pgcatalog-search-controlpanel", MANAGER, try_text="vacation and application", **{"try": "1"})
            .text
        )
    finally:
        setting(search_by_meaning=False)
    assert "by meaning 1" in panel
    assert "found by synonyms or stems" not in panel


@pytest.mark.parametrize(
    "query", [{"portal_type": "Document"}, {"path": "/plone", "sort_on": "modified"}, {"SearchableText": "leave"}]
)
def test_page_without_a_search_by_meaning_sends_no_statement_about_vectors(portal: Any, query: dict[str, Any]) -> None:
    len(portal.portal_catalog(portal_type="Folder"))
    with traced(portal) as traffic:
        assert ids(portal.portal_catalog(**query, b_size=3))
    assert not any(word in statement for statement in traffic[0].statements for word in ("chunks", "halfvec"))
