"""Words that very many texts have: what is ranked then comes first, everything else is found as ever, and nothing twice."""

from collections.abc import Iterator
from plone.pgcatalog import settings
from plone.pgcatalog.database.planning import MANY_ROWS
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.relation import filled
from tests.integration.settings import tune
from typing import Any
from zope.component.hooks import setSite

import pytest
import transaction


PAGES = 60
LIMIT = 5
WORD = "everywhere"


@pytest.fixture(scope="module")
def site(site_template: str, postgres: Any) -> Iterator[Any]:
    """Pages with the word in their bodies, the older ones more often; one of the oldest has it in its title."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        for number in range(PAGES):
            create(
                app.plone,
                "News Item" if number == 3 else "Document",
                f"page{number:02}",
                title="Everywhere at home" if number in (1, 4) else f"Page {number}",
                description=f"{WORD} " * (PAGES - number),
            )
        transaction.commit()
        filled(app.plone.portal_catalog)
        # Whoever sees a commit reads how many rows PostgreSQL has counted.
        app.plone.page05.reindexObject()
        transaction.commit()
        yield app.plone
        transaction.abort()


@pytest.fixture(autouse=True)
def few(monkeypatch: Any) -> None:
    monkeypatch.setattr(settings, "RANKED_ROWS", LIMIT)


def found(site: Any, text: str = WORD, **options: Any) -> list[str]:
    """Return the ids of what is found, read anew."""
    result_cache().clear()
    return [brain.getId for brain in site.portal_catalog.unrestrictedSearchResults(SearchableText=text, **options)]


def newest(count: int) -> list[str]:
    return [f"page{number:02}" for number in range(PAGES - 1, PAGES - 1 - count, -1)]


def by_score(monkeypatch: Any, site: Any, **options: Any) -> list[str]:
    with monkeypatch.context() as patched:
        patched.setattr(settings, "RANKED_ROWS", 0)
        return found(site, **options)


def test_the_newest_are_ranked_and_all_with_the_word_in_their_titles(site: Any, monkeypatch: Any) -> None:
    exact = by_score(monkeypatch, site)
    ranked = {*newest(LIMIT), "page01", "page04"}
    assert exact[: len(ranked)] != [id for id in exact if id in ranked]
    result = found(site)
    assert result[: len(ranked)] == [id for id in exact if id in ranked]
    assert result[len(ranked) :] == [id for id in newest(PAGES) if id not in ranked]
    assert result[:2] == ["page01", "page04"]


@pytest.mark.parametrize("size", [2, LIMIT, LIMIT + 2, 25])
def test_pages_make_up_the_whole(site: Any, size: int) -> None:
    pages = [id for start in range(0, PAGES, size) for id in found(site, b_start=start, b_size=size)]
    assert pages == found(site)
    assert len(set(pages)) == PAGES


def test_slices_of_a_result_are_the_same_pages(site: Any) -> None:
    whole = found(site)
    for start, stop in ((0, 3), (3, 10), (10, 60), (55, 70)):
        result_cache().clear()
        results = site.portal_catalog.unrestrictedSearchResults(SearchableText=WORD)
        assert [brain.getId for brain in results[start:stop]] == whole[start:stop]
        assert len(results) == PAGES


def test_scores_never_rise(site: Any) -> None:
    results = site.portal_catalog.unrestrictedSearchResults(SearchableText=WORD)
    scores = [brain.data_record_score_ for brain in results]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1] > 0


def test_what_finds_less_is_ranked_as_ever(site: Any, monkeypatch: Any) -> None:
    options = {"id": ["page07", "page30", "page20", "page50"]}
    assert found(site, **options) == by_score(monkeypatch, site, **options)
    assert found(site, "home") == ["page04", "page01"] or found(site, "home") == ["page01", "page04"]


def test_a_small_catalog_is_ranked_as_ever(site: Any, monkeypatch: Any) -> None:
    exact = by_score(monkeypatch, site)
    monkeypatch.setattr(settings, "RANKED_ROWS", 20)
    assert found(site) == exact


def test_pins_and_boosts_are_ranked_however_old_they_are(site: Any) -> None:
    tune(pins=f"{WORD} = /page10\n{WORD} = /page02", type_boosts="News Item = 50")
    try:
        assert found(site)[:3] == ["page10", "page02", "page03"]
        assert len(found(site)) == PAGES
    finally:
        transaction.abort()


def test_changes_of_the_transaction_are_ranked_too(site: Any, monkeypatch: Any) -> None:
    site.page00.title = "Everywhere and nowhere"
    site.page00.reindexObject()
    try:
        assert found(site) == by_score(monkeypatch, site)
        assert "page00" in found(site)[:3]
    finally:
        transaction.abort()


def test_no_more_texts_are_read_than_are_ranked(site: Any, monkeypatch: Any) -> None:
    """The newest rows that match come in the order of their ids, and the text of no other row is looked at for a score."""
    catalog = site.portal_catalog
    view = catalog._catalog.view()
    query = catalog._catalog.search({"SearchableText": WORD}).query
    statement, params = view.page_statement(query, 0, 3)
    explained = view.session.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", params)[0][0]
    top = explained[0]["Plan"]
    scores = [node for node in nodes(top) if node.get("Subplan Name", "").startswith("SubPlan")]
    assert scores
    # Two branches, the newest ones and titles, of which no row comes twice.
    assert {node["Actual Loops"] for node in scores} == {LIMIT + 2}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def test_large_catalogs_have_room_for_bitmaps(site: Any, monkeypatch: Any) -> None:
    """Not less than an administrator has given them, either."""
    session = site.portal_catalog._catalog.view().session

    def memory() -> str:
        transaction.begin()
        session.read_states()  # what a search begins with
        session.execute("SELECT 1")
        shown: str = session.execute("SHOW work_mem")[0][0]
        return shown

    assert memory() == "4MB"
    monkeypatch.setattr("plone.pgcatalog.database.session.MANY_ROWS", 10)
    monkeypatch.setattr("plone.pgcatalog.database.session.FEW_ROWS", 10)
    assert memory() == "64MB"
    # Asked once in the life of a process.
    assert session.generations.has_memory is False
    session.execute("SET work_mem = '128MB'")
    monkeypatch.setattr(session.generations, "has_memory", None)
    assert memory() == "128MB"
    session.execute("RESET work_mem")
    assert MANY_ROWS > 10
