"""What the facets of the search page take, next to the page of hits alone:

    .venv/bin/python -m benchmarks.search_page

Five facets (types, tags, years, authors, places) are counted for a word of all of 20,000 rows, asked in turns with the
page.  Nothing is stored.
"""

from plone.pgcatalog.classic.page_facets import page_facets
from plone.pgcatalog.classic.searching import PageSearch
from plone.pgcatalog.database.embedded import EmbeddedPostgres
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.settings import DEFAULTS
from statistics import median
from tests.integration import site as sites
from tests.integration.generated import fill_relation
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo
from zope.component.hooks import setSite

import psycopg
import transaction


ROWS, ROUNDS = 20_000, 30
PROFILE = "profile-plone.pgcatalog:default"


def search(catalog: Any) -> PageSearch:
    """Return the search of a page for a word that all rows have."""
    indexes = {index.getId(): index for index in catalog.index_objects()}
    chosen = [indexes[name] for name in DEFAULTS["search_facets"]]
    facets = page_facets(chosen, {}, root="/plone", zone=ZoneInfo("Europe/Vienna"), now=2026)
    return PageSearch(catalog, {"SearchableText": "common", "path": "/plone"}, facets, start=0, size=10)


def seconds(catalog: Any, with_facets: bool) -> float:
    """Return how long a page took that nobody has asked for yet."""
    transaction.begin()
    result_cache().clear()
    started = perf_counter()
    page = search(catalog)
    brains = list(page.results)
    if with_facets:
        assert page.total == page.counts.total
    assert len(brains) == page.size
    assert page.results.actual_result_count > ROWS / 2
    return perf_counter() - started


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
            times: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(ROUNDS):
                for with_facets, taken in times.items():
                    taken.append(seconds(catalog, with_facets))
        plain, faceted = (1000 * median(times[kind]) for kind in (False, True))
        print(f"page: {plain:.1f} ms; with five facets: {faceted:.1f} ms; {faceted / plain:.2f} times as long")


if __name__ == "__main__":
    main()
