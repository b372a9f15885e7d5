"""Requirements for the checkout as a whole."""

from itertools import chain
from packaging.utils import canonicalize_name
from packaging.version import Version
from pathlib import Path
from tests.unit.pages import project_files
from typing import Any

import os
import pytest
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import yaml


ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "plone" / "pgcatalog"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
RELEASE: str = runpy.run_path(str(ROOT / "scripts" / "version.py"))["__version__"]
MAX_LINES = 500
#: Places of machines and addresses of registries; split, so that this file does not find itself.
FORBIDDEN = (
    *("/(?:root|home|Users)" + r"/[\w.-]+/", r"(?<![\w.}])/" + r"work/\w", r"\bfile://" + r"/\w"),
    r"(?:pypi\.org(?!/project/)|files\.pythonhosted|registry\.npmjs|proxy\.golang)|--(?:extra-)?index-url\b",
)
#: plone.event is a library about dates that imports neither Zope nor Plone.
PLONE = r"plone(?:\.| import )(?!(?:pgcatalog|event)\b)|Products\.(?:CMF|GenericSetup)"


def test_no_file_names_the_machine_of_its_author() -> None:
    forbidden = re.compile("|".join(FORBIDDEN))
    found = []
    for path in project_files():
        content = path.read_bytes()
        if b"\0" not in content and path != Path(__file__):
            lines = enumerate(content.decode("utf-8", "replace").splitlines(), 1)
            found += [f"{path}:{number}: {line.strip()[:100]}" for number, line in lines if forbidden.search(line)]
    assert found == []


def test_checkout_has_no_lock_file_no_pinned_interpreter_and_no_long_module() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in project_files()}
    assert not files.keys() & {"uv.lock", ".python-version"}
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in files.items() if path.suffix == ".py"}
    assert {name: number for name, number in lines.items() if number > MAX_LINES} == {}


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    # Importing Testing before Zope has started swaps the configured database for a DemoStorage.
    [("", r"Testing\b"), ("query", PLONE), ("indexes", PLONE)],
)
def test_sources_import_no_forbidden_package(folder: str, forbidden: str) -> None:
    statement = re.compile(rf"^\s*(?:from|import) (?:{forbidden})", re.M)
    paths = [*(PACKAGE / folder).rglob("*.py")]
    assert paths
    assert [path.name for path in paths if statement.search(path.read_text("utf-8"))] == []


def test_every_direct_requirement_is_pinned_by_name_and_version_only() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[0-9][\w.+!]*", line)] == []
    assert [line for line in lines if "pgcatalog" in line] == []
    requirements = list(chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()))
    requirements += [entry for entry in chain(*PYPROJECT["dependency-groups"].values()) if isinstance(entry, str)]
    needed = {canonicalize_name(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}
    assert needed - {line.partition("==")[0] for line in lines} == set()


def test_each_build_has_a_version_of_its_own(tmp_path: Path) -> None:
    """Pip replaces an installed build only by one of another version."""
    for name in ("scripts/version.py", "pyproject.toml", "README.md", "src/plone/pgcatalog/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def version(*git: str, day: int = 25) -> str:
        """Run *git* in the folder; return its version then."""
        who = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        who |= dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"2026-11-{day}T08:00:00+0100")
        for command in ["git", *git], [sys.executable, "-B", "scripts/version.py"]:
            output = subprocess.check_output(command, cwd=tmp_path, env=os.environ | who, text=True)
        return output.strip()

    commit = ("commit", "-q", "--allow-empty", "-m", "one")
    unpacked = version("--version")
    subprocess.check_call(["git", "init", "-q"], cwd=tmp_path)
    subprocess.check_call(["git", "add", "."], cwd=tmp_path)
    first, second, third = version(*commit, day=24), version(*commit), version(*commit)
    assert re.fullmatch(rf"{re.escape(RELEASE)}\.dev20261124070000\+g[0-9a-f]{{10}}", first)
    assert Version(unpacked) < Version(first) < Version(second) < Version(RELEASE)
    assert version("tag", f"v{RELEASE}") == RELEASE
    (tmp_path / "src" / "new.py").write_text("a = 1")
    changed = version("tag", "-d", f"v{RELEASE}")
    (tmp_path / "src" / "new.py").write_text("a = 2")
    assert len({second, third, changed, version("status")}) == 4
    assert changed.startswith(f"{third}.s")


def test_release_finds_every_news_fragment_and_the_place_of_its_section() -> None:
    """Towncrier silently ignores files whose names it does not understand."""
    towncrier = PYPROJECT["tool"]["towncrier"]
    types = "|".join(each["directory"] for each in towncrier["type"])
    fragments = [path for path in (ROOT / "news").iterdir() if path.name != "README.md"]
    name = re.compile(rf"[0-9]+\.(?:{types})(?:\.[0-9]+)?\.md")
    assert [
        path.name for path in fragments if not name.fullmatch(path.name) or not path.read_text("utf-8").strip()
    ] == []
    _, marker, sections = (ROOT / towncrier["filename"]).read_text("utf-8").partition(towncrier["start_string"])
    assert marker
    assert re.findall(r"^## (\S+)", sections, re.M).count(RELEASE) <= 1


def test_workflow_runs_existing_chores_with_every_supported_version() -> None:
    text = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    [promised] = re.findall(r"^\| PostgreSQL \| ([\d, ]+);", (ROOT / "README.md").read_text("utf-8"), re.M)
    assert matrix["postgresql"] == promised.split(", ")
    chores = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    made = {shlex.split(run)[1] for run in re.findall(r"run: (make .*)$", text, re.M)}
    assert {"lint", "test", "test-slow", "test-plone"} <= made <= chores
    # Actions of others are pinned to a commit.
    assert [each for each in re.findall(r"uses: (\S+)", text) if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)] == []


def test_container_has_a_zope_conf_that_zope_reads(tmp_path: Path) -> None:
    from plone.pgcatalog.cli.target import configured_databases

    text = (ROOT / "scripts/container/zope.conf").read_text("utf-8").replace("@DSN@", "host=db dbname=plone")
    conf = tmp_path / "zope.conf"
    conf.write_text(re.sub("/(app|data)", str(tmp_path), text))
    [database] = configured_databases(str(conf))
    assert (database.dsn, database.pool_size, database.pool_max) == ("host=db dbname=plone", 8, 10)


def test_no_chore_installs_the_distribution_by_its_name() -> None:
    """On the Python Package Index the name belongs to another project."""
    name = re.escape(PROJECT["name"])
    requirement = re.compile(rf"(?:pip install|--group|uv pip install)[^\n]*[ '\"]{name}(?:\[|==|>=|['\" ]|$)", re.M)
    places = [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("*.yml"),
        *map(ROOT.joinpath, ("Makefile", "Containerfile", "tox.ini")),
    ]
    assert [path.name for path in places if requirement.search(path.read_text("utf-8"))] == []
