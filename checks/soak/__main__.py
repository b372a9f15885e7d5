"""The soak: a real Plone site under load over HTTP, while its PostgreSQL is killed again and again.

- Two Zope processes (waitress) run on one embedded PostgreSQL.
- Clients create, edit, move, rename, publish, delete, search and navigate, and record each acknowledged write.
- The whole server is killed by ``kill -9`` at random times.
- At the end catalog, content and acknowledged writes are compared.  Exit status 1 if a promise is broken.

With ``--mixed`` all that happens to a site in operation happens at once: see ``mixed.py``.

With ``--failovers`` the server has an asynchronous standby instead, which takes over without the last commits: those are
lost, and counted, but no Zope may answer from them.  With ``--synchronous``, commits wait for the standby, and none may be
lost.
"""

from benchmarks.marks import around
from benchmarks.marks import put_between
from checks.soak import report
from checks.soak.clients import Client
from checks.soak.clients import Gate
from checks.soak.failover import compare
from checks.soak.failover import fail_over
from checks.soak.failover import Failover
from checks.soak.failover import Pair
from checks.soak.failover import read_rows
from checks.soak.failover import Servers
from checks.soak.ledger import save
from checks.soak.mixed import counts
from checks.soak.mixed import FILES
from checks.soak.mixed import Mixture
from checks.soak.mixed import Pooled
from checks.soak.mixed import prepare_environment
from checks.soak.mixed import schedule
from checks.soak.monitor import Monitor
from checks.soak.processes import answer
from checks.soak.processes import answer_of
from checks.soak.processes import end
from checks.soak.processes import failed
from checks.soak.processes import worker
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from random import Random
from rich.console import Console
from tests.integration.extractions import COUNTING
from typing import Any

import click
import json
import platform
import psycopg
import sys
import tempfile
import threading
import time


#: A kill -9 must lose no acknowledged write: commits wait for their WAL. (fsync stays on, too.)
SETTINGS = {**DEMO_SETTINGS, "synchronous_commit": "on", "fsync": "on", "full_page_writes": "on"}
DATABASE = "soak"
#: Seconds after PostgreSQL's restart in which errors are excused: pools reconnect with a growing delay.
GRACE = 8.0
#: Seconds in which caches fill and templates are compiled: memory is compared from then on.
WARM_UP = 10.0
MAX_DOWN = 3.0

console = Console(stderr=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--seconds", default=600, help="How long the load lasts.")
@click.option("--kills", default=12, help="How often PostgreSQL is killed.")
@click.option("--failovers", default=0, help="How often a standby takes over and loses commits, instead of kills.")
@click.option("--synchronous", is_flag=True, help="Commits wait for the standby of --failovers, and none may be lost.")
@click.option(
    "--mixed",
    is_flag=True,
    help="Files, meaning, a pooler, a standby; kills of each process, packs, rebuilds, failovers.",
)
@click.option("--clients", default=8, help="Users at the same time.")
@click.option("--processes", default=2, help="Zope processes.")
@click.option("--threads", default=4, help="Threads of each Zope process.")
@click.option("--objects", default=200, type=click.IntRange(min=40), help="Content of the site at the start.")
@click.option("--seed", default=1, help="Of everything random.")
@click.option("--max-growth", default=20.0, help="Per cent that a process may grow from the middle to the end.")
@click.option(
    "--logs", type=click.Path(file_okay=False, path_type=Path), help="Keep the instances with their logs here."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Renew the tables of this page.")
@click.option("--drawing", type=click.Path(dir_okay=False, path_type=Path), help="Draw a mixed run into this SVG.")
def main(logs: Path | None, output: Path | None, page: Path | None, drawing: Path | None, **options: Any) -> None:
    """Drive a Plone site over HTTP and kill its PostgreSQL meanwhile; no acknowledged write may be lost."""
    if drawing and not options["mixed"]:
        raise click.UsageError("--drawing is for --mixed")
    if options["mixed"]:
        often = counts(options["seconds"])
        options |= {"kills": often["kill"], "failovers": often["failover"], "synchronous": True}
        for second, kind in schedule(options["seconds"], options["seed"]):
            console.print(f"Seed {options['seed']}: {kind} at {second:.0f} s")
    elif options["failovers"]:
        options["kills"] = 0
    elif options["synchronous"]:
        raise click.UsageError("--synchronous is for --failovers")
    if page:
        around(page, report.mark(options))  # fails now, not after hours
    with ExitStack() as stack:
        folder = logs or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcatalog-soak-")))
        servers: Pair | None = None
        if options["mixed"]:
            servers = stack.enter_context(Pooled(SETTINGS, DATABASE))
        elif options["failovers"]:
            servers = stack.enter_context(Pair(SETTINGS, options["synchronous"]))
        result = run(folder.resolve(), options, servers)
    summary = report.summary(result)
    if output:
        output.write_text(json.dumps(summary, indent=1) + "\n")
    if page:
        put_between(page, report.mark(options), report.text(summary))
    if drawing:
        from benchmarks import plots  # importing matplotlib takes a while

        plots.long_run(summary, drawing)
    click.echo(report.text(summary))
    sys.exit(1 if summary["broken"] else 0)


def run(folder: Path, options: dict[str, Any], servers: Servers | None = None) -> dict[str, Any]:
    """Create the site, serve it, load it, check it; return all observations.

    Running *servers* fail over meanwhile; without them one server is killed.
    """
    failovers: list[Failover] = []
    mixture: Mixture | None = None
    with ExitStack() as stack:
        server = servers or stack.enter_context(EmbeddedPostgres(settings=SETTINGS))
        server.createdb(DATABASE)
        dsn = server.dsn(DATABASE)
        pooled = servers if isinstance(servers, Pooled) else None
        if pooled:
            prepare_environment(folder, dsn)
        console.print("Making the site")
        embedder_url = pooled.embedder_url if pooled else ""
        site = answer(worker(folder, "make", dsn, objects=options["objects"], embedder_url=embedder_url))
        names = [f"zope{n}" for n in range(1, options["processes"] + 1)]
        dsns = dict.fromkeys(names, dsn)
        if pooled:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(COUNTING)
            dsns[names[-1]] = pooled.pooler.dsn(DATABASE)
        processes = [worker(folder, "serve", dsns[name], name=name, threads=options["threads"]) for name in names]
        for process in processes:
            stack.callback(end, process)
        urls = [f"http://127.0.0.1:{answer_of(process)['port']}/Plone" for process in processes]
        gate = Gate()
        clients = [
            Client(n, urls, site["pages"], options["seed"], gate, FILES if pooled else 0.0, pooled is not None)
            for n in range(options["clients"])
        ]
        pids = {name: process.pid for name, process in zip(names, processes, strict=True)}
        monitor = Monitor(dsn, pids)

        def kills(started: float) -> list[tuple[float, float]]:
            assert isinstance(server, EmbeddedPostgres)
            return kill_at_random(server, started, options)

        def takeovers(started: float) -> list[tuple[float, float]]:
            assert servers is not None
            failovers.extend(fail_over_at_random(servers, dsn, clients, urls, started, options))
            return [failover.outage for failover in failovers]

        disturb = takeovers if servers else kills
        if pooled:
            mixture = Mixture(pooled, folder, dsn, urls, pids, clients, options)
            stack.callback(mixture.close)
            disturb = mixture.run
        outages, started = load(disturb, clients, monitor, options)
        if mixture:
            failovers = mixture.failovers
            mixture.finish()
        if servers:
            failovers.append(Failover())
            rows, random = read_rows(dsn), Random(options["seed"])
            compare(failovers[-1], rows, [], urls, options["threads"], random, sample=len(rows))
        for process in processes:
            end(process)
        left = mixture.left() if mixture else []
        ledger = folder / "ledger.json"
        save(ledger, (page for client in clients for page in client.pages))
        console.print("Comparing")
        checked = answer(worker(folder, "check", dsn, ledger=str(ledger)))
        versions = {"python": platform.python_version(), "postgresql": server.version, "machine": platform.platform()}
    answers = [answer for client in clients for answer in client.answers]
    return {
        "options": options,
        "settings": SETTINGS,
        "versions": versions,
        "grace": GRACE,
        "started": started,
        "outages": outages,
        "seconds_without_answers": [failover.silent for failover in failovers if failover.silent],
        "lost_by_failovers": [line for failover in failovers for line in failover.lost],
        "compared_answers": sum(failover.compared for failover in failovers),
        "answers": answers,
        "stale": [line for client in clients for line in client.stale]
        + [line for failover in failovers for line in failover.stale],
        "problems": [client.problem for client in clients if client.problem]
        + [line for failover in failovers for line in failover.wrong]
        + (mixture.problems if mixture else [])
        + failed(processes),
        "memory": monitor.memory,
        "connections": dict(monitor.connections),
        "samples": monitor.samples,
        "mixed": {**mixture.observed(), "left": left} if mixture else {},
        "checked": checked,
    }


def load(
    disturb: Callable[[float], list[tuple[float, float]]],
    clients: list[Client],
    monitor: Monitor,
    options: dict[str, Any],
) -> tuple[list[tuple[float, float]], float]:
    """Run the clients for the set time, and *disturb* meanwhile; return (outages, start)."""
    ended = threading.Event()
    threads = [threading.Thread(target=client.run, args=[ended], daemon=True) for client in clients]
    threads.append(threading.Thread(target=monitor.run, args=[ended], daemon=True))
    started = time.monotonic()
    for thread in threads:
        thread.start()
    try:
        # Here in the main thread: a server ends with the thread that has started it.
        outages = disturb(started)
        time.sleep(max(0.0, started + options["seconds"] - time.monotonic()))
    finally:
        ended.set()
    for thread in threads:
        thread.join()
    return outages, started


def moments(number: int, started: float, options: dict[str, Any], random: Random) -> Iterator[float]:
    """Wait for a random time in each of *number* equal parts of the run; yield the length of a part."""
    warm_up = min(WARM_UP, options["seconds"] / 4)
    part = (options["seconds"] - warm_up) / max(number, 1)
    for n in range(number):
        moment = started + warm_up + part * (n + random.uniform(0.0, 0.6))
        time.sleep(max(0.0, moment - time.monotonic()))
        yield part


def kill_at_random(server: EmbeddedPostgres, started: float, options: dict[str, Any]) -> list[tuple[float, float]]:
    """Kill and start the server at random times; return the outages."""
    random = Random(options["seed"])
    outages = []
    for part in moments(options["kills"], started, options, random):
        begin = time.monotonic()
        server.kill()
        time.sleep(random.uniform(0, min(MAX_DOWN, part / 8)))
        server.start()
        outages.append((begin, time.monotonic()))
        down = outages[-1][1] - begin
        console.print(f"Kill {len(outages)} at {begin - started:.0f} s, up again after {down:.1f} s")
    return outages


def fail_over_at_random(
    servers: Servers, dsn: str, clients: Sequence[Client], urls: Sequence[str], started: float, options: dict[str, Any]
) -> list[Failover]:
    """Let the standby of *servers* take over at random times; return the effects of each failover."""
    random = Random(options["seed"])
    failovers = []
    for _ in moments(options["failovers"], started, options, random):
        failover = fail_over(servers, dsn, clients, urls, options["threads"], random)
        failovers.append(failover)
        begin, up = failover.outage
        console.print(
            f"Failover {len(failovers)} at {begin - started:.0f} s, took {up - begin:.1f} s,"
            f" no answer to reads for {failover.silent['read']:.1f} s, to writes for {failover.silent['write']:.1f} s:"
            f" {len(failover.lost)} acknowledged writes lost,"
            f" {len(failover.stale)} of {failover.compared} answers stale"
        )
    return failovers


if __name__ == "__main__":
    main(prog_name="python -m checks.soak")
