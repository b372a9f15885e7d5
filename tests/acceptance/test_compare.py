"""A real Data.fs of stock Plone is rehearsed, migrated and moved back; the site's own queries have the same answers."""

from pathlib import Path
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.CMFPlone.CatalogTool import CatalogTool
from tests.acceptance.cli import pgcatalog
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.people import add_users
from tests.integration.people import make_content
from typing import Any

import hashlib
import json
import pytest
import transaction


pytestmark = pytest.mark.slow
CONF = """\
%define INSTANCE {folder}
instancehome $INSTANCE
<zodb_db main>
  mount-point /
  <filestorage>
    path {folder}/Data.fs
    blob-dir {folder}/blobs
  </filestorage>
</zodb_db>
"""
NEWS = [{"i": "portal_type", "o": "plone.app.querystring.operation.selection.any", "v": ["News Item", "Document"]}]
TAGGED = [{"i": "Subject", "o": "plone.app.querystring.operation.selection.any", "v": ["fresh"]}]
BROKEN = [{"i": "portal_type", "o": "no.such.operation", "v": ["x"]}]


@pytest.fixture(scope="module")
def data_fs(zope: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a zope.conf and of a Data.fs with a stock site, which has content, collections and blocks."""
    folder = tmp_path_factory.mktemp("stock")
    (folder / "etc").mkdir()
    (folder / "etc" / "site.zcml").write_text(sites.SITE_ZCML)
    (folder / "etc" / "zope.conf").write_text(CONF.format(folder=folder))
    with sites.opened_in_file(folder) as db:
        sites.create_site_in(db)
        with sites.inside(db) as portal:
            populate(portal)
            add_users(portal)
            make_content(portal)
            news = create(portal, "Collection", "news", title="News", query=NEWS)
            news.sort_on, news.sort_reversed, news.limit = "modified", True, 3
            create(portal, "Collection", "tagged", query=TAGGED)
            create(portal, "Collection", "broken", query=BROKEN)
            page = create(portal, "Document", "blocks", title="Blocks")
            page.blocks = {
                "1": {"@type": "listing", "querystring": {"query": NEWS, "sort_on": "sortable_title"}},
                "2": {"@type": "gridBlock", "blocks": {"3": {"@type": "search", "querystring": {"query": TAGGED}}}},
                "4": {"@type": "slate", "value": "<script>"},
            }
            transaction.commit()
    return folder


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def answers(portal: Any, queries: list[Any]) -> list[Any]:
    from plone.pgcatalog.migration.compare import run_query

    return [run_query(portal.portal_catalog, query) for query in queries]


def assert_same(queries: list[Any], before: list[Any], after: list[Any]) -> None:
    from plone.pgcatalog.migration.compare import compare

    comparisons = [compare(*three) for three in zip(queries, before, after, strict=True)]
    assert [c for c in comparisons if not c.is_fine] == []


def test_migrated_site_and_the_way_back_have_the_same_answers(data_fs: Path, postgres: EmbeddedPostgres) -> None:
    from plone.pgcatalog.migration import copying
    from plone.pgcatalog.migration.compare import site_queries

    dsn = postgres.createdb("migrated")
    with sites.opened_in_file(data_fs) as db:
        with sites.inside(db) as portal:
            assert type(portal.portal_catalog.aq_base) is CatalogTool
            queries = list(site_queries(portal, 1000))
            before = answers(portal, queries)
            kinds = {query.kind for query in queries}
        copying.copy_to_scratch(db.storage, dsn)
    assert kinds == {"tabs", "sitemap", "navigation", "listing", "collection", "block"}
    assert sum(query.kind == "block" for query in queries) == 2
    assert sum(len(answer.everything) for answer in before) > 100
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            assert_same(queries, before, answers(portal, queries))  # still ZCatalog's
            portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
            transaction.commit()
            assert list(Verifier(portal.portal_catalog).differences()) == []
            assert_same(queries, before, answers(portal, queries))
        with sites.inside(db) as portal:
            portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
            transaction.commit()
            assert type(portal.portal_catalog.aq_base) is CatalogTool
            assert_same(queries, before, answers(portal, queries))


def test_rehearsal_reports_differences_and_changes_nothing(data_fs: Path, postgres: EmbeddedPostgres) -> None:
    with sites.opened_in_file(data_fs) as db, sites.inside(db) as portal:
        portal.my_folder.page.setSubject(("fresh",))  # without cataloguing it
        transaction.commit()
    conf, before = str(data_fs / "etc" / "zope.conf"), digest(data_fs / "Data.fs")
    scratch = postgres.createdb("rehearsal")
    done = pgcatalog("compare", conf, "--site", "plone", "--scratch", scratch, "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["seconds"]["copy"] > 0
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
    assert digest(data_fs / "Data.fs") == before

    again = pgcatalog("compare", conf, "--site", "plone", "--scratch", scratch)
    assert again.returncode == 2
    assert "the scratch database is not empty" in again.stderr
