"""The distributions as they would be released: built, unpacked, and used."""

from importlib.metadata import version
from pathlib import Path
from tests.unit.sources import project_files
from urllib.parse import unquote

import os
import pytest
import subprocess
import sys
import tarfile
import zipfile


pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UV = ROOT / ".tools" / "bin" / "uv"
#: Files for the project's own machines only, not in a source distribution.
LEFT_OUT = {".gitignore"}
#: Our requirements that are in Plone's constraints.txt but not in a stock Plone: they are for its tools.
PLONES_TOOLS = {"click==8.4.2", "rich==13.9.4"}


def run(*command: str, folder: Path = ROOT, **variables: str) -> str:
    """Run *command* in *folder* to its successful end; return its output."""
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel built from it."""
    if not UV.is_file():
        pytest.skip("the builder, .tools/bin/uv, is made by make")
    folder = tmp_path_factory.mktemp("dist")
    run(str(UV), "build", "--quiet", "--python", sys.executable, "--out-dir", str(folder))
    [source], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


def test_source_distribution_has_all_files(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as file:
        found = {name.partition("/")[2] for name in file.getnames()}
    assert {path.relative_to(ROOT).as_posix() for path in project_files()} - LEFT_OUT - found == set()


def test_wheel_has_only_the_package(built: tuple[Path, Path]) -> None:
    found = {name for name in zipfile.ZipFile(built[1]).namelist() if ".dist-info/" not in name}
    package = {path.relative_to(ROOT / "src").as_posix() for path in project_files() if (ROOT / "src") in path.parents}
    assert found == package
    # For type checkers; plone is a namespace.
    assert "plone/pgcatalog/py.typed" in found
    assert "plone/__init__.py" not in found


def test_plain_pip_installs_it_into_a_stock_plone(built: tuple[Path, Path], tmp_path: Path) -> None:
    """No package of Plone is changed or removed, and our package is there with its command.

    First the wheel, then the source distribution with all versions of that Plone as constraints.
    """
    home = tmp_path / "home"

    def pip(*words: str) -> str:
        python = str(home / "bin" / "python")
        return run(python, "-m", "pip", "--disable-pip-version-check", *words, folder=tmp_path)

    run(sys.executable, "-m", "venv", str(home))
    pip("install", "--quiet", f"Plone=={version('Plone')}")
    stock = set(pip("freeze").splitlines())
    source, wheel = built
    for archive, expected in ((wheel, stock), (source, stock | PLONES_TOOLS)):
        (tmp_path / "constraints.txt").write_text("\n".join(expected if archive is source else ()))
        pip("install", "--quiet", "--constraint", "constraints.txt", str(archive), "psycopg[binary]")
        installed = set(pip("freeze").splitlines())
        assert expected - installed == set()
        assert any(archive.name in unquote(line) for line in installed)
        assert "No broken requirements" in pip("check")
        # Also a build without git has the version of its source distribution's commit.
        expected_version = run(sys.executable, "-B", "scripts/version.py").strip()
        assert expected_version in run(str(home / "bin" / "pgcatalog"), "--version", folder=tmp_path)
