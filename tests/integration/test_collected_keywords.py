"""Keys of a KeywordIndex are those of its rows."""

from plone.pgcatalog.database import keywords
from plone.pgcatalog.indexing import rebuild_relation
from plone.pgcatalog.results.cache import result_cache
from Products.CMFCore.indexing import processQueue
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.pages import second_connection
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
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


def collected(dsn: str) -> set[str]:
    [(names,)] = sql(dsn, "SELECT collected FROM pgcatalog_state")
    return set(names)


def retag(portal: Any, name: str, *tags: Any) -> None:
    portal[name].subject = tags
    portal[name].reindexObject()
    transaction.commit()
    transaction.begin()


@pytest.mark.parametrize("form", ["new", "cleared", "rebuilt"])
def test_keys_are_those_of_zcatalog(portal: Any, dsn: str, form: str) -> None:
    catalog = portal.portal_catalog
    if form == "cleared":
        catalog.clearFindAndRebuild()
        transaction.commit()
    if form == "rebuilt":
        rebuild(portal._p_jar.db())
    transaction.begin()
    assert "subject" in collected(dsn)
    for name, tags in (("page0", ("new",)), ("page1", ()), ("page2", ("red", "green", "blue"))):
        retag(portal, name, *tags)
        oracle = make_oracle(portal)
        assert values(catalog) == list(oracle.uniqueValuesFor("Subject"))
    portal.manage_delObjects(["page4", "page5"])
    transaction.commit()
    transaction.begin()
    assert values(catalog) == list(make_oracle(portal).uniqueValuesFor("Subject")) == ["blue", "green", "new", "red"]


def test_uncommitted_keys_are_found_by_their_transaction_alone(portal: Any, dsn: str) -> None:
    catalog = portal.portal_catalog
    before = values(catalog)
    portal.page3.subject = ("never seen",)
    portal.page3.reindexObject()
    processQueue()
    assert set(values(catalog)) == {*before, "never seen"}
    with second_connection(portal._p_jar.db()) as (manager, other):
        assert values(other.portal_catalog) == before
        transaction.commit()
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


def test_column_with_very_many_keys_is_scanned(portal: Any, dsn: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(keywords, "MANY_LISTS", 12)
    for number in range(4):
        retag(portal, "page3", f"one{number}", f"two{number}")
        assert {f"one{number}", f"two{number}"} == {v for v in values(portal.portal_catalog) if v[:3] in ("one", "two")}
    assert "subject" not in collected(dsn)
    assert "two3" in values(portal.portal_catalog)
    rebuild(portal._p_jar.db())
    transaction.begin()
    # Keys without rows are removed: there are few again.
    assert "subject" in collected(dsn)
    retag(portal, "page3", *(f"at once {number}" for number in range(13)))
    assert "subject" not in collected(dsn)
    assert "at once 12" in values(portal.portal_catalog)


def test_rebuild_removes_keys_without_rows(portal: Any, dsn: str, monkeypatch: Any) -> None:
    retag(portal, "page3", "forgotten")
    retag(portal, "page3", "kept")
    rebuild(portal._p_jar.db())
    transaction.begin()
    known = {v for (vals,) in sql(dsn, "SELECT vals FROM pgcatalog_sets WHERE name = 'subject'") for v in vals}
    assert "kept" in known
    assert "forgotten" not in known
    # Numbers of lists in the next relation, and lists again in the one after.
    for share in (1, 0):
        sql(dsn, "ANALYZE {}")
        monkeypatch.setattr(rebuild_relation, "MOST_LISTS_PER_ROW", share)
        transaction.abort()
        rebuild(portal._p_jar.db())
        transaction.begin()
        assert ("subject" in collected(dsn)) is (share == 0)
        assert "kept" in values(portal.portal_catalog)


def test_an_index_that_is_added_is_collected(portal: Any, dsn: str) -> None:
    catalog = portal.portal_catalog
    catalog.addIndex("getId_letters", KeywordIndex("getId_letters", extra={"indexed_attrs": "getId"}))
    assert values(catalog, "getId_letters") == []
    catalog.reindexIndex("getId_letters", None)
    assert "page3" in values(catalog, "getId_letters")
    transaction.commit()
    transaction.begin()
    assert "get_id_letters" in collected(dsn)
    assert "page3" in values(catalog, "getId_letters")
