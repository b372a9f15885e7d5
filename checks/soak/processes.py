"""The processes of a soak: each is ``server.py`` with a task, and answers in lines of JSON."""

from checks.soak.clients import TIMEOUT
from pathlib import Path
from typing import Any

import json
import os
import subprocess
import sys


ROOT = Path(__file__).parents[2]


#: The environment of each worker, unless the soak's own has other values (docs/how-to/tune.md, "Heaps").
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


def worker(folder: Path, task: str, dsn: str, **arguments: Any) -> subprocess.Popen[str]:
    """Start ``server.py`` with a task."""
    data = json.dumps({"task": task, "folder": str(folder), "dsn": dsn, **arguments})
    command = [sys.executable, "-W", "ignore", "-m", "checks.soak.server", data]
    environment = ENVIRONMENT | os.environ
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def answer_of(process: subprocess.Popen[str]) -> Any:
    """Return the next line of JSON printed by a worker; raise RuntimeError if it ends before."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise RuntimeError(f"a worker ended with status {process.wait()}: {process.args}")


def answer(process: subprocess.Popen[str]) -> Any:
    """Return a worker's answer after its end."""
    with process:
        return answer_of(process)


def end(process: subprocess.Popen[str], seconds: float = TIMEOUT) -> None:
    """End a serving worker; kill it after *seconds*."""
    if process.poll() is None:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def failed(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Return a line for each Zope process that ended with an error."""
    return [f"process {p.pid} ended with status {p.returncode}" for p in processes if p.returncode]
