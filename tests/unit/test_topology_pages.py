"""The figures about several machines in the documentation are those of the stored runs."""

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
