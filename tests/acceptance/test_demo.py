"""The demo, as started by its users: a process of its own, without any earlier data."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tests.integration.waiting import PATIENCE
from typing import Any
from urllib.request import urlopen

import os
import pytest
import re
import signal
import subprocess
import sys
import tempfile
import time


pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "demo"]
#: Long enough for a busy machine.
TIMEOUT = 1800
ENVIRONMENT = os.environ | {"COLUMNS": "160", "PYTHONUNBUFFERED": "1"}


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the demo's command to its end."""
    options = {"env": ENVIRONMENT, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | options
    return subprocess.run([*COMMAND, *arguments], cwd=ROOT, text=True, timeout=TIMEOUT, check=False, **options)


@contextmanager
def demo(data: Path, output: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a small site; yield the process and the URL of the site."""
    command = [*COMMAND, "--objects", "40", "--port", "0", "--data", str(data)]
    with (
        output.open("wb") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, env=ENVIRONMENT) as process,
    ):
        try:
            deadline = time.monotonic() + TIMEOUT
            while "Ctrl-C" not in (text := output.read_text(encoding="utf-8")):
                assert process.poll() is None, text
                assert time.monotonic() < deadline, text
                time.sleep(0.2)
            url = re.search(r"http://localhost:\d+/Plone", text)
            assert url, text
            yield process, url.group()
        finally:
            process.kill()


def test_missing_postgresql_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ended = run("--data", str(data), env=os.environ | {"PGCATALOG_PG_BIN": str(tmp_path)}, stderr=subprocess.PIPE)
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout.startswith("PostgreSQL: No PostgreSQL binaries found.")
    assert ended.stderr == ""
    assert not data.exists()


def test_check_finds_no_difference() -> None:
    """All answers, also over HTTP, are those of Plone's own catalog; each front page link shows the promised content.

    At the default size, which visitors see.
    """
    done = run("--check")
    assert done.returncode == 0, done.stdout
    assert "all as it should be" in done.stdout
    assert "proves nothing" not in done.stdout


@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo"])
def test_check_finds_no_difference_in_another_time_zone(zone: str) -> None:
    """The pages include recurring events, as iCalendar too, and the list of events."""
    done = run("--check", "--objects", "200", "--zone", zone)
    assert done.returncode == 0, done.stdout
    assert "all as it should be" in done.stdout


def test_nonexistent_zone_is_refused(tmp_path: Path) -> None:
    done = run("--check", "--zone", "Europe/Bonn")
    assert done.returncode == 2
    assert "there is no time zone 'Europe/Bonn'" in done.stdout


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that the database server may enter, even if we are root."""
    with tempfile.TemporaryDirectory(prefix="pgcatalog-demo-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_demo_stops_cleanly_and_starts_again(tmp_path: Path, public_folder: Path) -> None:
    """SIGTERM and Ctrl-C end Zope and PostgreSQL; the site is there at the next start."""
    data = public_folder / "data"
    for number, number_of_signal in enumerate((signal.SIGTERM, signal.SIGINT)):
        with demo(data, tmp_path / f"{number}.txt") as (process, url):
            with urlopen(url, timeout=60) as response:
                page = response.read().decode()
            assert "Deutsch" in page
            assert "Who may log in" in page
            process.send_signal(number_of_signal)
            assert process.wait(PATIENCE) == 0
        text = (tmp_path / f"{number}.txt").read_text(encoding="utf-8")
        assert ("Creating the Plone site" in text) == (number == 0)
        assert text.rstrip().endswith("Stopped.")
        assert "Traceback" not in text
        assert (data / "postgres" / "PG_VERSION").exists()
        # The pid file of a running server would still be there.
        assert not (data / "postgres" / "postmaster.pid").exists()
    asked = "print(len(catalog.unrestrictedSearchResults()), catalog.meta_type, portal.getId())\n"
    for chore, text, answer in (("--console", asked, "PG Catalog Tool Plone"), ("--console", "", "Ctrl-D")):
        done = run(chore, "--data", str(data), input=text)
        assert done.returncode == 0, done.stdout
        assert answer in done.stdout


def test_commands_are_refused_before_a_site_is_created(public_folder: Path) -> None:
    for chore in ("--start", "--console"):
        done = run(chore, "--data", str(public_folder / "none"))
        assert (done.returncode, "make demo makes one" in done.stdout) == (2, True), done.stdout
