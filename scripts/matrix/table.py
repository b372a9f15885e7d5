"""The results of the pairs of Python and PostgreSQL, as a table."""

from pathlib import Path
from tests.soak import report
from typing import Any

import json


RESULTS = Path(__file__).parent / "results.json"
MARK = "matrix"
#: Stage -> its label in a cell.
STAGES = {"test": "", "demo-check": "demo ", "suites": "suites "}


def stored() -> dict[str, Any]:
    """Return the stored results: pair -> result."""
    return dict(json.loads(RESULTS.read_text("utf-8"))) if RESULTS.exists() else {}


def told(stage: dict[str, Any]) -> str:
    """Return the text for the result of a stage."""
    if stage["status"] is None:
        return "did not end"
    if "passed" not in stage:
        return "as it should be" if stage["status"] == 0 else "failed"
    words = {"passed": "passed", "skipped": "skipped", "failed": "failed", "error": "errors"}
    return ", ".join(f"{stage[what]:,} {word}" for what, word in words.items() if stage.get(what))


def cell(result: dict[str, Any] | None) -> str:
    """Return the text for the result of a pair; None: it was not tested."""
    if result is None:
        return "–"
    stages = result["stages"]
    return "; ".join(name + told(stages[stage]) for stage, name in STAGES.items() if stage in stages)


def text(results: dict[str, Any]) -> str:
    """Return *results* as Markdown: a row for each Python, a column for each PostgreSQL."""
    if not results:
        return "No pair has been run with the present tests."
    pythons, servers = (sorted({name.split("/")[part] for name in results}) for part in (0, 1))
    rows = [
        [f"Python {python}", *(cell(results.get(f"{python}/{server}")) for server in servers)] for python in pythons
    ]
    return "\n".join(report.table(["`make test`", *(f"PostgreSQL {server}" for server in servers)], rows))
