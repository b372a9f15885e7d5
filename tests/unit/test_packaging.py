"""Requirements for the checkout as a whole."""

from itertools import chain
from packaging.utils import canonicalize_name
from packaging.version import Version
from pathlib import Path
from tests.unit.sources import project_files
from tests.unit.sources import ROOT
from tests.unit.sources import SOURCE
from tests.unit.sources import text
from typing import Any

import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import yaml


PYPROJECT: dict[str, Any] = tomllib.loads(text(ROOT / "pyproject.toml"))
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
    lines = {name: len(text(path).splitlines()) for name, path in files.items() if path.suffix == ".py"}
    assert {name: number for name, number in lines.items() if number > MAX_LINES} == {}


def test_sources_import_no_forbidden_package() -> None:
    """Importing Testing before Zope has started swaps the configured database for a DemoStorage."""
    for folder, forbidden in (("", r"Testing\b"), ("query", PLONE), ("indexes", PLONE)):
        statement = re.compile(rf"^\s*(?:from|import) (?:{forbidden})", re.M)
        assert [path.name for path in (SOURCE / folder).rglob("*.py") if statement.search(text(path))] == []


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
    for name in ("scripts/version.py", "pyproject.toml", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    found = []
    commands = (
        "--version",
        "init -q",
        "add .",
        "commit -q -m one",
        f"tag v{RELEASE}",
        "commit -q --allow-empty -m two",
    )
    for command in commands:
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *command.split()]
        subprocess.check_call(git, cwd=tmp_path)
        found.append(subprocess.check_output([sys.executable, "scripts/version.py"], cwd=tmp_path, text=True).strip())
    unpacked, _, _, first, tagged, second = found
    assert re.fullmatch(rf"{re.escape(RELEASE)}\.dev\d{{14}}\+g[0-9a-f]{{10}}", first)
    assert Version(unpacked) < Version(first) < Version(tagged) == Version(RELEASE)
    assert len({unpacked, first, tagged, second}) == 4


def test_release_finds_every_news_fragment_and_the_place_of_its_section() -> None:
    """Towncrier silently ignores files whose names it does not understand."""
    towncrier = PYPROJECT["tool"]["towncrier"]
    types = "|".join(each["directory"] for each in towncrier["type"])
    fragments = [path for path in (ROOT / "news").iterdir() if path.name != "README.md"]
    name = re.compile(rf"[0-9]+\.(?:{types})(?:\.[0-9]+)?\.md")
    assert [path.name for path in fragments if not name.fullmatch(path.name) or not text(path).strip()] == []
    _, marker, sections = text(ROOT / towncrier["filename"]).partition(towncrier["start_string"])
    assert marker
    assert re.findall(r"^## (\S+)", sections, re.M).count(RELEASE) <= 1


def test_workflow_runs_existing_chores_with_every_supported_version() -> None:
    workflow = text(ROOT / ".github/workflows/tests.yml")
    matrix: dict[str, Any] = yaml.safe_load(workflow)["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    [promised] = re.findall(r"^\| PostgreSQL \| ([\d, ]+);", text(ROOT / "README.md"), re.M)
    assert matrix["postgresql"] == promised.split(", ")
    made = set(re.findall(r"run: make ([a-z-]+)", workflow))
    assert (
        {"lint", "test", "test-slow", "test-plone"}
        <= made
        <= set(re.findall(r"^([a-z-]+):", text(ROOT / "Makefile"), re.M))
    )
    # Actions of others are pinned to a commit.
    assert [
        each for each in re.findall(r"uses: (\S+)", workflow) if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)
    ] == []


def test_neither_chores_nor_pages_install_the_distribution_by_its_name() -> None:
    """On the Python Package Index the name belongs to another project."""
    name = re.escape(PROJECT["name"])
    requirement = re.compile(rf"(?:pip install|--group|uv pip install)[^\n]*[ '\"]{name}(?:\[|==|>=|['\" ]|$)", re.M)
    chores = map(ROOT.joinpath, ("Makefile", "Containerfile", "tox.ini"))
    places = [*ROOT.glob("src/**/*.py"), *ROOT.glob("*.yml"), *chores]
    assert [path.name for path in places if requirement.search(text(path))] == []
    install = re.compile(rf"(?:pip|uv)[\w -]* install [^`\n]*{name}")
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = [(page.name, line) for page in pages for line in text(page).splitlines() if install.search(line)]
    assert [line for page, line in found if "/path/to/" not in line and page != "decisions.md"] == []


def test_add_on_for_volto_requires_only_volto_itself() -> None:
    """Pnpm installs another Volto for an add-on that names Volto as its peer."""
    package = json.loads(text(ROOT / "frontend/packages/volto-pgcatalog/package.json"))
    assert [name for name in package if "ependencies" in name] == []
