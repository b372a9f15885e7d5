"""A long text is not nearer to each question just because it has more chunks."""

from collections.abc import Iterator
from dataclasses import replace
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.nearest import FEW
from plone.pgcatalog.query.nearest import near_in
from plone.pgcatalog.sql.expression import Statement
from random import Random
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import serving
from tests.integration.meanings import page
from tests.integration.vectors import current_vectors
from tests.integration.vectors import set_embedder
from tests.integration.vectors import site as site
from tests.integration.vectors import work
from typing import Any

import json
import pytest
import transaction


DIMENSION = 16
#: Number of short pages, and of long ones; words of a long one, which has several chunks: HNSW finds no more than 150 chunks.
PAGES = 20
LONG = 500
QUESTIONS = [f"question{number}" for number in range(40)]
TOP = 10


def embed(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Return vectors at random, the same one for each text: no text is about another one."""
    data = []
    for number, text in enumerate(request["input"]):
        random = Random(text)
        data.append({"index": number, "embedding": [random.gauss() for _ in range(DIMENSION)]})
    return 200, {}, json.dumps({"model": "chance", "data": data}).encode()


@pytest.fixture
def portal(site: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A calibrated site with *request.param* short pages and as many long ones."""
    portal = site[0]
    for number in range(request.param):
        page(portal, f"short-{number}", f"Short {number}", f"short{number}")
        page(portal, f"long-{number}", f"Long {number}", " ".join(f"w{number}x{word}" for word in range(LONG)))
    transaction.commit()
    with serving(embed) as answers:
        set_embedder(portal, answers.url, meaning_threshold=0.0)
        work(site)
        yield portal
    clear_embedder_state()


def nearest(portal: Any, text: str, **changes: Any) -> list[str]:
    """Return the ids of the pages nearest to the question *text*, with *changes* to it."""
    results = portal.portal_catalog(SearchableText=text, rank="hybrid")
    near, view = near_in(results.condition), results.catalog.view()
    assert near is not None
    question = replace(near.question, **changes)

    def statement(stored: Any) -> Statement:
        rows = question.nearest_rows(stored.source, bind.condition(near.among, stored))
        relation, values = stored.source
        sql = f"SELECT path FROM ({rows.sql}) AS near JOIN (SELECT rid, path FROM {relation}) AS row USING (rid) ORDER BY place"
        return Statement(sql, (*rows.params, *values))

    return [path.rpartition("/")[2] for (path,) in view.fetch(statement, near.among).value()]


def share_of_long(portal: Any, **changes: Any) -> float:
    """Return the share of long pages among the nearest ones of all QUESTIONS."""
    found = [id for text in QUESTIONS for id in nearest(portal, text, **changes)[:TOP]]
    return sum(id.startswith("long") for id in found) / len(found)


@pytest.mark.parametrize("portal", [PAGES], indirect=True)
def test_long_pages_are_found_as_often_as_short_ones(portal: Any) -> None:
    assert share_of_long(portal) == pytest.approx(0.5, abs=0.15)
    assert share_of_long(portal, length_bias=0.0) > 0.8


@pytest.mark.parametrize("portal", [PAGES], indirect=True)
@pytest.mark.parametrize("few", [0, FEW])
def test_similarities_do_not_depend_on_the_way_to_the_chunks(portal: Any, few: int) -> None:
    for text in QUESTIONS:
        assert nearest(portal, text, is_indexed=True, few=few)[:TOP] == nearest(portal, text)[:TOP]


@pytest.mark.parametrize("portal", [PAGES], indirect=True)
@pytest.mark.parametrize("changes", [{}, {"is_indexed": True}])
def test_chunks_of_long_pages_do_not_push_out_other_pages(portal: Any, changes: dict[str, Any]) -> None:
    for text in QUESTIONS[:4]:
        found = nearest(portal, text, **changes)
        assert len([id for id in found if id != "plone"]) == 2 * PAGES


@pytest.mark.parametrize("portal", [3], indirect=True)
def test_a_site_with_few_pages_has_no_bias(portal: Any) -> None:
    calibration = current_vectors(portal).calibration
    assert calibration is not None
    assert calibration.length_bias == 0.0
