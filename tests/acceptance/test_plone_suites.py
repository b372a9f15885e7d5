"""The verdict on Plone's suites, and the stored results that it compares with."""

from checks.plone_suites import results
from checks.plone_suites.compare import compare
from checks.plone_suites.compare import load_bound
from checks.plone_suites.driver import HERE
from checks.plone_suites.driver import select
from checks.plone_suites.page import load_left_out
from typing import Any

import pytest
import re


def result(tests: dict[str, str]) -> dict[str, Any]:
    found = {name: {"status": status, "secs": 1, "err": "ValueError: x"} for name, status in tests.items()}
    return {"profile": "x", "versions": {}, "suites": {"s": {"seconds": 1.5, "tests": found}}}


CONTROL = {"a": "ok", "b": "fail", "c": "ok", "d": "skip"}


@pytest.mark.parametrize(
    ("changes", "excused", "counts"),
    [
        ({}, "", False),
        ({"b": "error"}, "", False),
        ({"a": "skip"}, "", False),
        ({"c": "fail"}, "", True),
        ({"c": "fail"}, "c", False),
        ({"d": "crash"}, "c", True),
        ({"unknown": "fail"}, "", True),
        ({"a": None}, "", True),
    ],
)
def test_only_failures_with_the_candidate_alone_and_tests_not_run_count(
    changes: dict[str, Any], excused: str, counts: bool
) -> None:
    candidate = {name: status for name, status in (CONTROL | changes).items() if status}
    bound = {re.compile(excused): "because"} if excused else {}
    [suite] = compare(result(CONTROL), result(candidate), bound)
    assert suite.passed is not counts


@pytest.mark.parametrize("tier", ["quick", "medium", "wide", "addons"])
def test_stored_controls_fit_their_tiers(tier: str) -> None:
    control = results.load(HERE / f"control-{tier}.json")
    assert set(control["suites"]) == set(select([f"only:{tier}"]))
    assert control["profile"] == "none"


def test_every_excuse_has_a_reason_and_a_test() -> None:
    assert all([*load_bound().values(), *load_left_out().values()])
    suites = results.stored_controls()["suites"].values()
    ids = [test for suite in suites for test, result in suite["tests"].items() if result["status"] == "ok"]
    assert [pattern.pattern for pattern in load_bound() if not any(pattern.search(test) for test in ids)] == []
