"""Counted searches: the rules of counting, the stored rows, and the lists for people who tune the search."""

from collections.abc import Iterator
from plone.pgcatalog.controlpanel.searches import cell
from plone.pgcatalog.database import connections
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.observe import searches
from plone.pgcatalog.observe.search_lists import SearchCount
from plone.pgcatalog.observe.search_lists import SearchLists
from plone.pgcatalog.observe.search_lists import top_searches
from plone.pgcatalog.observe.search_lists import top_searches_statement
from plone.pgcatalog.observe.searches import final
from plone.pgcatalog.observe.searches import Search
from plone.pgcatalog.observe.searches import words_of as listed_words
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.web import Web
from typing import Any

import csv
import psycopg
import pytest
import transaction


PANEL = "/plone/@@pgcatalog-search-controlpanel"
JSON = "application/json"
AS_SITE = {"use_site_search_settings": "1"}
MEMBERS = [f"{name}:secret" for name in ("mara", "edith", "rita", "boss")]


@pytest.fixture
def web(portal: Any, db: Any) -> Iterator[Web]:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    add_users(portal)
    publish(create(portal, "Document", "page", title="Hedgehogs in the garden"))
    create(portal, "Document", "secret", title="Rendezvous")
    transaction.commit()
    yield Web(db)
    assert searches.flush(30)


def lists(portal: Any, limit: int = 10, **options: Any) -> SearchLists:
    assert searches.flush(30)
    transaction.begin()
    core = portal.portal_catalog._core
    return top_searches(core.session.query(top_searches_statement(core.zoid, limit, **options)))


def counted(portal: Any) -> dict[str, int]:
    return {search.words: search.searches for search in lists(portal).top}


def search(web: Web, text: str, login: str | None = None, **query: Any) -> None:
    assert web.get("/plone/@@search", login, "text/html", SearchableText=text, **query).status == 200


def block(web: Web, text: str, start: int = 0) -> None:
    """Search as a search block of Volto does."""
    query = [{"i": "SearchableText", "o": "plone.app.querystring.operation.string.contains", "v": text}]
    answer = web.send_json("POST", "/plone/@querystring-search", None, {"query": query, "b_start": start, "b_size": 1})
    assert answer.status == 200


def test_words_and_texts_without_hits_are_counted(portal: Any, web: Web) -> None:
    for text in ("hedgehogs", "Hedgehogs!", "GARDEN hedgehogs", "xyzzy", "hedgehogs", "xyzzy"):
        search(web, text)
    assert web.get("/plone/@search", None, JSON, SearchableText="xyzzy*", **AS_SITE).status == 200
    assert web.get("/plone/@pgsearch", None, JSON, q="garden").status == 200
    found = [SearchCount("hedgehogs", 3, 0), SearchCount("garden hedgehogs", 1, 0), SearchCount("garden", 1, 0)]
    missed = SearchCount("xyzzy", 3, 3)
    all_weeks = lists(portal)
    assert sorted(all_weeks.top, key=str) == sorted([*found, missed], key=str)
    assert {c.searches for c in all_weeks.top[:2]} == {3}
    assert all_weeks.missed == [missed]
    [week] = all_weeks.weeks
    assert (week.searches, week.without_results) == (8, 3)
    assert len(lists(portal, 1).top) == 1


def test_final_text_counts_once(portal: Any, web: Web) -> None:
    chosen = "eyJwb3J0YWxfdHlwZSI6IHsiYyI6IHsiRG9jdW1lbnQiOiB0cnVlfX19"  # {"portal_type": {"c": {"Document": true}}}
    search(web, "hedgehogs", **{"b_start:int": 10})
    search(web, "hedgehogs", facets="alone")
    search(web, "hedgehogs", **{"Subject:list": "spines"})
    web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hedgehogs")
    web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hegdehogs")
    web.get("/plone/@pgsuggest", None, JSON, query="hedge")
    web.get("/plone/page", None, "text/html", SearchableText="hedgehogs")
    for more in ({"b_start": 10, **AS_SITE}, {}):
        assert web.get("/plone/@search", None, JSON, SearchableText="hedgehogs", **more).status == 200
    for more in ({"start": 10}, {"facet_conditions": chosen}, {"rows": 0}):
        assert web.get("/plone/@pgsearch", None, JSON, q="hedgehogs", **more).status == 200
    block(web, "hedgehogs", start=1)
    search(web, "")
    assert counted(portal) == {}
    for text in ("hedge", "hedgeh", "hedgehogs", "garden", "hedgehogs"):
        block(web, text)
    assert counted(portal) == {"hedgehogs": 2, "garden": 1}


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ([("ab", None), ("abc", None)], ["abc"]),
        ([("abc", None), ("ab", None)], ["abc", "ab"]),
        ([("ab", "mara"), ("abc", None)], ["ab", "abc"]),
        ([("ab", "mara"), ("abc", "mara"), ("abc", "mara")], ["abc", "abc"]),
    ],
)
def test_beginnings_of_typed_texts_are_left_out(typed: list[tuple[str, str | None]], left: list[str]) -> None:
    assert [s.words for s in final([Search(1, words, True, user, is_typed=True) for words, user in typed])] == left
    assert len(final([Search(1, words, True, user) for words, user in typed])) == len(typed)


def test_searches_of_members_are_shown_from_three_on(portal: Any, web: Web, dsn: str) -> None:
    for login in (*MEMBERS[:2], *MEMBERS[:2]):
        search(web, "rendezvous", login)
    assert lists(portal) == ([], [], [], [], [])
    search(web, "rendezvous", MEMBERS[3])
    search(web, "nowhere to be found", MEMBERS[3])
    [shown] = lists(portal).top
    assert (shown.words, shown.searches, shown.without_results) == ("rendezvous", 5, 2)
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(hashes,)] = connection.execute("SELECT hashes FROM pgcatalog_searches WHERE people = 3").fetchall()
        assert {len(each) for each in hashes} == {16}
        stored = connection.execute("SELECT * FROM pgcatalog_searches").fetchall()
        assert not any(name in str(stored) for name in ("mara", "edith", "rita", "boss"))
        # The next day.
        connection.execute("UPDATE pgcatalog_searches SET day = day - 1")
        connection.execute("UPDATE pgcatalog_search_salt SET day = day - 1")
        for login in MEMBERS[:2]:
            search(web, "rendezvous", login)
        assert counted(portal) == {"rendezvous": 7}
        old = "SELECT people, hashes FROM pgcatalog_searches WHERE day < current_date ORDER BY people"
        assert connection.execute(old).fetchall() == [(1, []), (3, [])]
        assert connection.execute("SELECT count(*) FROM pgcatalog_search_salt").fetchone() == (1,)


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        ({"record_searches": False}, {"garden": 3}),
        ({"record_member_searches": False}, {"hedgehogs": 1}),
        ({"record_searches": False, "record_member_searches": False}, {}),
    ],
)
def test_each_kind_of_counting_can_be_switched_off(
    portal: Any, web: Web, off: dict[str, Any], expected: dict[str, int]
) -> None:
    tune(**off)
    transaction.commit()
    search(web, "hedgehogs")
    for login in MEMBERS[:3]:
        search(web, "garden", login)
    assert counted(portal) == expected
    assert ('id="searches"' in web.get(PANEL, MEMBERS[3], "text/html").text) is bool(expected)
    assert web.get("/plone/@pgcatalog-searches", MEMBERS[3], JSON).json["counted"] is bool(expected)


def test_corrections_are_counted_with_the_typed_words(portal: Any, web: Web, dsn: str) -> None:
    with connect_directly(dsn, "words", 0) as connection:
        count_words(connection, portal.portal_catalog._core.zoid)
    search(web, "hegdehogs")
    search(web, "hegdehogs", as_typed="hegdehogs")
    web.get("/plone/@search", None, JSON, SearchableText="gardne", **AS_SITE)
    web.get("/plone/@search", None, JSON, SearchableText="garden", corrected_from="gardne", **AS_SITE)
    web.get("/plone/@pgsearch", None, JSON, q="garden", corrected_from="gardne")
    page = web.get("/plone/@pgsearch", None, JSON, search_page=1, SearchableText="garden", corrected_from="gardne").json
    assert not any("corrected_from" in str(page[name]) for name in ("links", "hidden_fields", "pages"))
    search(web, "garden", corrected_from="gardne")
    found = lists(portal)
    assert [(s.words, s.searches, s.corrected, s.correction) for s in found.corrected] == [
        ("gardne", 1, 4, "garden"),
        ("hegdehogs", 1, 1, "hedgehogs"),
    ]
    assert (len(found.top), found.missed) == (2, [])


def test_searches_of_volto_are_counted_as_those_of_classic_ui(portal: Any, web: Web, dsn: str) -> None:
    with connect_directly(dsn, "words", 0) as connection:
        count_words(connection, portal.portal_catalog._core.zoid)
    found = []
    texts = (
        "hedgehogs",
        "Hedgehogs!",
        "xyzzy",
        "garden -fence",
        '"in the garden"',
        "boss@example.org",
        "",
        "hegdehogs",
    )
    volto = {"use_site_search_settings": 1, "metadata_fields": "_all", "b_size": 25}
    for front_end in ("classic", "search page", "search"):
        for text in texts:
            if front_end == "classic":
                search(web, text)
            elif front_end == "search page":
                web.get("/plone/@pgsearch", None, JSON, search_page=1, SearchableText=text)
            else:
                web.get("/plone/@search", None, JSON, SearchableText=text and f"{text}*", **volto)
        found.append(lists(portal))
        with psycopg.connect(dsn) as connection:
            connection.execute("DELETE FROM pgcatalog_searches")
    classic, page, own = found
    assert page == classic
    assert [search.words for search in classic.corrected] == ["hegdehogs"]
    # Volto's own page offers a correction, which counts when it is followed.
    assert {(s.words, s.searches, s.without_results) for s in own.top if s.words != "hegdehogs"} == {
        (s.words, s.searches, s.without_results) for s in classic.top if s.words != "hegdehogs"
    }


def test_lists_of_a_week_and_the_file_of_all(portal: Any, web: Web, dsn: str) -> None:
    search(web, "hedgehogs")
    search(web, "<b>xyzzy</b>")
    assert searches.flush(30)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE pgcatalog_searches SET day = day - 7 WHERE words = 'hedgehogs'")
    newest, former = (week.words for week in lists(portal).weeks)
    for week, shown, hidden in ((newest, "b xyzzy b", "hedgehogs"), (former, "hedgehogs", "b xyzzy b")):
        page = web.get(PANEL, MEMBERS[3], "text/html", week=week).text
        assert shown in page.partition('id="top-searches"')[2].partition("</ul>")[0]
        assert hidden not in page.partition('id="searches"')[2].partition("</section>")[0]
        answer = web.get("/plone/@pgcatalog-searches", MEMBERS[3], JSON, week=week).json
        assert [each["words"] for each in answer["top"]] == [shown]
        assert (answer["week"], answer["days"], len(answer["weeks"])) == (week, 28, 2)
    page = web.get(PANEL, MEMBERS[3], "text/html").text
    assert "b xyzzy b" in page.partition('id="missed-searches"')[2].partition("</ul>")[0]
    file = web.get("/plone/@@pgcatalog-searches.csv", MEMBERS[3])
    of_volto = web.get("/plone/@pgcatalog-searches.csv", MEMBERS[3], JSON)
    assert of_volto.body == file.body
    assert file.headers["Content-Type"] == of_volto.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = [[newest, "b xyzzy b", "1", "1", "0", ""], [former, "hedgehogs", "1", "0", "0", ""]]
    assert list(csv.reader(file.body.decode("utf-8-sig").splitlines()))[1:] == rows


def test_cells_are_no_formulas() -> None:
    assert [cell(text) for text in ("=1", "+1", "@a", "-a", "\ta", "a=", 1)] == [
        "'=1",
        "'+1",
        "'@a",
        "'-a",
        "'\ta",
        "a=",
        1,
    ]


def test_hits_that_nobody_opened_are_listed(portal: Any, web: Web) -> None:
    def opened(data: Any) -> int:
        return int(web.send_json("POST", "/plone/@pgcatalog-opened", None, data).status)

    def page() -> str:
        return str(web.get("/plone/@@search", None, "text/html", SearchableText="hedgehogs").text)

    def of_volto() -> bool:
        data = web.get("/plone/@pgsearch", None, JSON, search_page=1, SearchableText="hedgehogs").json
        return bool(data["counts_opened"])

    assert ("data-opened" in page(), of_volto()) == (False, False)
    tune(record_opened=True)
    transaction.commit()
    assert of_volto()
    assert 'data-opened="http://nohost/plone/@pgcatalog-opened" data-text="hedgehogs"' in page()
    for text in ("hedgehogs", "hedgehogs", "garden", "garden", "garden"):
        search(web, text)
    assert [search.words for search in lists(portal).unopened] == ["hedgehogs", "garden"]
    statuses = [opened({"text": text}) for text in ("Hedgehogs!", "owls", "x" * 10**5, 7, "a@b.example")]
    assert [*statuses, opened({})] == [204] * 6
    assert [search.words for search in lists(portal).unopened] == ["garden"]
    # No row without a search.
    assert set(counted(portal)) == {"garden", "hedgehogs"}


def suggested(web: Web, text: str, login: str | None = None) -> list[str]:
    terms: list[str] = web.get("/plone/@pgsuggest", login, JSON, query=text).json["terms"]
    return terms


def test_searches_of_three_people_are_suggested(portal: Any, web: Web, dsn: str) -> None:
    with connect_directly(dsn, "words", 0) as connection:
        count_words(connection, portal.portal_catalog._core.zoid)
    search(web, "hedgehogs garden")
    assert searches.flush(30)
    plain = ["hedgehogs"]
    assert suggested(web, "hed") == plain
    tune(suggest_searches=True)
    transaction.commit()
    with psycopg.connect(dsn, autocommit=True) as connection:
        for days in (10, 20, 30):
            assert suggested(web, "hed") == plain
            search(web, "hedgehogs garden")
            search(web, "hedgehogs nowhere")
            search(web, "rendezvous hedgehogs")
            assert searches.flush(30)
            connection.execute("UPDATE pgcatalog_searches SET day = day - %s WHERE day = current_date", (days,))
        assert suggested(web, "hed") == ["hedgehogs garden", *plain]
        assert suggested(web, "Hedgehogs ga") == ["garden"]
        # Found by members only, and their words are together in no page.
        for login in MEMBERS[1:]:
            search(web, "rendezvous", login)
        assert searches.flush(30)
        assert (suggested(web, "rendez"), suggested(web, "rendez", MEMBERS[3])) == ([], ["rendezvous"])
        connection.execute("UPDATE pgcatalog_searches SET day = day - 83")
        assert suggested(web, "hed") == plain
        portal.page.portal_workflow.doActionFor(portal.page, "retract")
        transaction.commit()
        connection.execute("UPDATE pgcatalog_searches SET day = day + 83")
        assert (suggested(web, "hed"), suggested(web, "hed", MEMBERS[3])) == ([], ["hedgehogs garden", *plain])


@pytest.mark.parametrize("path", ["@pgcatalog-searches", "@pgcatalog-searches.csv", "@@pgcatalog-searches.csv"])
def test_lists_need_the_permission_of_the_panel(web: Web, path: str) -> None:
    assert [web.get(f"/plone/{path}", login, JSON).status for login in (None, *MEMBERS)] == [401, 401, 401, 401, 200]


@pytest.mark.parametrize("query", [{"week": "x"}, {"week": "2026-13-01"}, {"limit": 0}, {"limit": 501}, {"limit": "x"}])
def test_wrong_parameters_are_refused(web: Web, query: dict[str, Any]) -> None:
    assert web.get("/plone/@pgcatalog-searches", MEMBERS[3], JSON, **query).status == 400
    assert web.get(PANEL, MEMBERS[3], "text/html", **query).status == 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(("Opening  HOURS?", "opening hours"), ('"Bücher" AND zurich*', "bücher zurich"), ("mara@example.org", "")),
        *(("+49 (0)89 123-456", ""), ("DE02 1203 0000", ""), ("in 2024", "in 2024"), ("a b c d e f g h i", "")),
        *(("x" * 81, ""), ("\0\ud800", ""), ("", "")),
    ],
)
def test_only_words_are_counted(text: str, words: str) -> None:
    assert listed_words(text) == words


def test_many_searches_take_one_connection(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def connect(to: str, purpose: str, **options: Any) -> Any:
        # Searches of earlier tests may be waiting.
        if to == dsn:
            opened.append(purpose)
        return connections.connect(to, purpose, **options)

    monkeypatch.setattr(searches, "connect", connect)
    for number in range(300):
        searches.record(dsn, 1, f"word{number % 3}", number % 2 == 0)
    assert searches.flush(30)
    assert opened == ["searches"]
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT words, searches, without_results FROM pgcatalog_searches ORDER BY words")
        assert rows.fetchall() == [(f"word{n}", 100, 50) for n in range(3)]


def test_the_table_is_bounded(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "SEARCH_WORDS", 5)
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
        assert days == searches.SEARCH_DAYS - 1


def test_unreachable_server_costs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    searches.record("host=/nowhere dbname=none", 1, "hedgehogs", True)
    assert searches.flush(30)
    assert "counting 1 searches failed" in caplog.text


def test_counts_of_searches_are_deleted_with_their_site(portal: Any, app: Any, web: Web, dsn: str) -> None:
    search(web, "hedgehogs")
    assert len(lists(portal).top) == 1
    sites.return_to(portal)
    app.manage_delObjects(["plone"])
    transaction.commit()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM pgcatalog_searches").fetchone() == (0,)
