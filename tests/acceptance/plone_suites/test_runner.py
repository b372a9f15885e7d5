"""The runner of Plone's suites, as far as it needs neither Plone nor a server."""

from pathlib import Path
from tests.acceptance.plone_suites import results
from tests.acceptance.plone_suites.compare import compare
from tests.acceptance.plone_suites.compare import load_bound
from tests.acceptance.plone_suites.driver import select
from tests.acceptance.plone_suites.page import load_left_out
from typing import Any

import pytest
import re


def result(**statuses: str) -> dict[str, Any]:
    tests = {name: {"status": status, "secs": 1, "err": "ValueError: x"} for name, status in statuses.items()}
    return {
        "profile": "x",
        "versions": {},
        "suites": {"s": {"seconds": 1.5, "tests": tests}},
    }


def only_suite(
    control: dict[str, Any],
    candidate: dict[str, Any],
    bound: dict[Any, str] | None = None,
) -> Any:
    (suite,) = compare(control, candidate, bound or {})
    return suite


def test_what_fails_only_with_the_candidate_counts() -> None:
    control = result(a="ok", b="fail", c="ok", d="skip", e="ok")
    suite = only_suite(control, result(a="ok", b="error", c="fail", d="crash", e="skip"))
    assert suite.regressions == ["c", "d"]
    assert not suite.passed


def test_an_equal_result_passes() -> None:
    suite = only_suite(result(a="ok", b="fail"), result(a="ok", b="fail"))
    assert suite.passed


@pytest.mark.parametrize(("candidate", "kind"), [({"a": "ok", "b": "fail"}, "unknown"), ({}, "lost")])
def test_a_failure_unknown_to_the_control_and_a_test_not_run_count(candidate: dict[str, str], kind: str) -> None:
    suite = only_suite(result(a="ok"), result(**candidate))
    assert getattr(suite, kind)
    assert not suite.passed


def test_a_partial_run_loses_nothing() -> None:
    candidate = result(a="ok")
    candidate["suites"]["s"]["partial"] = True
    assert only_suite(result(a="ok", b="ok"), candidate).passed


def test_a_bound_test_is_excused_with_its_reason() -> None:
    suite = only_suite(result(a="ok"), result(a="fail"), {re.compile("a"): "because"})
    assert suite.bound == {"a": "because"}
    assert suite.passed


def test_tiers_include_each_other() -> None:
    quick, medium, wide, everything = (set(select([name])) for name in ("quick", "medium", "only:wide", "all"))
    assert quick < medium < everything
    assert wide == everything - medium
    assert set(select(["only:medium"])) == medium - quick
    assert select(["module:a.b"]) == {"module:a.b": {"modules": ["a.b"]}}
    with pytest.raises(KeyError):
        select(["no such suite"])


@pytest.mark.parametrize("tier", ["quick", "medium", "wide", "addons"])
def test_the_kept_controls_fit_their_tiers(tier: str) -> None:
    control = results.load(Path(__file__).with_name(f"control-{tier}.json"))
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
