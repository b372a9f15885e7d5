"""An add-on's own suite runs on both catalogs, by one line of its layers (docs/how-to/test-your-add-on.md)."""

from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres

import os
import psycopg
import pytest
import re
import shutil
import subprocess
import sys


pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
GUIDE = HERE.parents[1] / "docs" / "how-to" / "test-your-add-on.md"
STOCK = "from plone.app.testing import PLONE_FIXTURE as FIXTURE\n"
OURS = "from plone.pgcatalog.testing.layers import PGCATALOG_FIXTURE as FIXTURE\n"
#: Tests each of which would find the page of another.
FIXTURES_TEST = """\
import pytest
import transaction

def make(portal, name):
    from plone.app.testing import setRoles, TEST_USER_ID

    setRoles(portal, TEST_USER_ID, ["Manager"])
    assert len(portal.portal_catalog(portal_type="Document")) == 0
    portal.invokeFactory("Document", name, title="A needle")
    assert [b.getId for b in portal.portal_catalog(SearchableText="needle")] == [name]

@pytest.mark.parametrize("name", ["one", "two"])
def test_integration(integration, name):
    make(integration["portal"], name)

@pytest.mark.parametrize("name", ["three", "four"])
def test_functional(functional, name):
    make(functional["portal"], name)
    transaction.commit()

def test_acceptance(acceptance):
    from urllib.request import urlopen

    make(acceptance["portal"], "five")
    transaction.commit()
    url = f"http://{acceptance['host']}:{acceptance['port']}/plone/@@search?SearchableText=needle"
    assert b"A needle" in urlopen(url).read()
"""


def run(folder: Path, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in *folder*, which is its root, wherever temporary folders are."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-q", "-p", "no:cacheprovider", "--color=no", *args],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)} | environ,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture
def addon(open_tmp: Path) -> Path:
    """A copy of the add-on's checkout."""
    shutil.copytree(HERE / "example_addon", open_tmp / "addon")
    return open_tmp / "addon"


def test_suite_passes_on_both_by_switching_one_line(addon: Path) -> None:
    layers = addon / "shelves" / "testing.py"
    text = layers.read_text("utf-8")
    assert text.count(STOCK) == 1
    for line, catalog in ((STOCK, "CatalogTool"), (OURS, "PlonePGCatalogTool")):
        layers.write_text(text.replace(STOCK, line), "utf-8")
        done = run(addon, "shelves/tests", SHELVES_CATALOG=catalog)
        assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_fixtures_of_pytest_isolate_tests_on_a_server_of_ones_own(open_tmp: Path, postgres: EmbeddedPostgres) -> None:
    """Also with PGCATALOG_TEST_DSN, whose server has no leftovers."""
    (open_tmp / "conftest.py").write_text('pytest_plugins = ["plone.pgcatalog.testing.fixtures"]\n')
    (open_tmp / "test_fixtures.py").write_text(FIXTURES_TEST)
    done = run(open_tmp, "test_fixtures.py", PGCATALOG_TEST_DSN=postgres.dsn())
    assert "5 passed" in done.stdout, done.stdout + done.stderr
    with psycopg.connect(postgres.dsn()) as connection:
        left = "SELECT datname FROM pg_database WHERE datname LIKE 'pgcatalog\\_test\\_%'"
        assert connection.execute(left).fetchall() == []


def test_guide_has_the_lines_of_the_add_on() -> None:
    guide = GUIDE.read_text("utf-8")
    for line in (STOCK, OURS, 'pytest_plugins = ["plone.pgcatalog.testing.fixtures"]'):
        assert re.search(f"^{re.escape(line.strip())}$", guide, re.MULTILINE), line
