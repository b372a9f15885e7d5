"""The chores for Volto: what they say where node is missing, and the version that the guide names."""

from pathlib import Path
from scripts import volto

import json
import pytest
import re


GUIDE = (Path(volto.__file__).parents[1] / "docs/how-to/volto.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("programs", "reason"),
    [
        ({}, "no node or no npm"),
        ({"node": "v20.1.0"}, "no node or no npm"),
        ({"node": "v18.20.0", "npm": ""}, "node v18.20.0"),
        ({"node": "v22.1.0", "npm": ""}, None),
    ],
)
def test_what_is_missing_is_named(
    programs: dict[str, str], reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, says in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n", "utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = volto.lacking()
    assert found is None if reason is None else found is not None and found.startswith(reason)


def test_the_guide_names_the_version_that_is_built() -> None:
    built = json.loads((volto.FRONTEND / "package.json").read_text("utf-8"))["dependencies"]["@plone/volto"]
    assert set(re.findall(r"Volto (\d[\d.]*\d)", GUIDE)) == {built}
