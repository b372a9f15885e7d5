"""A Zope in a separate process, which ends with its parent.

Its one argument is a JSON object; it prints a line when its task is done, or when it serves.
"""

from demo.server import Instance
from demo.server import make_http_server
from demo.server import ZOPE_CONF
from pathlib import Path
from plone.pgcatalog.unavailable import unavailable_filter
from tests.integration.balancers import HOST
from typing import Any

import json
import os
import signal
import subprocess
import sys
import threading


ROOT = Path(__file__).parents[2]


class Reader(Instance):
    """An instance that only reads."""

    conf = ZOPE_CONF.replace("%import zodb_pgjsonb", "%import plone.pgcatalog").replace("pgjsonb>", "pgjsonb-reader>")

    def __init__(self, folder: Path, dsn: str, writer_url: str, max_replay_lag: float) -> None:
        super().__init__(folder, dsn)
        keys = f"\n    writer-url {writer_url}\n    max-replay-lag {max_replay_lag}"
        self.conf = self.conf.replace("<pgjsonb-reader>", f"<pgjsonb-reader>{keys}")


def make(folder: str, dsn: str, objects: int) -> None:
    """Create the demo's site with this many *objects*."""
    instance = Instance(Path(folder), dsn)
    root = instance.start()
    from demo.__main__ import progress
    from demo.__main__ import timed
    from demo.run import Session
    from rich.console import Console

    session = Session(root, Console(quiet=True), progress, timed)
    session.prepare(objects)
    session.close()
    instance.close()


def serve(folder: str, dsn: str, port: int, health_port: int, reader: dict[str, Any] | None = None) -> None:
    """Serve the site on *port*, and plone.observability's probes on *health_port*.

    It only reads if there is a *reader*: the additional keys of its section of zope.conf.
    """
    instance = Reader(Path(folder), dsn, **reader) if reader else Instance(Path(folder), dsn)
    instance.start()._p_jar.close()
    from plone.observability.health.wsgi import make_filter

    # Like filters of a wsgi.ini.
    server = make_http_server(HOST, port, lambda application: make_filter(unavailable_filter(application), {}))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
    print("serves", flush=True)
    server.run()


def started(task: str, health_port: int | None = None, **arguments: Any) -> subprocess.Popen[str]:
    """Return a process with *task*, ``make`` or ``serve``, when it is done, or serves.  Raises RuntimeError if it fails."""
    environ = dict(os.environ)
    if health_port is not None:
        arguments["health_port"] = health_port
        environ |= {"PLONE_OBSERVABILITY_HEALTH_PORT": str(health_port), "PLONE_OBSERVABILITY_HEALTH_HOST": HOST}
    command = [sys.executable, "-m", "checks.topology.zope", json.dumps({"task": task, **arguments})]
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline() == "":
        raise RuntimeError(f"{task} in {arguments['folder']} ended with status {process.wait()}")
    return process


TASKS: dict[str, Any] = {"make": make, "serve": serve}

if __name__ == "__main__":
    values = json.loads(sys.argv[1])
    TASKS[values.pop("task")](**values)
    print("done", flush=True)
