"""The database's history changes under running Zopes: none of them answers from the lost one.

After a failover to an asynchronous standby, or a restored dump, numbers are used again: generations, ids of transactions and
of objects.  Data that a process has cached under such a number may have been lost.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.integration import histories
from tests.integration import site as sites
from tests.integration.clocks import set_clock
from tests.integration.editors import abort
from tests.integration.editors import editor
from tests.integration.histories import answers
from tests.integration.histories import counter
from tests.integration.histories import Failover
from tests.integration.histories import Process
from tests.integration.histories import process
from tests.integration.histories import Restore
from typing import Any

import psycopg
import pytest
import tempfile


pytestmark = pytest.mark.slow


Action = tuple[Any, ...]

#: More than the number of transaction ids used by a process that opens the database.
LOST_COMMITS = 12

#: Variant -> (lost actions, actions done instead); "by an older clock" gives these older tids.
VARIANTS: dict[str, tuple[list[Action], list[Action]]] = {
    "nothing instead": ([(histories.change, 0, "lost")], []),
    "the same page": ([(histories.change, 0, "lost")], [(histories.change, 0, "new")]),
    "another page": ([(histories.change, 0, "lost")], [(histories.change, 1, "new")]),
    "more commits": ([(histories.change, 0, "lost")], [(histories.change, n, "new") for n in (1, 2, 1)]),
    "a deleted page": ([(histories.delete, 0)], [(histories.change, 1, "new")]),
    "an object with the same oid": ([(histories.make, "Document", "lost")], [(histories.make, "Folder", "new")]),
    "by an older clock": ([(histories.change, 0, "lost")], [(histories.change, 1, "new")]),
    "no change of the catalog": ([(histories.change_object, 0, "lost")], [(histories.change_object, 1, "new")]),
}
#: The variants for requests that read no row of the catalog.
OF_OBJECTS = ("nothing instead", "the same page", "another page", "no change of the catalog")


@pytest.fixture(scope="module")
def cluster(zope: None) -> Iterator[histories.Cluster]:
    """A primary and a standby, with a site as template."""
    with tempfile.TemporaryDirectory(prefix="pgcatalog-history-") as folder:
        Path(folder).chmod(0o755)
        cluster = histories.Cluster(Path(folder))
        try:
            dsn = cluster.primary.createdb("template")
            sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
            with process(dsn) as first:
                first.save(histories.fill)
            yield cluster
        finally:
            cluster.stop()


KINDS = {"failover": (Failover, False), "failover with undo": (Failover, True), "restore": (Restore, False)}
EACH_FAILOVER = pytest.mark.parametrize("story", ["failover", "failover with undo"], indirect=True)


@pytest.fixture(params=KINDS)
def story(cluster: histories.Cluster, request: pytest.FixtureRequest) -> Iterator[Failover]:
    """A database that will lose commits, with or without the history of its objects."""
    kind, keeps_history = KINDS[request.param]
    with kind(cluster, "template", keeps_history) as story:
        yield story


def assert_right(story: Failover, *processes: Process, observe: Any = answers) -> None:
    """Check that every process answers as a new one, twice."""
    expected = story.process().do(observe)
    for each in processes:
        assert each.do(observe) == expected
        assert each.do(observe) == expected


def assert_saves(story: Failover, *processes: Process) -> None:
    """Every process can save every page, and all of them see it."""
    for number, each in enumerate(processes):
        each.save(save_all, f"saved{number}")
        assert_right(story, *processes)


def save_all(site: Any, word: str) -> None:
    for number in range(histories.PAGES):
        if f"page{number}" in site:
            histories.change(site, number, word)


def objects(site: Any) -> list[tuple[str, str]]:
    """Return the observation of a request without a search, such as a download."""
    return [(site[f"page{n}"].title, site[f"page{n}"].description) for n in range(histories.PAGES)]


@pytest.mark.parametrize(
    ("variant", "observe"), [*((name, answers) for name in VARIANTS), *((name, objects) for name in OF_OBJECTS)]
)
def test_nobody_answers_from_a_lost_history(story: Failover, variant: str, observe: Any) -> None:
    """Neither the writer of the lost commits, nor a process that has read them, nor one that has not."""
    lost, new = VARIANTS[variant]
    writer, reader, idle = story.process(), story.process(), story.process()
    before = [each.do(observe) for each in (writer, reader, idle)]
    story.fork()
    for action, *args in lost:
        writer.save(action, *args)
    assert writer.do(observe) == reader.do(observe) != before[0]
    given = [each.do(counter) for each in (writer, reader)]
    story.lose()
    another = story.process()
    if variant == "by an older clock":
        set_clock(another.db.storage, -3600)
    for action, *args in new:
        another.save(action, *args)
    assert_right(story, writer, reader, idle, another, observe=observe)
    if "catalog" not in variant:
        for number in [n for each in (writer, reader, idle, another) for n in each.do(counter)]:
            assert number not in [n for numbers in given for n in numbers]
    assert_saves(story, writer, reader, idle)


@pytest.mark.parametrize("first", ["writer", "reader"])
def test_process_continuing_in_the_new_history_answers_right(story: Failover, first: str) -> None:
    """The first commit there is from a process that has seen the lost one, and has not polled since."""
    processes = {name: story.process() for name in ("writer", "reader")}
    for each in processes.values():
        each.do(answers)
    story.fork()
    processes["writer"].save(histories.change, 0, "lost")
    for each in processes.values():
        each.do(answers)
    given = processes["writer"].do(counter)
    story.lose()
    processes[first].save(histories.change, 0, "new")
    assert_right(story, *processes.values())
    assert not set(given) & set(processes["reader"].do(counter))
    assert_saves(story, *processes.values())


@EACH_FAILOVER
def test_rows_of_a_lost_transaction_with_the_same_xid(story: Failover) -> None:
    """No answer is cached at the repeated generation: only rows are, by their version."""
    writer = story.process()
    page = writer.do(lambda site: int.from_bytes(site.page0._p_oid))
    writer.do(answers)
    story.fork()
    for number in range(LOST_COMMITS):
        writer.save(histories.change, 0, f"lost{number}")
    xid = histories.xmin(story.dsn, page)
    writer.do(answers)
    story.lose()
    another = story.process()
    another.do(answers)
    histories.use_up_xids(story.dsn, xid)
    another.save(histories.change, 0, "new")
    assert histories.xmin(story.dsn, page) == xid
    assert_right(story, writer)
    assert_saves(story, writer)


@pytest.mark.parametrize("story", ["restore"], indirect=True)
def test_processes_survive_several_lost_histories(story: Failover) -> None:
    """One after the other, under the same Zope; each has its own counters."""
    witness = story.process()
    given: list[int] = []
    story.fork()
    for number in range(4):
        witness.save(histories.change, number % histories.PAGES, f"lost{number}")
        given.append(witness.do(counter)[0])
        story.lose()
        assert_right(story, witness)
    assert len(set(given)) == 4


@EACH_FAILOVER
def test_a_transaction_across_the_change_saves_nothing(story: Failover) -> None:
    """It has read from the lost history; repeated, it reads the new one."""
    writer = story.process()
    story.fork()
    writer.save(histories.change, 0, "lost")

    def combine(site: Any) -> None:
        site.page1.title = f"{site.page0.title} and {site.page1.title}"
        site.page1.reindexObject()

    with editor(writer.db) as early:
        early.do(combine)
        story.lose()
        with pytest.raises(psycopg.OperationalError):
            early.commit()
        with suppress(psycopg.OperationalError):
            early.do(abort)
    assert_right(story, writer)
    writer.save(combine)
    assert writer.do(lambda site: site.page1.title) == "old 0 and old 1"
    assert_right(story, writer)


@pytest.mark.parametrize("story", ["restore"], indirect=True)
def test_relations_retired_in_another_cluster_are_dropped(story: Restore, postgres: EmbeddedPostgres) -> None:
    """A younger cluster's transaction ids will not get that far for years."""
    with psycopg.connect(story.dsn) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT")  # may read a retired relation
        newest = max(histories.next_xid(dsn) for dsn in (story.dsn, postgres.dsn()))
        histories.use_up_xids(story.dsn, newest + 1000)  # more than the restore uses up
        story.process().save(lambda site: site.portal_catalog.clearFindAndRebuild())
        story.fork()
    younger = story.restore_into(postgres)
    assert retired(younger)
    assert all(xid > histories.next_xid(younger) for xid in retired(younger).values())
    with process(younger) as moved:
        for _ in range(2):
            moved.save(lambda site: site.portal_catalog.clearFindAndRebuild())
        moved.do(answers)
        for _ in range(2):  # the first one renews the ids of the other cluster
            with psycopg.connect(younger, autocommit=True) as connection:
                connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE kind = 'retired'")
            Worker(moved.db, younger).run_until_empty()
    assert retired(younger) == {}


def retired(dsn: str) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        return dict(connection.execute("SELECT relation, retired_by::text::bigint FROM pgcatalog_retired").fetchall())
