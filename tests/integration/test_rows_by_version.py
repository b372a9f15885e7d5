"""Only changed metadata is read again: bytes from the server, counted."""

from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.view import CatalogView
from tests.integration.content import create
from tests.integration.pages import analyzed
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


PAGES = 180
#: A version takes less; the metadata of a page takes more than ten times as much.
VERSION_BYTES = 120
#: A record id in the single value that returns all of them.
ID_BYTES = 9


def fill(portal: Any) -> None:
    for number in range(PAGES):
        create(portal, "Document", f"page{number:03}", title=f"Page {number}", description="word " * 40)


CONTENT = fill


@pytest.fixture
def filled(portal: Any, dsn: str) -> Any:
    """The site, without any cached row."""
    result_cache().clear(ROWS)
    return analyzed(portal, dsn)


def titles(portal: Any, **query: Any) -> list[str]:
    found = portal.portal_catalog.unrestrictedSearchResults(**({"portal_type": "Document", "sort_on": "getId"} | query))
    return [brain.Title for brain in found]


IN_ORDER = [f"Page {number}" for number in range(PAGES)]


def begin(portal: Any) -> None:
    """Begin a transaction; Zope has loaded an object before a page is rendered."""
    transaction.begin()
    assert titles(portal, getId="none") == []


@pytest.mark.parametrize("sort_on", ["getId", "getObjPositionInParent"])
def test_navigation_reads_changed_rows_and_ids(filled: Any, sort_on: str) -> None:
    """Rows behind the first hundred, and all of a listing in the order of its folder."""
    for number in range(3):
        filled.page150.title = f"Changed {number}"
        filled.page150.reindexObject()
        transaction.commit()
        begin(filled)
        with traced(filled) as traffic:
            found = titles(filled, sort_on=sort_on)
        assert found[150] == f"Changed {number}"
        assert found[:150] + found[151:] == IN_ORDER[:150] + IN_ORDER[151:]
    # Pages with their versions; or the positions, objects of the folder, which may be read again.
    beginning = PAGES * 40 if sort_on == "getObjPositionInParent" else 100 * VERSION_BYTES
    metadata_of_one = 2000
    assert traffic[0].row_bytes < beginning + metadata_of_one + PAGES * ID_BYTES
    assert traffic[0].round_trips <= 5


def test_rows_deleted_meanwhile_are_read_as_of_the_snapshot(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache has dropped them after reporting them as cached: a row without metadata would be a wrong answer."""
    begin(filled)
    assert titles(filled) == IN_ORDER
    create(filled, "Folder", "elsewhere")
    transaction.commit()
    begin(filled)
    read, believed = CatalogView.idx_texts, set()

    def forgetting(view: CatalogView, rids: Any, excluded_keys: Any = (), known: Any = ()) -> Any:
        found = read(view, rids, excluded_keys, known)
        believed.update(known)
        result_cache().clear(ROWS)
        return found

    monkeypatch.setattr(CatalogView, "idx_texts", forgetting)
    assert titles(filled) == IN_ORDER
    assert believed


def test_loop_over_more_than_fits_rereads_only_the_excess(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each row read for the site map of a large site would displace the row that the next visitor needs first."""
    cache, read = result_cache(), []
    cache.clear()
    for _ in range(3):
        begin(filled)
        with traced(filled) as traffic:
            assert titles(filled) == IN_ORDER
        if not read:
            monkeypatch.setattr(cache, "limit", cache.size * 3 // 4)
            cache.clear()
            begin(filled)
            titles(filled)
        read.append(traffic[0].row_bytes)
    assert cache.size <= cache.limit
    assert max(read[1:]) < 0.6 * read[0]
