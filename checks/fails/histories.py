"""Processes append tags to pages and read them by searches; the history has no anomaly: ``python -m checks.fails.histories``.

Two processes write.  A third one reads from the same server, or from its standby, and goes on when that takes over.  The
standby is synchronous, so a failover loses no commit.
"""

from benchmarks.marks import put_between
from checks.fails.anomalies import anomalies
from checks.fails.anomalies import Status
from checks.fails.anomalies import Transaction
from checks.soak.failover import Pair
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from plone.dexterity.schema import SCHEMA_CACHE
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from random import Random
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import ForkedWorker
from tests.integration.readers import reading
from tests.integration.waiting import until
from transaction.interfaces import TransientError
from typing import Any
from zope.event import notify
from zope.traversing.interfaces import BeforeTraverseEvent

import click
import itertools
import logging
import os
import psycopg
import sys
import tempfile
import transaction


DATABASE = "histories"
KEYS = [f"key{number}" for number in range(4)]
#: Commits are acknowledged when they are on the disk of the standby, too.
SETTINGS = {**TEST_SETTINGS, "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
#: Seconds after which a connection to a dead server is not waited for.
OPTIONS = {"pool_timeout": 5}
WRITERS = ("w1", "w2")
READER = "reader"
HEAD = (
    "| place | seed | committed | aborted | without an answer | values | lists read | anomalies |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|\n"
)


class Place(StrEnum):
    """The servers: the reader reads from the writers' server, or from a standby, which takes over or not."""

    ONE, STANDBY, FAILOVER = "one server", "standby", "failover"


def make(dsn: str) -> None:
    """Create a site with the pages whose tags are the lists."""
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for key in KEYS:
            create(portal, "Document", key)
        transaction.commit()


def read(portal: Any, key: str) -> list[tuple[str, ...]]:
    """Return the tags of the page *key*: of its row, of its object, and as far as a search for its last tag finds it."""
    catalog = portal.portal_catalog
    [brain] = catalog.unrestrictedSearchResults(getId=key)
    of_row, of_object = tuple(brain.Subject), tuple(portal[key].Subject())
    found = [hit.getId for hit in catalog.unrestrictedSearchResults(Subject=of_row[-1:])] if of_row else [key]
    return [of_row, of_object, of_row if key in found else of_row[:-1]]


def change(portal: Any, txn: Transaction, random: Random) -> None:
    """Read two lists, and append one or two values to each of up to two lists."""
    look(portal, txn, random)
    for key in random.sample(KEYS, random.randint(1, 2)):
        for _ in range(random.randint(1, 2)):
            value = f"{txn.name}.{len(txn.appends)}"
            portal[key].setSubject((*portal[key].Subject(), value))
            txn.appends.append((key, value))
        portal[key].reindexObject()


def look(portal: Any, txn: Transaction, random: Random, keys: Sequence[str] = ()) -> None:
    """Read the lists *keys*, by default two of them."""
    for key in keys or random.sample(KEYS, 2):
        txn.reads += [(key, values) for values in read(portal, key)]


def run(db: Any, txn: Transaction, random: Random, action: Any) -> Transaction:
    """Run *action* in a request; return *txn* with its status."""
    txn.status = Status.ABORTED
    with suppress(TransientError, psycopg.OperationalError), sites.inside(db) as portal:
        notify(BeforeTraverseEvent(portal, portal.REQUEST))
        action(portal, txn, random)
        txn.status = Status.UNKNOWN
        try:
            transaction.commit()
        except TransientError:
            txn.status = Status.ABORTED
            raise
        txn.status = Status.COMMITTED
    if txn.status is not Status.COMMITTED:
        # Plone caches types of connections that have ended.
        SCHEMA_CACHE.clear()
    return txn


def work(name: str, dsn: str, folder: str, seed: int) -> list[Transaction]:
    """Run transactions in this process until the file ``stop`` in *folder* exists; the file *name* has a byte for each commit."""
    random, history = Random(f"{seed} {name}"), []
    opened = reading(dsn) if name == READER else sites.opened(dsn, **OPTIONS)
    # A database whose server has gone cannot always be closed.
    with suppress(psycopg.OperationalError, KeyError), opened as db, Path(folder, name).open("wb", buffering=0) as done:
        for number in itertools.count():
            if Path(folder, "stop").exists():
                break
            txn = run(db, Transaction(f"{name}.{number}"), random, look if name == READER else change)
            history.append(txn)
            done.write(b"." * (txn.status is Status.COMMITTED))
    return history


def histories(place: Place, transactions: int, failovers: int, seed: int) -> list[Transaction]:
    """Return the history of about *transactions* commits of each process, and as many after each of *failovers*."""
    failovers = failovers if place is Place.FAILOVER else 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcatalog-histories-")))
        pair = stack.enter_context(Pair(SETTINGS, synchronous=True))
        pair.createdb(DATABASE)
        make(pair.dsn(DATABASE))
        source = pair.primary if place is Place.ONE else pair.standby
        dsns = {name: pair.dsn(DATABASE) for name in WRITERS} | {READER: source.dsn(DATABASE)}
        workers = {name: stack.enter_context(ForkedWorker()) for name in dsns}
        futures = [worker.submit(work, name, dsns[name], str(folder), seed) for name, worker in workers.items()]

        def progress() -> dict[str, int]:
            for future in futures:
                if future.done():
                    future.result()
                    raise RuntimeError("a process has ended")
            return {name: (folder / name).stat().st_size if (folder / name).exists() else 0 for name in dsns}

        try:
            for part in range(failovers + 1):
                if part:
                    pair.fail_over()
                    if part < failovers:
                        pair.rejoin()
                goals = {name: count + transactions for name, count in progress().items()}
                until(lambda goals=goals: all(count >= goals[name] for name, count in progress().items()))
        finally:
            (folder / "stop").touch()
        history = [txn for future in futures for txn in future.result()]
        with sites.opened(pair.primary.dsn(DATABASE)) as db:
            end = Transaction("end")
            history.append(run(db, end, Random(seed), lambda portal, txn, random: look(portal, txn, random, KEYS)))
    return history


def row(place: Place, seed: int, history: Sequence[Transaction], found: Sequence[str]) -> str:
    """Return the row of the table for a *history* with the anomalies *found*."""
    statuses = Counter(txn.status for txn in history)
    figures = (
        seed,
        *(statuses[status] for status in Status),
        sum(len(txn.appends) for txn in history if txn.status is Status.COMMITTED),
        sum(len(txn.reads) for txn in history),
        len(found),
    )
    return f"| {place} | {' | '.join(map(str, figures))} |\n"


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--place", "places", multiple=True, type=click.Choice([place.value for place in Place]), help="By default all."
)
@click.option("--transactions", default=60, help="Commits of each process in each part of the run.")
@click.option("--failovers", default=1, help="How often the standby takes over.")
@click.option("--seed", "seeds", multiple=True, default=(1, 2), help="Of everything random; a run for each.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Renew the table of this page.")
def main(places: Sequence[str], transactions: int, failovers: int, seeds: Sequence[int], page: Path | None) -> None:
    """Append and read in three processes; print the anomalies of the histories.  The exit status is 1 if there are any."""
    # The recorder of slow queries sends messages at any time.
    os.environ.setdefault("PGCATALOG_SLOW_QUERY_MS", "0")
    sites.start_zope()
    logging.disable(logging.ERROR)
    table, are_any = HEAD, False
    for place, seed in itertools.product([Place(name) for name in places] or Place, seeds):
        history = histories(place, transactions, failovers, seed)
        found = anomalies(history)
        line = row(place, seed, history, found)
        table += line
        are_any = are_any or bool(found)
        click.echo("\n".join([line.strip(), *found]))
    click.echo(table)
    if page:
        put_between(page, "histories", table.rstrip())
    sys.exit(are_any)


if __name__ == "__main__":
    main(prog_name="python -m checks.fails.histories")
