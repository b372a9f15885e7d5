"""The parts of the runner of Plone's suites that need neither Plone nor a server."""

from checks.plone_suites import results
from checks.plone_suites.compare import compare
from checks.plone_suites.compare import load_bound
from checks.plone_suites.driver import HERE
from checks.plone_suites.driver import ROOT
from checks.plone_suites.driver import select
from checks.plone_suites.page import load_left_out
from checks.plone_suites.page import sdists
from typing import Any

import pytest
import re


def result(**statuses: str) -> dict[str, Any]:
    tests = {name: {"status": status, "secs": 1, "err": "ValueError: x"} for name, status in statuses.items()}
    return {"profile": "x", "versions": {}, "suites": {"s": {"seconds": 1.5, "tests": tests}}}


def only_suite(control: dict[str, Any], candidate: dict[str, Any], bound: dict[Any, str] | None = None) -> Any:
    (suite,) = compare(control, candidate, bound or {})
    return suite


def test_what_fails_only_with_the_candidate_counts_unless_it_is_excused() -> None:
    control = result(a="ok", b="fail", c="ok", d="skip", e="ok")
    suite = only_suite(control, result(a="ok", b="error", c="fail", d="crash", e="skip"))
    assert (suite.regressions, suite.passed) == (["c", "d"], False)
    assert only_suite(control, control).passed
    suite = only_suite(result(a="ok"), result(a="fail"), {re.compile("a"): "because"})
    assert (suite.bound, suite.passed) == ({"a": "because"}, True)


@pytest.mark.parametrize(("candidate", "kind"), [({"a": "ok", "b": "fail"}, "unknown"), ({}, "lost")])
def test_a_failure_unknown_to_the_control_and_a_test_not_run_count(candidate: dict[str, str], kind: str) -> None:
    suite = only_suite(result(a="ok"), result(**candidate))
    assert getattr(suite, kind)
    assert not suite.passed


@pytest.mark.parametrize("tier", ["quick", "medium", "wide", "addons"])
def test_the_kept_controls_fit_their_tiers(tier: str) -> None:
    control = results.load(HERE / f"control-{tier}.json")
    assert set(control["suites"]) == set(select([f"only:{tier}"]))
    assert control["profile"] == "none"


def test_the_kept_controls_are_read_as_one() -> None:
    assert set(results.stored_controls()["suites"]) == set(select(["all", "addons"]))


def test_every_excuse_has_a_reason() -> None:
    assert load_bound()
    assert all(load_bound().values())
    assert load_left_out()
    assert all(load_left_out().values())


def test_every_bound_test_exists() -> None:
    suites = results.stored_controls()["suites"].values()
    ids = [test for suite in suites for test, result in suite["tests"].items() if result["status"] == "ok"]
    assert [pattern.pattern for pattern in load_bound() if not any(pattern.search(test) for test in ids)] == []


def test_the_source_distributions_are_pinned_and_those_of_the_suites() -> None:
    names = {entry.split()[0] for entry in sdists()}
    assert names == {spec["sdist"] for spec in select(["addons"]).values() if "sdist" in spec}
    pinned = set((ROOT / "constraints.txt").read_text("utf-8").splitlines())
    assert {re.sub(r"[.\s]", "-", entry.split()[0]) + f"=={entry.split()[1]}" for entry in sdists()} <= pinned
