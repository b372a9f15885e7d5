"""The results of the pairs of Python and PostgreSQL, as a table."""

from checks.soak import report
from pathlib import Path
from typing import Any

import json


RESULTS = Path(__file__).parent / "results.json"
MARK = "matrix"
PASSED = "✓"
#: Stages behind ``make test`` that a footnote marks.
MORE = ("demo-check", "suites")
FOOTNOTE = "✓: `make test` passed; ✓\\*: so did `make demo-check` and Plone's suites."


def stored() -> dict[str, Any]:
    """Return the stored results: pair -> result."""
    return dict(json.loads(RESULTS.read_text("utf-8"))) if RESULTS.exists() else {}


def summary(stage: dict[str, Any]) -> str:
    """Return the text for the result of a stage, with the numbers of its tests."""
    if stage["status"] is None:
        return "did not end"
    if "passed" not in stage:
        return "ok" if stage["status"] == 0 else "failed"
    words = {"passed": "passed", "skipped": "skipped", "failed": "failed", "error": "errors"}
    return ", ".join(f"{stage[what]:,} {word}" for what, word in words.items() if stage.get(what))


def cell(result: dict[str, Any] | None) -> str:
    """Return the text for the result of a pair; None: it was not tested."""
    if result is None:
        return "–"
    stages = result["stages"]
    problems = [f"{name}: {summary(stage)}" for name, stage in stages.items() if stage["status"] != 0]
    return "; ".join(problems) or (PASSED + "\\*" if stages.keys() >= set(MORE) else PASSED)


def text(results: dict[str, Any]) -> str:
    """Return *results* as Markdown: a row for each Python, a column for each PostgreSQL, and a footnote."""
    if not results:
        return "No pair has been run with the present tests."
    pythons, servers = (sorted({name.split("/")[part] for name in results}) for part in (0, 1))
    rows = [
        [f"Python {python}", *(cell(results.get(f"{python}/{server}")) for server in servers)] for python in pythons
    ]
    return "\n".join([*report.table(["", *(f"PostgreSQL {server}" for server in servers)], rows), "", FOOTNOTE])
