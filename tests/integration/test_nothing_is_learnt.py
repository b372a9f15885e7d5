"""An invisible page changes no title, count or word shown to a visitor: answers before and after its creation are the same.

Only the order of hits and the choice of similar pages may change: as in ZCatalog, relevance counts words in all texts.
"""

from demo import documents as files
from plone.pgcatalog.controlpanel.panel import SearchPanel
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.results.cache import result_cache
from tests.acceptance.search_site import fill
from tests.acceptance.search_site import TOPICS
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import publish
from tests.integration.search_pages import search
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.integration.web import Site
from types import SimpleNamespace
from typing import Any

import json
import pytest


pytestmark = pytest.mark.slow


VISITORS = {None: None, "mara": "mara:secret"}
#: Searches, by the search page and live search; some words are of hidden pages, or similar to such words.
QUERIES: tuple[dict[str, Any], ...] = (
    *({}, {"SearchableText": "hedgehog"}, {"SearchableText": "hegdehog"}, {"SearchableText": "hedge"}),
    *({"SearchableText": "hedgew"}, {"SearchableText": "hedgewars"}, {"SearchableText": "hedgewars hedgehog"}),
    *({"SearchableText": "rendezvsou"}, {"SearchableText": "hedgefile"}, {"SearchableText": "hedgefiel"}),
    *({"SearchableText": "hedgefi"}, {"SearchableText": "hedgefile hedgehog"}),
    {"SearchableText": "hedgehog", "path:list": ["/plone/news", "/plone/news/vault", "/plone/vault"]},
    {"Subject:list": ["Hidden tag"]},
    {"Creator:list": ["zoe"], "SearchableText": "hedgehog"},
    {"SearchableText": "hedgehog", "facet.Date:list": ["1999", "1999-12"]},
)


SHARED = fill


def hide(portal: Any) -> None:
    """Create private pages and files everywhere, with words, tags, authors and dates of their own, and shared ones."""
    for place in (portal, portal.news, portal.animals):
        vault = create(place, "Folder", "vault", title="Hidden vault of hedgehogs")
        inner = create(vault, "Folder", "inner", title="Hidden inner vault")
        for number in range(4):
            page = create(
                inner,
                "Document",
                f"secret{number}",
                title="Hedgewars: a rendezvous of a hedgehog",
                description="hedgewogs hedgehigs",
                subject=("Hidden tag", TOPICS[number]),
            )
            page.setCreators(["zoe"])
            page.setEffectiveDate("1999/12/12 UTC")
            page.reindexObject()
        upload(inner, "secret-file", files.pdf("Hedgefile hedgehigs: a rendezvous of a hedgehog"))
        expired = create(place, "Document", "expired", title="An expired rendezvous of a hedgehog")
        publish(expired)
        expired.setExpirationDate("2001/01/01 UTC")
        expired.reindexObject()


def shown(site: Site) -> dict[str, str]:
    """Return the answers to visitors: question -> answer."""
    answers = {}
    with site.inside() as portal:
        uid = portal.animals.page00.UID()
    for user, login in VISITORS.items():
        for asked in QUERIES:
            result_cache().clear()
            page = search(site.web, login, **asked, b_size=100)
            corrected = page.texts('//*[@id="search-corrected"] | //*[@id="did-you-mean"]')
            found = {"total": page.total, "facets": page.facets, "titles": sorted(page.titles), "corrected": corrected}
            answers[f"page {user} {asked}"] = json.dumps(found)
            if text := asked.get("SearchableText"):
                live = site.web.get("/plone/@@ajax-search", login, perPage=7, page=1, **asked).json
                answers[f"live {user} {asked}"] = json.dumps([live["total"], live["words"], live.get("corrected")])
                with site.inside() as portal, acting_as(portal, user):
                    answers[f"suggest {user} {asked}"] = json.dumps(portal.portal_catalog.suggest(text))
        similar = search(site.web, login, similar=uid, b_size=100)
        assert similar.total > 10
        assert not [
            word for word in ("Hedgewars", "Hedgefile", "rendezvous", "vault", "Hidden") if word in similar.html
        ]
        with site.inside() as portal, acting_as(portal, user):
            panel = SearchPanel(portal, portal.REQUEST)
            portal.REQUEST.form["try_text"] = "hedgehog"
            panel.form_instance = SimpleNamespace(values={"pins": "hedgehog = /news/vault/inner/secret1"})
            assert panel.hits
            assert not [hit for hit in panel.hits if "vault" in hit.brain.getPath() or hit.is_pinned]
    return answers


def test_hidden_pages_change_no_answer(shared_site: Site) -> None:
    with shared_site.inside() as portal:
        portal.acl_users.userFolderAddUser("mara", "secret", ["Member"], [])
        portal.acl_users.userFolderAddUser("sita", "secret", ["Site Administrator"], [])
    with shared_site.inside() as portal:
        counted(shared_site.dsn, portal.portal_catalog)
    before = shown(shared_site)
    with shared_site.inside() as portal:
        hide(portal)
    work(Worker(shared_site.db, shared_site.dsn))
    with shared_site.inside() as portal:
        counted(shared_site.dsn, portal.portal_catalog)
    after = shown(shared_site)
    different = [question for question, answer in before.items() if after[question] != answer]
    assert different == [], "\n\n".join(f"{q}\n{before[q]}\n{after[q]}" for q in different[:4])
    # Otherwise the comparison would be empty.
    assert len(before) > 2 * len(QUERIES)
    assert '"total": 49' in after["page None {'SearchableText': 'hedgehog'}"]
    assert "Showing results for hedgehog" in after["page None {'SearchableText': 'hegdehog'}"]
    assert '"hedgehog"' in after["suggest None {'SearchableText': 'hedge'}"]
