"""A site created by an earlier state of the package is upgraded to this one, and its searches have the same answers."""

from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.database.restored import steps
from scripts.version import git
from tests.acceptance import upgrading
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from typing import Any

import json
import os
import pytest
import subprocess
import sys
import tarfile


pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UV = ROOT / ".tools" / "bin" / "uv"
STEPS = "src/plone/pgcatalog/upgrades.zcml"
#: The files from which a wheel is built without git: those of a source distribution.
SOURCES = ("src", "scripts", "pyproject.toml", "README.md", "LICENSE")


def states() -> dict[str, str]:
    """Return the available earlier states, name -> commit; the oldest commit if history is short or missing."""
    if git("rev-parse", "--show-toplevel") != str(ROOT):
        return {"only-these-sources": ""}
    newest_step = git("log", "-1", "--format=%H", "--", STEPS)
    last_tag = git("describe", "--tags", "--abbrev=0", "HEAD~1")
    wanted = {
        "the-commit-before": "HEAD~1",
        "before-the-newest-step": f"{newest_step}~1",
        f"tag-{last_tag}": last_tag,
    }
    commits = {name: commit_of(revision) for name, revision in wanted.items() if revision}
    found = {name: commit for name, commit in commits.items() if commit}
    return found or {"only-the-last-commit": commit_of("HEAD")}


def commit_of(revision: str) -> str:
    """Return the commit that *revision* names, an empty string if history does not have it."""
    return git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")


STATES = states()


@pytest.fixture(params=STATES)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Folder into which the wheel of an earlier state is installed."""
    archive, source, installed = tmp_path / "source.tar", tmp_path / "source", tmp_path / "installed"
    commit = STATES[request.param]
    if commit:
        git("archive", "--format=tar", f"--output={archive}", commit)
    else:
        with tarfile.open(archive, "w") as tar:
            for name in SOURCES:
                tar.add(ROOT / name, name)
    with tarfile.open(archive) as tar:
        tar.extractall(source, filter="data")
    command = [
        str(UV),
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--python",
        sys.executable,
        "--target",
        str(installed),
    ]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return installed


@pytest.fixture
def zconsole(tmp_path: Path, stock_dsn: str) -> Callable[..., Any]:
    """Function that runs a step of `upgrading` on a new site, with the package in a folder, or the present one."""
    conf = write_conf(tmp_path, stock_dsn)

    def run(step: str, package: Path | None = None) -> Any:
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "Zope2.utilities.zconsole",
            "run",
            conf,
            upgrading.__file__,
            step,
        ]
        environment = os.environ | ({"PYTHONPATH": str(package)} if package else {})
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        assert all(Path(path).is_relative_to(package or ROOT) for path in found["package"])
        return found

    return run


def test_a_site_of_an_earlier_state_answers_the_same_before_and_after_its_upgrade(
    earlier: Path, zconsole: Callable[..., Any], tmp_path: Path
) -> None:
    conf = str(tmp_path / "etc" / "zope.conf")
    made = zconsole("make", earlier)
    assert all(total for total, _ in made["answers"][: len(upgrading.QUERIES)])
    started = zconsole("ask")
    assert started["answers"] == made["answers"]
    assert started["profile"] == made["profile"]
    upgraded = zconsole("upgrade")
    assert upgraded["answers"] == made["answers"]
    assert upgraded["profile"] == steps()[-1][0]
    # Background work of a step ended with its process.
    pgcatalog("rebuild", conf, "--site", "plone")
    verified = pgcatalog("verify", conf, "--site", "plone")
    assert verified.returncode == 0, verified.stdout
    status = pgcatalog("status", conf)
    assert status.returncode == 0, status.stdout
    assert zconsole("ask")["answers"] == made["answers"]
