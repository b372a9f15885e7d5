"""A site without Classic UI installs the add-on, searches, and has its control panels by REST."""

from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.acceptance.without_classic import installed
from tests.acceptance.without_classic import ROOT

import os
import pytest
import subprocess
import sys


pytestmark = pytest.mark.slow


def test_site_without_classic_installs_searches_and_has_its_panels(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    dsn = postgres.createdb("without_classic")
    # Without the module site, only the folder of links is on the path.
    command = [sys.executable, "-S", "-m", "tests.acceptance.without_classic", dsn, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": installed(tmp_path / "packages")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
