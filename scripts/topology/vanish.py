"""A database host that goes silent, and how long a Zope waits for it, by the connection parameters that it has.

The first of two servers runs in a network namespace of its own.  Then packets to it are dropped, as by a host that
has lost its power or its network; or its processes are stopped, as by a disk that hangs.  The second takes writes from
the beginning: what is measured is the time that Zope needs, after another server has taken over.  Linux, as root, with
iproute2.
"""

from benchmarks.marks import put_between
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.soak.__main__ import answer
from tests.soak.__main__ import answer_of
from tests.soak.__main__ import end
from tests.soak.__main__ import ROOT
from tests.soak.__main__ import worker
from tests.soak.probe import KINDS
from tests.soak.probe import Probes
from tests.soak.report import table
from typing import Any

import click
import json
import os
import signal
import subprocess
import sys
import tempfile
import time


SPACE = "pgcatalog-vanish"
HOST, ADDRESS, PORTS = "10.213.0.1", "10.213.0.2", (5601, 5602)
#: Commands of iproute2 that make two networks of one machine.
NETWORK = (
    f"netns add {SPACE}",
    f"link add pgcv0 type veth peer name pgcv1 netns {SPACE}",
    f"addr add {HOST}/30 dev pgcv0",
    "link set pgcv0 up",
    f"-n {SPACE} addr add {ADDRESS}/30 dev pgcv1",
    f"-n {SPACE} link set pgcv1 up",
    f"-n {SPACE} link set lo up",
)
SETTINGS = {**DEMO_SETTINGS, "listen_addresses": "*"}
KEEPALIVES = "keepalives_idle=5 keepalives_interval=2 keepalives_count=3"
PARAMETERS = (
    "",
    "connect_timeout=3",
    "connect_timeout=3 tcp_user_timeout=10000",
    f"connect_timeout=3 {KEEPALIVES}",
    f"connect_timeout=3 tcp_user_timeout=10000 {KEEPALIVES}",
)
DATABASE = "site"
WAYS = ("dropped", "stopped")
#: Longest wait.
LIMIT = 60.0
#: Seconds of ordinary answers before the host is silent.
BEFORE = 3.0


def ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)


@contextmanager
def network() -> Iterator[None]:
    """Make the namespace, and remove it."""
    try:
        for command in NETWORK:
            ip(command)
        yield
    finally:
        ip(f"netns del {SPACE}")


@contextmanager
def dropped() -> Iterator[None]:
    """Drop all packets to the first server; its network card still has its address."""
    card = subprocess.run(
        ["ip", "netns", "exec", SPACE, "cat", "/sys/class/net/pgcv1/address"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    ip(f"neigh replace {ADDRESS} lladdr {card} dev pgcv0 nud permanent")
    ip(f"-n {SPACE} addr del {ADDRESS}/30 dev pgcv1")
    try:
        yield
    finally:
        ip(f"-n {SPACE} addr add {ADDRESS}/30 dev pgcv1")


@contextmanager
def stopped(folder: Path) -> Iterator[None]:
    """Stop the processes of the server on *folder*: its kernel answers, it does not."""
    pid = int((folder / "postmaster.pid").read_text().splitlines()[0])
    pids = [pid]
    os.kill(pid, signal.SIGSTOP)
    pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    for one in pids:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in pids:
            os.kill(one, signal.SIGCONT)


def first_server(folder: str) -> None:
    """Run the server on *folder* until stdin is closed; called in the namespace."""
    with EmbeddedPostgres(folder, SETTINGS, PORTS[0]):
        print("runs", flush=True)
        sys.stdin.read()


@contextmanager
def first(folder: Path) -> Iterator[None]:
    """Run the server on *folder* in the namespace."""
    code = f"from scripts.topology.vanish import first_server; first_server({str(folder)!r})"
    command = ["ip", "netns", "exec", SPACE, sys.executable, "-c", code]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline()
        yield
    finally:
        process.communicate(timeout=60)


def silent(folder: Path, data: Path, parameters: str, way: str) -> dict[str, float]:
    """Serve the site with these *parameters*, let the first server go silent; return the seconds without answers."""
    dsn = f"host={ADDRESS},127.0.0.1 port={PORTS[0]},{PORTS[1]} user=postgres dbname={DATABASE} {parameters}"
    with ExitStack() as stack:
        zope = worker(folder, "serve", dsn, name="zope", threads=4, trace=False)
        stack.callback(end, zope)
        # Before the Zope ends, which waits for its requests, the server answers again.
        silence = stack.enter_context(ExitStack())
        url = f"http://127.0.0.1:{answer_of(zope)['port']}/Plone"
        with Probes([url]) as probes:
            time.sleep(BEFORE)
            silence.enter_context(stopped(data) if way == "stopped" else dropped())
            try:
                return probes.seconds_without_answers(time.monotonic(), LIMIT)
            except TimeoutError:
                return {}
            finally:
                silence.close()


def measured(objects: int, ways: tuple[str, ...], sets: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return for each of the *sets* of parameters the seconds without answers, by way and kind; none: more than LIMIT."""
    found = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcatalog-topology-")))
        folder.chmod(0o711)  # the servers' user may be another one
        second = EmbeddedPostgres(folder / "b", SETTINGS, PORTS[1])
        with second:
            answer(worker(folder, "make", second.createdb(DATABASE), objects=objects))
        subprocess.run(["cp", "-a", folder / "b", folder / "a"], check=True)
        with (folder / "a" / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {HOST}/32 trust\n")
        stack.enter_context(second)
        stack.enter_context(network())
        stack.enter_context(first(folder / "a"))
        for parameters in sets:
            seconds = {way: silent(folder, folder / "a", parameters, way) for way in ways}
            found.append({"parameters": parameters, "seconds": seconds})
            click.echo(found[-1], err=True)
    return found


def text(found: list[dict[str, Any]]) -> str:
    """Return what was *found* as a Markdown table."""
    ways = list(found[0]["seconds"])
    rows = [
        (f"`{line['parameters']}`" if line["parameters"] else "none", *waits(line["seconds"][way] for way in ways))
        for line in found
    ]
    return "\n".join(table(("parameters", *(f"{way}: {kind}s" for way in ways for kind in KINDS)), rows))


def waits(seconds: Iterable[dict[str, float]]) -> list[str]:
    """Return how long each way was silent for each kind of request, in words."""
    return [f"{found[kind]:.1f} s" if found else f"more than {LIMIT:.0f} s" for found in seconds for kind in KINDS]


@click.command()
@click.option("--objects", default=40, show_default=True, help="Content of the site.")
@click.option("--way", "ways", multiple=True, type=click.Choice(WAYS), default=WAYS, show_default=True)
@click.option(
    "--parameters", "sets", multiple=True, default=PARAMETERS, help="Of a connection; several times for several."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Renew the table of this page.")
def main(objects: int, ways: tuple[str, ...], sets: tuple[str, ...], output: Path | None, page: Path | None) -> None:
    """Let the database's host go silent, and print how long Zope waits for it."""
    found = measured(objects, ways, sets)
    if output:
        result = {"command": "make topology T=vanish", "objects": objects, "limit": LIMIT, "found": found}
        output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if page:
        put_between(page, "vanished", text(found))
    click.echo(text(found))
