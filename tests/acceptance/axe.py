"""axe-core, which finds accessibility faults of a page; one fixed version from the npm registry."""

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha512
from pathlib import Path
from playwright.sync_api import Page

import json
import pytest
import shutil
import subprocess
import tarfile


VERSION = "4.14.1"
#: Hash of the package in the npm registry.
INTEGRITY = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
SECONDS = 120
#: Ends when no colour or size is changing: a button that was just pressed has the contrast of neither state.
SETTLED = """
() => Promise.allSettled(
    document.getAnimations().filter(one => one.effect.getComputedTiming().endTime < Infinity).map(one => one.finished)
).then(() => null)
"""

Axe = Callable[..., list[str]]


def axe_source(folder: Path) -> str:
    """Return the script, downloaded into *folder* if missing; skip the test without npm or registry."""
    package = folder / f"axe-core-{VERSION}.tgz"
    if not package.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm to load axe-core with")
        command = [str(npm), "pack", "--silent", f"axe-core@{VERSION}"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"axe-core cannot be loaded: {error}")
    data = package.read_bytes()
    assert b64encode(sha512(data).digest()).decode() == INTEGRITY, "this is another axe-core"
    with tarfile.open(package) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.fixture(scope="session")
def axe(pytestconfig: pytest.Config) -> Axe:
    """Return a function that lists the faults inside of elements (CSS selectors): one line per rule and place."""
    source = axe_source(pytestconfig.cache.mkdir("axe-core"))

    def violations(page: Page, *elements: str) -> list[str]:
        faults = []
        page.evaluate(source)
        page.evaluate(SETTLED)
        for inside in elements or ("html",):
            assert page.locator(inside).count(), f"nothing to look at: {inside}"
            found = page.evaluate("inside => axe.run(inside).then(found => JSON.stringify(found.violations))", inside)
            faults += [f"{rule['id']}: {node['html'][:200]}" for rule in json.loads(found) for node in rule["nodes"]]
        return faults

    return violations
