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


def entries(catalog: Any) -> dict[str, dict[int, list[Any]]]:
    """Return index -> record id -> values."""
    maps = {name: catalog.Indexes[name].documentToKeyMap() for name in NAMES}
    return {
        name: {
            rid: value if isinstance(value, list) else [value] for rid, value in of.items() if value not in (None, "")
        }
        for name, of in maps.items()
    }


def counted(catalog: Any, query: dict[str, Any], known: Any = None) -> dict[str, Counter[Any]]:
    """Return the expected facets of *query*, counted hit by hit, from the *known* entries of the indexes."""
    rids = [brain.getRID() for brain in catalog(query)]
    found = known or entries(catalog)
    return {name: Counter(v for rid in rids for v in found[name].get(rid, ())) for name in NAMES}


def check(portal: Any, are_stored: bool = True) -> None:
    """Check that each user's facets equal the counts of the hits, in one message each.

    With *are_stored* they must come from stored counts, otherwise from rows.
    """
    catalog = portal.portal_catalog
    known = entries(catalog)
    for person in PEOPLE:
        with acting_as(portal, person):
            for query in QUERIES:
                found = catalog(query)
                len(found)
                result_cache().clear()
                with traced(portal) as traffic:
                    facets = found.facets(NAMES)
                assert facets == counted(catalog, query, known), (person, query)
                assert facets.total == len(found)
                [statement] = traffic[0].matching("GROUP BY")
                assert ("FROM pgcatalog_counts" in statement, "found AS" in statement) == (
                    are_stored,
                    not are_stored,
                ), statement
    result_cache().clear()
    for name in NAMES:
        keys = Counter(dict(catalog.Indexes[name].uniqueValues(withLengths=True)))
        assert +keys == Counter(value for values in known[name].values() for value in values), name


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
