"""Requirements for the checkout as a whole."""

from packaging.version import Version
from pathlib import Path
from scripts.llms import llms_text
from scripts.llms import SECTIONS
from tests.unit.pages import project_files
from typing import Any

import ast
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
MAX_LINES = 500

# Split, so that this file does not find itself.
FORBIDDEN = {
    "home of a machine": re.compile(r"/(?:root|home|Users)" + r"/[\w.-]+/"),
    "work folder of a machine": re.compile(r"(?<![\w.}])/" + r"work/\w"),
    "package registry": re.compile(
        r"(?:pypi\.org(?!/project/)|files\.pythonhosted|registry\.npmjs|proxy\.golang)"
        r"|--(?:extra-)?index-url\b"
    ),
    "name of a drive": re.compile(r"\bfile://" + r"/\w"),
}


def text_files():
    for path in project_files():
        content = path.read_bytes()
        if b"\0" not in content:
            yield path, content.decode("utf-8", errors="replace")


def python_files(*folders):
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def imported_modules(path):
    """Yield the names of the modules that a file imports, even inside functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield f"{node.module}.{node.names[0].name}"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names_the_machine_of_its_author(what):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path, text in text_files()
        if path != Path(__file__)
        for number, line in enumerate(text.splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert not found


def test_plone_is_a_namespace_without_init():
    assert not (ROOT / "src" / "plone" / "__init__.py").exists()
    assert (PACKAGE / "__init__.py").exists()


def test_types_are_shipped():
    """Type checkers read our annotations only with py.typed; it is in the package, since ``plone`` is a namespace."""
    assert PACKAGE / "py.typed" in project_files()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/plone"]
    assert "Typing :: Typed" in project["project"]["classifiers"]


def test_no_lock_file_and_no_pinned_interpreter():
    names = {path.relative_to(ROOT).as_posix() for path in project_files()}
    assert not names & {"uv.lock", ".python-version"}


def test_no_module_is_too_long():
    too_long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in python_files(ROOT / "src", ROOT / "tests", ROOT / "checks", ROOT / "benchmarks")
        if (lines := len(path.read_text("utf-8").splitlines())) > MAX_LINES
    }
    assert not too_long


def test_query_and_indexes_import_no_plone():
    # plone.event is a library about dates that imports neither Zope nor Plone.
    forbidden = re.compile(r"plone\.(?!(?:pgcatalog|event)\b)|Products\.(?:CMF|GenericSetup)")
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in python_files(PACKAGE / "query", PACKAGE / "indexes")
        for name in imported_modules(path)
        if forbidden.match(name)
    }
    assert not found


class TestConstraints:
    LINES = (ROOT / "constraints.txt").read_text("utf-8").splitlines()

    def test_requirements_have_names_and_versions_only(self):
        pattern = re.compile(r"[a-z0-9][a-z0-9.-]*==[0-9][\w.+!]*$")
        assert [line for line in self.LINES if not pattern.match(line)] == []

    def test_package_does_not_pin_itself(self):
        assert [line for line in self.LINES if "pgcatalog" in line] == []

    def test_every_direct_requirement_is_pinned(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
        requirements = list(project["project"]["dependencies"])
        for group in project["project"]["optional-dependencies"].values():
            requirements += group
        for group in project["dependency-groups"].values():
            requirements += [entry for entry in group if isinstance(entry, str)]
        needed = {
            re.sub(r"[._-]+", "-", re.match(r"[\w.-]+", requirement).group()).lower() for requirement in requirements
        }
        assert needed <= {line.partition("==")[0] for line in self.LINES}


@pytest.mark.parametrize(
    ("says", "helps"), [("is 3.11.2, too old", "uv python install 3.12"), ("", "apt install python3")]
)
def test_missing_python_is_reported_with_a_remedy(tmp_path: Path, says: str, helps: str) -> None:
    """The packages of a system with 3.11 include no newer Python."""
    for tool in ("cat", "sh", "tail"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    if says:
        (tmp_path / "python3").write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
        (tmp_path / "python3").chmod(0o755)
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([ROOT / "scripts" / "find-python"], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert helps in done.stderr
    assert ("apt install python3 python3-venv;" in done.stderr) == (not says)


def test_python_in_a_folder_with_a_blank_is_found(tmp_path: Path) -> None:
    """Named by PYTHON, or by pyenv."""
    versions = tmp_path / "a b" / ".pyenv" / "versions" / "3.12.1" / "bin"
    versions.mkdir(parents=True)
    python = versions / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for environ in ({"PYTHON": str(python)}, {"HOME": str(tmp_path / "a b")}):
        command = ["/bin/sh", str(ROOT / "scripts" / "find-python")]
        done = subprocess.run(
            command, env={"PATH": "/nonexistent"} | environ, capture_output=True, text=True, check=False
        )
        assert done.stdout == f"{sys.executable}\n", done.stderr


def test_the_chores_work_in_an_unpacked_sdist() -> None:
    """The source distribution has the files named in the Makefile, and those that contributors read first."""
    tracked = {path.relative_to(ROOT).parts[0] for path in project_files()}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    needed = {name for name in tracked if re.search(rf"(?<![\w./]){re.escape(name)}(?![\w.])", makefile)}
    assert {"constraints.txt", "overrides.txt", "scripts", "tests"} <= needed
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = {name.strip("/") for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    # Hatchling adds the readme named in pyproject.toml, and that file itself.
    included |= {"README.md", "pyproject.toml"}
    assert needed | {"CHANGES.md", "CONTRIBUTING.md", "LICENSE"} <= included


class TestVersions:
    """Each build has a version of its own, so that pip replaces the former one."""

    RELEASE = runpy.run_path(str(ROOT / "scripts" / "version.py"))["__version__"]

    @pytest.fixture
    def folder(self, tmp_path):
        """A folder with the files from which a version is computed."""
        for name in ("scripts/version.py", "pyproject.toml", "README.md", "src/plone/pgcatalog/__init__.py"):
            (tmp_path / "one" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "one" / name)
        return tmp_path / "one"

    @staticmethod
    def version(folder):
        command = [sys.executable, "-B", str(folder / "scripts" / "version.py")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    @staticmethod
    def git(folder, *words, date="2026-11-24T08:00:00+0100"):
        names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")]
        who = dict(zip(names, ["a", "a@example.org", date] * 2, strict=True))
        subprocess.run(["git", *words], cwd=folder, env=os.environ | who, capture_output=True, check=True)

    @pytest.fixture
    def checkout(self, folder):
        self.git(folder, "init", "-q")
        self.git(folder, "add", ".")
        self.git(folder, "commit", "-qm", "one")
        return folder

    def commit(self, folder, date):
        self.git(folder, "commit", "-q", "--allow-empty", "-m", date, date=date)
        return Version(self.version(folder))

    def test_commit_has_its_own_version_and_a_later_one_a_higher(self, checkout):
        first = Version(self.version(checkout))
        assert re.fullmatch(rf"{re.escape(self.RELEASE)}\.dev20261124070000\+g[0-9a-f]{{10}}", str(first))
        second = self.commit(checkout, "2026-11-24T07:00:01+0000")
        third = self.commit(checkout, "2026-11-24T07:00:01+0000")
        assert first < second < Version(self.RELEASE)
        assert second != third

    def test_tagged_commit_has_the_version_of_the_release(self, checkout):
        self.git(checkout, "tag", f"v{self.RELEASE}")
        assert self.version(checkout) == self.RELEASE
        (checkout / "src" / "plone" / "pgcatalog" / "new.py").write_text("")
        assert Version(self.version(checkout)).is_devrelease

    def test_shallow_clone_has_the_same_version(self, checkout, tmp_path):
        expected = self.commit(checkout, "2026-11-24T09:00:00+0000")
        self.git(tmp_path, "clone", "-q", "--depth", "1", f"file:/{'/'}{checkout}", "two")
        assert self.version(tmp_path / "two") == str(expected)

    def test_changed_sources_have_their_own_version(self, checkout):
        clean, versions = self.version(checkout), set()
        for text in ("a = 1", "a = 2"):
            (checkout / "src" / "plone" / "pgcatalog" / "__init__.py").write_text(text)
            versions.add(self.version(checkout))
        assert len(versions) == 2
        assert all(version.startswith(f"{clean}.s") for version in versions)

    def test_no_git_is_needed(self, folder, tmp_path):
        """An unpacked archive has none, and may be unpacked in a checkout of another project."""
        without = self.version(folder)
        assert Version(without) < Version(self.RELEASE)
        self.git(tmp_path, "init", "-q")
        assert self.version(folder) == without
        (folder / "src" / "plone" / "pgcatalog" / "__init__.py").write_text("")
        assert self.version(folder) != without


class TestNews:
    CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    FRAGMENTS = [path for path in (ROOT / "news").iterdir() if path.name != "README.md"]

    def test_every_news_fragment_has_a_valid_name(self):
        """Towncrier silently ignores files whose names it does not understand."""
        types = "|".join(each["directory"] for each in self.CONFIGURATION["type"])
        pattern = re.compile(rf"[0-9]+\.(?:{types})(?:\.[0-9]+)?\.md")
        assert [path.name for path in self.FRAGMENTS if not pattern.fullmatch(path.name)] == []
        assert [path.name for path in self.FRAGMENTS if not path.read_text("utf-8").strip()] == []

    def test_release_finds_the_place_of_its_section(self):
        text = (ROOT / self.CONFIGURATION["filename"]).read_text("utf-8")
        _, marker, sections = text.partition(self.CONFIGURATION["start_string"])
        assert marker
        version = runpy.run_path(str(ROOT / "scripts" / "version.py"))["__version__"]
        assert re.findall(r"^## (\S+)", sections, re.M).count(version) <= 1


def test_nothing_imports_testing() -> None:
    """Importing Testing before Zope has started swaps the configured database for a DemoStorage."""
    sources = (ROOT / "src").rglob("*.py")
    pattern = re.compile(r"^\s*(from|import) Testing\b", re.MULTILINE)
    assert [path.name for path in sources if pattern.search(path.read_text("utf-8"))] == []


PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
INSTRUCTIONS = {"ARG", "FROM", "COPY", "RUN", "EXPOSE", "USER", "HEALTHCHECK", "ENTRYPOINT"}


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    return found


def test_workflow_tests_every_supported_version() -> None:
    matrix = workflow()["jobs"]["test"]["strategy"]["matrix"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python"] == classified
    readme = (ROOT / "README.md").read_text("utf-8")
    [promised] = re.findall(r"^\| PostgreSQL \| ([\d, ]+);", readme, re.M)
    assert matrix["postgresql"] == promised.split(", ")


def test_workflow_runs_existing_chores() -> None:
    chores = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    runs = [step["run"] for job in workflow()["jobs"].values() for step in job["steps"] if "run" in step]
    made = [shlex.split(run)[1] for run in runs if run.startswith("make ")]
    assert set(made) <= chores
    assert {"lint", "test", "test-slow", "test-plone"} <= set(made)


def container() -> list[list[str]]:
    """Return the instructions of the Containerfile, each split into words."""
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text("utf-8"))
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_container_copies_existing_files() -> None:
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


def test_name_of_the_distribution_is_stated_once() -> None:
    """No code, chore or container names it, so that a release under another name changes one line."""
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


def test_third_party_actions_are_pinned_to_a_commit() -> None:
    text = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
    uses = re.findall(r"uses: (\S+)", text)
    assert uses
    assert [each for each in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)] == []


def test_all_tools_have_the_same_line_length() -> None:
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["line-length"]
    lengths = re.findall(r"^max-line-length = (\d+)", (ROOT / "setup.cfg").read_text("utf-8"), re.M)
    lengths += re.findall(
        r"\[\*\.\{py,sql\}\][^\[]*max_line_length = (\d+)", (ROOT / ".editorconfig").read_text("utf-8")
    )
    assert lengths == [str(ruff)] * 3


def test_index_for_assistants_has_every_page_with_its_subject() -> None:
    links = re.findall(r"^- \[(.+?)\]\((\S+)\.html\): (\S.*)$", llms_text(), re.M)
    docs = ROOT / "docs"
    found = {path.relative_to(docs).with_suffix("").as_posix() for s in SECTIONS for path in (docs / s).glob("*.md")}
    assert {page for _, page, _ in links} == {page for page in found if not page.endswith("/index")}
