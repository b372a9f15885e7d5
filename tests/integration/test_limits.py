"""Limits of one request: words, ranges, time.  A request beyond them gets an error, never an empty answer."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery.facet_groups import MAX_BUCKETS
from plone.pgcatalog.fulltext.tsquery import MAX_PATTERNS
from plone.pgcatalog.fulltext.tsquery import MAX_WORDS
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.unavailable import SEARCH_TIMED_OUT
from plone.pgcatalog.unavailable import TEXT
from plone.pgcatalog.unavailable import TIMED_OUT
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.pages import make_pages
from tests.integration.pages import PAGE_QUERIES
from tests.integration.people import publish
from tests.integration.search_pages import Page
from tests.integration.traffic import traced
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from zope.component import getGlobalSiteManager
from zope.component.hooks import setSite
from ZPublisher.interfaces import IPubAfterTraversal

import json
import psycopg
import pytest
import transaction


JSON, HTML = "application/json", "text/html"
WORDS = [f"word{number}" for number in range(MAX_WORDS)]
#: Everything over the web that accepts a text from any user.
SEARCHES: dict[str, Callable[[Web, str], Response]] = {
    "search page": lambda web, text: web.get("/plone/@@search", accept=HTML, SearchableText=text),
    "live search": lambda web, text: web.get("/plone/@@ajax-search", accept=HTML, SearchableText=text),
    "@search": lambda web, text: web.get("/plone/@search", accept=JSON, SearchableText=text),
    "@search Title": lambda web, text: web.get("/plone/@search", accept=JSON, Title=text),
    "@pgsearch": lambda web, text: web.get("/plone/@pgsearch", accept=JSON, q=text),
    "@solr": lambda web, text: web.get("/plone/@solr", accept=JSON, q=text, spellcheck="true"),
    "@pgsimilar": lambda web, text: web.get("/plone/page/@pgsimilar", accept=JSON, q=text),
    "@pgsuggest": lambda web, text: web.get("/plone/@pgsuggest", accept=JSON, query=text),
    "@querystring-search": lambda web, text: web.send_json(
        "POST",
        "/plone/@querystring-search",
        None,
        {"query": [{"i": "SearchableText", "o": "plone.app.querystring.operation.string.contains", "v": text}]},
    ),
}


def fill(app: Any) -> None:
    sites.login(app)
    setSite(app.plone)
    app.plone.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    publish(create(app.plone, "Document", "page", title="Some words", description="word1 word2 and word3"))
    transaction.commit()


@pytest.fixture(scope="module")
def web(shared_site: Site) -> Web:
    with sites.application(shared_site.db) as app:
        fill(app)
    return shared_site.web


def message(response: Response) -> str:
    """Return the message in the body: JSON of the REST API, or a text."""
    if response.headers["Content-Type"].startswith(JSON):
        return str(response.json["message"])
    assert response.headers["Content-Type"].startswith("text/plain")
    return response.text.strip()


# -- words


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("text", ["* OR ".join(WORDS), " -".join(WORDS), " ".join(WORDS)], ids=["OR", "NOT", "AND"])
def test_a_search_of_too_many_words_is_a_bad_request_that_names_the_limit(web: Web, search: str, text: str) -> None:
    response = SEARCHES[search](web, f"{text} and1 more2")
    assert response.status == 400
    assert message(response) == f"a search text has more than {MAX_WORDS} words"


@pytest.mark.parametrize("search", SEARCHES)
def test_search_up_to_the_limit_is_answered(web: Web, search: str) -> None:
    assert SEARCHES[search](web, " ".join(WORDS)).status == 200


def test_all_words_up_to_the_limit_are_searched_for(web: Web) -> None:
    for text, found in (
        ("* OR ".join(reversed(WORDS)), 1),
        (f"some -{' -'.join(WORDS[1:])}", 0),
        ("x OR ".join(WORDS), 0),
    ):
        assert web.get("/plone/@search", accept=JSON, SearchableText=text).json["items_total"] == found


# -- wildcards

#: They replace a wildcard by a blank, and append one to each word.
WITHOUT_WILDCARDS = ("@pgsuggest", "@querystring-search", "live search", "search page")
INSIDE = [f"wo{'?' * number}*r" for number in range(MAX_PATTERNS + 1)]


@pytest.mark.parametrize("search", [name for name in SEARCHES if name not in WITHOUT_WILDCARDS])
def test_words_with_wildcards_inside_are_limited(web: Web, search: str) -> None:
    assert SEARCHES[search](web, " OR ".join(INSIDE[1:])).status == 200
    response = SEARCHES[search](web, " OR ".join(INSIDE))
    assert response.status == 400
    assert message(response) == f"a search text has more than {MAX_PATTERNS} words with wildcards inside"


HOSTILE = (
    f"some***************qqq OR word{'*' * 40}1",
    *("*?" * 2000 + "a", "wo" + "*?" * 2000 + "q", "wo*" * 2000 + "q", "w" * 60_000 + "!", "-" * 60_000),
    *('-"' * 30_000 + "a", "(" * 60_000, "some AND (" * 3000, "1" + " -" * 30_000, "%_" * 3000 + "\\"),
)


OTHERS: dict[str, Callable[[Web, str], Response]] = {
    "@solr-suggest": lambda web, text: web.get("/plone/@solr-suggest", accept=JSON, query=text),
    "did you mean": lambda web, text: web.get("/plone/@pgsearch", accept=JSON, q=text, spellcheck="1"),
}


#: Each text by one way to search, and each way with one text, for all tests; the rest for the slow ones.
TYPED = [
    pytest.param(search, text, id=f"{search}-{text[:20]}", marks=() if is_first else pytest.mark.slow)
    for search in (*SEARCHES, *OTHERS)
    for text in HOSTILE
    for is_first in [search == "@search" or text is HOSTILE[1]]
]


@pytest.mark.parametrize(("search", "text"), TYPED)
def test_any_search_text_is_answered(web: Web, search: str, text: str) -> None:
    assert (SEARCHES | OTHERS)[search](web, text).status in (200, 400)


# -- facets


def ranges(number: int) -> str:
    return json.dumps({"sortable_title": {str(n): ["a" * n, None] for n in range(number)}})


def test_ranges_of_facets_are_limited(web: Web) -> None:
    response = web.get("/plone/@pgsearch", accept=JSON, facet_ranges=ranges(MAX_BUCKETS))
    assert response.status == 200
    [(_, counts)] = response.json["facet_fields"]
    assert len(counts) == MAX_BUCKETS
    assert counts[0] == ["0", response.json["response"]["numFound"]]
    for number in (MAX_BUCKETS + 1, 1700):
        response = web.get("/plone/@pgsearch", accept=JSON, facet_ranges=ranges(number))
        assert response.status == 400
        assert message(response) == f"a search has more than {MAX_BUCKETS} ranges in its facets"


# -- time


@contextmanager
def locked(db: Any, table: str | None = None) -> Iterator[None]:
    """Lock *table* (default: the catalog's), so that its readers wait."""
    with psycopg.connect(db.storage._dsn) as connection:
        if table is None:
            [(table,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
        connection.execute(
            psycopg.sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(psycopg.sql.Identifier(table))
        )
        yield
        connection.rollback()


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    sites.override_settings(monkeypatch, search_timeout=0.2)


@pytest.mark.parametrize("search", SEARCHES)
def test_search_beyond_the_time_limit_is_an_error(web: Web, search: str, limited: None) -> None:
    assert SEARCHES[search](web, "some").status == 200
    with locked(web.db):
        # Not the same text, whose hits are cached meanwhile.
        response = SEARCHES[search](web, "words")
    assert response.status == 503
    assert message(response) == SEARCH_TIMED_OUT.strip()
    assert SEARCHES[search](web, "words").status == 200


def test_browser_gets_a_retry_after_header(web: Web, limited: None) -> None:
    with locked(web.db):
        response = SEARCHES["search page"](web, "browser")
    assert (response.headers["Retry-After"], response.headers["Cache-Control"]) == ("10", "no-store")


@pytest.mark.parametrize("threshold", [None, 5], ids=["plain", "prepared"])
def test_timed_out_result_is_not_empty(portal: Any, catalog: Any, limited: None, threshold: Any) -> None:
    create(portal, "Document", "page", title="Needle")
    transaction.commit()
    portal._p_jar._normal_storage.pg_connection.prepare_threshold = threshold
    for number, use in enumerate((len, bool, list, lambda r: r.actual_result_count, lambda r: r[0], lambda r: r[:5])):
        for query in ({"SearchableText": f"needle -x{number}"}, {"getId": ["page", f"x{number}"]}):
            transaction.begin()  # a transaction that has read the table would block the lock
            with locked(portal._p_jar.db()), pytest.raises(SearchTimeout, match=r"longer than 0\.2 s"):
                use(catalog.unrestrictedSearchResults(query))
            assert [brain.getId for brain in catalog.unrestrictedSearchResults(query)] == ["page"]


def test_timed_out_result_can_be_read_again(portal: Any, catalog: Any, limited: None) -> None:
    create(portal, "Document", "page", title="Needle")
    transaction.commit()
    results = catalog.unrestrictedSearchResults(SearchableText="needle")
    with locked(portal._p_jar.db()), pytest.raises(SearchTimeout):
        len(results)
    assert (len(results), [brain.getId for brain in results]) == (1, ["page"])


def read(view: Any, sql: str, seconds: float | None = None) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = view.fetch(lambda _: Statement(sql), seconds=seconds).value()
    return found


def test_unread_timed_out_result_fails_no_commit(portal: Any, catalog: Any, limited: None) -> None:
    transaction.begin()
    results = catalog.unrestrictedSearchResults(SearchableText="needle")
    with locked(portal._p_jar.db()):
        transaction.commit()
    with pytest.raises(SearchTimeout):
        len(results)


@pytest.mark.parametrize("threshold", [None, 5], ids=["plain", "prepared"])
def test_a_limit_costs_no_message_and_ends_with_its_statement(catalog: Any, portal: Any, threshold: Any) -> None:
    connection = portal._p_jar._normal_storage.pg_connection
    shown = "SELECT current_setting('statement_timeout')"
    for query in (shown, f"{shown} AS again", shown):
        for _ in range(3):
            transaction.begin()
            view = catalog._core.search_view()
            connection.prepare_threshold = threshold
            assert read(view, query) == [("20s",)]
            assert read(view, query, 1.5) == [("1500ms",)]
            assert read(view, query, 1e9) == [("2147483647ms",)]
            assert view.session.execute(query) == [("0",)]
    with traced(portal) as traffic:
        assert read(view, query) == [("20s",)]
    assert traffic[0].round_trips == 1


def test_no_time_limit_is_set_without_a_setting(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sites.override_settings(monkeypatch, search_timeout=0.0)
    assert read(catalog._core.search_view(), "SELECT current_setting('statement_timeout')") == [("0",)]
    assert read(catalog._core.search_view(), "SELECT 1") == [(1,)]


@pytest.fixture(scope="module")
def strict(site_template: str, postgres: Any) -> Iterator[Web]:
    """A site whose database has a time limit of its own."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.application(db) as app:
        fill(app)
    with psycopg.connect(dsn, autocommit=True) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET statement_timeout = '1s'").format(name))
    with sites.opened(dsn) as db:
        yield Web(db)


@pytest.mark.direct("a setting of a database is for new sessions")
def test_stricter_limit_of_the_database_stays(strict: Web) -> None:
    with sites.application(strict.db) as app:
        view = app.plone.portal_catalog._core.search_view()
        shown = "SELECT current_setting('statement_timeout')"
        assert read(view, shown) == [("1s",)]
        assert read(view, shown, 0.5) == [("500ms",)]
        assert view.session.execute(shown) == [("1s",)]


@pytest.mark.slow
def test_exceeded_limit_of_the_database_is_answered_as_ours(strict: Web) -> None:
    for search in ("search page", "@search", "@pgsearch"):
        with locked(strict.db):
            response = SEARCHES[search](strict, "words")
        assert response.status == 503
        assert message(response) == SEARCH_TIMED_OUT.strip()


@pytest.mark.direct("a setting of a database is for new sessions")
def test_other_timed_out_statement_is_no_search(strict: Web) -> None:
    # Zope itself cannot answer if it cannot read its error log: the storage has cached it from here on.
    assert strict.get("/plone/nothing").status == 404
    for accept in (HTML, JSON):
        strict.db.cacheMinimize()
        with locked(strict.db, "object_state"):
            response = strict.get("/plone/page", accept=accept)
        assert response.status == 503
        assert message(response) == TIMED_OUT.strip()


@pytest.mark.parametrize("accept", [HTML, JSON])
def test_an_error_that_leaves_the_connection_is_no_outage(web: Web, accept: str) -> None:
    def handler(event: Any) -> None:
        connection = event.request["PARENTS"][-1]._p_jar._normal_storage.pg_connection
        connection.execute("SET LOCAL lock_timeout = '1ms'; LOCK TABLE pgcatalog_words")

    getGlobalSiteManager().registerHandler(handler, [IPubAfterTraversal])
    try:
        with locked(web.db, "pgcatalog_words"):
            response = web.get("/plone/page", accept=accept)
    finally:
        getGlobalSiteManager().unregisterHandler(handler, [IPubAfterTraversal])
    assert response.status == 500
    assert TEXT not in response.text


QUERIES: dict[str, dict[str, Any]] = {
    **PAGE_QUERIES,
    "sorted by Python": {"portal_type": "Document", "sort_on": "getObjPositionInParent"},
}


CONTENT = make_pages


def ids(brains: Any) -> list[str]:
    return [brain.getId for brain in brains]


@pytest.mark.parametrize("reads_first", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_a_limit_changes_nothing_but_the_count(portal: Any, name: str, reads_first: bool) -> None:
    query = QUERIES[name]
    search = portal.portal_catalog.unrestrictedSearchResults
    exact = search(**query)
    total, rows, length = exact.actual_result_count, ids(exact[:7]), len(exact)
    # Twice: the second time the first rows and their count may come in one message, or from the cache.
    for limit in (0, 1, 6, 7, 8, total - 1, total, total + 1, 10_000) * 2:
        if limit < 0:
            continue
        if limit == 7:
            result_cache().clear(HITS)
        results = search(**query)
        results.count_up_to(limit)
        if reads_first:
            assert ids(results[:7]) == rows
        if name == "sorted by Python":
            assert (results.actual_result_count, results.is_limited) == (total, False)
        else:
            assert (results.actual_result_count, results.is_limited) == (min(limit, total), limit < total)
        assert ids(results[:7]) == rows
        assert len(results) == length
    assert search(**query).actual_result_count == total


def test_count_includes_uncommitted_rows(portal: Any) -> None:
    search = portal.portal_catalog.unrestrictedSearchResults
    total = search(portal_type="Document").actual_result_count
    create(portal, "Document", "another")
    results = search(portal_type="Document")
    results.count_up_to(total)
    assert (results.actual_result_count, results.is_limited) == (total, True)


def test_result_has_a_stable_count_when_the_catalog_changes(portal: Any) -> None:
    search = portal.portal_catalog.unrestrictedSearchResults
    total = search(portal_type="Document").actual_result_count
    results = search(portal_type="Document")
    results.count_up_to(total)
    create(portal, "Document", "another")
    assert search(portal_type="Document").actual_result_count == total + 1
    assert (results.actual_result_count, results.is_limited) == (total, False)


def test_count_reads_no_more_rows_than_its_limit(portal: Any) -> None:
    search = portal.portal_catalog.unrestrictedSearchResults
    result_cache().clear(HITS)
    with traced(portal) as traffic:
        results = search(portal_type="Document", b_size=0)
        results.count_up_to(3)
        assert results.is_limited
        assert results.is_limited
    [counting] = traffic[0].matching("count(*)")
    assert "LIMIT 4" in counting


def test_a_negative_limit_is_an_error(portal: Any) -> None:
    with pytest.raises(ValueError, match="not be negative"):
        portal.portal_catalog.unrestrictedSearchResults().count_up_to(-1)


def test_search_page_shows_that_there_are_more_hits(portal: Any, db: Any) -> None:
    web = Web(db)

    def page() -> Page:
        return Page(web.get("/plone/@@search", MANAGER, "text/html", SearchableText="page*"))

    total = page().total
    for limit, shown in ((0, total), (total, total), (total - 1, total - 1)):
        tune(count_limit=limit, search_facets=())
        transaction.commit()
        found = page()
        assert (found.total, "More than" in found.html) == (shown, shown < total)
    # Facets must count all hits anyway.
    tune(count_limit=1, search_facets=("portal_type",))
    transaction.commit()
    found = page()
    assert (found.total, "More than" in found.html) == (total, False)


def test_rest_client_requests_a_limit(portal: Any, db: Any) -> None:
    def asked(**parameters: int) -> tuple[int, bool | None, int]:
        answer = Web(db).get("/plone/@pgsearch", MANAGER, "application/json", q="page*", **parameters)
        response = answer.json["response"]
        return response["numFound"], response.get("numFoundExact"), len(response["docs"])

    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    transaction.commit()
    total, exact, size = asked()
    assert exact is None
    assert asked(count_limit=total) == (total, True, size)
    assert asked(count_limit=total - 1) == (total - 1, False, size)
