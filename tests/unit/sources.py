"""The files of the project, and facts read from the package's sources."""

from functools import cache
from pathlib import Path

import ast
import re
import subprocess


ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "plone" / "pgcatalog"


#: Folders of files that are not the project's.
GENERATED = {"build", "dist", "node_modules", "demo-data", "__pycache__", "_build"}


def text(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def project_files() -> list[Path]:
    """Return the files of the project: those that git tracks or does not ignore."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # no git, or no checkout
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(part.startswith(".") or part in GENERATED for part in path.relative_to(ROOT).parts)
        ]
    return sorted(path for path in paths if path.is_file())


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(text(path))) for path in sorted(SOURCE.rglob("*.py"))]


def environment_variables() -> set[str]:
    """Return the variables that the sources read, or let click read; all have our prefix."""
    return {name for path, _ in modules() for name in re.findall(r'"(PGCATALOG_[A-Z_]+)"', text(path))}


def between(page: Path, name: str) -> str:
    """Return the text of *page* between the marks *name*."""
    return text(page).partition(f"<!-- {name} -->\n\n")[2].partition(f"\n\n<!-- end of {name} -->")[0]
