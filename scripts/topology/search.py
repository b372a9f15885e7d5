"""A primary with a Zope that saves and asks the standby for its searches: how many the standby answers, what they cost."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from plone.pgcatalog.database import background
from plone.pgcatalog.database.standby import ANSWERED
from plone.pgcatalog.database.standby import SEARCH
from plone.pgcatalog.database.standby import standbys
from plone.pgcatalog.results.cache import result_cache
from scripts.topology.statements import statements
from tests.integration import readers
from tests.integration import site as sites
from tests.integration.histories import Process
from tests.integration.servers import execute
from tests.integration.web import Web
from typing import Any

import click
import os
import threading
import time


PAGES = ("/plone", "/plone/folder", "/plone/@@search?portal_type=Document", "/plone/@@search?SearchableText=page")
RATES = (0, 1, 5, 20)


@contextmanager
def commits(writer: Process, rate: int) -> Iterator[list[float]]:
    """Change a page *rate* times in a second; yields a list of when that was done."""
    done = threading.Event()
    made: list[float] = []

    def change(site: Any) -> None:
        site.folder.page1.title = f"changed {len(made)}"
        site.folder.page1.reindexObject()

    def work() -> None:
        while not done.wait(1 / rate if rate else None):
            writer.save(change)
            made.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield made
    finally:
        done.set()
        thread.join()


def opened(web: Web, page: str) -> None:
    """Have *page* rendered by a process that knows no answer."""
    result_cache().clear()
    assert web.open(page).status == 200


def asked(servers: readers.Servers, web: Web, page: str, relation: str) -> tuple[int, int, int]:
    """Return how many statements for *page* the primary gets, how many of them are of the catalog *relation*, and how many
    the standby gets.
    """
    opened(web, page)
    with statements(servers.primary) as of_primary, statements(servers.standby) as of_standby:
        opened(web, page)
    return len(of_primary), sum(relation in text for text in of_primary), len(of_standby)


def hits(web: Web, writer: Process, rate: int, requests: int) -> tuple[float, dict[str, int]]:
    """Return how many commits there were in a second, and what became of messages in so many *requests*."""
    [standby] = standbys.all()
    before = dict(standby.outcomes)
    started = time.monotonic()
    with commits(writer, rate) as made:
        for number in range(requests):
            opened(web, PAGES[number % len(PAGES)])
    seconds = time.monotonic() - started
    return len(made) / seconds, {name: n - before.get(name, 0) for name, n in standby.outcomes.items()}


@click.command()
@click.option("--requests", default=200, help="Requests for each rate of commits.")
def main(requests: int) -> None:
    """Print what the primary is asked for a page, with and without, and the share that the standby answers."""
    os.environ["PGCATALOG_SLOW_QUERY_MS"] = "0"
    sites.start_zope()
    with ExitStack() as stack:
        servers = readers.start(stack, hot_standby_feedback="on")
        # As servers do that are not for tests.  What is not flushed yet is not sent to a standby either.
        execute(servers.dsn, "ALTER DATABASE site SET synchronous_commit = 'on'")
        writer = Process(stack.enter_context(sites.opened(servers.dsn)))
        relation = writer.do(lambda site: site.portal_catalog._core.view().read_state().relation)
        without = Web(stack.enter_context(sites.opened(servers.dsn)))
        os.environ[SEARCH] = servers.standby_dsn
        beside = Web(stack.enter_context(sites.opened(servers.dsn)))
        for page in PAGES:
            opened(beside, page)
            background.wait(10)
        # The connections that were opened before have none beside them; those from here on do.
        print("statements for a page (of them: of the catalog), without and with the standby; those of the standby")
        for page in PAGES:
            del os.environ[SEARCH]
            primary, of_catalog, _ = asked(servers, without, page, relation)
            os.environ[SEARCH] = servers.standby_dsn
            fewer, fewer_of_catalog, others = asked(servers, beside, page, relation)
            print(f"  {page:40} {primary:3} ({of_catalog}) {fewer:3} ({fewer_of_catalog}) {others:3}")
        print("commits a second; what became of messages that the standby could answer")
        for rate in RATES:
            made, outcomes = hits(beside, writer, rate, requests)
            share = 100 * outcomes[ANSWERED] / max(1, sum(outcomes.values()))
            others = ", ".join(f"{name}: {n}" for name, n in sorted(outcomes.items()) if n)
            print(f"  {made:5.1f}  answered {share:5.1f} %  ({others})", flush=True)
        for standby in standbys.all():
            standby.close()
