"""The tab Catalog and the page Object information: fast in large catalogs, and complete."""

from plone.pgcatalog.zmi.browse import between
from plone.pgcatalog.zmi.browse import Browser
from plone.pgcatalog.zmi.browse import COUNT_LIMIT
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import ROWS
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any

import psycopg
import pytest
import re


CATALOG = "/plone/portal_catalog/manage_catalogView"
INFORMATION = "/plone/portal_catalog/manage_objectInformation"


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Site:
    """A site with generated rows and some content."""
    with shared_site.inside() as portal:
        folder = create(portal, "Folder", "f", title="Folder")
        for number in range(7):
            create(folder, "Document", f"d{number}", title=f"Page {number}", description="Red hedgehogs")
        for sibling in ("f-1", "f_1", "f0", "f.x"):
            create(portal, "Document", sibling)
    generate_rows(shared_site.dsn)
    with psycopg.connect(shared_site.dsn, autocommit=True) as connection:
        # The rows were inserted directly: they have no values except a path.
        connection.execute("UPDATE pgcatalog_state SET complete = '{}'")
    with shared_site.inside() as portal:
        # The states are read again in another transaction.
        portal.description = "With generated rows"
    return shared_site


def listed(tree: Any) -> list[str]:
    return [str(path) for path in tree.xpath("//table[@id='rows']/tbody//a/text()")]


# -- browsing


def test_pages_forwards_and_backwards_show_each_row_once_in_the_order_of_paths(site: Site) -> None:
    with site.inside() as portal:
        view = portal.portal_catalog._core.view()
        everything = sorted(path for (path,) in view.select("path").value())
        browser = Browser(view, size=501)
        pages = [browser.page()]
        while pages[-1].after:
            pages.append(browser.page(after=pages[-1].after))
        assert [row.path for page in pages for row in page.rows] == everything
        assert len(pages) == 9
        back = [pages[-1]]
        while back[-1].before:
            back.append(browser.page(before=back[-1].before))
        assert [page.rows for page in reversed(back)] == [page.rows for page in pages]


def test_path_filter_is_that_of_zcatalog(site: Site) -> None:
    with site.inside() as portal:
        catalog = portal.portal_catalog
        for folder in ("/plone/f", "/plone", "/plone/f/d3", "/plone/nothing", "/"):
            expected = sorted(b.getPath() for b in catalog.unrestrictedSearchResults(path=folder))
            rows = Browser(catalog._core.view(), folder, 10_000).page().rows
            # The generated rows are in no path index.
            assert [row.path for row in rows if not row.path.startswith("/plone/x")] == expected


def test_pages_need_neither_sort_nor_scan(site: Site) -> None:
    with site.inside() as portal:
        view = portal.portal_catalog._core.view()
        for folder, low in (("", ""), ("/plone", "/plone/"), ("/plone", "/plone/x3")):
            browser = Browser(view, folder)
            statement = browser.statement("rid, path", between(low, browser.high), "ORDER BY path ASC LIMIT 51")
            assert statement is not None
            plan = "\n".join(line for (line,) in view.session.execute(f"EXPLAIN {statement.sql}", statement.params))
            assert re.search(r"Scan using \S+_path", plan), plan
            assert not re.search("Seq Scan|Sort", plan), plan


def test_a_page_takes_a_few_statements_however_long_it_is(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with site.inside() as portal:
        view = portal.portal_catalog._core.view()
        sent: list[str] = []
        real = view.session.query
        monkeypatch.setattr(view.session, "query", lambda s, *a, **kw: sent.append(s.sql) or real(s, *a, **kw))
        browser = Browser(view, "/plone")
        browser.page()
        browser.count()
        browser.estimate()
        assert len(sent) == 5
        assert all(f"LIMIT {COUNT_LIMIT + 1}" in query for query in sent if "count(" in query)


def test_few_rows_are_counted_and_many_are_estimated(site: Site) -> None:
    with site.inside() as portal:
        view = portal.portal_catalog._core.view()
        for folder, count in (("", None), ("/plone/none", 0), ("/plone/f", 8), ("/plone/f/d0", 1)):
            assert Browser(view, folder).count() == count
        for folder in ("", "/plone"):
            assert ROWS / 2 < Browser(view, folder).estimate() < ROWS * 2


def test_tab_links_all_pages_of_the_catalog(site: Site) -> None:
    tree = site.page(CATALOG)
    first = listed(tree)
    assert len(first) == 50
    assert not tree.xpath("//a[@id='previous']")
    [link] = tree.xpath("//a[@id='next']/@href")
    second = site.page(CATALOG, **dict(pair.split("=") for pair in link.split("?")[1].replace("%2F", "/").split("&")))
    assert not set(listed(second)) & set(first)
    [back] = second.xpath("//a[@id='previous']/@href")
    assert "before=" in back
    assert not site.page(CATALOG, filterpath="plone/f/").xpath("//a[@id='next']")


# -- object information


def test_object_information_agrees_with_the_tools_own_methods(site: Site) -> None:
    with site.inside() as portal:
        catalog = portal.portal_catalog
        rid = catalog.getrid("/plone/f/d3")
        metadata, indexes = catalog.getMetadataForRID(rid), catalog.getIndexDataForRID(rid)
    tree = site.page(INFORMATION, rid=rid)
    names = tree.xpath("//table[@id='metadata']/tbody/tr/td[1]/text()")
    assert names == sorted(metadata, key=str.lower)
    assert tree.xpath("//*[@id='tabs']//a[contains(@class, 'active')]/text()") == ["Catalog"]
    shown = tree.xpath("//table[@id='indexes' or @id='texts']/tbody/tr/td[1]/text()")
    assert set(shown) == set(indexes)


def test_empty_catalog_has_a_page(db: Any) -> None:
    site = Site(db)
    with site.inside() as portal:
        portal.portal_catalog.manage_catalogClear()
    tree = site.page(CATALOG)
    assert text(tree.get_element_by_id("empty")) == "There are no rows."
    assert text(tree.get_element_by_id("total")) == "0"
