"""The demo, as its users start it: a process of its own, from nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path
from tests.integration.waiting import PATIENCE
from urllib.request import urlopen

import os
import pytest
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time


pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "plone.pgcatalog.demo"]
#: Long enough for a busy machine.
TIMEOUT = 1800


def environment() -> dict[str, str]:
    """Return an environment in which the demo brings its own database."""
    own = {k: v for k, v in os.environ.items() if k != "PGCATALOG_DEMO_DSN"}
    return {**own, "COLUMNS": "160", "PYTHONUNBUFFERED": "1"}


@contextmanager
def demo(data: Path, output: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a small site; yield the process and the URL of the site."""
    command = [*COMMAND, "--objects", "40", "--port", "0", "--data", str(data)]
    with (
        output.open("wb") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment()) as process,
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


#: Starts the demo with no packages but those in a folder.
BARE = """
import sys
sys.path += {paths!r}
from plone.pgcatalog.demo.__main__ import main
main()
"""


def without(folder: Path, *distributions: str) -> list[str]:
    """Return a sys.path with the packages that are installed here, those of *distributions* excepted, made in *folder*."""
    left_out = {path.parts[0] for name in distributions for path in files(name) or ()}
    installed = Path(sysconfig.get_path("purelib"))
    for entry in installed.iterdir():
        if entry.name not in left_out:
            (folder / entry.name).symlink_to(entry)
    return [str(folder), *editable(installed)]


def editable(installed: Path) -> list[str]:
    """Return the folders of this checkout's packages."""
    return (installed / "_plone_pgcatalog.pth").read_text().split()


def start_bare(paths: list[str], folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Start the demo in *folder* with nothing but *paths*; return how it ended."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-S", "-c", BARE.format(paths=paths), *options],
        cwd=folder,
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@pytest.mark.parametrize("missing", [("Plone", "waitress"), ("Plone",)])
@pytest.mark.parametrize("options", [(), ("--check",), ("--dsn", "dbname=nowhere"), ("--data", "my/own")])
def test_without_its_packages_it_says_so_and_leaves_nothing(
    tmp_path: Path, missing: tuple[str, ...], options: tuple[str, ...]
) -> None:
    packages, run = tmp_path / "packages", tmp_path / "run"
    packages.mkdir()
    run.mkdir()
    ended = start_bare(without(packages, *missing), run, *options)
    assert ended.returncode == 2, ended.stderr
    names = ", ".join(missing)
    assert " ".join(ended.stdout.split()) == (
        f"The demo needs packages that are not installed ({names}):"
        " run make demo in the source distribution or a checkout of this project"
    )
    assert ended.stderr == ""
    assert list(run.iterdir()) == []


def test_without_a_postgresql_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    ended = start_bare([sysconfig.get_path("purelib"), *sys.path], tmp_path, PGCATALOG_PG_BIN=str(tmp_path))
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout.startswith("PostgreSQL: No PostgreSQL binaries found.")
    assert ended.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_check_finds_no_difference() -> None:
    """All answers are those of Plone's own catalog, also over HTTP; and each link of the front page shows what it says.

    At the default size, which visitors see.
    """
    done = subprocess.run(
        [*COMMAND, "--check"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "all as it should be" in done.stdout
    assert "proves nothing" not in done.stdout


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that the database server may enter, also when we are root."""
    with tempfile.TemporaryDirectory(prefix="pgcatalog-demo-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_stops_cleanly_and_comes_up_again(tmp_path: Path, public_folder: Path) -> None:
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
        # A server that goes on would still have its pid there.
        assert not (data / "postgres" / "postmaster.pid").exists()
