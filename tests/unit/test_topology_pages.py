"""The figures about several machines in the documentation are those of the stored runs."""

from scripts.topology import standby
from scripts.topology import vanish
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


def test_the_page_on_failovers_has_the_stored_waits_for_a_silent_host() -> None:
    assert between(HOW_TO / "high-availability.md", "vanished") == vanish.text(stored("vanish")["found"])
