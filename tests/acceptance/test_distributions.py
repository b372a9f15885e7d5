"""The distributions as they would be released: built, unpacked, and used."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

import os
import pytest
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile


pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UV = ROOT / ".tools" / "bin" / "uv"
#: Files for the project's own machines only, not in a source distribution.
LEFT_OUT = {".gitignore"}
#: Our requirements that are in Plone's constraints.txt but not in a stock Plone: they are for its tools for tests and
#: releases. The file of 6.2 was not available; rich is as in that of 6.1.0, click the oldest that Plone 6.2.2's own tests
#: accept.
PLONES_TOOLS = {"click==8.4.2", "rich==13.9.4"}


def project_files() -> list[Path]:
    """Return the files of the project: those that git tracks or does not ignore."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return sorted(path for path in paths if path.is_file())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the source distribution, and the wheel built from it."""
    if not UV.is_file():
        pytest.skip("the builder, .tools/bin/uv, is made by make")
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [str(UV), "build", "--quiet", "--python", sys.executable, "--out-dir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    [archive] = built.glob("*.tar.gz")
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    [source] = folder.iterdir()
    return source


@pytest.fixture
def wheel(built: Path) -> Iterator[Path]:
    """Folder with the files of the wheel."""
    [archive] = built.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(archive).extractall(folder)
        yield Path(folder)


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_source_distribution_has_the_files_of_the_project(unpacked: Path) -> None:
    project = {path.relative_to(ROOT).as_posix() for path in project_files()} - LEFT_OUT
    assert project - files_in(unpacked) == set()


def test_the_chores_are_listed_in_an_unpacked_source_distribution(unpacked: Path) -> None:
    for chore in ("help", "demo", "test", "lint"):
        done = subprocess.run(["make", "--dry-run", chore], cwd=unpacked, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_demo_works_in_an_unpacked_source_distribution(unpacked: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "demo", "--check", "--objects", "40"],
        cwd=unpacked,
        env=os.environ | {"PYTHONPATH": str(unpacked / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all as it should be" in done.stdout


def test_wheel_has_only_the_package(wheel: Path) -> None:
    found = files_in(wheel)
    package = {path.relative_to(ROOT / "src").as_posix() for path in project_files() if (ROOT / "src") in path.parents}
    assert package - found == set()
    assert {name.partition("/")[0] for name in found if ".dist-info" not in name} == {"plone"}


def test_plain_pip_installs_it_into_a_stock_plone(built: Path, tmp_path: Path) -> None:
    """No package of Plone is changed or removed, and our package is there with its command.

    First the wheel, then the source distribution with all versions of that Plone as constraints.
    """
    home = tmp_path / "home"

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pip(*words: str) -> str:
        return run(str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *words)

    run(sys.executable, "-m", "venv", str(home))
    pip("install", "--quiet", f"Plone=={version('Plone')}")
    stock = set(pip("freeze").splitlines())
    [wheel], [source] = built.glob("*.whl"), built.glob("*.tar.gz")
    for archive, kept in ((wheel, stock), (source, stock | PLONES_TOOLS)):
        (tmp_path / "constraints.txt").write_text("\n".join(kept if archive is source else ()))
        pip("install", "--quiet", "--constraint", "constraints.txt", str(archive), "psycopg[binary]")
        installed = set(pip("freeze").splitlines())
        assert kept - installed == set()
        assert any(archive.name in unquote(line) for line in installed)
        assert "No broken requirements" in pip("check")
        assert wheel.name.split("-")[1] in run(str(home / "bin" / "pgcatalog"), "--version")


def test_pip_replaces_a_build_by_one_of_another_commit(tmp_path: Path) -> None:
    """Each wheel is built from the source distribution, in a folder without git."""
    if not UV.is_file():
        pytest.skip("the builder, .tools/bin/uv, is made by make")
    source, home = tmp_path / "source", tmp_path / "home"
    for path in project_files():
        name = path.relative_to(ROOT)
        if name.parts[0] in ("src", "pyproject.toml", "README.md", "LICENSE", "scripts"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, source / name)

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("git", "init", "-q")
    run(sys.executable, "-m", "venv", str(home))
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    versions = []
    for name in ("one", "two"):
        (source / "README.md").write_text(name)
        run("git", "add", ".")
        run("git", *author, "commit", "-qm", name)
        expected = run(sys.executable, "-B", "scripts/version.py").strip()
        run(str(UV), "build", "--quiet", "--python", sys.executable, "--out-dir", str(tmp_path / name))
        [wheel] = (tmp_path / name).glob("*.whl")
        installed = run(str(home / "bin" / "pip"), "install", "--no-deps", "--no-index", str(wheel))
        assert "Successfully installed" in installed
        found = "from importlib.metadata import version; print(version('plone.pgcatalog'))"
        versions.append(run(str(home / "bin" / "python"), "-c", found).strip())
        assert versions[-1] == expected
    assert versions[0] != versions[1]
