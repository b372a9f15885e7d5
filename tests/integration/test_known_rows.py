"""Rows that the process knows are shown without reading them again, and only in the version that the snapshot has."""

from contextlib import contextmanager
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.loader import RowLoader
from tests.integration.pages import make_pages
from tests.integration.pages import second_connection
from tests.integration.pages import shown
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


CONTENT = make_pages


@pytest.fixture
def filled(portal: Any, dsn: str) -> Any:
    """The site, of whose number of rows PostgreSQL knows."""
    with connect_directly(dsn, "test", 30) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        connection.execute(f'ANALYZE "{relation}"')
    portal.page00.reindexObject()
    transaction.commit()
    transaction.begin()
    return portal


def familiar(portal: Any) -> list[Any]:
    """Return what a listing shows when the rows of the whole catalog are known."""
    result_cache().clear()
    found = portal.portal_catalog.unrestrictedSearchResults(path="/")
    assert all(brain.Title is not None for brain in found)
    core = portal.portal_catalog._core
    assert RowLoader(core.view(), (), core.excluded_keys).has_most()
    return listing(portal)


def listing(portal: Any) -> list[Any]:
    result_cache().clear(HITS)
    return shown(portal, portal_type="Document", sort_on="getId")


@contextmanager
def reads(portal: Any, idx: bool) -> Any:
    """Check whether the statements inside read metadata."""
    with traced(portal) as traffic:
        yield
    assert bool(traffic[0].matching("page.idx") + traffic[0].matching("c.idx")) == idx


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
def test_a_changed_row_is_read_anew(filled: Any, db: Any, change: Any) -> None:
    before = familiar(filled)
    change(filled)
    transaction.commit()
    transaction.begin()
    after = listing(filled)
    result_cache().clear(ROWS)
    assert after == listing(filled) != before


def test_only_what_has_changed_is_read(filled: Any, db: Any) -> None:
    before = familiar(filled)
    retitle(filled)
    transaction.commit()
    transaction.begin()
    with reads(filled, idx=True):
        after = listing(filled)
    assert [row for row in after if row not in before] == [("/plone/page07", "Changed", ("a", "b"))]
    transaction.begin()
    with reads(filled, idx=False):
        assert listing(filled) == after


def test_rows_that_are_known_say_their_versions_and_nothing_else(filled: Any) -> None:
    before = familiar(filled)
    for _ in range(3):
        with traced(filled) as traffic:
            assert listing(filled) == before
        [page] = traffic[0].statements
        assert "xmin" in page
        assert "page.idx" not in page


def test_metadata_come_with_a_page_where_few_of_the_catalogs_rows_are_known(filled: Any) -> None:
    before = familiar(filled)
    result_cache().clear(ROWS)
    shown(filled, portal_type="Document", getId=["page01", "page02"])
    with traced(filled) as traffic:
        assert listing(filled) == before
    [page] = traffic[0].statements
    assert "page.idx" in page


def test_in_a_batch_metadata_always_come_with_a_page(filled: Any) -> None:
    familiar(filled)
    with traced(filled) as traffic, filled.portal_catalog._core.session.batch():
        listing(filled)
    assert traffic[0].matching("page.idx")


def test_an_older_snapshot_keeps_its_rows(filled: Any, db: Any) -> None:
    before = familiar(filled)
    with second_connection(db) as (_, other):
        assert listing(other) == before
        retitle(filled)
        transaction.commit()
        transaction.begin()
        after = listing(filled)
        assert after != before
        for _ in range(2):
            assert listing(other) == before
            assert listing(filled) == after


def test_pending_and_aborted_rows_are_nobody_elses(filled: Any, db: Any) -> None:
    before = familiar(filled)
    retitle(filled)
    assert listing(filled) != before
    with second_connection(db) as (_, other):
        assert listing(other) == before
    transaction.abort()
    transaction.begin()
    assert listing(filled) == before


def test_a_moved_row_keeps_its_new_path(filled: Any) -> None:
    familiar(filled)
    filled.manage_renameObject("page07", "moved")
    found = filled.portal_catalog.unrestrictedSearchResults(portal_type="Document", sort_on="created")
    paths = [brain.getPath() for brain in found]
    assert "/plone/moved" in paths
    assert [brain.Title for brain in found]
    assert [brain.getPath() for brain in found] == paths
    filled.portal_catalog.catalog_object(filled.page03, "/plone/page03", idxs=["getId"], update_metadata=0)
    found = filled.portal_catalog.unrestrictedSearchResults(
        path={"query": ["/plone/moved", "/plone/page03"], "depth": 0}
    )
    assert sorted(brain.Title and brain.getPath() for brain in found) == ["/plone/moved", "/plone/page03"]


def test_what_a_caller_does_to_a_value_stays_with_him(filled: Any) -> None:
    familiar(filled)
    brains = filled.portal_catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId")[:2]
    brains[0].Title = "Mine"
    assert (brains[0].Title, brains[0].getId) == ("Mine", "page00")
    assert listing(filled)[0][1] == "Page 0"


def test_no_room_is_no_memory(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result_cache.cache_clear()
    monkeypatch.setenv("PGCATALOG_RESULT_CACHE_MB", "0")
    shown(filled)
    assert listing(filled) == shown(filled)
    assert len(result_cache()) == 0
    result_cache.cache_clear()
