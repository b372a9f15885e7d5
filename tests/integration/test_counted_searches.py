"""What visitors search for is counted: words only, not who, for a while, and without a connection for each."""

from collections.abc import Iterator
from plone.pgcatalog.database import connections
from plone.pgcatalog.observe import searches
from plone.pgcatalog.observe.searches import Counted
from plone.pgcatalog.observe.searches import top_searches
from plone.pgcatalog.observe.searches import top_searches_statement
from plone.pgcatalog.observe.searches import words_of
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.settings import tune
from tests.integration.web import Web
from typing import Any

import psycopg
import pytest
import transaction


PANEL = "/plone/@@pgcatalog-search-controlpanel"


@pytest.fixture
def web(portal: Any, db: Any) -> Iterator[Web]:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    add_users(portal)
    publish(create(portal, "Document", "page", title="Hedgehogs in the garden"))
    create(portal, "Document", "secret", title="Rendezvous")
    transaction.commit()
    yield Web(db)
    assert searches.flush(30)


def top(portal: Any, limit: int = 10) -> tuple[list[Counted], list[Counted]]:
    assert searches.flush(30)
    transaction.begin()
    core = portal.portal_catalog._core
    return top_searches(core.session.ask(top_searches_statement(core.zoid, limit)))


def search(web: Web, text: str, login: str | None = None, **query: Any) -> None:
    assert web.get("/plone/@@search", login, "text/html", SearchableText=text, **query).status == 200


def test_words_are_counted_and_what_found_nothing(portal: Any, web: Web) -> None:
    for text in ("hedgehogs", "Hedgehogs!", "GARDEN hedgehogs", "xyzzy", "hedgehogs", "xyzzy"):
        search(web, text)
    assert web.get("/plone/@search", None, "application/json", SearchableText="xyzzy").status == 200
    assert web.get("/plone/@pgsearch", None, "application/json", q="garden").status == 200
    found = [Counted("hedgehogs", 3, 0), Counted("garden hedgehogs", 1, 0), Counted("garden", 1, 0)]
    missed = Counted("xyzzy", 3, 3)
    counted, without_results = top(portal)
    assert sorted(counted, key=str) == sorted([*found, missed], key=str)
    assert {c.searches for c in counted[:2]} == {3}
    assert without_results == [missed]
    assert len(top(portal, 1)[0]) == 1


def test_only_what_somebody_asked_for_counts(portal: Any, web: Web) -> None:
    search(web, "hedgehogs", **{"b_start:int": 10})
    web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hedgehogs")
    web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hegdehogs")
    web.get("/plone/@pgsuggest", None, "application/json", query="hedge")
    web.get("/plone/page", None, "text/html", SearchableText="hedgehogs")
    search(web, "")
    assert top(portal) == ([], [])


def test_nothing_is_counted_of_those_who_have_logged_in(portal: Any, web: Web) -> None:
    for login in ("mara:secret", "boss:secret"):
        search(web, "rendezvous", login)
        search(web, "nowhere to be found", login)
    assert top(portal) == ([], [])


def test_it_can_be_switched_off(portal: Any, web: Web) -> None:
    tune(record_searches=False)
    transaction.commit()
    search(web, "hedgehogs")
    assert top(portal) == ([], [])
    assert 'id="searches"' not in web.get(PANEL, "boss:secret", "text/html").text


def test_the_panel_lists_them(portal: Any, web: Web) -> None:
    search(web, "hedgehogs")
    search(web, "<b>xyzzy</b>")
    assert searches.flush(30)
    page = web.get(PANEL, "boss:secret", "text/html").text
    assert "hedgehogs" in page.partition('id="top-searches"')[2].partition("</ul>")[0]
    missed = page.partition('id="missed-searches"')[2].partition("</ul>")[0]
    assert "b xyzzy b" in missed
    assert "hedgehogs" not in missed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Opening  HOURS?", "opening hours"),
        ('"Bücher" AND zurich*', "bücher zurich"),
        ("mara@example.org", ""),
        ("+49 (0)89 123-456", ""),
        ("DE02 1203 0000", ""),
        ("in 2024", "in 2024"),
        ("a b c d e f g h i", ""),
        ("x" * 81, ""),
        ("\0\ud800", ""),
        ("", ""),
    ],
)
def test_words_only(text: str, words: str) -> None:
    assert words_of(text) == words


def test_many_searches_take_one_connection(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def connect(dsn: str, purpose: str, **options: Any) -> Any:
        opened.append(purpose)
        return connections.connect(dsn, purpose, **options)

    monkeypatch.setattr(searches, "connect", connect)
    for number in range(300):
        searches.record(dsn, 1, f"word{number % 3}", number % 2 == 0)
    assert searches.flush(30)
    assert opened == ["searches"]
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT words, searches, without_results FROM pgcatalog_searches ORDER BY words")
        assert rows.fetchall() == [(f"word{n}", 100, 50) for n in range(3)]


def test_the_table_is_bounded(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "KEPT_WORDS", 5)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO pgcatalog_searches (catalog, day, words, searches, without_results)"
            " SELECT 1, current_date - n, 'old', 1, 0 FROM generate_series(1, 40) AS n"
        )
        for number in range(20):
            for _ in range(number + 1):
                searches.record(dsn, 1, f"word{number:02}", True)
        assert searches.flush(30)
        today = "SELECT words FROM pgcatalog_searches WHERE catalog = 1 AND day = current_date ORDER BY words"
        assert connection.execute(today).fetchall() == [(f"word{n}",) for n in range(15, 20)]
        [(days,)] = connection.execute("SELECT count(*) FROM pgcatalog_searches WHERE words = 'old'").fetchall()
        assert days == searches.KEPT_DAYS - 1


def test_a_server_that_is_away_costs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    searches.record("host=/nowhere dbname=none", 1, "hedgehogs", True)
    assert searches.flush(30)
    assert "1 searches could not be counted" in caplog.text


def test_they_go_with_their_site(portal: Any, app: Any, web: Web, dsn: str) -> None:
    search(web, "hedgehogs")
    assert len(top(portal)[0]) == 1
    sites.return_to(portal)
    app.manage_delObjects(["plone"])
    transaction.commit()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM pgcatalog_searches").fetchone() == (0,)
