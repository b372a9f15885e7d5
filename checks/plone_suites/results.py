"""Result files: written by a run, and compared.

- Full: ``{"profile", "versions", "suites": {name: {"seconds", "counts", "problems", "tests": {id: {"status", "secs",
  "err"}}, ...}}}``.
- Compact, for a control stored in the repository: only ``seconds`` and ``{id: status}`` for each suite.
"""

from importlib.metadata import version
from pathlib import Path
from plone.pgcatalog.distribution import version_of
from typing import Any

import json
import platform


HERE = Path(__file__).parent
DISTRIBUTIONS = ("Products.CMFPlone", "Products.ZCatalog", "plone.restapi", "zodb-pgjsonb")


def new(profile: str | None) -> dict[str, Any]:
    """Return an empty result."""
    versions = {name: version(name) for name in DISTRIBUTIONS}
    versions["xberg"] = version_of("xberg") or "not installed"
    return {"profile": profile or "none", "versions": {"Python": platform.python_version()} | versions, "suites": {}}


def load(path: Path) -> dict[str, Any]:
    """Read a full or a compact file; return it in the full shape."""
    result: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for suite in result["suites"].values():
        for test_id, test in suite["tests"].items():
            if isinstance(test, str):
                suite["tests"][test_id] = {"status": test}
    return result


def stored_controls() -> dict[str, Any]:
    """Return the controls stored in this folder, one file per tier, merged into one result."""
    controls = [load(path) for path in sorted(HERE.glob("control-*.json"))]
    merged = dict(controls[0])
    merged["suites"] = {name: suite for control in controls for name, suite in control["suites"].items()}
    return merged


def updated(control: dict[str, Any], repeated: dict[str, Any]) -> dict[str, Any]:
    """Return *control* with the statuses of the tests that were *repeated* with its profile."""
    suites = {
        name: suite | {"tests": suite["tests"] | repeated["suites"].get(name, {"tests": {}})["tests"]}
        for name, suite in control["suites"].items()
    }
    return control | {"suites": suites}


def save(result: dict[str, Any], path: Path) -> None:
    """Write a result atomically."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    draft.replace(path)


def compact(result: dict[str, Any]) -> dict[str, Any]:
    """Return the compact shape of a full result."""
    suites = {
        name: {
            "seconds": suite["seconds"],
            "tests": {test_id: test["status"] for test_id, test in suite["tests"].items()},
        }
        for name, suite in result["suites"].items()
    }
    return result | {"suites": suites}
