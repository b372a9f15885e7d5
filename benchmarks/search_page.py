"""What the facets of the search page take, next to the page of hits alone:

    .venv/bin/python -m benchmarks.search_page

Five facets (types, tags, years, authors, places) are counted for a word of all of 20,000 rows, for a cheap listing of
some, and for all of them without any query, asked in turns with the page.  Nothing is stored.
"""

from plone.pgcatalog.classic.page_facets import page_facets
from plone.pgcatalog.classic.searching import PageSearch
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.settings import search_facets
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from statistics import median
from tests.integration import site as sites
from tests.integration.relation import fill_relation
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo
from zope.component.hooks import setSite

import psycopg
import transaction


ROWS, ROUNDS = 20_000, 30
PROFILE = "profile-plone.pgcatalog:default"


NEWEST = {"sort_on": "Date", "sort_order": "reverse"}
#: What is searched for, and at least how much of the rows that finds.
QUERIES: dict[str, tuple[dict[str, Any], float]] = {
    "a word of all rows": ({"SearchableText": "common"}, 0.5),
    "a listing by type and state": ({"portal_type": "Document", "review_state": "published", **NEWEST}, 0.1),
    "all rows": (NEWEST, 0.5),
}


def search(catalog: Any, query: dict[str, Any], with_facets: bool) -> PageSearch:
    """Return the search of a page for *query*."""
    indexes = {index.getId(): index for index in catalog.index_objects()}
    chosen = [indexes[name] for name in search_facets.default]
    facets = page_facets(chosen, {}, root="/plone", zone=ZoneInfo("Europe/Vienna"), now=2026)
    return PageSearch(catalog, {**query, "path": "/plone"}, facets if with_facets else (), start=0, size=10)


def seconds(catalog: Any, query: dict[str, Any], part: float, with_facets: bool) -> float:
    """Return how long a page took that nobody has asked for yet."""
    transaction.begin()
    result_cache().clear()
    started = perf_counter()
    page = search(catalog, query, with_facets)
    brains = list(page.results)
    total = page.total
    taken = perf_counter() - started
    assert len(brains) == page.size
    assert total > part * ROWS
    assert bool(page.counts) == with_facets
    return taken


def main() -> None:
    with EmbeddedPostgres() as server:
        sites.start_zope()
        dsn = server.createdb("search_page")
        sites.create_site(dsn, profiles=(PROFILE.removeprefix("profile-"),))
        with psycopg.connect(dsn, autocommit=True) as connection:
            fill_relation(connection, ROWS)
        with sites.opened(dsn) as db, sites.application(db) as app:
            sites.login(app)
            setSite(app.plone)
            catalog = app.plone.portal_catalog
            for name, (query, part) in QUERIES.items():
                times: dict[bool, list[float]] = {False: [], True: []}
                for _ in range(ROUNDS):
                    for with_facets, taken in times.items():
                        taken.append(seconds(catalog, query, part, with_facets))
                plain, faceted = (1000 * median(times[kind]) for kind in (False, True))
                factor = f"{faceted / plain:.2f} times as long"
                print(f"{name}: page {plain:.1f} ms; with five facets {faceted:.1f} ms; {factor}")


if __name__ == "__main__":
    main()
