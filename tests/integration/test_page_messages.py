"""Number of messages that each of our pages sends to PostgreSQL, with any contents of the caches."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.classic.suggestions import LiveSearch
from plone.pgcatalog.controlpanel.panel import SearchPanel
from plone.pgcatalog.database.prefetch import warm_up
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.observe import searches
from plone.pgcatalog.results.cache import result_cache
from tests.acceptance.search_site import fill
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.web import Site
from types import SimpleNamespace
from typing import Any
from zope.component import getMultiAdapter
from zope.interface import alsoProvides

import json
import psycopg
import pytest
import threading


#: Limit of the catalog's own messages for a page.
MOST = 4


SHARED = fill


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Site:
    """A site of hedgehogs, with so many rows that PostgreSQL plans for each value."""
    dsn = shared_site.dsn
    with shared_site.inside() as portal:
        counted(dsn, portal.portal_catalog)
        searches.record(dsn, portal.portal_catalog._core.zoid, "opening hours", False)
        assert searches.flush(30)
    generate_rows(dsn)
    return shared_site


@contextmanager
def messages(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the SQL of the catalog's messages, sent by our code and by psycopg's, except those of background threads."""
    sent: list[str] = []
    run, execute = PreparedStatements.run, psycopg.Cursor.execute

    def note(text: str) -> None:
        if not threading.current_thread().name.startswith("pgcatalog-"):
            sent.append(text)

    def noted_run(prepared: PreparedStatements, statements: Any, *args: Any, **options: Any) -> Any:
        note("; ".join(statement.sql for statement in statements))
        return run(prepared, statements, *args, **options)

    def noted_execute(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        if "pgcatalog" in str(query):
            note(str(query))
        return execute(cursor, query, *args, **options)

    with patch.context() as patched:
        patched.setattr(PreparedStatements, "run", noted_run)
        patched.setattr(psycopg.Cursor, "execute", noted_execute)
        yield sent


def search_page(portal: Any) -> None:
    view = getMultiAdapter((portal, portal.REQUEST), name="search")
    view.update()
    assert len(view.hits) == min(view.found.total, 10)
    assert view.boxes or not view.found.total
    assert isinstance(view.chips, list)


def live_search(portal: Any) -> None:
    view = getMultiAdapter((portal, portal.REQUEST), name="ajax-search")
    assert isinstance(view, LiveSearch)
    assert json.loads(view())["total"] >= 0


def tuning(portal: Any) -> None:
    panel = SearchPanel(portal, portal.REQUEST)
    panel.form_instance = SimpleNamespace(values={"weight_title": 9.0, "pins": "hedgehog = /visits"})
    assert panel.hits
    assert panel.searches is not None


def tab(portal: Any) -> None:
    request = portal.REQUEST
    assert "<main" in getMultiAdapter((portal.portal_catalog, request), name=request.form["tab"])()


def rest_search(portal: Any) -> None:
    answer = getMultiAdapter((portal, portal.REQUEST), name="GET_application_json_@pgsearch").reply()
    assert answer["response"]["numFound"] > 0
    assert len(answer["facet_fields"]) == 2


FILTERS = {"Subject": ["Winter"], "facet.Date": ["2025"], "path": ["/plone/news"]}
PAGES: tuple[tuple[Callable[[Any], None], dict[str, Any]], ...] = (
    *((search_page, {"SearchableText": word}) for word in ("hedgehog", "hegdehog", "xyzzyxyzzy")),
    *((search_page, {"SearchableText": "hedgehog", **FILTERS}), (search_page, {}), (search_page, {"similar": "UID"})),
    (search_page, {"SearchableText": "hegdehog", "as_typed": "hegdehog"}),
    *(
        (live_search, {"SearchableText": word, "perPage": "7", "page": "1"})
        for word in ("hedg", "hedgehog", "hegdehog", "xyzzyxyzzy")
    ),
    (tuning, {"try_text": "hedgehog"}),
    *((tab, {"tab": f"manage_{name}"}) for name in ("catalogOverview", "catalogAdvanced", "slow_queries")),
    (tab, {"tab": "manage_slow_queries", "shape": "x", "page": "y"}),
)


def shown(site: Site, page: Callable[[Any], None], query: dict[str, Any], patch: pytest.MonkeyPatch) -> list[str]:
    """Show *page* for *query* with empty caches; return its messages."""
    with site.inside() as portal:
        request = portal.REQUEST
        request.form = {k: portal.visits.UID() if v == "UID" else v for k, v in query.items()}
        alsoProvides(request, IPGCatalogLayer)
        portal.portal_types.objectValues()
        result_cache().clear()
        with messages(patch) as sent:
            page(portal)
    return sent


@pytest.mark.parametrize(("page", "query"), PAGES, ids=lambda part: getattr(part, "__name__", str(part)))
@pytest.mark.parametrize("is_new", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_page_sends_few_messages(site: Site, page: Any, query: Any, is_new: bool, monkeypatch: Any) -> None:
    """... after a save, or in a process that *is_new*."""
    if is_new:
        with sites.opened(site.dsn) as db:
            warm_up(db)
            sent = shown(Site(db), page, query, monkeypatch)
    else:
        shown(site, *PAGES[0], monkeypatch)
        with site.inside() as portal:
            create(portal, "Document", f"page{portal.portal_catalog.getCounter()}")
        sent = shown(site, page, query, monkeypatch)
    assert 0 < len(sent) <= MOST, "\n\n".join(f"{n}: {text}" for n, text in enumerate(sent, 1))


FACETS = {"facets": "Subject,portal_type", "snippets": "0"}


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ({"q": "hedgehog", **FACETS}, 1),
        # They are of the hits on the page.
        ({"q": "hedgehog", **FACETS, "snippets": "1"}, 2),
        ({"sort": "modified desc", **FACETS}, 1),
        ({"sort": "modified desc", "rows": "0", **FACETS}, 1),
        ({"sort": "modified desc", "start": "2", "count_limit": "3", **FACETS}, 1),
        # The facets are in the page's message; the keys of its last row and the count are read separately.
        ({"sort": "modified desc", "cursor": "*", **FACETS}, 3),
    ],
    ids=str,
)
def test_rest_reads_page_count_and_facets_in_one_message(site: Site, query: Any, number: int, monkeypatch: Any) -> None:
    shown(site, *PAGES[0], monkeypatch)
    sent = shown(site, rest_search, query, monkeypatch)
    assert len(sent) == number, "\n\n".join(sent)
