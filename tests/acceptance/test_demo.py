"""The demo, as started by its users: a process of its own, without any earlier data."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tests.integration.waiting import PATIENCE
from tests.integration.waiting import until
from typing import Any
from urllib.request import urlopen

import os
import pytest
import re
import signal
import subprocess
import sys


pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "demo"]
ENVIRONMENT = os.environ | {"COLUMNS": "160", "PYTHONUNBUFFERED": "1"}


def run(*arguments: str, **options: Any) -> str:
    """Run the demo's command to its successful end; return its output."""
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@contextmanager
def demo(data: Path, output: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a small site; yield the process and the URL of the site."""
    command = [*COMMAND, "--objects", "40", "--port", "0", "--data", str(data)]
    with (
        output.open("wb") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, env=ENVIRONMENT) as process,
    ):
        try:
            until(lambda: "Ctrl-C" in output.read_text("utf-8") or process.poll() is not None)
            url = re.search(r"http://localhost:\d+/Plone", text := output.read_text("utf-8"))
            assert url, text
            yield process, url[0]
        finally:
            process.kill()


def test_check_finds_no_difference() -> None:
    """All answers, also over HTTP, are those of Plone's own catalog; each front page link shows the promised content."""
    assert "ok, no problems" in run("--check", "--objects", "200", "--zone", "America/Sao_Paulo")


def test_demo_stops_cleanly_and_starts_again(tmp_path: Path, open_tmp: Path) -> None:
    """SIGTERM and Ctrl-C end Zope and PostgreSQL; the site is there at the next start."""
    data = open_tmp / "data"
    for number, signal_number in enumerate((signal.SIGTERM, signal.SIGINT)):
        output = tmp_path / f"{number}.txt"
        with demo(data, output) as (process, url):
            with urlopen(url, timeout=60) as response:
                assert "Who may log in" in response.read().decode()
            process.send_signal(signal_number)
            assert process.wait(PATIENCE) == 0
        text = output.read_text("utf-8")
        assert ("Creating the Plone site" in text) == (number == 0)
        assert "Traceback" not in text
        # The pid file of a running server would still be there.
        assert [(data / "postgres" / name).exists() for name in ("PG_VERSION", "postmaster.pid")] == [True, False]
    assert "PG Catalog Tool" in run("--console", "--data", str(data), input="print(catalog.meta_type)\n")
