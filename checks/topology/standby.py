"""A primary with a Zope that saves, its standby with a Zope that only reads, and HAProxy in front, if installed."""

from benchmarks.marks import put_between
from checks.soak.clients import TIMEOUT
from checks.soak.report import table
from checks.topology.zope import ROOT
from checks.topology.zope import started
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from contextlib import ExitStack
from dataclasses import dataclass
from demo.server import free_port
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import with_standby
from tests.integration.balancers import end
from tests.integration.balancers import HAPROXY
from tests.integration.balancers import HOST
from tests.integration.balancers import wait_until_it_listens
from tests.integration.statements import statements
from urllib.request import urlopen

import click
import json
import signal
import subprocess
import tempfile


OBJECTS = 200
DATABASE = "plone"
CONFIGURATION = ROOT / "docs" / "load-balancing" / "haproxy.cfg"
#: A host name of this machine for the writer.
WRITER_HOST = "edit.localhost"
#: The pages of a visitor.
PAGES = ("", "/en", "/@@search?SearchableText=water", "/sitemap")


@dataclass(frozen=True)
class Topology:
    """The running parts: two servers, two Zopes (the URLs of their sites), and their ports, with one for HAProxy."""

    primary: EmbeddedPostgres
    standby: EmbeddedPostgres
    writer: str
    reader: str
    reader_process: subprocess.Popen[str]
    ports: dict[str, int]


@contextmanager
def topology(objects: int = OBJECTS, max_replay_lag: float = 30.0) -> Iterator[Topology]:
    """Yield a running topology, with a site of this many *objects*."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcatalog-topology-")))
        folder.chmod(0o711)  # the servers may run as another user
        primary = stack.enter_context(EmbeddedPostgres(settings=with_standby(DEMO_SETTINGS)))
        dsn = primary.createdb(DATABASE)
        started("make", folder=str(folder / "writer"), dsn=dsn, objects=objects).wait()
        standby = stack.enter_context(primary.standby())
        ports = {
            name: free_port(HOST, 0) for name in ("writer", "writer health", "reader", "reader health", "balancer")
        }
        url = f"http://{WRITER_HOST}:{ports['balancer']}"
        keys = {"writer": None, "reader": {"writer_url": url, "max_replay_lag": max_replay_lag}}
        processes = {}
        for name, server in (("writer", primary), ("reader", standby)):
            processes[name] = started(
                "serve",
                ports[f"{name} health"],
                folder=str(folder / name),
                dsn=server.dsn(DATABASE),
                port=ports[name],
                reader=keys[name],
            )
            stack.callback(end, processes[name])
        writer, reader = (f"http://{HOST}:{ports[name]}/Plone" for name in ("writer", "reader"))
        for page in PAGES:
            # A first visit may save something, such as assignments of portlets.
            urlopen(f"{writer}{page}", timeout=TIMEOUT).read()
        standby.catch_up()
        yield Topology(primary, standby, writer, reader, processes["reader"], ports)


@contextmanager
def balanced(running: Topology) -> Iterator[str]:
    """Yield the URL of the site behind HAProxy, which must be installed.  Its probes query both servers regularly."""
    assert HAPROXY is not None
    with tempfile.NamedTemporaryFile("w", prefix="pgcatalog-haproxy-") as configuration:
        configuration.write(haproxy_configuration(running.ports))
        configuration.flush()
        process = subprocess.Popen([HAPROXY, "-db", "-q", "-f", configuration.name], text=True)
        try:
            wait_until_it_listens(process, running.ports["balancer"])
            yield f"http://{HOST}:{running.ports['balancer']}"
        finally:
            end(process)


def haproxy_configuration(ports: dict[str, int]) -> str:
    """Return the documented configuration with *ports* of this machine, and one reader."""
    lines = CONFIGURATION.read_text("utf-8").splitlines()
    places = {
        "bind :80": f"bind {HOST}:{ports['balancer']}",
        "reader1 10.0.0.21:8080": f"reader1 {HOST}:{ports['reader']} port {ports['reader health']}",
        "writer1 10.0.0.11:8080": f"writer1 {HOST}:{ports['writer']} port {ports['writer health']}",
    }
    found = [line for line in lines if "reader2" not in line]
    for place, here in places.items():
        found = [line.replace(place, here) for line in found]
    return "\n".join(found) + "\n"


def asked(server: EmbeddedPostgres, site: str) -> list[int]:
    """Return the numbers of statements that *server* gets for each of PAGES of *site*, a URL, at a repeated visit."""
    numbers = []
    for page in PAGES:
        urlopen(f"{site}{page}", timeout=TIMEOUT).read()
        with statements(server) as found:
            urlopen(f"{site}{page}", timeout=TIMEOUT).read()
        numbers.append(len(found))
    return numbers


def lines(found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the numbers of statements *found*, by page and Zope, as Markdown."""
    rows = [(f"`{page}`", numbers["writer"], numbers["reader"]) for page, numbers in found.items()]
    return table(("page", "on the writer", "on the reader"), rows)


@click.command()
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the numbers as JSON.")
@click.option(
    "--page", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Renew the table of this page."
)
def main(output: Path | None, page: Path | None) -> None:
    """Start the topology, print the primary's statements, and wait for Ctrl-C."""
    with topology() as running, ExitStack() as stack:
        print(f"writer    {running.writer}")
        print(f"reader    {running.reader}")
        print("statements that the primary gets for a page:")
        of_writer, of_reader = asked(running.primary, running.writer), asked(running.primary, running.reader)
        found = {}
        for path, *numbers in zip(PAGES, of_writer, of_reader, strict=True):
            found[path or "/"] = dict(zip(("writer", "reader"), numbers, strict=True))
            print(f"  {path or '/':32} writer {numbers[0]:3}   reader {numbers[1]:3}")
        if output:
            result = {"command": "make topology T=standby", "statements that the primary gets": found}
            output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        if page:
            put_between(page, "statements", "\n".join(lines(found)))
        balancer = stack.enter_context(balanced(running)) if HAPROXY else "none: haproxy is not installed"
        print(f"balancer  {balancer}")
        print("Log in as admin / admin. Ctrl-C ends it.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("Stopped.")
