"""zodb-pgjsonb with the patches of ``docs/upstream``."""

from pathlib import Path

import inspect
import os
import shutil
import subprocess
import zodb_pgjsonb.storage


PATCHES = sorted((Path(__file__).parents[2] / "docs" / "upstream").glob("*.patch"))


def is_patched() -> bool:
    """True if the storage of this process has the patches."""
    return "prepare_threshold" in inspect.signature(zodb_pgjsonb.storage.PGJsonbStorage).parameters


def patch_storage(folder: Path) -> None:
    """Put a copy of the installed package with all patches into *folder*, for PYTHONPATH."""
    package = Path(zodb_pgjsonb.__file__).parent
    shutil.copytree(package, folder / "zodb_pgjsonb", ignore=shutil.ignore_patterns("__pycache__"))
    for patch in PATCHES:
        # Outside of a repository: git would skip untracked files.
        environ = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
        subprocess.run(["git", "apply", "--verbose", str(patch)], cwd=folder, env=environ, check=True)
