"""Keys of a KeywordIndex are those of its rows."""

from plone.pgcatalog.results.cache import result_cache
from Products.CMFCore.indexing import processQueue
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.pages import second_connection
from tests.integration.rebuilding import rebuild
from typing import Any

import pytest
import transaction


TAGS = [("red",), ("red", "blue"), ("green",), (), ("Überall", "über", "z"), ("7", "10", "a\x01b")]


def fill(portal: Any) -> None:
    for number, tags in enumerate(TAGS):
        create(portal, "Document", f"page{number}", subject=tags)


CONTENT = fill


def values(catalog: Any, name: str = "Subject") -> list[Any]:
    """Return the keys alone, and check that they equal the keys counted in all rows."""
    result_cache().clear()
    found = list(catalog.uniqueValuesFor(name))
    assert found == [key for key, _ in catalog.Indexes[name].uniqueValues(withLengths=True)]
    return found


def retag(portal: Any, name: str, *tags: Any) -> None:
    portal[name].subject = tags
    portal[name].reindexObject()
    transaction.commit()
    transaction.begin()


@pytest.mark.parametrize("form", ["new", "cleared", "rebuilt"])
def test_keys_are_those_of_zcatalog(portal: Any, form: str) -> None:
    catalog = portal.portal_catalog
    if form == "cleared":
        catalog.clearFindAndRebuild()
        transaction.commit()
    if form == "rebuilt":
        rebuild(portal._p_jar.db())
    transaction.begin()
    for name, tags in (("page0", ("new",)), ("page1", ()), ("page2", ("red", "green", "blue"))):
        retag(portal, name, *tags)
        oracle = make_oracle(portal)
        assert values(catalog) == list(oracle.uniqueValuesFor("Subject"))
    portal.manage_delObjects(["page4", "page5"])
    transaction.commit()
    transaction.begin()
    assert values(catalog) == list(make_oracle(portal).uniqueValuesFor("Subject")) == ["blue", "green", "new", "red"]


def test_uncommitted_keys_are_found_by_their_transaction_alone(portal: Any) -> None:
    catalog = portal.portal_catalog
    before = values(catalog)
    portal.page3.subject = ("never seen",)
    portal.page3.reindexObject()
    processQueue()
    assert set(values(catalog)) == {*before, "never seen"}
    with second_connection(portal._p_jar.db()) as (manager, other):
        for end in (lambda: None, transaction.commit):
            end()
            assert values(other.portal_catalog) == before
        manager.begin()
        assert set(values(other.portal_catalog)) == {*before, "never seen"}
    portal.page3.subject = ()
    portal.page3.reindexObject()
    processQueue()
    assert values(catalog) == before
    transaction.abort()
    transaction.begin()
    assert set(values(catalog)) == {*before, "never seen"}


def test_index_that_is_added_has_keys(portal: Any) -> None:
    catalog = portal.portal_catalog
    catalog.addIndex("getId_letters", KeywordIndex("getId_letters", extra={"indexed_attrs": "getId"}))
    assert values(catalog, "getId_letters") == []
    catalog.reindexIndex("getId_letters", None)
    for end in (lambda: None, transaction.commit):
        end()
        assert "page3" in values(catalog, "getId_letters")
