"""The checker of histories finds each anomaly in a history that has it, and none in sound ones."""

from checks.fails.anomalies import anomalies
from checks.fails.anomalies import Status
from checks.fails.anomalies import Transaction

import pytest


T = Transaction
SOUND = [
    T("a", [], [("x", "1")]),
    T("b", [("x", ("1",))], [("x", "2"), ("y", "1"), ("y", "2")]),
    T("c", [("x", ("1", "2")), ("y", ("1", "2"))]),
]
#: Two transactions read both lists and append to one each: write skew, which snapshots allow.
SKEW = [
    T("a", [("x", ()), ("y", ())], [("x", "1")]),
    T("b", [("x", ()), ("y", ())], [("y", "1")]),
    T("c", [("x", ("1",)), ("y", ("1",))]),
]


@pytest.mark.parametrize("history", [[], SOUND, SKEW, [*SOUND, T("d", [], [("x", "3")], Status.ABORTED)]])
def test_sound_history_has_no_anomaly(history: list[Transaction]) -> None:
    assert anomalies(history) == []


@pytest.mark.parametrize(
    ("name", "history"),
    [
        ("G0", [T("a", [], [("x", "1"), ("y", "1")]), T("b", [], [("x", "2"), ("y", "2")]),
                T("c", [("x", ("1", "2")), ("y", ("2", "1"))])]),
        ("G1a", [T("a", [], [("x", "1")], Status.ABORTED), T("b", [("x", ("1",))])]),
        ("G1b", [T("a", [], [("x", "1"), ("x", "2")]), T("b", [("x", ("1",))]), T("c", [("x", ("1", "2"))])]),
        ("G1c", [T("a", [("y", ("1",))], [("x", "1")]), T("b", [("x", ("1",))], [("y", "1")])]),
        ("G-single", [T("a", [], [("x", "1"), ("y", "1")]), T("b", [("x", ("1",)), ("y", ())]),
                      T("c", [("x", ("1",)), ("y", ("1",))])]),
        ("G-single", [T("a", [("x", ())], [("x", "1")]), T("b", [("x", ())], [("x", "2")]), T("c", [("x", ("1", "2"))])]),
        ("order", [T("a", [], [("x", "1")]), T("b", [], [("x", "2")]), T("c", [("x", ("1", "2"))]),
                   T("d", [("x", ("2",))])]),
        ("session", [T("p.0", [], [("x", "1")]), T("p.1", [("x", ())]), T("a", [("x", ("1",))])]),
        ("session", [T("a", [], [("x", "1")]), T("p.0", [("x", ("1",))]), T("p.1", [("x", ())])]),
        ("lost", [T("a", [], [("x", "1")]), T("b", [("x", ())])]),
    ],
)  # fmt: skip
def test_anomaly_of_a_made_history_is_found(name: str, history: list[Transaction]) -> None:
    assert {line.partition(":")[0] for line in anomalies(history)} >= {name}


def test_older_state_of_another_process_is_no_anomaly() -> None:
    """A standby may be behind."""
    history = [T("p.0", [], [("x", "1")]), T("q.0", [("x", ())]), T("q.1", [("x", ("1",))])]
    assert anomalies(history) == []


def test_value_of_an_unknown_commit_may_be_there_or_not() -> None:
    unknown = T("a", [], [("x", "1")], Status.UNKNOWN)
    assert anomalies([unknown, T("b", [("x", ("1",))])]) == anomalies([unknown, T("b", [("x", ())])]) == []
