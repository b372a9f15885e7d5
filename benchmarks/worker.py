"""One backend in one process: how the command and its workers talk.

A worker is ``python -m benchmarks.worker <module> <options as JSON>``: it calls ``run(options, progress)`` of the
module, and writes one JSON object per line, ``{"progress": text}`` and at last ``{"result": ...}``.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import json
import os
import subprocess
import sys
import tempfile


ROOT = Path(__file__).parents[1]
Progress = Callable[[str], None]


class WorkerFailed(RuntimeError):
    """The process of a backend ended with an error; its last words follow."""

    def __init__(self, module: str, log: str) -> None:
        super().__init__(f"{module}: {self.__doc__}\n{log}")


def run_worker(module: str, options: dict[str, Any], progress: Progress) -> Any:
    """Return what ``run`` of *module* returns in a process of its own; raises WorkerFailed."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.worker", module, json.dumps(options)]
    result = None
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            for line in process.stdout or ():
                message = json.loads(line)
                if "progress" in message:
                    progress(message["progress"])
                result = message.get("result", result)
        except BaseException:
            # An interrupted command takes its worker along.
            process.terminate()
            raise
        finally:
            code = process.wait()
        if code or result is None:
            log.seek(0)
            raise WorkerFailed(module, "".join(log.readlines()[-30:]))
    return result


def main() -> None:
    module, options = sys.argv[1:]
    # What Plone prints must not come between the lines of JSON.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(**message: Any) -> None:
        print(json.dumps(message), file=channel, flush=True)

    send(result=import_module(module).run(json.loads(options), lambda text: send(progress=text)))


if __name__ == "__main__":
    main()
