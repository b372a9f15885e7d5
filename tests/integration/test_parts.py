"""Parts of words: found where a site wants it, without losing anything, and to the letter where it is asked for."""

from collections.abc import Iterator
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Text
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.traffic import traced
from tests.integration.vocabulary import counted
from typing import Any
from zope.component import getUtility

import pytest
import transaction


SETTING = "plone.pgcatalog.parts_of_words"
TITLES = {
    "tree": "Das Baumhaus",
    "house": "Haus am See",
    "boat": "Hausboot auf dem See",
    "percent": "100%haus_x",
    "cat": "Katze",
    "chinese": "数据库目录",
}
HOUSES = {"tree", "house", "boat", "percent", "secret"}


@pytest.fixture(scope="module")
def site(site_template: str, postgres: Any) -> Iterator[Any]:
    """(catalog, portal) of a site that finds parts of words; the tests change nothing that stays."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        add_users(portal)
        for name, title in TITLES.items():
            publish(create(portal, "Document", name, title=title))
        create(portal, "Document", "secret", title="Geheimhaus")
        getUtility(IRegistry)[SETTING] = True
        transaction.commit()
        counted(dsn, portal.portal_catalog)
        yield portal.portal_catalog, portal


def ids(results: Any) -> set[str]:
    return {brain.getId for brain in results}


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("haus", HOUSES),
        ("HAUS", HOUSES),
        ("haus*", HOUSES),
        ("haus AND see", {"house", "boat"}),
        ("haus OR katze", HOUSES | {"cat"}),
        ("baum", {"tree"}),
        ('"haus"', {"house"}),
        ('"haus am"', {"house"}),
        ("see AND NOT haus", {"boat"}),
        ("au", set()),
        ("%", set()),
        ("s_x", {"percent"}),
        ("数据", {"chinese"}),
        ("nothing", set()),
    ],
)
def test_words_that_contain_it(site: Any, search: str, found: set[str]) -> None:
    catalog, _ = site
    results = catalog(SearchableText=search)
    assert ids(results) == found
    assert len(results) == results.actual_result_count


def test_only_where_a_site_wants_it(site: Any) -> None:
    catalog, _ = site
    getUtility(IRegistry)[SETTING] = False
    try:
        assert ids(catalog(SearchableText="haus")) == {"house"}
    finally:
        transaction.abort()
    assert "tree" in ids(catalog(SearchableText="haus"))


def test_query_objects_and_facets_agree(site: Any) -> None:
    catalog, _ = site
    assert ids(catalog(where=And(Text("haus"), Eq("getId", "tree")))) == {"tree"}
    assert "tree" in ids(catalog(where=Not(Text("haus"))))
    results = catalog(SearchableText="haus", getId=["tree", "house"])
    assert results.facets(["portal_type"])["portal_type"] == {"Document": 2}
    assert "<mark>Baumhaus</mark>" in results.highlighter().mark("Das Baumhaus")


def test_nobody_finds_what_he_may_not_see(site: Any) -> None:
    catalog, portal = site
    with acting_as(portal, None):
        assert ids(catalog(SearchableText="haus")) == {"tree", "house", "boat", "percent"}
        assert ids(catalog(SearchableText="geheim")) == set()


@pytest.mark.parametrize("text", ["\x00haus", "\ud800", "x" * 10_000, "haus " * 1000, "((", "'", "\\\\", "a\\%b"])
def test_whatever_is_typed_is_legal(site: Any, text: str) -> None:
    catalog, _ = site
    assert len(catalog(SearchableText=text)) >= 0


def test_words_count_as_soon_as_they_are_counted(portal: Any, catalog: Any, dsn: str) -> None:
    """A search that was made before is not remembered as it was."""
    getUtility(IRegistry)[SETTING] = True
    create(portal, "Document", "tree", title="Baumhaus")
    transaction.commit()
    inside = portal.portal_catalog._catalog
    assert ids(catalog(SearchableText="haus")) == ids(inside.searchResults(SearchableText="haus")) == set()
    assert ids(catalog(where=Text("haus"))) == set()
    counted(dsn, catalog)
    assert ids(catalog(SearchableText="haus")) == ids(inside.searchResults(SearchableText="haus")) == {"tree"}
    assert ids(catalog(where=Text("haus"))) == {"tree"}


def test_it_is_one_statement_more_and_none_without_words(site: Any) -> None:
    catalog, portal = site
    for search, statements in (({"SearchableText": "haus"}, 2), ({"portal_type": "Document"}, 1)):
        transaction.begin()
        result_cache().clear(HITS)
        len(catalog(getId="tree"))
        with traced(portal) as traffic:
            assert ids(catalog(**search))
        assert traffic[0].round_trips == statements, traffic[0].statements
