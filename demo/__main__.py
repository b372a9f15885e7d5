"""``python -m demo``: the command line and the sequence of steps."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from demo import embedder
from demo import plan
from demo import server
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import EmbeddedPostgresError
from rich.console import Console
from rich.progress import BarColumn
from rich.progress import MofNCompleteColumn
from rich.progress import Progress
from rich.progress import TextColumn
from rich.progress import TimeElapsedColumn
from scripts import volto
from typing import Any
from urllib.parse import quote_plus
from zoneinfo import ZoneInfo
from zoneinfo import ZoneInfoNotFoundError

import click
import code
import psycopg
import signal
import sys
import tempfile
import threading
import time


DATABASE = "demo"
CONSOLE = "app, portal, catalog; changes stay after `import transaction; transaction.commit()`.  Ctrl-D ends it."
console = Console()


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar; yield a function that advances it by one."""
    columns = (TextColumn("{task.description:28}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
        task = bars.add_task(title, total=total)
        yield lambda: bars.advance(task)


@contextmanager
def timed(title: str) -> Iterator[None]:
    """Print *title*, and the duration of the block."""
    start = time.monotonic()
    with console.status(title):
        yield
    console.print(f"{title:28} {time.monotonic() - start:6.1f} s")


def is_zone(context: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return *name*, the name of a time zone.  Raises click.BadParameter for another text."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError) as error:
        raise click.BadParameter(f"there is no time zone {name!r}") from error
    return name


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--objects", default=1000, show_default=True, type=click.IntRange(min=40), help="How much content.")
@click.option("--zone", default=plan.ZONE, show_default=True, callback=is_zone, help="Time zone of a new site.")
@click.option("--port", default=8080, show_default=True, help="Of the HTTP server.")
@click.option("--host", default="127.0.0.1", hidden=True)
@click.option("--check", is_flag=True, help="Do all of it once, compare and end.")
@click.option(
    "--data",
    default="demo-data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the database and of the Zope instance.",
)
@click.option("--dsn", help="Use this PostgreSQL; none is started.")
@click.option("--start", is_flag=True, help="Serve the site that is there, as it is.")
@click.option("--console", "has_console", is_flag=True, help="Python in the site that is there, instead of a server.")
@click.option("--volto", "volto_port", type=int, help="Make the site for Volto, and serve that on this port as well.")
def main(
    objects: int,
    zone: str,
    port: int,
    host: str,
    check: bool,
    data: Path,
    dsn: str | None,
    start: bool,
    has_console: bool,
    volto_port: int | None,
) -> None:
    """Create a Plone site with its catalog in PostgreSQL, fill it, and serve it.

    --check compares all answers with those of Plone's own catalog and ends with
    status 1 on any difference.
    """
    started = time.monotonic()
    # SIGTERM must end the database server, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell without job control starts background commands with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    problems: list[str] = []
    try:
        with ExitStack() as stack:
            if volto_port:
                volto.build()
            if check:
                data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcatalog-demo-")))
            dsn = dsn or stack.enter_context(_postgres(data, check))
            with timed("Connecting to PostgreSQL"):
                version = server.wait_for(dsn)
            instance = server.Instance(data / "instance", dsn)
            stack.callback(instance.close)
            with timed("Starting Zope"):
                root = instance.start()
            console.print(f"PostgreSQL {version}, log in {instance.log}")
            # Imports Plone, which needs the configuration of Zope.
            from demo import run

            session = run.Session(root, console, progress, timed, for_volto=bool(volto_port))
            stack.callback(session.close)
            if start or has_console:
                session.find()
            else:
                session.prepare(objects, zone)
                session.tour()
            if has_console:
                names = {"app": session.app, "portal": session.site, "catalog": session.site.portal_catalog}
                code.interact(CONSOLE, local=names, exitmsg="")
            elif check:
                problems += session.check()
                problems += [f"logged: {m}" for m in instance.errors.messages]
            else:
                url = stack.enter_context(embedder.running())
                if url is not None:
                    embedder.use(session.site, url)
                session.close()
                if volto_port:
                    _serve_volto(host, port, volto_port, data)
                else:
                    _serve(host, port, url is not None)
    except KeyboardInterrupt:
        console.print("Interrupted. The next start goes on where this one ended.")
        sys.exit(130)
    except (server.DemoError, volto.VoltoError) as error:
        console.print(str(error), style="red", markup=False)
        sys.exit(2)
    except (EmbeddedPostgresError, psycopg.OperationalError) as error:
        console.print(f"PostgreSQL: {error}", style="red", markup=False)
        sys.exit(2)
    if check:
        for problem in problems:
            console.print(f"WRONG: {problem}", style="red", markup=False)
        verdict = f"{len(problems)} problems" if problems else "ok, no problems"
        console.print(f"Checked in {time.monotonic() - started:.1f} s: {verdict}.")
        sys.exit(bool(problems))


@contextmanager
def _postgres(data: Path, check: bool) -> Iterator[str]:
    """Run an embedded PostgreSQL with a database for the demo; yield its DSN."""
    # Temporary data need not survive a power failure.
    settings = {**DEMO_SETTINGS, "fsync": "off"} if check else DEMO_SETTINGS
    folder = None if check else data / "postgres"
    with EmbeddedPostgres(folder, settings) as postgres:
        with psycopg.connect(postgres.dsn()) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            exists = connection.execute(query, [DATABASE]).fetchone()
        yield postgres.dsn(DATABASE) if exists else postgres.createdb(DATABASE)


def _serve_volto(host: str, wanted: int, volto_port: int, data: Path) -> None:
    """Serve the site, and Volto beside it, until Ctrl-C or SIGTERM."""
    port = server.free_port(host, wanted)
    http: Any = server.make_http_server(host, port)
    # Volto's first page requests its data from Plone, so both start together.
    threading.Thread(target=http.run, daemon=True).start()
    site = f"http://localhost:{port}/Plone"
    with volto.served(site, server.free_port(host, volto_port), data / "volto.log") as address:
        for title, path in (("Volto", ""), ("A search block", "/find"), ("A typo", "/search?SearchableText=climte")):
            console.print(f"  {title:18} {address}{path}", soft_wrap=True)
        console.print(f"  {'Log in as':18} {plan.ADMIN} / {plan.ADMIN}, at {address}/login")
        console.print("Ctrl-C ends it; the next start comes up with the same site.")
        signal.pause()


def _serve(host: str, wanted: int, has_embedder: bool) -> None:
    """Serve the site until Ctrl-C or SIGTERM."""
    port = server.free_port(host, wanted)
    if wanted and port != wanted:
        console.print(f"Port {wanted} is taken: using {port}.", style="yellow")
    http: Any = server.make_http_server(host, port)
    _where_to_click(f"http://localhost:{port}/Plone", has_embedder)
    http.run()
    console.print("Stopped.")


def _where_to_click(url: str, has_embedder: bool) -> None:
    catalog = f"{url}/portal_catalog"
    names = ", ".join(person.id for person in plan.PEOPLE)
    for title, link in (
        ("What to try", url),
        ("Search", f"{url}/@@search?SearchableText=water"),
        ("Suche", f"{url}/@@search?SearchableText=Bücher"),
        ("A typo", f"{url}/@@search?SearchableText=climte"),
        ("Search tuning", f"{url}/@@pgcatalog-search-controlpanel?try_text=water&try=1"),
        ("Folder contents", f"{url}/de/news/folder_contents"),
        ("Catalog: objects", f"{catalog}/manage_catalogView"),
        ("Catalog: indexes", f"{catalog}/manage_catalogIndexes"),
        ("Catalog: advanced", f"{catalog}/manage_catalogAdvanced"),
        ("Slow queries", f"{catalog}/manage_slow_queries"),
        ("Index advice", f"{catalog}/manage_index_advice"),
    ):
        console.print(f"  {title:18} {link}", soft_wrap=True)
    if has_embedder:
        link = f"{url}/@@search?SearchableText={quote_plus(embedder.QUESTION)}"
        console.print(f"  {'By meaning':18} {link} (pages are embedded for some minutes)", soft_wrap=True)
    rest = f"curl -H 'Accept: application/json' '{url}/@search?SearchableText=water'"
    console.print(f"  {'REST':18} {rest}", soft_wrap=True)
    console.print(f"  {'Log in as':18} {plan.ADMIN} / {plan.ADMIN}")
    console.print(f"  {'or as':18} {names} / {plan.PASSWORD}")
    console.print("Ctrl-C ends it; the next start comes up with the same site.")


if __name__ == "__main__":
    main()
