"""The version of a build; hatchling asks for it (``pyproject.toml``), and it prints it when it is run.

A build of the commit with the tag of the release is that release.  Any other has a version of its own, below it: time
and id of the commit, and what its sources are where they were changed since, or where there is no commit at all.  A
shallow clone, and one without tags, say the same as a whole one.  A source distribution keeps the version it was built with.
"""

from hashlib import sha256
from pathlib import Path

import os
import subprocess


#: The release that is being worked on.
__version__ = "1.0.0a1"
ROOT = Path(__file__).resolve().parents[1]
#: What a build is made of.
SOURCES = ("src", "pyproject.toml", "README.md")


def build_version() -> str:
    """Return the version of what is built from this folder now."""
    if git("rev-parse", "--show-toplevel") != str(ROOT):
        return f"{__version__}.dev0+{fingerprint()}"
    is_changed = bool(git("status", "--porcelain", "--", *SOURCES))
    if not is_changed and {__version__, f"v{__version__}"} & set(git("tag", "--points-at", "HEAD").split()):
        return __version__
    commit = git("log", "-1", "--abbrev=10", "--date=format-local:%Y%m%d%H%M%S", "--format=%cd+g%h")
    return f"{__version__}.dev{commit}{f'.{fingerprint()}' if is_changed else ''}"


def git(*words: str) -> str:
    """Return what git prints in this folder; nothing without git, or where it knows of no commit."""
    command = ["git", "-c", "safe.directory=*", *words]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"TZ": "UTC"}, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def fingerprint() -> str:
    """Return a word that differs when the sources do."""
    found = sha256()
    for name in SOURCES:
        for path in sorted([ROOT / name, *(ROOT / name).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return f"s{found.hexdigest()[:10]}"


if __name__ == "__main__":
    print(build_version())
