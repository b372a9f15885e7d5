"""Comparison of two results: tests that fail with the candidate and not with the control."""

from checks.plone_suites.job import BAD
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dataclasses
import json
import re


BOUND_FILE = Path(__file__).with_name("bound.json")

#: Matches the last line of a traceback.
EXCEPTION_LINE = re.compile(r"[\w.]*(Error|Exception|Found|Failure|Supported|Timeout)\b|\w+\.[\w.]+:")


@dataclasses.dataclass
class SuiteComparison:
    """Comparison of one suite; every list holds test ids.

    - ``regressions``: bad with the candidate only.
    - ``bound``: the same, but the test requires ZCatalog's own classes (id -> why).
    - ``unknown``: bad, and missing in the control.
    - ``lost``: not run.
    """

    name: str
    control: dict[str, Any]
    candidate: dict[str, Any]
    regressions: list[str]
    bound: dict[str, str]
    unknown: list[str]
    lost: list[str]

    @property
    def passed(self) -> bool:
        """Return whether nothing counts against the candidate."""
        return not (self.regressions or self.unknown or self.lost)


def load_bound(path: Path = BOUND_FILE) -> dict[re.Pattern[str], str]:
    """Return the tests that require ZCatalog's own classes: pattern of the id -> why."""
    reasons: dict[str, str] = json.loads(path.read_text("utf-8"))
    return {re.compile(pattern): why for pattern, why in reasons.items()}


def compare(
    control: dict[str, Any], candidate: dict[str, Any], bound: dict[re.Pattern[str], str]
) -> list[SuiteComparison]:
    """Compare the suites of *candidate* that are also in *control*."""
    common = [name for name in candidate["suites"] if name in control["suites"]]
    return [compare_suite(name, control["suites"][name], candidate["suites"][name], bound) for name in common]


def compare_suite(
    name: str, control: dict[str, Any], candidate: dict[str, Any], bound: dict[re.Pattern[str], str]
) -> SuiteComparison:
    """Compare two records of one suite."""
    before, after = control["tests"], candidate["tests"]
    bad = [test_id for test_id, test in sorted(after.items()) if test["status"] in BAD]
    new = [i for i in bad if i in before and before[i]["status"] not in BAD]
    excused = {i: why for i in new for pattern, why in bound.items() if pattern.search(i)}
    return SuiteComparison(
        name=name,
        control=control,
        candidate=candidate,
        regressions=[i for i in new if i not in excused],
        bound=excused,
        unknown=[i for i in bad if i not in before],
        lost=[] if candidate.get("partial") else sorted(before.keys() - after.keys()),
    )


def regressions(comparisons: list[SuiteComparison]) -> dict[str, Any]:
    """Return the part of the candidate's result that has only tests that are bad with it alone."""
    return {
        "suites": {
            suite.name: {"tests": {test_id: suite.candidate["tests"][test_id] for test_id in suite.regressions}}
            for suite in comparisons
            if suite.regressions
        }
    }


def markdown(comparisons: list[SuiteComparison]) -> str:
    """Return the comparison as a table, followed by the tests that differ."""
    lines = table(comparisons)
    for suite in comparisons:
        details = list(_details(suite))
        if details:
            lines += ["", f"### {suite.name}", "", *details]
    return "\n".join(lines) + "\n"


def table(comparisons: list[SuiteComparison]) -> list[str]:
    """Return the lines of the table: a row for each suite and one for all."""
    return [
        "| suite | tests | control: ok / bad / skip, s | candidate: ok / bad / skip, s | only candidate | bound |",
        "|---|---|---|---|---|---|",
        *map(_row, comparisons),
        _total(comparisons),
    ]


def _row(suite: SuiteComparison) -> str:
    tests = len(suite.control["tests"].keys() | suite.candidate["tests"].keys())
    against = len(suite.regressions) + len(suite.unknown) + len(suite.lost)
    cells = [suite.name, tests, _figures(suite.control), _figures(suite.candidate), against, len(suite.bound)]
    return f"| {' | '.join(map(str, cells))} |"


def _figures(record: dict[str, Any]) -> str:
    ok, bad, skipped = _counts(record)
    return f"{ok} / {bad} / {skipped}, {record['seconds']:.0f}"


def _counts(record: dict[str, Any]) -> tuple[int, int, int]:
    counts = Counter(test["status"] for test in record["tests"].values())
    return counts["ok"], sum(counts[status] for status in BAD), counts["skip"]


def _total(comparisons: list[SuiteComparison]) -> str:
    tests = sum(len(c.control["tests"].keys() | c.candidate["tests"].keys()) for c in comparisons)
    control = sum(_counts(c.control)[0] for c in comparisons)
    candidate = sum(_counts(c.candidate)[0] for c in comparisons)
    against = sum(len(c.regressions) + len(c.unknown) + len(c.lost) for c in comparisons)
    bound = sum(len(c.bound) for c in comparisons)
    seconds = [sum(c.control["seconds"] for c in comparisons), sum(c.candidate["seconds"] for c in comparisons)]
    return (
        f"| **all** | {tests} | {control} ok, {seconds[0]:.0f} | {candidate} ok, {seconds[1]:.0f} "
        f"| **{against}** | {bound} |"
    )


def _details(suite: SuiteComparison) -> Iterator[str]:
    tests = suite.candidate["tests"]
    for test_id in suite.regressions:
        yield f"- `{test_id}` {tests[test_id]['status']}: {telling_line(tests[test_id].get('err', ''))}"
    for test_id in suite.unknown:
        line = telling_line(tests[test_id].get("err", ""))
        yield f"- `{test_id}` {tests[test_id]['status']}, unknown to the control: {line}"
    for test_id, why in suite.bound.items():
        yield f"- (bound to ZCatalog: {why}) `{test_id}`"
    for test_id in suite.lost:
        yield f"- `{test_id}` was not run"


def telling_line(err: str) -> str:
    """Return the most informative line of a traceback."""
    lines = [line for line in err.splitlines() if line.strip()]
    for line in reversed(lines):
        if EXCEPTION_LINE.match(line):
            return line[:220]
    return lines[-1].strip()[:220] if lines else ""
