"""The facet *Kind of file*: one setting adds its index, a job fills it, and it counts like the other facets."""

from demo import documents as files
from plone.namedfile.file import NamedBlobFile
from plone.pgcatalog.files.file_kinds import INDEX
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.settings import search_facets
from tests.acceptance.search_site import fill_for_mara
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import publish
from tests.integration.search_pages import follow
from tests.integration.search_pages import search
from tests.integration.uploads import work
from tests.integration.web import Site
from typing import Any
from zope.component import getUtility
from zope.schema.interfaces import IVocabularyFactory

import pytest
import transaction


UNKNOWN = "application/octet-stream"
FACETS = (*search_facets.default, INDEX)
#: id -> content type and file name of a file about hedgehogs
UPLOADS = {
    "a": (files.PDF, "a.pdf"),
    "b": (files.PDF, "b.pdf"),
    "c": ("application/msword", "c.doc"),
    "d": (UNKNOWN, "d.docx"),
    "e": ("text/csv", "e.csv"),
    "f": (UNKNOWN, "f"),
}
COUNTS = {"pdf": 2, "word": 2, "text": 1}


def fill(portal: Any) -> None:
    fill_for_mara(portal)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    portal.portal_workflow.setChainForPortalTypes(("File",), ("simple_publication_workflow",))
    for name, (kind, filename) in UPLOADS.items():
        add(portal, name, kind, filename)
    create(portal, "File", "hidden", title="hedgehog", file=NamedBlobFile(b"x", "video/mp4", "x.mp4"))
    create(portal, "Image", "image", title="hedgehog without a picture")


SHARED = fill


def add(portal: Any, name: str, kind: str, filename: str) -> None:
    obj = create(portal, "File", name, title=f"hedgehog {name}", file=NamedBlobFile(b"x", kind, filename))
    publish(obj)


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Site:
    """The shared site with the facet; the job has filled its index."""
    assert kinds(shared_site) is None
    assert search(shared_site.web, SearchableText="hedgehog", **{f"{INDEX}:list": "pdf"}).total > len(UPLOADS)
    with shared_site.inside():
        tune(search_facets=FACETS)
    assert kinds(shared_site) is None
    assert work(Worker(shared_site.db, shared_site.dsn, is_long=True)) > 0
    return shared_site


def kinds(site: Site, login: str | None = None, **query: Any) -> Any:
    return search(site.web, login, SearchableText="hedgehog", **query).facets.get(INDEX)


def test_facet_counts_kinds_that_the_visitor_may_see(site: Site) -> None:
    assert kinds(site) == COUNTS
    assert kinds(site, "boss:secret") == COUNTS | {"video": 1}
    assert kinds(site, path="/plone/news", **{"portal_type:list": "Document"}) is None


def test_several_kinds_are_alternatives_and_can_be_removed(site: Site) -> None:
    query = {"SearchableText": "hedgehog", f"{INDEX}:list": ["pdf", "word"]}
    page = search(site.web, **query)
    assert page.total == 4
    assert page.checked == {"pdf", "word"}
    assert page.facets[INDEX] == COUNTS
    assert list(page.chips) == ["PDF", "Word"]
    assert follow(site.web, page.chips["Word"]).total == 2
    # Titles of values without a count are not looked up, and unknown ones are filters like the others.
    other = search(site.web, SearchableText="hedgehog", **{f"{INDEX}:list": ["<b>", "video"]})
    assert (other.total, list(other.chips)) == (0, ["<b>", "video"])


def test_service_and_page_have_the_same_readable_names(site: Site) -> None:
    answer = site.web.open("/plone/@pgsearch?SearchableText=hedgehog&search_page=1", None, "application/json").json
    [facet] = [facet for facet in answer["facets"] if facet["name"] == INDEX]
    values = [(value["value"], value["title"], value["count"]) for value in facet["values"]]
    assert (facet["title"], values) == ("Kind of file", [("pdf", "PDF", 2), ("word", "Word", 2), ("text", "Text", 1)])
    labels = search(site.web, SearchableText="hedgehog").labels
    assert {kind: labels[kind] for kind in COUNTS} == {"pdf": "PDF", "word": "Word", "text": "Text"}


def test_save_after_the_job_follows_the_file(site: Site) -> None:
    with site.inside() as portal:
        add(portal, "g", "application/zip", "g.zip")
        portal.g.file = NamedBlobFile(b"x", files.PDF, "g.pdf")
        portal.g.reindexObject()
        catalog = portal.portal_catalog
        assert sorted(brain.getId for brain in catalog(kind_of_file="pdf")) == ["a", "b", "g"]
        assert dict(catalog.facets({}, [INDEX])[INDEX]) == {"pdf": 3, "word": 2, "text": 1, "video": 1}
        transaction.abort()


def test_panel_offers_the_facet_with_its_name(site: Site) -> None:
    with site.inside() as portal:
        terms = getUtility(IVocabularyFactory, "plone.pgcatalog.Facets")(portal)
        assert terms.getTerm(INDEX).title == f"{INDEX} (Kind of file)"
    panel = site.web.open("/plone/@controlpanels/pgcatalog-search-page", "boss:secret", "application/json")
    assert panel.json["data"]["search_facets"][-1]["token"] == INDEX
