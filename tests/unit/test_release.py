"""What a release needs beside the package: the workflow of the tests, the container, and one name for the distribution."""

from pathlib import Path
from typing import Any

import re
import shlex
import subprocess
import tomllib
import yaml


ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
INSTRUCTIONS = {"ARG", "FROM", "COPY", "RUN", "EXPOSE", "USER", "HEALTHCHECK", "ENTRYPOINT"}


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    return found


def test_the_workflow_tests_every_version_that_is_promised() -> None:
    matrix = workflow()["jobs"]["test"]["strategy"]["matrix"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python"] == classified
    readme = (ROOT / "README.md").read_text("utf-8")
    [promised] = re.findall(r"^\| PostgreSQL \| ([\d, ]+);", readme, re.M)
    assert matrix["postgresql"] == promised.split(", ")


def test_the_workflow_runs_chores_that_there_are() -> None:
    chores = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    runs = [step["run"] for job in workflow()["jobs"].values() for step in job["steps"] if "run" in step]
    made = [shlex.split(run)[1] for run in runs if run.startswith("make ")]
    assert set(made) <= chores
    assert {"lint", "test", "test-slow", "test-plone"} <= set(made)


def container() -> list[list[str]]:
    """Return the instructions of the Containerfile, each split into words."""
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text("utf-8"))
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_the_container_copies_what_there_is() -> None:
    lines = container()
    assert {line[0] for line in lines} <= INSTRUCTIONS
    assert [line[0] for line in lines][:2] == ["ARG", "FROM"]
    copied = [name for line in lines if line[0] == "COPY" and not line[1].startswith("--from") for name in line[1:-1]]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    start = ROOT / "scripts/container/start"
    assert subprocess.run(["sh", "-n", str(start)], check=False).returncode == 0


def test_the_container_has_a_zope_conf_that_zope_reads(tmp_path: Path) -> None:
    from plone.pgcatalog.cli.target import configured_databases

    text = (ROOT / "scripts/container/zope.conf").read_text("utf-8")
    conf = tmp_path / "zope.conf"
    conf.write_text(
        text.replace("@DSN@", "host=db dbname=plone").replace("/app", str(tmp_path)).replace("/data", str(tmp_path))
    )
    [database] = configured_databases(str(conf))
    assert (database.dsn, database.pool_size, database.pool_max) == ("host=db dbname=plone", 8, 10)


def test_the_name_of_the_distribution_is_said_once() -> None:
    """No code, chore or container names it, so that a release under another name is one line."""
    name = re.escape(PROJECT["name"])
    requirement = re.compile(rf"(?:pip install|--group|uv pip install)[^\n]*[ '\"]{name}(?:\[|==|>=|['\" ]|$)", re.M)
    places = [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("*.yml"),
        ROOT / "Makefile",
        ROOT / "Containerfile",
        ROOT / "tox.ini",
    ]
    assert [path.name for path in places if requirement.search(path.read_text("utf-8"))] == []
