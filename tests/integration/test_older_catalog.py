"""A catalog filled before texts had stems and labels, and before words were counted, works after an update.

The former layout is created by SQL from today's; ``OLD_TEXT`` and ``TABLES`` are from a database of the release before
``pgcatalog_words``.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from typing import Any
from zope.component import getUtility

import psycopg
import pytest
import transaction


PAGES = {"p0": "Running houses", "p1": "House of cards", "p2": "Nothing else"}
#: The text of p0 in the former layout: words and their positions.
OLD_TEXT = "'by':5 'described':4 'houses':3 'p0':1 'running':2 'words':6"
#: Tables added since, and columns after the name of a text's column.
TABLES = ("pgcatalog_words", "pgcatalog_texts", "pgcatalog_jobs")
LATER = {"before words were counted": ("words",), "before texts were kept": ("words", "source")}
PROFILE = "plone.pgcatalog:default"
#: Word -> pages that have it, as ZCatalog finds them.
WORDS = {"running": ["p0"], "houses": ["p0"], "house": ["p1"], "described": ["p0", "p1", "p2"], "xyzzy": []}

PLAIN = """
UPDATE "{relation}" SET {column} = setweight(
    ts_delete({column}, ARRAY(SELECT lexeme FROM unnest({column}) WHERE ascii(lexeme) = 2)), 'D')
"""
COLUMNS = """
SELECT attname::text, atttypid = 'tsvector'::regtype FROM pg_attribute
WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 AND NOT attisdropped
"""


def make_older(dsn: str, later: tuple[str, ...]) -> None:
    """Give the only catalog in the database *dsn* its former layout."""
    with psycopg.connect(dsn) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
        columns: dict[str, bool] = dict(connection.execute(COLUMNS, [relation]).fetchall())
        texts = [name for name, is_text in columns.items() if is_text]
        gone = [f"{text}_{end}" for text in texts for end in later if f"{text}_{end}" in columns]
        for text in texts:
            connection.execute(PLAIN.replace("{relation}", relation).replace("{column}", text))
        connection.execute(f'DROP VIEW "{relation}_rows"')
        for name in gone:
            connection.execute(f'ALTER TABLE "{relation}" DROP COLUMN {name}')
        connection.execute(
            "UPDATE pgcatalog_state SET columns = ARRAY(SELECT unnest(columns) EXCEPT SELECT unnest(%s::text[]))",
            [gone],
        )
        for table in TABLES:
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DROP FUNCTION pgcatalog_deletions")
        # The storage updates the schema of another version; it compares a hash.
        connection.execute(
            "UPDATE pgjsonb_schema_state SET version = 'of an older release' WHERE source LIKE '%Catalog%'"
        )
        row = connection.execute(f"SELECT searchable_text FROM \"{relation}\" WHERE path = '/plone/p0'").fetchone()
        assert row == (OLD_TEXT,)


@pytest.fixture(scope="module")
def filled(site_template: str, postgres: Any) -> str:
    """Name of a database with pages, and the settings that the former release had."""
    dsn = sites.clone(postgres, site_template)
    with opened(dsn) as portal:
        for name, title in PAGES.items():
            create(portal, "Document", name, title=title, description="Described by words")
        registry = getUtility(IRegistry)
        for name in [name for name in registry.records if name.startswith(PREFIX)]:
            if name.split(".")[-1] not in ("slow_query_ms", "slow_query_mask", "result_cache_mb"):
                del registry.records[name]
        portal.portal_catalog._settings = {"slow_query_ms": 10.0, "slow_query_mask": (), "result_cache_mb": 64.0}
        portal.portal_setup.setLastVersionForProfile(PROFILE, "1001")
        transaction.commit()
    return psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]


@pytest.fixture(params=LATER, scope="module")
def older(request: Any, filled: str, postgres: Any) -> str:
    dsn = sites.clone(postgres, filled)
    make_older(dsn, LATER[request.param])
    return psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]


@pytest.fixture
def dsn(older: str, postgres: Any) -> str:
    """DSN of a database with a catalog of the former layout, not opened by any process since the update."""
    return sites.clone(postgres, older)


@contextmanager
def opened(dsn: str) -> Iterator[Any]:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        yield portal


def found(catalog: Any, text: str) -> list[str]:
    """Return the ids of the hits, best first."""
    return [brain.getId for brain in catalog.unrestrictedSearchResults(SearchableText=text)]


def assert_all_found(catalog: Any) -> None:
    assert {word: sorted(found(catalog, word)) for word in WORDS} == WORDS
    assert sorted(found(catalog, "nothing OR cards")) == ["p1", "p2"]
    assert found(catalog, "running*") == ["p0"]
    assert found(catalog, '"described by"')
    results = catalog(SearchableText="described")
    scores = [brain.data_record_score_ for brain in results]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert dict(results.facets(["portal_type"])["portal_type"]) == {"Document": 3}
    assert set(results.snippets(list(results)).values()) <= {"<mark>Described</mark> by words", "Described by words"}


def look(portal: Any) -> None:
    """Read without any change."""


def save(portal: Any) -> None:
    create(portal, "Document", "later", title="Something new")
    transaction.commit()


@pytest.mark.parametrize("first", [look, save])
def test_nothing_is_lost_and_all_is_ranked(dsn: str, first: Callable[[Any], None]) -> None:
    with opened(dsn) as portal:
        catalog = portal.portal_catalog
        first(portal)
        assert_all_found(catalog)
        assert catalog.did_you_mean("runinng") in (None, "running")
        catalog.suggest("hou")
        transaction.begin()
        assert_all_found(catalog)


def test_words_are_counted_in_the_former_layout(dsn: str) -> None:
    with opened(dsn) as portal:
        portal.remark = "The first commit brings the tables"
        transaction.commit()
        catalog = portal.portal_catalog
        counted(dsn, catalog)
        assert_all_found(catalog)
        assert catalog.suggest("hou") == ["house", "houses"]
        assert catalog.did_you_mean("runinng") == "running"


def test_catalog_without_texts_divides_by_no_zero(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
        connection.execute(f'UPDATE "{relation}" SET searchable_text = NULL')
    with opened(dsn) as portal:
        portal.remark = "The first commit brings the tables"
        transaction.commit()
        with connect_directly(dsn, "test") as connection:
            assert count_words(connection, portal.portal_catalog._core.zoid)
        transaction.begin()
        assert found(portal.portal_catalog, "running") == []
        save(portal)
        assert found(portal.portal_catalog, "something") == ["later"]


@pytest.mark.parametrize("renew", ["clearFindAndRebuild", "reindexIndex"])
def test_upgrade_and_rebuild_add_stems(dsn: str, renew: str) -> None:
    with opened(dsn) as portal:
        catalog = portal.portal_catalog
        portal.portal_setup.upgradeProfile(PROFILE)
        transaction.commit()
        assert_all_found(catalog)
        assert found(catalog, "run") == []
        if renew == "reindexIndex":
            catalog.reindexIndex("SearchableText", None)
        else:
            catalog.clearFindAndRebuild()
        transaction.commit()
        counted(dsn, catalog)
        assert found(catalog, "run") == ["p0"]
        assert found(catalog, "houses") == ["p0", "p1"]
        assert found(catalog, "house") == ["p1", "p0"]
