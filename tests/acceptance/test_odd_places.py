"""A sample of the tests passes in a folder with a blank and an umlaut, in another time zone and locale, without a home."""

from pathlib import Path
from plone.pgcatalog.testing.host import public_tmp
from plone.pgcatalog.testing.host import ServerUser
from tests.unit.sources import project_files

import os
import pytest
import shutil
import subprocess
import sys
import tempfile


pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
#: Tests about paths, texts, zones and tools, and of sites.
SAMPLE = (
    *("unit/test_packaging.py", "unit/test_index_path.py", "unit/test_meaning.py", "unit/test_index_date.py"),
    *(
        "unit/test_cli.py",
        "integration/test_urls.py",
        "integration/test_snippets.py",
        "integration/test_stored_blocks.py",
    ),
)


def user_of_tests() -> ServerUser:
    """Return the user of this process; instead of root an ordinary one, if it can start this interpreter."""
    user = ServerUser.choose(None)
    needed = (Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent)
    return user if all(map(user.can_enter, needed)) else ServerUser()


def test_sample_of_the_tests_passes_in_an_odd_place() -> None:
    user = user_of_tests()
    with tempfile.TemporaryDirectory(prefix="pgcatalog ü ", dir=public_tmp(user)) as folder:
        for path in project_files():
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        for path in (Path(folder), *Path(folder).rglob("*")):
            user.own(path)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": f"{folder}/no home",
            "LANG": "C",
            "TZ": "Pacific/Kiritimati",
            "PYTHONPATH": f"{folder}/src",
        }

        def run(*arguments: str) -> str:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=folder,
                env=environment,
                capture_output=True,
                encoding="utf-8",
                timeout=600,
                check=False,
                **({} if user.uid is None else {"user": user.uid, "group": user.gid, "extra_groups": []}),
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        assert run("-X", "utf8", "-c", "import plone.pgcatalog; print(plone.pgcatalog.__file__)").startswith(folder)
        files = [f"tests/{name}" for name in SAMPLE]
        assert " passed" in run("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow", *files)
