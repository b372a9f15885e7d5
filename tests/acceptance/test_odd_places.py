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
    *("unit/test_packaging.py", "unit/test_index_queries.py", "unit/test_meaning.py", "unit/test_index_values.py"),
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
            "PYTHONPATH": f"{folder}/src",
        }

        def run(*arguments: str, zone: str = "Pacific/Kiritimati") -> str:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=folder,
                env=environment | {"TZ": zone},
                capture_output=True,
                encoding="utf-8",
                timeout=600,
                check=False,
                **({} if user.uid is None else {"user": user.uid, "group": user.gid, "extra_groups": []}),
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        assert run("-X", "utf8", "-c", "import plone.pgcatalog; print(plone.pgcatalog.__file__)").startswith(folder)
        # Plone's DateTime cannot store times of a zone whose abbreviation is a number: there is no site in Kiritimati.
        for folder_of_tests, zone in (("unit", "Pacific/Kiritimati"), ("integration", "Pacific/Auckland")):
            files = [f"tests/{name}" for name in SAMPLE if name.startswith(folder_of_tests)]
            options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow")
            assert " passed" in run("-m", "pytest", *options, *files, zone=zone)
