"""A primary with a Zope that saves and asks the standby for its searches: how many the standby answers, what they cost."""

from benchmarks.marks import put_between
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
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
from tests.soak.report import table
from typing import Any

import click
import json
import os
import time


PAGES = {
    "front page": "/plone",
    "a folder": "/plone/folder",
    "search by type": "/plone/@@search?portal_type=Document",
    "search for a word": "/plone/@@search?SearchableText=page",
}
RATES = (0, 1, 5, 20)
#: A process of its own begins without what this one has: Zope's threads and connections cannot be forked.
SPAWN = get_context("spawn")
#: Seconds until a process has started Zope, on a busy machine.
STARTED = 300.0


def commit(dsn: str, rate: Any, made: Any, started: Any, ended: Any) -> None:
    """Change a page *rate* times in a second, as long as that is not 0, and count it in *made*; until *ended*."""
    os.environ.pop(SEARCH, None)
    sites.start_zope()

    def change(site: Any) -> None:
        site.folder.page1.title = f"changed {made.value}"
        site.folder.page1.reindexObject()

    with sites.opened(dsn) as db:
        writer = Process(db)
        due = time.monotonic()
        started.set()
        while not ended.is_set():
            pause = 1 / rate.value if rate.value else 0.05
            # One that takes longer than the pause is followed by the next one at once; none is made up for.
            due = max(due + pause, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            if rate.value:
                writer.save(change)
                made.value += 1


class Writer:
    """A Zope in a process of its own that saves; ``rate`` and ``made`` are shared numbers."""

    def __init__(self, dsn: str) -> None:
        self.rate, self.made = SPAWN.Value("d", 0.0), SPAWN.Value("q", 0)
        self._ended, started = SPAWN.Event(), SPAWN.Event()
        self._process = SPAWN.Process(target=commit, args=(dsn, self.rate, self.made, started, self._ended))
        self._process.start()
        if not started.wait(STARTED):
            raise TimeoutError("the process that saves has not started")

    def end(self) -> None:
        """End it; RuntimeError if it has failed."""
        self._ended.set()
        self._process.join()
        if self._process.exitcode:
            raise RuntimeError(f"the process that saves ended with status {self._process.exitcode}")


@contextmanager
def saving(dsn: str) -> Iterator[Writer]:
    """Yield a Writer; it has ended afterwards."""
    writer = Writer(dsn)
    try:
        yield writer
    finally:
        writer.end()


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


def hits(web: Web, writer: Writer, rate: int, requests: int) -> dict[str, Any]:
    """Return how many commits there were in a second, and what became of messages in so many *requests*."""
    [standby] = standbys.all()
    pages = tuple(PAGES.values())
    writer.rate.value = rate
    before, already = dict(standby.outcomes), writer.made.value
    started = time.monotonic()
    for number in range(requests):
        opened(web, pages[number % len(pages)])
    made = (writer.made.value - already) / (time.monotonic() - started)
    outcomes = {name: n - before.get(name, 0) for name, n in standby.outcomes.items() if n > before.get(name, 0)}
    return {"wanted": rate, "made": round(made, 1), "outcomes": outcomes}


def measured(requests: int) -> dict[str, Any]:
    """Return the statements for each page, and what became of messages at each rate of commits."""
    os.environ["PGCATALOG_SLOW_QUERY_MS"] = "0"
    os.environ.pop(SEARCH, None)
    sites.start_zope()
    found: dict[str, Any] = {"command": f"make topology T=search TOPOLOGY_ARGS='--requests {requests}'"}
    with ExitStack() as stack:
        servers = readers.start(stack, hot_standby_feedback="on")
        # As servers do that are not for tests.  What is not flushed yet is not sent to a standby either.
        execute(servers.dsn, "ALTER DATABASE site SET synchronous_commit = 'on'")
        writer = stack.enter_context(saving(servers.dsn))
        other = stack.enter_context(sites.opened(servers.dsn))
        relation = Process(other).do(lambda site: site.portal_catalog._core.view().read_state().relation)
        without = Web(other)
        os.environ[SEARCH] = servers.standby_dsn
        beside = Web(stack.enter_context(sites.opened(servers.dsn)))
        for page in PAGES.values():
            opened(beside, page)
            background.wait(10)
        # The connections that were opened before have none beside them; those from here on do.
        found["statements"] = {}
        for name, page in PAGES.items():
            del os.environ[SEARCH]
            primary, of_catalog, _ = asked(servers, without, page, relation)
            os.environ[SEARCH] = servers.standby_dsn
            fewer, fewer_of_catalog, others = asked(servers, beside, page, relation)
            found["statements"][name] = [primary, of_catalog, fewer, fewer_of_catalog, others]
        found["rates"] = []
        for rate in RATES:
            found["rates"].append(hits(beside, writer, rate, requests))
            click.echo(found["rates"][-1], err=True)
        for standby in standbys.all():
            standby.close()
    return found


def texts(found: dict[str, Any]) -> dict[str, str]:
    """Return the tables of what was *found*, as Markdown, by the names of their places in the page."""
    statements_of_pages = [
        (page, f"{primary} ({of_catalog})", f"{fewer} ({fewer_of_catalog})", of_standby)
        for page, (primary, of_catalog, fewer, fewer_of_catalog, of_standby) in found["statements"].items()
    ]
    head = ("page", "statements that the primary gets (of the catalog), without", "with", "that the standby gets")
    answers = [
        (rate["wanted"], rate["made"], f"{share(rate['outcomes']):.1f} %", unanswered(rate["outcomes"]) or "–")
        for rate in found["rates"]
    ]
    wanted = ("commits in a second that were wanted", "made", "answered", "messages that were not, of all")
    return {"statements": "\n".join(table(head, statements_of_pages)), "answered": "\n".join(table(wanted, answers))}


def share(outcomes: dict[str, int]) -> float:
    """Return how many per cent of the messages the standby has answered."""
    return 100 * outcomes.get(ANSWERED, 0) / max(1, sum(outcomes.values()))


def unanswered(outcomes: dict[str, int]) -> str:
    """Return what became of the messages that the standby has not answered."""
    named = [f"{name}: {n}" for name, n in sorted(outcomes.items()) if name != ANSWERED]
    return f"{', '.join(named)} of {sum(outcomes.values()):,}" if named else ""


@click.command()
@click.option("--requests", default=200, show_default=True, help="Requests for each rate of commits.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Renew the tables of this page.")
def main(requests: int, output: Path | None, page: Path | None) -> None:
    """Print what the primary is asked for a page, with and without, and the share that the standby answers."""
    found = measured(requests)
    if output:
        output.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    for name, text in texts(found).items():
        if page:
            put_between(page, name, text)
        click.echo(f"{text}\n")
