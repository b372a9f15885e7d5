"""Zopes on machines whose clocks differ: no commit is missed, and no conflict repeats for ever.

Transactions are named by the clock of the committing process; a process takes later names as the commits of others since its
last look.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from tests.integration import histories
from tests.integration import site as sites
from tests.integration.clocks import set_clock
from tests.integration.editors import abort
from tests.integration.editors import editor
from tests.integration.histories import Process
from tests.integration.histories import process
from tests.integration.web import Web
from transaction.interfaces import TransientError
from typing import Any
from ZODB.utils import u64

import psycopg
import pytest
import time


pytestmark = pytest.mark.slow


SECONDS = [-5.0, 0.005, 5.0, -0.005]
ROUNDS = 3


@pytest.fixture(scope="module")
def filled(site_template: str, postgres: Any) -> str:
    """Name of a database with a site and pages."""
    postgres.createdb("clocks", template=site_template)
    with process(postgres.dsn("clocks")) as first:
        first.save(histories.fill)
    return "clocks"


@pytest.fixture
def dsn(filled: str, postgres: Any) -> str:
    return sites.clone(postgres, filled)


@pytest.fixture(params=SECONDS, ids=lambda seconds: f"{seconds:+g}s")
def seconds(request: pytest.FixtureRequest) -> float:
    """Difference between the clocks of the two processes."""
    return float(request.param)


@contextmanager
def two(dsn: str, seconds: float, **options: Any) -> Iterator[tuple[Process, Process]]:
    """Yield two processes; the clock of the second is *seconds* ahead of the first one's."""
    with process(dsn, **options) as one, process(dsn, **options) as other:
        now = time.time()
        set_clock(one.db.storage, 0, now)
        set_clock(other.db.storage, seconds, now)
        yield one, other


@pytest.fixture(params=[False, True], ids=["history-free", "history-preserving"])
def pair(dsn: str, seconds: float, request: pytest.FixtureRequest) -> Iterator[tuple[Process, Process]]:
    with two(dsn, seconds, history_preserving=request.param) as processes:
        yield processes


def save_in_turn(
    authors: dict[str, Process], *others: Process, change: Any = histories.change, shown: str = "title"
) -> None:
    """Let *authors*, by name, change a page in turn; all processes see each change."""
    for number in range(ROUNDS):
        for name, author in authors.items():
            author.save(change, 1, f"{name}{number}")
            for each in (*authors.values(), *others):
                assert each.do(lambda site: getattr(site.page1, shown)).split()[0] == f"{name}{number}"


def test_each_commit_is_seen_by_all_processes_under_a_later_name(pair: tuple[Process, Process], dsn: str) -> None:
    """A request is repeated at most once, and no number of the counter comes twice: an ETag may be sent to the other."""
    newest, given = -1, [pair[0].do(histories.counter)]
    with process(dsn) as reader:
        for number in range(ROUNDS):
            for name, author in zip(("one", "other"), pair, strict=True):
                page = number % histories.PAGES
                assert author.save(histories.change, page, f"{name}{number}") <= 1
                with process(dsn) as fresh:
                    expected = fresh.do(histories.answers)
                assert expected["objects"][page][2] == f"{name}{number} {page}"
                for each in (*pair, reader):
                    assert each.do(histories.answers) == expected
                tid = tid_of_page(dsn, author, page)
                assert tid > newest
                newest = tid
                found, same = (each.do(histories.counter) for each in pair)
                assert found == same
                assert not set(found) & {value for values in given for value in values}
                given.append(found)


def test_a_commit_without_the_catalog_is_seen_too(pair: tuple[Process, Process]) -> None:
    save_in_turn({"one": pair[0], "other": pair[1]}, change=histories.change_object, shown="description")


def tid_of_page(dsn: str, author: Process, number: int) -> int:
    """Return the name of the transaction that wrote a page."""
    zoid = author.do(lambda site: u64(site[f"page{number}"]._p_oid))
    with psycopg.connect(dsn) as connection:
        [(tid,)] = connection.execute("SELECT tid FROM object_state WHERE zoid = %s", [zoid])
        return int(tid)


@pytest.fixture
def undoing(dsn: str, seconds: float) -> Iterator[tuple[Process, Process]]:
    """Two processes whose storages can undo."""
    with two(dsn, seconds, history_preserving=True) as processes:
        yield processes


def logged(dsn: str) -> dict[int, set[str]]:
    """Return transaction -> paths that it catalogued."""
    found: dict[int, set[str]] = {}
    with psycopg.connect(dsn) as connection:
        for tid, path in connection.execute("SELECT tid, path FROM pgcatalog_changes"):
            found.setdefault(tid, set()).add(path)
    return found


def test_catalogued_paths_are_logged_under_the_name_of_their_transaction(
    undoing: tuple[Process, Process], dsn: str
) -> None:
    for number in range(ROUNDS):
        for author in undoing:
            before = logged(dsn)
            author.save(histories.change, number % histories.PAGES, "word")
            after = logged(dsn)
            page = number % histories.PAGES
            assert after == before | {tid_of_page(dsn, author, page): {f"/plone/page{page}"}}


@pytest.mark.parametrize("who", [0, 1])
def test_undo_undoes_exactly_the_given_transaction(undoing: tuple[Process, Process], dsn: str, who: int) -> None:
    """The catalog follows, whichever process undoes the work of either."""
    undoing[who].save(histories.change, 0, "kept")
    undoing[1 - who].save(histories.change, 1, "undone")
    name = next(u["id"] for u in undoing[who].db.undoInfo(0, 1))

    def undo(site: Any) -> None:
        site._p_jar.db().undo(name)

    undoing[who].save(undo)
    with process(dsn) as fresh:
        expected = fresh.do(histories.answers)
    assert [found[2] for found in expected["objects"]] == ["kept 0", "old 1", "old 2"]
    assert expected["hits"]["old"] == ["/plone/page2", "/plone/page1"]
    for each in undoing:
        assert each.do(histories.answers) == expected


def test_a_request_simply_succeeds(dsn: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over HTTP, with Zope's own repetition: both change the same page in turn, and both see the change."""
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.delay_retry", lambda self: None)
    with two(dsn, seconds) as (one, other):
        for number in range(ROUNDS):
            for name, author in (("one", one), ("other", other)):
                title = f"{name}{number}"
                changed = Web(author.db).patch("/plone/page0", "admin:secret", {"title": title})
                assert (changed.status, changed.text) == (204, "")
                for each in (one, other):
                    shown = Web(each.db).get("/plone/page0", "admin:secret", accept="application/json")
                    assert shown.json["title"] == title
                    found = Web(each.db).get("/plone/@search", "admin:secret", "application/json", getId="page0")
                    assert [item["title"] for item in found.json["items"]] == [title]


def test_two_late_processes_continue_after_an_early_one(dsn: str) -> None:
    """Until their clocks catch up, both name their transactions after the newest one, and never with the same name."""
    with process(dsn) as ahead, two(dsn, -5.0) as late:
        set_clock(ahead.db.storage, 5.0)
        ahead.save(histories.change, 0, "ahead")
        save_in_turn({"one": late[0], "other": late[1]}, ahead)


def test_clock_that_was_set_back_disturbs_no_process(dsn: str) -> None:
    with process(dsn) as one, process(dsn) as other:
        set_clock(one.db.storage, 60.0)
        one.save(histories.change, 0, "ahead")
        set_clock(one.db.storage, 0.0)
        save_in_turn({"other": other, "one": one})


def test_two_late_processes_commit_at_the_same_time(dsn: str) -> None:
    """Both have read while the newest transaction was from the process ahead, and both get later names than that."""
    with process(dsn) as ahead, two(dsn, -5.0) as late:
        set_clock(ahead.db.storage, 5.0)
        ahead.save(histories.change, 0, "ahead")
        with editor(late[0].db) as one, editor(late[1].db) as other:
            for number in range(ROUNDS):
                for each in (one, other):
                    each.begin()
                for page, each in enumerate((one, other), 1):
                    each.do(histories.change, page, f"late{number}")
                for page, each in enumerate((one, other), 1):
                    assert each.finish(histories.change, page, f"late{number}") <= 1
                titles = [f"{name} {page}" for page, name in enumerate(["ahead", f"late{number}", f"late{number}"])]
                for each in (*late, ahead):
                    assert [found[2] for found in each.do(histories.answers)["objects"]] == titles


@pytest.mark.parametrize("behind", [0.005, 5.0])
def test_a_late_commit_is_a_transient_error_once(dsn: str, behind: float) -> None:
    """It leaves nothing; the repetition succeeds, and so does the next commit, at once."""
    with two(dsn, -behind) as (one, other), editor(other.db) as late:
        late.begin()
        late.do(histories.change, 1, "late")
        one.save(histories.change, 0, "one")
        with pytest.raises(TransientError):
            late.commit()
        late.do(abort)
        with process(dsn) as fresh:
            assert fresh.do(histories.answers) == one.do(histories.answers) == late.do(histories.answers)
        assert one.do(lambda site: site.page1.title) == "old 1"
        assert [other.save(histories.change, n, "repeated") for n in (1, 2)] == [0, 0]
        late.begin()
        with process(dsn) as fresh:
            assert fresh.do(histories.answers) == one.do(histories.answers) == late.do(histories.answers)
