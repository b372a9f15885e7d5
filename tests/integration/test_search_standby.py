"""Searches of a writing Zope that a standby answers: always what the primary says, whatever becomes of the standby."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.database import background
from plone.pgcatalog.database import standby as standbys
from plone.pgcatalog.database.embedded import dsn_of
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.standby import Standby
from plone.pgcatalog.metrics.process import process_metrics
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.sql.fragment import Statement
from scripts.topology.statements import statements
from tests.integration import readers
from tests.integration.histories import Process
from tests.integration.readers import PAGES
from tests.integration.readers import Servers
from tests.integration.servers import execute
from tests.integration.servers import fetch
from typing import Any

import click.testing
import json
import os
import psycopg
import pytest
import re
import signal
import threading
import time
import transaction


pytestmark = pytest.mark.slow

#: Commits of the crowd, in a second.
RATE = 20
FOLDER = "/plone/folder"
QUERIES: tuple[dict[str, Any], ...] = (
    {"path": FOLDER, "sort_on": "sortable_title"},
    {"portal_type": "Document", "Subject": "s1"},
    {"Title": "changed"},
    {"SearchableText": "page"},
    {"portal_type": "Document", "sort_on": "modified", "sort_order": "reverse", "b_size": 5},
)
OURS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgcatalog: searches'"


@pytest.fixture(scope="module")
def servers(zope: None) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield readers.start(stack, max_standby_streaming_delay="100ms")


@pytest.fixture
def writer(servers: Servers) -> Iterator[Process]:
    with readers.sites.opened(servers.dsn) as db:
        yield Process(db)


@pytest.fixture
def searcher(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """A writing Zope that asks the standby, too, and keeps no answers."""
    monkeypatch.setenv("PGCATALOG_SEARCH_DSN", servers.standby_dsn)
    monkeypatch.setenv("PGCATALOG_RESULT_CACHE_MB", "0")
    monkeypatch.setattr(standbys, "PAUSE", 0.3)
    with readers.sites.opened(servers.dsn) as db:
        yield Process(db)
    used().close()


def used() -> Standby:
    [standby] = standbys.standbys.all()
    return standby


def answers(site: Any) -> list[Any]:
    """Return what searches find, and what one counts."""
    result_cache().clear()
    catalog = site.portal_catalog
    found: list[Any] = []
    for query in QUERIES:
        results = catalog.unrestrictedSearchResults(**query)
        found.append([(brain.getPath(), brain.Title, brain.modified) for brain in results])
        found.append(results.actual_result_count)
    found.append(catalog.unrestrictedSearchResults(path=FOLDER).facets(["Subject"]))
    return found


def compare(site: Any) -> None:
    """Fail unless the standby and the primary say the same, and brains what objects say."""
    session = Session.of(site._p_jar)
    of_both = answers(site)
    beside, session.standby = session.standby, None
    try:
        assert answers(site) == of_both
    finally:
        session.standby = beside
    titles = {path: title for path, title, _ in of_both[0]}
    assert {path: site.unrestrictedTraverse(path).title for path in titles} == titles


def settle(servers: Servers, searcher: Process) -> None:
    """Wait until the standby answers."""
    servers.standby.catch_up()
    deadline = time.monotonic() + 30
    while not gained("answered", lambda: searcher.do(compare)):
        background.wait(10)
        time.sleep(0.1)
        assert time.monotonic() < deadline, used().outcomes


def gained(outcome: str, action: Callable[[], Any]) -> int:
    """Return how many messages more had *outcome* by doing *action*."""
    before = sum(standby.outcomes[outcome] for standby in standbys.standbys.all())
    action()
    return used().outcomes[outcome] - before


@contextmanager
def commits(writer: Process) -> Iterator[list[int]]:
    """Have pages changed meanwhile, up to RATE times in a second; yields a list with a number for each commit so far."""
    done = threading.Event()
    made: list[int] = []

    def change(site: Any) -> None:
        page = site.folder[f"page{len(made) % PAGES}"]
        page.title = f"changed {len(made)}"
        page.reindexObject()

    def work() -> None:
        try:
            while not done.wait(1 / RATE):
                writer.save(change)
                made.append(len(made))
        finally:
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield made
        assert not done.is_set()
    finally:
        done.set()
        thread.join()


def compare_during(searcher: Process, made: list[int], number: int = 10) -> None:
    """Compare until there are so many commits more."""
    before = len(made)
    deadline = time.monotonic() + 60
    while len(made) < before + number:
        searcher.do(compare)
        assert time.monotonic() < deadline


# -- what goes where


def test_without_a_standby_there_is_no_connection(servers: Servers, writer: Process) -> None:
    writer.do(lambda site: answers(site))
    assert writer.do(lambda site: Session.of(site._p_jar).standby) is None
    assert fetch(servers.standby_dsn, OURS) == 0


def test_the_standby_answers_what_the_primary_would(servers: Servers, searcher: Process) -> None:
    settle(servers, searcher)
    before = dict(used().outcomes)
    searcher.do(compare)
    assert used().outcomes["answered"] > before["answered"]
    assert {name: n for name, n in used().outcomes.items() if n != before.get(name)}.keys() == {"answered"}
    assert 0 < fetch(servers.standby_dsn, OURS) <= standbys.MOST
    figures = {m.labels["outcome"]: m.value for m in process_metrics() if m.name == "pgcatalog_standby_messages_total"}
    assert figures["answered"] == used().outcomes["answered"]


def test_the_primary_is_asked_for_ranks_only(servers: Servers, searcher: Process) -> None:
    """They depend on counts of words, which are no part of commits."""
    settle(servers, searcher)
    relation = fetch(servers.dsn, "SELECT relation FROM pgcatalog_state")
    with statements(servers.primary) as asked:
        searcher.do(answers)
    of_catalog = [text for text in asked if relation in text]
    assert of_catalog
    assert all("score" in text for text in of_catalog)


def test_a_new_commit_is_met_without_asking_the_primary_for_states(
    servers: Servers, writer: Process, searcher: Process
) -> None:
    settle(servers, searcher)
    writer.save(lambda site: site.folder.page1.reindexObject())
    servers.standby.catch_up()
    with statements(servers.primary) as asked:
        searcher.do(lambda site: site.portal_catalog.unrestrictedSearchResults(path=FOLDER)[0].Title)
    assert not [text for text in asked if "reltuples" in text]


def test_what_is_pending_is_seen(servers: Servers, searcher: Process) -> None:
    def change(site: Any) -> None:
        before = answers(site)
        site.folder.page2.title = "Pending"
        site.folder.page2.reindexObject()
        [brain] = site.portal_catalog.unrestrictedSearchResults(Title="Pending")
        assert brain.Title == "Pending"
        compare(site)
        transaction.abort()
        assert len(site.portal_catalog.unrestrictedSearchResults(Title="Pending")) == 0
        assert answers(site) == before

    settle(servers, searcher)
    assert gained("pending", lambda: searcher.do(change)) > 0


def test_a_statement_that_fails_fails_on_the_primary(servers: Servers, searcher: Process) -> None:
    def fail(site: Any) -> None:
        session = Session.of(site._p_jar)
        for _ in range(2):
            with pytest.raises(psycopg.errors.DivisionByZero):
                session.ask(Statement("SELECT 1 / (generation - generation) FROM pgcatalog_state", of_state=True))
        compare(site)

    settle(servers, searcher)
    assert gained("failed", lambda: searcher.do(fail)) > 0
    assert gained("answered", lambda: searcher.do(compare)) > 0


# -- faults


def command(dsn: str, *words: str) -> tuple[int, Any]:
    """Return the exit status of a command of pgcatalog on the database *dsn*, and the JSON that it prints."""
    result = click.testing.CliRunner().invoke(main, [*words, "--dsn", dsn, "--json"])
    return result.exit_code, json.loads(result.stdout)


def said_of_standby(dsn: str) -> list[str]:
    """Return what ``pgcatalog check`` finds about the standby for searches."""
    return [found["text"] for found in command(dsn, "check")[1]["findings"] if found["subject"] == "standby"]


def status_line(dsn: str) -> str:
    """Return the line of ``pgcatalog status`` about the standby for searches, without its server."""
    lines = click.testing.CliRunner().invoke(main, ["status", "--dsn", dsn]).stdout.splitlines()
    [line] = [line for line in lines if line.startswith("standby for searches: ")]
    return line.partition(", ")[2] or line


def test_status_and_check_know_of_no_standby(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCATALOG_SEARCH_DSN", raising=False)
    assert status_line(servers.dsn) == "standby for searches: none (PGCATALOG_SEARCH_DSN is not set here)"
    assert command(servers.dsn, "status")[1]["search_standby"] is None
    assert said_of_standby(servers.dsn) == []


def test_status_and_check_know_a_standby_that_answers(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCATALOG_SEARCH_DSN", servers.standby_dsn)
    servers.standby.catch_up()
    code, found = command(servers.dsn, "status")
    standby = found["search_standby"]
    assert (code, standby["error"], found["attention"]) == (0, None, [])
    assert (standby["streaming"], standby["same_state"]) == (True, True)
    assert standby["lag_seconds"] >= 0
    assert re.fullmatch(r"follows its primary \([\d.]+ s behind\), shows its state", status_line(servers.dsn))
    assert said_of_standby(servers.dsn) == []


def test_of_all_servers_whichever_is_the_standby_is_asked(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage's connection string names all servers where one may take over from another."""
    monkeypatch.setenv("PGCATALOG_SEARCH_DSN", "target_session_attrs=standby")
    servers.standby.catch_up()
    standby = command(dsn_of(servers.primary, servers.standby, dbname="site"), "status")[1]["search_standby"]
    assert standby["same_state"] is True
    assert psycopg.conninfo.conninfo_to_dict(standby["server"])["host"] in servers.standby_dsn


def test_status_and_check_name_a_standby_that_is_behind(
    servers: Servers, writer: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCATALOG_SEARCH_DSN", servers.standby_dsn)
    with servers.paused():
        writer.save(lambda site: site.folder.page1.reindexObject())
        code, found = command(servers.dsn, "status")
        line = status_line(servers.dsn)
        said = said_of_standby(servers.dsn)
    assert (code, found["search_standby"]["same_state"]) == (1, False)
    assert found["attention"] == ["the standby for searches shows another state; searches go to the primary"]
    assert line.endswith("shows another state, so searches go to the primary")
    assert said == ["the one for searches shows another state than the primary"]


@pytest.mark.parametrize(
    ("standby", "error"),
    [
        ("port=1", "failed"),
        # The primary is no standby.
        ("", "not in hot standby mode"),
        ("no connection string", "PGCATALOG_SEARCH_DSN is no connection string"),
    ],
)
def test_status_and_check_name_a_standby_that_does_not_answer(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, standby: str, error: str
) -> None:
    monkeypatch.setenv("PGCATALOG_SEARCH_DSN", standby or servers.dsn)
    code, found = command(servers.dsn, "status")
    assert code == 1
    assert error in found["search_standby"]["error"]
    assert found["attention"] == ["the standby for searches does not answer; searches go to the primary"]
    assert "does not answer, so searches go to the primary: " in status_line(servers.dsn)
    [text] = said_of_standby(servers.dsn)
    assert text.startswith("the one for searches does not answer: ")
    assert error in text


def test_what_is_no_connection_string_is_ignored(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PGCATALOG_SEARCH_DSN", "neither is this")
    with readers.sites.opened(servers.dsn) as db:
        Process(db).do(answers)
        assert Process(db).do(lambda site: Session.of(site._p_jar).standby) is None
    assert [record.getMessage() for record in caplog.records if "PGCATALOG_SEARCH_DSN is ignored" in record.message]


def test_no_answer_differs_while_pages_are_changed(servers: Servers, writer: Process, searcher: Process) -> None:
    settle(servers, searcher)
    with commits(writer) as made:
        assert gained("answered", lambda: compare_during(searcher, made, 30)) > 0


def test_a_standby_that_replays_nothing_is_not_believed(servers: Servers, writer: Process, searcher: Process) -> None:
    settle(servers, searcher)
    with servers.paused():
        writer.save(lambda site: site.folder.page1.reindexObject())
        assert gained("answered", lambda: searcher.do(compare)) == 0
        with commits(writer) as made:
            assert gained("answered", lambda: compare_during(searcher, made)) == 0
    settle(servers, searcher)


def replay(servers: Servers) -> None:
    """Let the standby replay what a snapshot there is in the way of."""
    for change in ("ADD COLUMN of_a_test int", "DROP COLUMN of_a_test"):
        execute(servers.dsn, f"ALTER TABLE pgcatalog_state {change}")
    servers.standby.catch_up()


def terminate(servers: Servers) -> None:
    execute(servers.standby.dsn(), OURS.replace("count(*)", "pg_terminate_backend(pid)"))


@pytest.mark.parametrize("end", [replay, terminate])
def test_a_snapshot_that_the_standby_ends(servers: Servers, searcher: Process, end: Callable[[Servers], None]) -> None:
    def ended(site: Any) -> None:
        end(servers)
        compare(site)

    settle(servers, searcher)
    assert gained("failed", lambda: searcher.do(ended)) > 0
    settle(servers, searcher)


def test_a_standby_that_hangs_is_not_waited_for(servers: Servers, searcher: Process) -> None:
    settle(servers, searcher)
    pid = fetch(servers.standby_dsn, OURS.replace("count(*)", "pid"))
    os.kill(pid, signal.SIGSTOP)
    try:
        assert gained("failed", lambda: searcher.do(compare)) > 0
        searcher.do(compare)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_standby_that_is_killed_and_then_promoted(servers: Servers, writer: Process, searcher: Process) -> None:
    settle(servers, searcher)
    with commits(writer) as made:
        servers.standby.kill()
        compare_during(searcher, made)
        servers.standby.start()
        compare_during(searcher, made)
    settle(servers, searcher)
    with commits(writer) as made:
        compare_during(searcher, made)
        servers.standby.promote()
        assert gained("answered", lambda: compare_during(searcher, made)) == 0
    with readers.sites.opened(servers.standby_dsn) as db:
        Process(db).save(lambda site: site.folder.page1.reindexObject())
    for _ in range(5):
        assert gained("answered", lambda: searcher.do(compare)) == 0
        time.sleep(standbys.PAUSE / 2)
