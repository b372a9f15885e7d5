"""The chores for Volto: their messages without node, and the version named in the guide."""

from pathlib import Path
from scripts import volto

import json
import os
import pytest
import re


GUIDE = (Path(volto.__file__).parents[1] / "docs/how-to/volto.md").read_text("utf-8")


def program(path: Path, does: str) -> None:
    path.write_text(f"#!/bin/sh\n{does}\n", "utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("programs", "reason"),
    [
        ({}, "no node or no npm"),
        ({"node": "v20.1.0"}, "no node or no npm"),
        ({"node": "v18.20.0", "npm": ""}, "node v18.20.0"),
        ({"node": "v22.1.0", "npm": ""}, None),
    ],
)
def test_missing_program_is_named(
    programs: dict[str, str], reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, says in programs.items():
        program(tmp_path / name, f"echo {says}")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = volto.lacking()
    assert found is None if reason is None else found is not None and found.startswith(reason)


def test_build_does_not_depend_on_the_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Razzle writes the environment's ports into the build, and make exports PORT, which is Plone's."""
    programs, front_end = tmp_path / "bin", tmp_path / "frontend"
    programs.mkdir()
    front_end.mkdir()
    (front_end / "package-lock.json").touch()
    program(programs / "node", "echo v22.1.0")
    made = "build node_modules/@plone/volto/public node_modules/@plone/volto/theme"
    program(
        programs / "npm", f"env >> environment; mkdir -p {made}; touch node_modules/@plone/volto/theme/theme.config"
    )
    monkeypatch.setattr(volto, "FRONTEND", front_end)
    monkeypatch.setattr(volto, "BUILD", front_end / "build")
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    for name in ("PORT", "HOST", "RAZZLE_PGCATALOG"):
        monkeypatch.setenv(name, "8081")
    volto.build()
    assert not re.findall("^.*=8081$", (front_end / "environment").read_text("utf-8"), re.MULTILINE)


def test_the_guide_names_the_version_that_is_built() -> None:
    built = json.loads((volto.FRONTEND / "package.json").read_text("utf-8"))["dependencies"]["@plone/volto"]
    assert set(re.findall(r"Volto (\d[\d.]*\d)", GUIDE)) == {built}


def test_the_add_on_needs_nothing_that_is_not_volto_s() -> None:
    """Pnpm installs another Volto for an add-on that names Volto as its peer."""
    package = json.loads((volto.FRONTEND / "packages/volto-pgcatalog/package.json").read_text("utf-8"))
    assert not [name for name in package if "ependencies" in name]
