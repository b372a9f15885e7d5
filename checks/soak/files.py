"""The soak of files, ``python -m checks.soak.files``: uploads over HTTP, while a worker, its child and PostgreSQL are killed.

- One Zope process (waitress) has a worker of its own, and ``pgcatalog work`` runs beside it.
- ``kill -9`` ends in turn that process, one that reads a file, and the whole server, each at a random time.
- At the end the queue must be empty, each file be found by a word that only it has, and each text be stored once: a trigger
  counts.

Exit status 1 if a promise is broken.
"""

from base64 import b64encode
from checks.soak.__main__ import DATABASE
from checks.soak.__main__ import SETTINGS
from checks.soak.processes import answer
from checks.soak.processes import answer_of
from checks.soak.processes import end
from checks.soak.processes import worker
from checks.soak.server import AREA
from checks.soak.server import configure
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextlib import ExitStack
from contextlib import suppress
from demo.documents import pdf_of
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from random import Random
from rich.console import Console
from tests.integration.extractions import COUNTING
from tests.integration.extractions import TWICE
from typing import Any

import click
import json
import os
import psutil
import psycopg
import requests
import signal
import subprocess
import sys
import tempfile
import threading
import time


PAGES = 30
#: Number of concurrent users.
SAVERS = 3
#: Maximal downtime of PostgreSQL, in seconds.
MAX_DOWN = 2.0
#: Seconds between two kills, and until the queue must be empty in the end.
PAUSE = (1.0, 6.0)
PATIENCE = 600.0
TIMEOUT = 60

console = Console(stderr=True)


def word(number: int) -> str:
    """Return the word that only the file *number* has."""
    return f"zq{number}qz"


@click.command()
@click.option("--files", default=100, show_default=True, help="Uploads.")
@click.option(
    "--kills", default=9, show_default=True, help="Kills: of the worker, a reading process, PostgreSQL, in turn."
)
@click.option("--seed", default=1, show_default=True, help="Of everything random.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON.")
def main(files: int, kills: int, seed: int, output: Path | None) -> None:
    """Upload PDFs and kill the processes that read them: each is found in the end, and read to its end once."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgcatalog-soak-")))
        server = stack.enter_context(EmbeddedPostgres(settings=SETTINGS))
        soak = Soak(server, server.createdb(DATABASE), folder, Random(seed))
        result = soak.run(files, kills)
    if output:
        output.write_text(json.dumps(result, indent=1) + "\n")
    click.echo(json.dumps(result, indent=1))
    kept = result["waiting"] == result["failed"] == result["extracted_twice"] == 0 and not result["not_found"]
    sys.exit(0 if kept and sum(result["kills"].values()) == kills else 1)


class Soak:
    """A site on *server*, in the database *dsn*, with its processes below *folder*."""

    def __init__(self, server: EmbeddedPostgres, dsn: str, folder: Path, random: Random) -> None:
        self.server = server
        self.dsn = dsn
        self.folder = folder
        self.random = random
        self.url = ""
        self.zope: Any = None
        self.working: Any = None

    def run(self, files: int, kills: int) -> dict[str, Any]:
        """Return the results of *files* uploads and *kills*."""
        console.print("Making the site")
        answer(worker(self.folder, "make", self.dsn, objects=40))
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(COUNTING)
        self.zope = worker(self.folder, "serve", self.dsn, name="zope1", threads=4)
        try:
            self.url = f"http://127.0.0.1:{answer_of(self.zope)['port']}/Plone"
            conf = configure(self.folder, self.dsn, "work", 1)
            with self.workers(conf), ThreadPoolExecutor(SAVERS) as pool:
                uploads = [pool.submit(self.upload, number) for number in range(files)]
                killed = [self.kill(number, conf) for number in range(kills)]
                for upload in uploads:
                    upload.result()
                console.print("Waiting for the queue")
                self.wait()
            not_found = [number for number in range(files) if not self.finds(number)]
        finally:
            end(self.zope)
        waiting, failed, twice, texts = self.ask(
            "SELECT count(*) FILTER (WHERE due < 'infinity'), count(*) FILTER (WHERE due = 'infinity'),"
            f" ({TWICE}), (SELECT count(*) FROM pgcatalog_file_texts WHERE text LIKE '%zq%') FROM pgcatalog_queue"
        )[0]
        counts = {what: killed.count(what) for what in sorted(set(killed))}
        return {
            "files": files,
            "kills": counts,
            "waiting": waiting,
            "failed": failed,
            "extracted_twice": twice,
            "texts": texts,
            "not_found": not_found,
        }

    # -- uploads

    def upload(self, number: int) -> None:
        """Upload the file *number* until it is there."""
        name = f"file-{number}"
        data = pdf_of([f"page {page}" for page in range(PAGES)] + [word(number)])
        body = {
            "@type": "File",
            "id": name,
            "title": name,
            "file": {
                "data": b64encode(data).decode(),
                "encoding": "base64",
                "filename": f"{name}.pdf",
                "content-type": "application/pdf",
            },
        }
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(requests.RequestException):
                if self.request("GET", f"{AREA}/f0/{name}").status_code == 200:
                    return
                self.request("POST", f"{AREA}/f0", json=body)
            time.sleep(0.1)
        raise RuntimeError(f"{name} cannot be uploaded")

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"Accept": "application/json"}
        url = f"{self.url}/{path}"
        return requests.request(method, url, headers=headers, auth=("admin", "admin"), timeout=TIMEOUT, **options)

    def finds(self, number: int) -> bool:
        """Return whether a search for its word finds the file *number*."""
        answer = self.request("GET", "@search", params={"SearchableText": word(number)})
        return {item["title"] for item in answer.json()["items"]} == {f"file-{number}"}

    # -- kills

    @contextmanager
    def workers(self, conf: Path) -> Iterator[None]:
        """Run ``pgcatalog work``; end it after the block."""
        self.working = self.start_work(conf)
        try:
            yield
        finally:
            self.working.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.working.wait(TIMEOUT)
            self.working.kill()
            self.working.wait()

    def start_work(self, conf: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "ignore", "-m", "plone.pgcatalog.cli", "work", str(conf), "--jobs", "2"]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def kill(self, number: int, conf: Path) -> str:
        """Kill the process whose turn it is, after a random time; return its name."""
        time.sleep(self.random.uniform(*PAUSE))
        kinds = ("worker", "reading process", "PostgreSQL")
        what = kinds[number % len(kinds)]
        if what == "worker":
            self.working.kill()
            self.working.wait()
            self.working = self.start_work(conf)
        elif what == "reading process":
            self.kill_child()
        else:
            self.server.kill()
            time.sleep(self.random.uniform(0, MAX_DOWN))
            self.server.start()
        console.print(f"Kill {number + 1}: {what}")
        return what

    def kill_child(self) -> None:
        """Kill a process that reads files for one of ours, as soon as there is one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for parent in (self.zope, self.working):
                with suppress(psutil.Error, ProcessLookupError):
                    for child in psutil.Process(parent.pid).children():
                        if any(part.endswith("child.py") for part in child.cmdline()):
                            os.kill(child.pid, signal.SIGKILL)
                            return
            time.sleep(0.05)
        raise RuntimeError("no process reads a file")

    # -- the end

    def ask(self, query: Any) -> list[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def wait(self) -> None:
        """Wait until the queue is empty; make jobs that wait for a retry due at once."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with psycopg.connect(self.dsn, autocommit=True) as connection:
                if connection.execute("SELECT FROM pgcatalog_queue WHERE due < 'infinity' LIMIT 1").fetchone() is None:
                    return
                connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity' AND reason <> ''")
                # The job of a killed worker has no reason; a living worker would have finished by now.
                connection.execute(
                    "UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity' AND attempts > 0"
                    " AND due < now() + interval '50 seconds'"
                )
            threading.Event().wait(1.0)


if __name__ == "__main__":
    main(prog_name="python -m checks.soak.files")
