"""What the pairs of Python and PostgreSQL have given, as a table."""

from pathlib import Path
from tests.soak import report
from typing import Any

import json


RESULTS = Path(__file__).parent / "results.json"
MARK = "matrix"
HEAD = ("Python", "PostgreSQL", "on", "`make demo-check`", "`make test`", "medium suites of Plone")
COLUMNS = ("demo-check", "test", "suites")


def stored() -> dict[str, Any]:
    """Return what is kept: pair -> result."""
    return dict(json.loads(RESULTS.read_text("utf-8"))) if RESULTS.exists() else {}


def told(stage: dict[str, Any] | None) -> str:
    """Return in words what came of a stage; None: it was not tried."""
    if stage is None:
        return "–"
    if stage["status"] is None:
        return "did not end"
    if "passed" not in stage:
        return "as it should be" if stage["status"] == 0 else "failed"
    words = {"passed": "passed", "skipped": "skipped", "failed": "failed", "error": "errors"}
    return ", ".join(f"{stage[what]:,} {word}" for what, word in words.items() if stage.get(what))


def text(results: dict[str, Any]) -> str:
    """Return the table of *results*, as Markdown."""
    if not results:
        return "No pair has been run with the present tests."
    rows = []
    for result in results.values():
        server = f"{result['postgresql']} ({result['server']})"
        stages = [told(result["stages"].get(name)) for name in COLUMNS]
        rows.append((result["python"], server, result["place"], *stages))
    return "\n".join(report.table(HEAD, rows))
