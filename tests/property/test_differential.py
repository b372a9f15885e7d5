"""A small differential run with a fixed seed; ``make differential`` does larger ones."""

from checks.differential import deviations
from checks.differential.__main__ import run
from pathlib import Path
from tests.integration import site as sites
from typing import Any

import pytest
import re


DEVIATIONS = Path(__file__).parents[2] / "docs" / "explanation" / "deviations.md"


@pytest.mark.slow
def test_differences_are_explained(postgres: Any, site_template: str) -> None:
    report = run(sites.clone(postgres, site_template), seed=42, queries=300, sequences=8)
    assert report.unexplained == []
    assert report.found > 75
    assert report.comparisons > 20


def test_every_explanation_is_documented() -> None:
    documented = set(re.findall(r"^### (.+)$", DEVIATIONS.read_text(encoding="utf-8"), re.M))
    source = Path(deviations.__file__).read_text(encoding="utf-8")
    names = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source)) - {"sort-order", "sort-limit", "sort-on"}
    assert names - documented == set()
