"""Rows cached by the process are shown without reading them again, and only in the version of the snapshot."""

from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.loader import RowLoader
from plone.restapi.interfaces import IPloneRestapiLayer
from plone.restapi.interfaces import ISerializeToJson
from Testing.makerequest import makerequest
from tests.integration import pages
from tests.integration.traffic import traced
from tests.integration.traffic import Traffic
from typing import Any
from zope.component import getMultiAdapter
from zope.interface import alsoProvides

import pytest
import transaction


CONTENT = pages.make_pages


@pytest.fixture
def filled(portal: Any, dsn: str) -> Any:
    pages.analyzed(portal, dsn).page00.reindexObject()
    transaction.commit()
    transaction.begin()
    return portal


def familiar(portal: Any) -> list[Any]:
    """Return the values that a listing shows when the rows of the whole catalog are cached."""
    result_cache().clear()
    found = portal.portal_catalog.unrestrictedSearchResults(path="/")
    assert all(brain.Title is not None for brain in found)
    core = portal.portal_catalog._core
    assert RowLoader(core.view(), (), core.excluded_keys).has_most()
    return listing(portal)


def listing(portal: Any) -> list[Any]:
    result_cache().clear(HITS)
    return pages.shown(portal, portal_type="Document", sort_on="getId")


def sent_for_a_listing(portal: Any) -> tuple[Any, int, int]:
    """Return (the values that a listing shows, number of round trips, bytes of rows)."""
    with traced(portal) as traffic:
        rows = listing(portal)
    return rows, traffic[0].round_trips, traffic[0].row_bytes


def retitle(site: Any) -> None:
    site.page07.title = "Changed"
    site.page07.reindexObject()


def only_metadata(site: Any) -> None:
    """A change that stores no object."""
    page = site.page07
    page._p_activate()
    page.__dict__["title"] = "Changed"
    site.portal_catalog.catalog_object(page, idxs=["getId"])


def rename(site: Any) -> None:
    site.page07._p_activate()
    site.portal_catalog.uncatalog_object("/plone/page07")
    site.portal_catalog.catalog_object(site.page07, "/plone/other")


def remove_and_add(site: Any) -> None:
    site.portal_catalog.uncatalog_object("/plone/page07")
    transaction.commit()
    retitle(site)


@pytest.mark.parametrize("change", [retitle, only_metadata, rename, remove_and_add])
def test_changed_row_is_read_again(filled: Any, db: Any, change: Any) -> None:
    before = familiar(filled)
    change(filled)
    transaction.commit()
    transaction.begin()
    after = listing(filled)
    result_cache().clear(ROWS)
    assert after == listing(filled) != before


def test_only_changed_rows_are_read(filled: Any, db: Any) -> None:
    before = familiar(filled)
    _, _, versions = sent_for_a_listing(filled)
    retitle(filled)
    transaction.commit()
    transaction.begin()
    after, round_trips, bytes_of_rows = sent_for_a_listing(filled)
    assert [row for row in after if row not in before] == [("/plone/page07", "Changed", ("a", "b"))]
    assert round_trips == 2
    assert versions < bytes_of_rows < 2 * versions + 1500
    transaction.begin()
    again, round_trips, bytes_of_versions = sent_for_a_listing(filled)
    assert (again, round_trips) == (after, 1)
    # The numbers of later transactions may have one digit more.
    assert 0 <= bytes_of_versions - versions <= 4


def test_cached_rows_send_their_versions_only(filled: Any) -> None:
    before = familiar(filled)
    for _ in range(3):
        rows, round_trips, bytes_of_rows = sent_for_a_listing(filled)
        assert (rows, round_trips) == (before, 1)
        assert bytes_of_rows < 100 * len(rows)
    with filled.portal_catalog._core.session.batch():
        rows, _, bytes_of_rows = sent_for_a_listing(filled)
    assert rows == before
    assert bytes_of_rows < 100 * len(rows)


def test_page_fetches_all_metadata_if_few_rows_are_cached(filled: Any) -> None:
    before = familiar(filled)
    result_cache().clear(ROWS)
    _, _, everything = sent_for_a_listing(filled)
    result_cache().clear(ROWS)
    pages.shown(filled, portal_type="Document", getId=["page01", "page02"])
    rows, round_trips, bytes_of_rows = sent_for_a_listing(filled)
    assert (rows, round_trips) == (before, 1)
    assert bytes_of_rows >= everything


def test_page_of_rest_is_one_message_with_its_metadata(filled: Any) -> None:
    sent: dict[int, Traffic] = {}
    for shows in (10, 5, 10):  # the first time, objects must be loaded as well
        result_cache().clear()
        request = makerequest(filled).REQUEST
        alsoProvides(request, IPGCatalogLayer, IPloneRestapiLayer)
        request.form["b_size"] = shows
        with traced(filled) as traffic:
            results = filled.portal_catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId")
            answer = getMultiAdapter((results, request), ISerializeToJson)()
        assert (len(answer["items"]), answer["items_total"]) == (shows, len(results))
        sent[shows] = traffic[0]
    assert (sent[5].round_trips, sent[10].round_trips) == (1, 1)
    assert 1.8 < sent[10].row_bytes / sent[5].row_bytes < 2.2


def test_rows_of_older_snapshots_and_of_pending_changes_are_not_shared(filled: Any, db: Any) -> None:
    before = familiar(filled)
    retitle(filled)
    after = listing(filled)
    assert after != before
    with pages.second_connection(db) as (_, other):
        assert listing(other) == before
        transaction.abort()
        transaction.begin()
        assert listing(filled) == before
        retitle(filled)
        transaction.commit()
        transaction.begin()
        for _ in range(2):
            assert listing(other) == before
            assert listing(filled) == after
