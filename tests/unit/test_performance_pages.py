"""The pages on performance say what the stored results say, and hide nothing."""

from benchmarks.appendix import all_results
from benchmarks.claims import headline
from benchmarks.claims import in_short
from benchmarks.claims import NEW
from benchmarks.claims import slower
from benchmarks.claims import TOUCHES
from benchmarks.page import page
from benchmarks.page import PLOTS
from benchmarks.tables import PAIRS
from pathlib import Path
from typing import Any

import json
import pytest
import re


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "performance.md"
APPENDIX = ROOT / "docs" / "reference" / "benchmark-results.md"
#: What to do when one of these pages is not what the results say.
REMEDY = "run `make bench-page`"


@pytest.fixture(scope="module")
def stored() -> list[dict[str, Any]]:
    """The stored results, in the order of the command ``report``."""
    files = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    found = [json.loads(path.read_text("utf-8")) for path in files]
    return [data for data in found if isinstance(data, dict) and data.get("command") in PAIRS]


def site(documents: int, theirs: float, ours: float) -> dict[str, Any]:
    """Return results of a site in which each kind of new search takes *theirs* and *ours* ms."""

    def queries(ms: float) -> list[dict[str, Any]]:
        record = {"scenario": "uid", "values": NEW.values, "state": NEW.state, "found": 1, "median": ms, "unit": "ms"}
        return [record | {"touch": touch} for touch in TOUCHES]

    results = {
        name: {"measures": {}, "queries": queries(ms)} for name, ms in zip(PAIRS["level2"], (ours, theirs), strict=True)
    }
    return {"command": "level2", "options": {"docs": documents}, "results": results}


def test_the_pages_say_what_is_stored(stored: list[dict[str, Any]]) -> None:
    assert PAGE.read_text("utf-8") == page(stored), REMEDY
    assert APPENDIX.read_text("utf-8") == all_results(stored, f"../explanation/{PLOTS}"), REMEDY
    assert headline(stored) in (ROOT / "README.md").read_text("utf-8"), REMEDY


def test_owners_of_sites_get_one_page() -> None:
    assert len(PAGE.read_text("utf-8").splitlines()) <= 230


def test_each_plot_is_shown_and_exists() -> None:
    shown = re.findall(rf"{PLOTS}/([\w-]+\.svg)", PAGE.read_text("utf-8") + APPENDIX.read_text("utf-8"))
    assert sorted(shown) == sorted(path.name for path in (PAGE.parent / PLOTS).iterdir()), REMEDY


def test_what_is_slower_is_said() -> None:
    results = [site(500, theirs=1, ours=2), site(20_000, theirs=4, ours=1)]
    assert [(each.what, each.where) for each in slower(results)] == [
        ("a new page", "500 documents"),
        ("a new count", "500 documents"),
    ]
    for text in (in_short(results), page(results)):
        assert "0.5 times as fast with 500 documents (2 instead of 1 ms)" in " ".join(text.split())
        assert "4 times as fast with 20,000 documents (1 instead of 4 ms)" in " ".join(text.split())
    assert "| a new count | 500 documents | 1 | 2 | 2 |" in page(results)


def test_what_was_not_measured_is_left_out() -> None:
    assert "Nothing was measured" in page([])
    assert "svg" not in page([])
