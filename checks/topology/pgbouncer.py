"""Zope processes on one PostgreSQL, directly and through PgBouncer: compares connections and statements."""

from benchmarks.marks import put_between
from benchmarks.tables import Table
from checks.soak.__main__ import answer
from checks.soak.__main__ import answer_of
from checks.soak.__main__ import end
from checks.soak.__main__ import load
from checks.soak.__main__ import worker
from checks.soak.clients import Client
from checks.soak.clients import Gate
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console
from tests.integration.bouncer import find_pgbouncer
from tests.integration.bouncer import PgBouncer
from typing import Any

import click
import datetime
import json
import os
import psycopg
import tempfile
import threading
import time


DATABASE = "site"
FILE = click.Path(dir_okay=False, path_type=Path)
#: The server's log counts the statements.
SETTINGS = {**DEMO_SETTINGS, "log_statement": "all"}
#: Seconds between two looks at the server's connections.
INTERVAL = 0.05
CONNECTIONS = (
    "SELECT count(*), count(*) FILTER (WHERE state <> 'idle') FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Watcher:
    """Counts the connections of the server to the database *dsn*: ``most``, and ``busy`` at the same time."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.most = self.busy = 0

    def run(self, ended: threading.Event) -> None:
        """Count repeatedly until *ended*."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while not ended.wait(INTERVAL):
                [(most, busy)] = connection.execute(CONNECTIONS).fetchall()
                self.most, self.busy = max(self.most, most), max(self.busy, busy)


def statements(server: EmbeddedPostgres) -> int:
    """Return the number of statements in the log of *server*."""
    assert server.data_dir is not None
    text = (server.data_dir / "server.log").read_text("utf-8", "replace")
    return text.count("LOG:  statement: ") + text.count("LOG:  execute ")


@contextmanager
def served(folder: Path, dsn: str, processes: int, threads: int) -> Iterator[list[str]]:
    """Yield the URLs of the site in the database *dsn*, from *processes* processes with *threads* threads each."""
    with ExitStack() as stack:
        started = [worker(folder, "serve", dsn, name=f"zope{n}", threads=threads) for n in range(processes)]
        for process in started:
            stack.callback(end, process)
        yield [f"http://127.0.0.1:{answer_of(process)['port']}/Plone" for process in started]


def measure(
    server: EmbeddedPostgres, folder: Path, dsn: str, pages: list[str], options: dict[str, Any], first: int
) -> dict[str, Any]:
    """Run clients, numbered from *first* on, against the site in the database *dsn*; return the figures."""
    with served(folder, dsn, options["processes"], options["threads"]) as urls:
        clients = [Client(first + number, urls, pages, 1, Gate()) for number in range(options["clients"])]
        watcher = Watcher(server.dsn(DATABASE))
        before = statements(server)
        load(lambda started: [], clients, watcher, options)  # type: ignore[arg-type]
        after = statements(server)
    requests = sum(len(client.answers) for client in clients)
    return {
        "requests": requests,
        "connections": watcher.most,
        "not idle": watcher.busy,
        "statements for each request": f"{(after - before) / max(requests, 1):.1f}",
        "stale answers": sum(len(client.stale) for client in clients),
        "problems": "; ".join(client.problem for client in clients if client.problem) or "none",
    }


@click.command()
@click.option("--seconds", default=30, show_default=True, help="How long clients act, each way.")
@click.option("--processes", default=2, show_default=True, help="Zope processes.")
@click.option("--threads", default=4, show_default=True, help="Threads of each.")
@click.option("--clients", default=6, show_default=True, help="Users at the same time.")
@click.option("--objects", default=60, show_default=True, help="Content of the site.")
@click.option("--sessions", default=10, show_default=True, help="default_pool_size of PgBouncer.")
@click.option("--program", default=find_pgbouncer, help="PgBouncer; by default the one that is installed.")
@click.option("--output", type=FILE, help="Write the result as JSON.")
@click.option("--page", type=FILE, help="Renew the table of this page.")
def main(
    program: str | None, objects: int, sessions: int, output: Path | None, page: Path | None, **options: Any
) -> None:
    """Serve a site directly and through PgBouncer, and count connections and statements of the server."""
    if program is None:
        raise click.ClickException("PgBouncer is not installed: apt-get install pgbouncer")
    console = Console(stderr=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcatalog-topology-"))).resolve()
        server = stack.enter_context(EmbeddedPostgres(settings=SETTINGS))
        dsn = server.createdb(DATABASE)
        console.print("Making the site")
        pages = answer(worker(folder, "make", dsn, objects=objects))["pages"]
        place = conninfo_to_dict(dsn)
        os.environ["PGCATALOG_DIRECT_DSN"] = f"host={place['host']} port={place['port']}"
        found = {}
        console.print("Directly")
        found["directly"] = measure(server, folder, dsn, pages, options, 0)
        time.sleep(1)
        pooler = stack.enter_context(PgBouncer(server, program, {"default_pool_size": str(sessions)}))
        name = "PgBouncer " + ".".join(map(str, pooler.version))
        if not pooler.follows_statements:
            raise click.ClickException(f"{name} follows no prepared statements: the storage needs its patch for it")
        console.print(name)
        found[name] = measure(server, folder, pooler.dsn(DATABASE), pages, options, 100)
        [totals] = [row for row in pooler.command("SHOW TOTALS") if row["name"] == "avg_wait_time"] or [{"value": "?"}]
        found[name]["wait for a connection, µs"] = str(totals["value"])
    result = {
        "date": datetime.date.today().isoformat(),
        "options": {"objects": objects, "sessions": sessions, **options},
        "figures": found,
    }
    if output:
        output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if page:
        put_between(page, "topology", text(result))
    Console().print(table(result).rich())


def table(result: dict[str, Any]) -> Table:
    """Return the figures of a *result*, with a column for each way."""
    figures = result["figures"]
    names = dict.fromkeys(name for of_way in figures.values() for name in of_way)
    options = result["options"]
    title = (
        f"{options['processes']} processes with {options['threads']} threads, default_pool_size {options['sessions']}"
    )
    return Table(title, ["", *figures], [[name, *(str(of.get(name, "")) for of in figures.values())] for name in names])


def text(result: dict[str, Any]) -> str:
    """Return the how-to's text about a *result*."""
    options = result["options"]
    return (
        f"Measured on {result['date']} with `make topology T=pgbouncer` for {options['seconds']} seconds each way,"
        f" with {options['clients']} users who read, search and edit:\n\n{table(result).markdown()}"
    )
