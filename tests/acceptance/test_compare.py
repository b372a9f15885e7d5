"""A real Data.fs of stock Plone is rehearsed, migrated and moved back; the site's own queries have the same answers."""

from hashlib import sha256
from pathlib import Path
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.migration import copying
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.CMFPlone.CatalogTool import CatalogTool
from tests.acceptance.cli import answer
from tests.acceptance.cli import invoke
from tests.acceptance.moves import sources
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.fixtures import SiteWith
from tests.integration.people import make_all
from typing import Any

import pytest
import transaction


pytestmark = pytest.mark.slow

STORAGE = "<filestorage>\n path {0}/Data.fs\n blob-dir {0}/blobs\n</filestorage>"
NEWS = [{"i": "portal_type", "o": "plone.app.querystring.operation.selection.any", "v": ["News Item", "Document"]}]
TAGGED = [{"i": "Subject", "o": "plone.app.querystring.operation.selection.any", "v": ["fresh"]}]
BROKEN = [{"i": "portal_type", "o": "no.such.operation", "v": ["x"]}]


def fill(portal: Any) -> None:
    """Create content of restricted visibility, collections, and blocks."""
    make_all(portal)
    news = create(portal, "Collection", "news", title="News", query=NEWS)
    news.sort_on, news.sort_reversed, news.limit = "modified", True, 3
    create(portal, "Collection", "tagged", query=TAGGED)
    create(portal, "Collection", "broken", query=BROKEN)
    create(portal, "Document", "blocks", title="Blocks").blocks = {
        "1": {"@type": "listing", "querystring": {"query": NEWS, "sort_on": "sortable_title"}},
        "2": {"@type": "gridBlock", "blocks": {"3": {"@type": "search", "querystring": {"query": TAGGED}}}},
        "4": {"@type": "slate", "value": "<script>"},
    }


@pytest.fixture(scope="module")
def data_fs(site_with: SiteWith, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a zope.conf and of a Data.fs with a stock site."""
    folder = tmp_path_factory.mktemp("stock")
    sources.copied_to_file(site_with(fill, stock=True), folder).close()
    (folder / "etc").mkdir()
    (folder / "etc" / "site.zcml").write_text(sites.SITE_ZCML)
    conf = sites.ZOPE_CONF.format(instance=folder, storage=STORAGE.format(folder))
    (folder / "etc" / "zope.conf").write_text(conf)
    return folder


def test_migrated_site_and_the_way_back_have_the_same_answers(data_fs: Path, postgres: EmbeddedPostgres) -> None:
    from plone.pgcatalog.migration.compare import compare
    from plone.pgcatalog.migration.compare import run_query
    from plone.pgcatalog.migration.compare import site_queries

    dsn = postgres.createdb("migrated")
    with sites.opened_in_file(data_fs) as db:
        with sites.inside(db) as portal:
            queries = list(site_queries(portal, 1000))
            before = [run_query(portal.portal_catalog, query) for query in queries]
            kinds = {query.kind for query in queries}
        copying.copy_to_scratch(db.storage, dsn)
    assert kinds == {"tabs", "sitemap", "navigation", "listing", "collection", "block"}
    assert sum(query.kind == "block" for query in queries) == 2
    assert sum(len(answer.everything) for answer in before) > 100

    def differing(portal: Any) -> list[Any]:
        after = [run_query(portal.portal_catalog, query) for query in queries]
        found = [compare(*three) for three in zip(queries, before, after, strict=True)]
        return [comparison for comparison in found if not comparison.is_fine]

    with sites.opened(dsn) as db:
        for profile, is_stock in ((None, True), ("default", False), ("uninstall", True)):
            with sites.inside(db) as portal:
                if profile:
                    portal.portal_setup.runAllImportStepsFromProfile(f"profile-plone.pgcatalog:{profile}")
                    transaction.commit()
                assert (type(portal.portal_catalog.aq_base) is CatalogTool) == is_stock
                assert is_stock or list(Verifier(portal.portal_catalog).differences()) == []
                assert differing(portal) == []


def test_rehearsal_reports_differences_and_changes_nothing(data_fs: Path, postgres: EmbeddedPostgres) -> None:
    with sites.opened_in_file(data_fs) as db, sites.inside(db) as portal:
        portal.my_folder.page.setSubject(("fresh",))  # without cataloguing it
        transaction.commit()
    before = sha256((data_fs / "Data.fs").read_bytes()).digest()
    command = ("compare", str(data_fs / "etc" / "zope.conf"), "--site", "plone", "--scratch")
    command += (postgres.createdb("rehearsal"),)
    status, found = answer(*command)
    assert (status, found["seconds"]["copy"] > 0) == (1, True)
    wrong = [q for q in found["queries"] if q["verdict"] not in ("same", "ties")]
    assert {(q["kind"], q["path"], q["verdict"]) for q in wrong} == {
        ("collection", "/plone/tagged", "different"),
        ("block", "/plone/blocks", "different"),
    }
    assert all(q["additional"] == ["/plone/my_folder/page"] and not q["missing"] for q in wrong)
    visited = [page["path"] for page in found["pages"]]
    assert {"/plone", "/plone/my_folder/page"} <= set(visited)
    assert "/plone/news" not in visited  # private
    assert all(page["before_ms"] > 0 < page["after_ms"] for page in found["pages"])
    assert sha256((data_fs / "Data.fs").read_bytes()).digest() == before

    again = invoke(*command)
    assert again.exit_code == 2
    assert "the scratch database is not empty" in again.stderr
