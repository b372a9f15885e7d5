"""Computes the version of a build; hatchling calls it (``pyproject.toml``), and as a script it prints the version.

A build of the commit with the tag of the release has the version of the release.  Any other build has its own version, below
it, from time and id of the commit, plus a hash of the sources if they have changed since, or if there is no commit.  Shallow
clones, and clones without tags, have the same version as full ones.  A source distribution has the version of its build.
"""

from hashlib import sha256
from pathlib import Path

import os
import subprocess


#: The next release.
__version__ = "1.0.0a1"
ROOT = Path(__file__).resolve().parents[1]
#: The files and folders of a build.
SOURCES = ("src", "pyproject.toml", "README.md")


def build_version() -> str:
    """Return the version of a build from this folder now."""
    if git("rev-parse", "--show-toplevel") != str(ROOT):
        return f"{__version__}.dev0+{fingerprint()}"
    is_changed = bool(git("status", "--porcelain", "--", *SOURCES))
    if not is_changed and {__version__, f"v{__version__}"} & set(git("tag", "--points-at", "HEAD").split()):
        return __version__
    commit = git("log", "-1", "--abbrev=10", "--date=format-local:%Y%m%d%H%M%S", "--format=%cd+g%h")
    return f"{__version__}.dev{commit}{f'.{fingerprint()}' if is_changed else ''}"


def git(*words: str) -> str:
    """Return the output of git in this folder; "" if git or a commit is missing."""
    command = ["git", "-c", "safe.directory=*", *words]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"TZ": "UTC"}, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def fingerprint() -> str:
    """Return a hash of the sources."""
    found = sha256()
    for name in SOURCES:
        for path in sorted([ROOT / name, *(ROOT / name).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return f"s{found.hexdigest()[:10]}"


if __name__ == "__main__":
    print(build_version())
