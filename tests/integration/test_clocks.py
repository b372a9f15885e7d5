"""Zopes on machines whose clocks differ: nobody misses a commit, and nobody conflicts for ever.

Transactions are named by the clock of the process that commits them; what others have committed since they looked
last is what has a later name.
"""

from collections.abc import Iterator
from tests.integration import histories
from tests.integration import site as sites
from tests.integration.clocks import set_clock
from tests.integration.histories import answers
from tests.integration.histories import counter
from tests.integration.histories import Process
from tests.integration.histories import process
from typing import Any
from ZODB.utils import u64

import psycopg
import pytest


SECONDS = [-5.0, -0.1, -0.005, 0.0, 0.005, 0.1, 5.0]
ROUNDS = 4


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
    """How far the clock of one process is ahead of that of the other."""
    return float(request.param)


@pytest.fixture(params=[False, True], ids=["history-free", "history-preserving"])
def pair(dsn: str, seconds: float, request: pytest.FixtureRequest) -> Iterator[tuple[Process, Process]]:
    with process(dsn, history_preserving=request.param) as one, process(dsn, history_preserving=request.param) as other:
        set_clock(other.db.storage, seconds)
        yield one, other


def test_nobody_misses_a_commit(pair: tuple[Process, Process], dsn: str) -> None:
    """Both commit in turn; whoever looks then answers as a new process, whose eyes are fresh."""
    with process(dsn) as reader:
        for number in range(ROUNDS):
            for name, author in zip(("one", "other"), pair, strict=True):
                author.save(histories.change, number % histories.PAGES, f"{name}{number}")
                with process(dsn) as fresh:
                    expected = fresh.do(answers)
                assert expected["objects"][number % histories.PAGES][2] == f"{name}{number} {number % histories.PAGES}"
                for each in (*pair, reader):
                    assert each.do(answers) == expected


def test_a_commit_without_the_catalog_is_seen_too(pair: tuple[Process, Process]) -> None:
    for number in range(ROUNDS):
        for name, author in zip(("one", "other"), pair, strict=True):
            author.save(histories.change_object, 0, f"{name}{number}")
            for each in pair:
                assert each.do(lambda site: site.page0.description) == f"{name}{number}"


def test_two_who_save_the_same_page_in_turn_do_not_conflict_for_ever(pair: tuple[Process, Process]) -> None:
    """A request is repeated at most once: the clock is right from then on."""
    for number in range(ROUNDS):
        for name, author in zip(("one", "other"), pair, strict=True):
            assert author.save(histories.change, 0, f"{name}{number}") <= 1
    for each in pair:
        assert each.do(lambda site: site.page0.title) == f"other{ROUNDS - 1} 0"


def test_names_of_transactions_only_grow(pair: tuple[Process, Process], dsn: str) -> None:
    """In the order of the commits, whoever made them, also the one in which an undo is."""
    newest = -1
    for number in range(ROUNDS):
        for author in pair:
            author.save(histories.change, number % histories.PAGES, "word")
            tid = tid_of(dsn, author.do(lambda site: u64(site.page0._p_oid)), author, number)
            assert tid > newest
            newest = tid


def tid_of(dsn: str, first: int, author: Process, number: int) -> int:
    zoid = author.do(lambda site: u64(site[f"page{number % histories.PAGES}"]._p_oid))
    with psycopg.connect(dsn) as connection:
        [(tid,)] = connection.execute("SELECT tid FROM object_state WHERE zoid = %s", [zoid])
        return int(tid)


def test_counters_grow_with_every_change(pair: tuple[Process, Process]) -> None:
    given = [pair[0].do(counter)]
    for number in range(ROUNDS):
        for author in pair:
            author.save(histories.change, 0, f"word{number}")
            found = [each.do(counter) for each in pair]
            assert found[0] == found[1]
            assert all(found[0][n] > given[-1][n] for n in range(2))
            given.append(found[0])
