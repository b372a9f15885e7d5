"""The figures about several machines in the documentation are those of the stored runs."""

from scripts.topology import patroni
from scripts.topology import standby
from tests.unit.sources import between
from tests.unit.sources import ROOT
from tests.unit.sources import text
from typing import Any

import json


HOW_TO = ROOT / "docs" / "how-to"


def stored(name: str) -> Any:
    return json.loads(text(ROOT / "scripts" / "topology" / "results" / f"{name}.json"))


def test_the_page_on_readers_has_the_stored_numbers_of_statements() -> None:
    found = stored("standby")["statements that the primary gets"]
    assert between(HOW_TO / "read-only-replicas.md", "statements") == "\n".join(standby.lines(found))
    assert {numbers["reader"] for numbers in found.values()} == {0}


def test_the_page_on_failovers_has_the_stored_run_of_patroni() -> None:
    assert between(HOW_TO / "high-availability.md", patroni.MARK) == patroni.text(stored("patroni"))


def test_no_failover_of_patroni_has_shown_or_lost_what_it_may_not() -> None:
    for standby_is, found in stored("patroni")["runs"].items():
        assert found["broken"] == []
        assert found["stale"] == 0 < found["compared"]
        assert not (patroni.SYNCHRONOUS[standby_is] and found["lost"])
