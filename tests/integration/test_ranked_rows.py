"""Words in very many texts: candidates are ranked and come first, the other hits come unranked, and none twice."""

from collections.abc import Iterator
from plone.app.textfield.value import RichTextValue
from plone.pgcatalog import settings
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.query import ranked
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.settings import SETTINGS_ATTRIBUTE
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.plans import page_statement
from tests.integration.relation import filled
from typing import Any

import pytest
import transaction


PAGES = 60
LIMIT = 5
WORD = "everywhere"
IN_TITLES = (1, 4)
IN_DESCRIPTION = 7
WEIGHTLESS = {"weight_body": 0.0}


@pytest.fixture(scope="module")
def site(site_template: str, postgres: Any) -> Iterator[Any]:
    """Pages with the word in their bodies, older ones more often; old ones have it in their titles and descriptions."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for number in range(PAGES):
            create(
                portal,
                "News Item" if number == 3 else "Document",
                f"page{number:02}",
                title="Everywhere at home" if number in IN_TITLES else f"Page {number}",
                description=f"{WORD} and nowhere" if number == IN_DESCRIPTION else "",
                text=RichTextValue(f"<p>elsewhere {f'{WORD} ' * (PAGES - number)}</p>", "text/html", "text/html"),
            )
        transaction.commit()
        filled(portal.portal_catalog)
        # A process reads PostgreSQL's count of rows with a commit it sees.
        portal.page05.reindexObject()
        transaction.commit()
        yield portal
        transaction.abort()


@pytest.fixture(autouse=True, params=["all ids", "large catalog, few hits", "large catalog, many hits"])
def few(request: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(settings, "RANKED_ROWS", LIMIT)
    if request.param != "all ids":
        monkeypatch.setattr(ranked, "LARGE", LIMIT)
    if request.param.endswith("many hits"):
        monkeypatch.setattr(ranked, "WALKED", 0)


def found(site: Any, text: str = WORD, **options: Any) -> list[str]:
    """Return the ids of the hits, without caches, by the current settings."""
    result_cache().clear()
    Session.of(site._p_jar).snapshots.clear()
    return [brain.getId for brain in site.portal_catalog.unrestrictedSearchResults(SearchableText=text, **options)]


def paged(site: Any, size: int, text: str = WORD) -> list[str]:
    """Return the ids of all pages of *size* hits, each read by a search of its own."""
    return [id for start in range(0, PAGES, size) for id in found(site, text, b_start=start, b_size=size)]


def newest(count: int) -> list[str]:
    return [f"page{number:02}" for number in range(PAGES - 1, PAGES - 1 - count, -1)]


def by_score(monkeypatch: Any, site: Any, **options: Any) -> list[str]:
    with monkeypatch.context() as patched:
        patched.setattr(settings, "RANKED_ROWS", 0)
        exact = found(site, **options)
    Session.of(site._p_jar).snapshots.clear()
    return exact


def test_newest_hits_and_all_hits_in_title_or_description_are_ranked(site: Any, monkeypatch: Any) -> None:
    exact = by_score(monkeypatch, site)
    candidates = {*newest(LIMIT), "page01", "page04", "page07"}
    assert exact[: len(candidates)] != [id for id in exact if id in candidates]
    result = found(site)
    assert result[: len(candidates)] == [id for id in exact if id in candidates]
    assert result[len(candidates) :] == [id for id in newest(PAGES) if id not in candidates]
    assert result[:3] == ["page01", "page04", "page07"]
    scores = [b.data_record_score_ for b in site.portal_catalog.unrestrictedSearchResults(SearchableText=WORD)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1] > 0


@pytest.mark.parametrize(("good", "expected"), [(1, {"page04"}), (2, {"page01", "page04"})])
def test_titles_are_ranked_first_and_the_newest_of_these(
    site: Any, monkeypatch: Any, good: int, expected: set[str]
) -> None:
    monkeypatch.setattr(ranked, "GOOD", good)
    assert set(found(site)[: LIMIT + good]) == {*newest(LIMIT), *expected}


@pytest.mark.parametrize("text", ["everywhere elsewhere", "everywhere OR nowhere", "every*", "everywhere AND NOT home"])
def test_one_of_several_words_in_the_title_is_enough(site: Any, text: str) -> None:
    result = found(site, text)
    assert len(result) == len(set(result)) == PAGES - (2 if "NOT" in text else 0)
    assert {"page04", "page01", "page07"}.intersection(result) <= set(result[: LIMIT + 3])


@pytest.mark.parametrize("text", [WORD, "every*"])
@pytest.mark.parametrize("title", ["Page 20", "Everywhere and nowhere"], ids=["unchanged", "changed"])
def test_pages_and_slices_add_up_to_the_whole_result(site: Any, text: str, title: str) -> None:
    if title != site.page20.title:
        site.page20.title = title
        site.page20.reindexObject()
    try:
        whole = found(site, text)
        assert len(set(whole)) == PAGES
        for size in (4, LIMIT, LIMIT + 2, 25):
            assert paged(site, size, text) == whole, size
        for start, stop in ((0, 3), (3, 10), (10, 60), (55, 70)):
            result_cache().clear()
            results = site.portal_catalog.unrestrictedSearchResults(SearchableText=text)
            assert [brain.getId for brain in results[start:stop]] == whole[start:stop]
            assert len(results) == PAGES
        # The batch of a listing needs both.
        results = site.portal_catalog.unrestrictedSearchResults(SearchableText=text, b_start=0, b_size=3)
        assert (len(results[:3]), results.actual_result_count) == (3, PAGES)
    finally:
        transaction.abort()


def test_hit_without_weight_comes_before_unranked_hits(site: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(site.portal_catalog, SETTINGS_ATTRIBUTE, dict(WEIGHTLESS), raising=False)
    try:
        whole = found(site)
        assert set(whole[: LIMIT + 3]) == {*newest(LIMIT), "page01", "page04", "page07"}
        assert paged(site, 3) == whole
    finally:
        transaction.abort()


def test_query_with_fewer_hits_is_ranked_completely(site: Any, monkeypatch: Any) -> None:
    options = {"id": ["page07", "page30", "page20", "page50"]}
    assert found(site, **options) == by_score(monkeypatch, site, **options)
    assert found(site, "home") == ["page04", "page01"] or found(site, "home") == ["page01", "page04"]


@pytest.mark.parametrize(("full", "is_exact"), [(PAGES - 1, False), (PAGES, True), (2 * PAGES, True)])
def test_hits_up_to_the_limit_are_all_ranked(site: Any, monkeypatch: Any, full: int, is_exact: bool) -> None:
    exact = by_score(monkeypatch, site)
    monkeypatch.setattr(settings, "RANKED_ROWS", full)
    monkeypatch.setattr(ranked, "NEWEST_SCORED", LIMIT)
    monkeypatch.setattr(ranked, "GOOD", LIMIT)
    # The site has some rows besides the pages.
    assert (found(site) == exact) is is_exact


def test_pins_and_boosts_are_ranked_however_old_they_are(site: Any) -> None:
    tune(pins=f"{WORD} = /page10\n{WORD} = /page02", type_boosts="News Item = 50")
    try:
        assert found(site)[:3] == ["page10", "page02", "page03"]
        assert len(found(site)) == PAGES
    finally:
        transaction.abort()


def test_changes_of_the_transaction_are_ranked_as_after_its_commit(site: Any) -> None:
    old = site.page00.title
    try:
        site.page00.title = "Everywhere and nowhere"
        site.page00.reindexObject()
        before = found(site)
        assert "page00" in before[:3]
        transaction.commit()
        assert found(site) == before
    finally:
        site.page00.title = old
        site.page00.reindexObject()
        transaction.commit()


def test_only_texts_of_ranked_rows_are_read(site: Any) -> None:
    """The text of no other row is read for a score, however all hits are found."""
    scores = [node for node in explained(site) if node.get("Subplan Name", "").startswith("SubPlan")]
    assert scores
    # The newest ones, and those with the word in their titles or descriptions; no row comes twice.
    assert {node["Actual Loops"] for node in scores} == {LIMIT + 3}


def explained(site: Any, size: int = 3, **options: Any) -> list[dict[str, Any]]:
    """Return the executed nodes of the plan for the first *size* hits."""
    view = site.portal_catalog._core.view()
    compiled = site.portal_catalog._catalog.search({"SearchableText": WORD, **options}).compiled
    statement, params = page_statement(view, compiled, 0, size)
    [(plan,)] = view.session.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", params)
    return list(nodes(plan[0]["Plan"]))


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def test_page_of_a_large_catalog_visits_no_more_hits_than_a_walk(site: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(ranked, "LARGE", LIMIT)
    monkeypatch.setattr(ranked, "WALKED", 1)
    bound = ranked.bound(site.portal_catalog._core.view().read_state().rows, LIMIT)
    assert LIMIT < bound < PAGES
    hits = [node["Actual Rows"] for node in explained(site) if node.get("Subplan Name") == "CTE hits"]
    # All hits, those with the word in their titles, and those with it in their descriptions.
    assert hits == [bound + 1, len(IN_TITLES), 1]


def test_old_hits_are_found_without_a_walk_to_the_first_row(site: Any, monkeypatch: Any) -> None:
    """The walk through the newest rows for hits is limited."""
    options = {"id": [f"page{number:02}" for number in range(12)]}
    exact = by_score(monkeypatch, site, **options)
    monkeypatch.setattr(ranked, "LARGE", LIMIT)
    monkeypatch.setattr(ranked, "NEWEST_SCORED", 1)
    monkeypatch.setattr(ranked, "bound", lambda rows, full: LIMIT)
    [found_plan] = [node for node in explained(site, 1, **options) if node.get("Subplan Name") == "CTE found"]
    parts = {node["Subplan Name"]: node for node in nodes(found_plan) if "Subplan Name" in node}
    walked, hits = parts["CTE walked"], parts["CTE hits"]
    assert (walked["Actual Rows"], hits["Actual Rows"]) == (0, 12)
    rows = site.portal_catalog._core.view().read_state().rows
    assert max(node["Actual Rows"] for node in nodes(walked)) == 4 * rows // LIMIT
    candidates = {"page11", "page01", "page04", "page07"}
    others = [f"page{number:02}" for number in range(11, -1, -1)]
    assert found(site, **options) == [
        *(id for id in exact if id in candidates),
        *(id for id in others if id not in candidates),
    ]


@pytest.mark.direct("a setting of a session does not outlive a transaction")
def test_large_catalogs_have_memory_for_bitmaps_and_never_less_than_configured(site: Any, monkeypatch: Any) -> None:
    session = site.portal_catalog._core.view().session
    assert memory(session) == "4MB"
    # A catalog with a few rows counts as a large one.
    monkeypatch.setattr("plone.pgcatalog.database.generations.MANY_ROWS", 10)
    monkeypatch.setattr("plone.pgcatalog.database.generations.FEW_ROWS", 10)
    assert memory(session) == "64MB"
    # Read once in the life of a process.
    assert session.generations.has_memory is False
    session.execute("SET work_mem = '128MB'")
    monkeypatch.setattr(session.generations, "has_memory", None)
    assert memory(session) == "128MB"
    session.execute("RESET work_mem")


def memory(session: Any) -> str:
    """Return PostgreSQL's memory for a sort in a new transaction."""
    transaction.begin()
    session.read_states()  # a search begins with this
    session.execute("SELECT 1")
    shown: str = session.execute("SHOW work_mem")[0][0]
    return shown
