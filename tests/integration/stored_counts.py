"""Stored counts: their expected values, computed from rows and from search hits."""

from collections import Counter
from plone.pgcatalog.database import counts
from plone.pgcatalog.results.cache import result_cache
from tests.integration.people import acting_as
from tests.integration.people import PEOPLE
from tests.integration.traffic import traced
from typing import Any

import psycopg
import transaction


#: Indexes whose values are counted.
NAMES = ["portal_type", "review_state", "Creator", "Subject", "is_folderish"]
TABLES = ("pgcatalog_counts", "pgcatalog_count_changes")
#: Searches without narrowing, as pages and services send them.
QUERIES: list[dict[str, Any]] = [
    {"path": "/plone"},
    {"path": "/plone", "portal_type": ["Document", "Event", "Folder"]},
    {"portal_type": "Document"},
]


def counted(catalog: Any, query: dict[str, Any]) -> dict[str, Counter[Any]]:
    """Return the expected facets of *query*, counted hit by hit."""
    found: dict[str, Counter[Any]] = {name: Counter() for name in NAMES}
    for brain in catalog(query):
        values = catalog.getIndexDataForRID(brain.getRID())
        for name in NAMES:
            value = values[name]
            found[name].update(value if isinstance(value, list) else [] if value in (None, "") else [value])
    return found


def check(portal: Any, are_stored: bool = True) -> None:
    """Check that each user's facets equal the counts of the hits, in one message each.

    With *are_stored* they must come from stored counts, otherwise from rows.
    """
    catalog = portal.portal_catalog
    for person in PEOPLE:
        with acting_as(portal, person):
            for query in QUERIES:
                found = catalog(query)
                len(found)
                result_cache().clear()
                with traced(portal) as traffic:
                    facets = found.facets(NAMES)
                assert facets == counted(catalog, query), (person, query)
                assert facets.total == len(found)
                [statement] = traffic[0].matching("GROUP BY")
                assert ("FROM pgcatalog_counts" in statement, "found AS" in statement) == (
                    are_stored,
                    not are_stored,
                ), statement
    result_cache().clear()
    for name in NAMES:
        keys = Counter(dict(catalog.Indexes[name].uniqueValues(withLengths=True)))
        entries = catalog.Indexes[name].documentToKeyMap().values()
        assert +keys == Counter(v for entry in entries for v in (entry if isinstance(entry, list) else [entry])), name


def different(dsn: str) -> dict[str, int]:
    """Return relation -> number of stored counts that differ from the rows, for each catalog."""
    with psycopg.connect(dsn) as connection:
        cursor = connection.cursor()
        relations = cursor.execute("SELECT relation FROM pgcatalog_state").fetchall()
        return {relation: counts.differences(cursor, relation) for (relation,) in relations}


def left(dsn: str) -> set[str]:
    """Return the relations that have stored counts, or a function that maintains them."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT relation FROM pgcatalog_counts UNION SELECT relation FROM pgcatalog_count_changes"
            r" UNION SELECT regexp_replace(proname, '_count$', '') FROM pg_proc WHERE proname ~ '^pgcatalog_.*_count$'"
        )
        return {relation for (relation,) in found}


def save(portal: Any) -> None:
    """Commit, and begin a transaction that sees the commit."""
    transaction.commit()
    transaction.begin()
