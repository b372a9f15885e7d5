"""One backend in one process: the protocol between the command and its workers.

A worker is ``python -m benchmarks.worker <module> <options as JSON>``: it calls ``run(options, progress)`` of the
module, and writes one JSON object per line, ``{"progress": text}`` and finally ``{"result": ...}``.  After each
progress it waits for a line, so that only one worker of a command runs at a time; but fills that are not measured
run at once.
"""

from benchmarks.http_load import cpu
from benchmarks.http_load import server_cpu
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import json
import os
import psutil
import subprocess
import sys
import tempfile


#: The step after which a worker waits until the sites of all other workers are filled.
FILLED = "all sites are filled"
#: Turns of a worker that has come to FILLED: more than any has before.
TURNS_FILLED = 1_000_000
ROOT = Path(__file__).parents[1]
#: Announces the next step, and returns when it is the caller's turn.
Progress = Callable[[str], None]


class WorkerFailed(RuntimeError):
    """The process of a backend ended with an error; the end of its log follows."""

    def __init__(self, module: str, log: str) -> None:
        super().__init__(f"{module}: {self.__doc__}\n{log}")


class Worker:
    """The process that runs *module* with *options*; *progress* is called with each next step.

    *checkout*, if given, is the folder of another version of this project, whose code and Python (``.venv``) run.
    *postmaster* is the process of the PostgreSQL server.
    """

    def __init__(
        self,
        module: str,
        options: dict[str, Any],
        progress: Callable[[str], None],
        postmaster: int,
        checkout: Path | None = None,
    ) -> None:
        self.turns = 0
        #: the day of the fill, if the site is a copy of a stored one
        self.kept = ""
        #: step, by its progress -> processor seconds of each execution: of the process, and of PostgreSQL meanwhile
        self.costs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._step = ""
        self._postmaster = postmaster
        self.result: Any = None
        self._module = module
        self._progress = progress
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  it lives as long as the process
        python = checkout / ".venv" / "bin" / "python" if checkout else sys.executable
        command = [python, "-W", "ignore", "-m", "benchmarks.worker", module, json.dumps(options)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, cwd=checkout or ROOT, stdin=pipe, stdout=pipe, stderr=self._log, text=True
        )

    def run_step(self) -> bool:
        """Let it work up to its next progress; return False if it has ended.  Raises WorkerFailed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.turns += 1
        started = self._processor_times()
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has failed, and its log has the reason
        for line in self._process.stdout:
            message = json.loads(line)
            if "progress" in message:
                zope, postgresql = (end - start for start, end in zip(started, self._processor_times(), strict=True))
                self.costs[self._step].append((zope, postgresql))
                self._step = message["progress"]
                if self._step == FILLED:
                    self.turns = TURNS_FILLED
                self._progress(self._step)
                return True
            self.result = message["result"]
        if self._process.wait() or self.result is None:
            self._log.seek(0)
            raise WorkerFailed(self._module, "".join(self._log.readlines()[-30:]))
        return False

    def fill(self) -> None:
        """Let it work until its site is filled, or it has ended.  Raises WorkerFailed."""
        while self.turns < TURNS_FILLED and self.run_step():
            pass

    def _processor_times(self) -> tuple[float, float]:
        return cpu(psutil.Process(self._process.pid)), server_cpu(self._postmaster)

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()


def fill_at_once(workers: Sequence[Worker]) -> None:
    """Let *workers* fill their sites at the same time, on all cores: for fills that are not measured.  Raises WorkerFailed."""
    with ThreadPoolExecutor(len(workers)) as pool:
        for filled in [pool.submit(worker.fill) for worker in workers]:
            filled.result()


def run_in_turns(workers: Sequence[Worker]) -> None:
    """Run *workers* to their ends, in turns from one progress to the next.  Raises WorkerFailed.

    The speed of a machine changes from minute to minute, so compared measurements must be made at the same time.
    """
    working = list(workers)
    while working:
        worker = min(working, key=lambda worker: worker.turns)
        if not worker.run_step():
            working.remove(worker)


def main() -> None:
    module, options = sys.argv[1:]
    # Plone's output must not come between the lines of JSON.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(**message: Any) -> None:
        print(json.dumps(message), file=channel, flush=True)

    def progress(text: str) -> None:
        send(progress=text)
        sys.stdin.readline()

    sys.stdin.readline()
    send(result=import_module(module).run(json.loads(options), progress))


if __name__ == "__main__":
    main()
