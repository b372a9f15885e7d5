"""A listing that loads its objects loads them together, not one by one."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.prefetch import warm_up
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import share
from tests.integration.storage import clear_storage_cache
from tests.integration.storage import reads
from tests.integration.traffic import traced
from types import SimpleNamespace
from typing import Any
from zope.component.hooks import setSite

import pytest
import transaction


COUNT = 50


def fill(portal: Any) -> None:
    folder = create(portal, "Folder", "folder")
    for number in range(COUNT):
        folder.invokeFactory("Document", f"page{number:02}", title=f"Page {number}")


CONTENT = fill


@contextmanager
def watched(portal: Any) -> Iterator[Any]:
    """Yield the number of ``statements`` and loaded ``objects`` of a block that begins without pages in memory."""
    jar = portal._p_jar
    for page in portal.folder.objectValues():
        page._p_deactivate()
    transaction.begin()
    clear_storage_cache(jar)
    before, loads = reads(jar), SimpleNamespace()
    yield loads
    after = reads(jar)
    loads.statements = after.statements - before.statements
    loads.objects = after.objects - before.objects


def pages(portal: Any) -> Any:
    return portal.portal_catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId")


@pytest.fixture
def cold(portal: Any) -> Any:
    """The site with its folders and tools in memory, but no page."""
    assert len([brain.getObject() for brain in pages(portal)]) == COUNT
    return portal


def test_objects_of_a_listing_take_one_statement(cold: Any) -> None:
    for method in ("getObject", "_unrestrictedGetObject"):
        with watched(cold) as loads:
            titles = [getattr(brain, method)().title for brain in pages(cold)]
        assert titles == [f"Page {number}" for number in range(COUNT)]
        assert loads.objects >= COUNT
        # One for the pages; the others are for the site's own objects, and do not grow with the number of pages.
        assert loads.statements < 10, method
    with watched(cold) as loads:
        assert [brain.getObject().title for brain in pages(cold)[:10]][9] == "Page 9"
    assert loads.statements < 10
    assert loads.objects < 20


def test_prefetch_batch_is_a_setting(cold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def statements(batch: str) -> int:
        monkeypatch.setenv("PGCATALOG_PREFETCH_BATCH", batch)
        with watched(cold) as loads:
            assert len([brain.getObject().title for brain in pages(cold)]) == COUNT
        return loads.statements

    one, five, none = statements("100"), statements("10"), statements("0")
    assert one < five < none
    # Invalid values have no effect.
    assert max(statements(text) for text in ("", "many", "-1", "0.5")) < 10
    assert five - one == 4
    assert none - one >= COUNT - 1


def test_objects_in_memory_are_not_loaded_again_and_new_ones_without_a_record_are_no_error(cold: Any) -> None:
    with watched(cold) as loads:
        for page in cold.folder.objectValues():
            page.title  # noqa: B018
        jar = cold._p_jar
        before = reads(jar)
        assert len([brain.getObject() for brain in pages(cold)]) == COUNT
        assert reads(jar) == before
    assert loads.objects >= COUNT
    create(cold.folder, "Document", "page99", title="New")
    assert [brain.getObject().title for brain in pages(cold)][-2:] == ["Page 49", "New"]


def test_subobjects_are_loaded_together(portal: Any) -> None:
    """The pages, and the workflow history of each, which Plone reads when it indexes a page."""
    with watched(portal) as loads, traced(portal) as traffic:
        share(portal.folder, "mara", "Reader")
        transaction.commit()
    assert loads.objects > 2 * COUNT
    single = traffic[0].matching("FROM object_state WHERE zoid = $1")
    assert len(single) < COUNT / 2
    found = portal.portal_catalog.unrestrictedSearchResults(allowedRolesAndUsers="user:mara")
    assert len(found) == COUNT + 1


def statements_for_a_text(db: Any) -> int:
    """Return the number of statements for a text that is rendered as on a page."""
    html = "<p>Some <b>text</b></p>"
    with sites.application(db) as app:
        # Objects that any first page loads.
        app.plone.portal_catalog  # noqa: B018
        before = reads(app._p_jar).statements
        setSite(app.plone)
        rendered = app.plone.portal_transforms.convertTo("text/x-html-safe", html, mimetype="text/html").getData()
        assert "<b>text</b>" in rendered
        return int(reads(app._p_jar).statements - before)


def test_first_text_takes_a_few_loads_instead_of_a_thousand(dsn: str) -> None:
    with sites.opened(dsn) as db:
        assert statements_for_a_text(db) > 1000
    with sites.opened(dsn) as db:
        warm_up(db)
        assert statements_for_a_text(db) < 50


def test_prefetch_at_start_reads_no_content(dsn: str) -> None:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        portal.invokeFactory("Document", "page")
        transaction.commit()
    with sites.opened(dsn) as db:
        warm_up(db)
        with sites.application(db) as app:
            page = app.plone._getOb("page")
            before = reads(app._p_jar).statements
            assert page.id == "page"
            assert reads(app._p_jar).statements == before + 1


def test_no_missing_part_and_no_error_stops_the_start(dsn: str, database: str, monkeypatch: Any, caplog: Any) -> None:
    with sites.opened(database) as db:
        warm_up(db)
    with sites.opened(dsn) as db, sites.application(db) as app:
        with monkeypatch.context() as patched:
            patched.setattr("plone.pgcatalog.database.prefetch.OBJECT_PARTS", "SELECT no_such_column, %s, %s, %s")
            warm_up(db)
        assert app.plone.Title()
        assert "could not be read ahead" in caplog.text
        app.plone._delOb("portal_transforms")
        transaction.commit()
        warm_up(db)


def test_index_objects_are_loaded_together(portal: Any) -> None:
    jar = portal._p_jar
    catalog = portal.portal_catalog
    query = {"portal_type": "Document", "sort_on": "getId"}
    expected = [brain.getPath() for brain in catalog.unrestrictedSearchResults(**query)]
    jar.cacheMinimize()
    clear_storage_cache(jar)
    indexes = portal.portal_catalog.aq_base._indexes.values()
    assert len([index for index in indexes if index._p_changed is None]) > 20
    before = reads(jar)
    assert [brain.getPath() for brain in portal.portal_catalog.unrestrictedSearchResults(**query)] == expected
    assert reads(jar).statements - before.statements == 1
