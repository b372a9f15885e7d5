"""The cache's limit is a limit of memory: its entries take about the bytes that it counts for them."""

from collections.abc import Callable
from plone.pgcatalog.discovery.facets import facets
from plone.pgcatalog.query import compiler
from plone.pgcatalog.results.cache import result_cache
from statistics import median
from tests.integration.pages import make_many_pages
from tests.integration.pages import MANY
from typing import Any

import gc
import pytest
import tracemalloc
import transaction


CONTENT = make_many_pages
#: Searches that are measured, after as many that fill the cache of compiled queries.
SEARCHES = 100
#: Real bytes for each counted byte, at most and at least.
MOST, LEAST = 1.15, 0.7

QUERIES: dict[str, Callable[[int], dict[str, Any]]] = {
    "uid": lambda n: {"UID": f"{n:032x}"},
    "path": lambda n: {"path": {"query": f"/plone/folder{n}", "depth": 1}, "sort_on": "getObjPositionInParent"},
    "words": lambda n: {"SearchableText": f"word{n} other"},
    "listing": lambda n: {
        "portal_type": ["Document", "Folder"],
        "Subject": [f"tag{n}"],
        "sort_on": "modified",
        "sort_order": "descending",
        "b_size": 25,
        "b_start": 0,
    },
    "long": lambda n: {
        "getId": [f"page{number:03}" for number in range(MANY)] + [f"p{n}-{each}" for each in range(90)]
    },
}


@pytest.fixture(autouse=True)
def few_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "MOST_COMPILED", SEARCHES)


def measured(search: Callable[[int], object], searches: int = SEARCHES) -> tuple[int, int]:
    """Return the real and the counted bytes of what an empty cache stores of *searches* calls of *search*.

    As many calls before have filled the other caches, whose old values make room for new ones.  The real bytes are the
    median of three measurements: other threads of the process, of sites before, take memory, too.
    """
    cache = result_cache()
    reals = []
    tracemalloc.start()
    try:
        for part in range(4):
            cache.clear()
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for number in range(part * searches, (part + 1) * searches):
                transaction.begin()
                search(number)
            gc.collect()
            reals.append(tracemalloc.get_traced_memory()[0] - before)
        return int(median(reals[1:])), cache.size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", QUERIES)
def test_answers_take_the_bytes_that_are_counted(filled: Any, name: str) -> None:
    search = filled.portal_catalog.unrestrictedSearchResults
    real, counted = measured(lambda number: [brain.getRID() for brain in search(**QUERIES[name](number))])
    assert LEAST * counted <= real <= MOST * counted


def test_facets_take_the_bytes_that_are_counted(filled: Any) -> None:
    search = filled.portal_catalog.unrestrictedSearchResults
    real, counted = measured(lambda number: facets(search(Title=f"page{number}"), ["Subject", "portal_type"]).value())
    assert LEAST * counted <= real <= MOST * counted


def test_rows_take_the_bytes_that_are_counted(filled: Any) -> None:
    def read(number: int) -> None:
        for brain in filled.portal_catalog.unrestrictedSearchResults(portal_type="Document"):
            assert all((brain.Title, brain.getPath(), brain.UID, brain.modified, brain.review_state, brain.getId))

    real, counted = measured(read, 1)
    assert LEAST * counted <= real <= MOST * counted
