"""The soak, small: a killed server costs what was on its way, and nothing that was acknowledged."""

from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from plone.uuid.interfaces import IUUID
from tests.integration.content import create
from tests.soak.clients import Client
from tests.soak.clients import Gate
from tests.soak.failover import Failover
from tests.soak.failover import settle
from tests.soak.ledger import ABSENT
from tests.soak.ledger import compare
from tests.soak.ledger import Page
from tests.soak.ledger import Version
from typing import Any

import json
import pytest
import subprocess
import sys
import transaction


ROOT = Path(__file__).parents[2]
FAILOVERS = {"seconds": 30, "failovers": 2, "clients": 3, "processes": 2, "threads": 2, "objects": 40}
SYNCHRONOUS = {"seconds": 12, "failovers": 1, "clients": 2, "processes": 2, "threads": 2, "objects": 40}
OPTIONS = {"seconds": 15, "kills": 1, "clients": 2, "processes": 1, "threads": 2, "objects": 40}


def soak(folder: Path, options: dict[str, int], mark: str, *flags: str) -> tuple[dict[str, Any], str]:
    """Run a soak that keeps every promise; return its report, and the page with its tables at *mark*."""
    output = folder / "soak.json"
    page = folder / "soak.md"
    page.write_text(f"before\n<!-- {mark} -->\nthe former table\n<!-- end of {mark} -->\nafter\n")
    command = [sys.executable, "-W", "ignore", "-m", "tests.soak", *flags]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    command += ["--output", str(output), "--page", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(output.read_text())
    return report, page.read_text()


@pytest.mark.slow
def test_a_small_soak_keeps_every_promise(tmp_path: Path) -> None:
    report, text = soak(tmp_path, OPTIONS, "soak")
    assert report["broken"] == report["lost"] == report["phantom"] == report["stale"] == report["differences"] == []
    assert len(report["outages"]) == OPTIONS["kills"]
    assert report["requests"] > report["acknowledged_writes"] > 0
    assert report["compared"] > 0
    assert report["verified"] >= OPTIONS["objects"]
    assert [n for n in report["errors"].values() if n["outside"]] == []
    assert 0 < report["connections"]["zope1"] <= report["connections_bound"]
    assert text.startswith("before\n<!-- soak -->\n")
    assert text.endswith("<!-- end of soak -->\nafter\n")
    assert "the former table" not in text
    assert f"| requests | {report['requests']} |" in text


@pytest.mark.slow
def test_failovers_lose_commits_and_nobody_answers_from_them(tmp_path: Path) -> None:
    report, text = soak(tmp_path, FAILOVERS, "failovers")
    assert report["broken"] == report["lost"] == report["phantom"] == report["stale"] == report["differences"] == []
    assert len(report["outages"]) == FAILOVERS["failovers"]
    assert report["lost_by_failovers"]
    assert report["compared_answers"] > 0
    assert [n for n in report["errors"].values() if n["outside"]] == []
    silent = report["seconds_without_answers"]
    assert [sorted(seconds) for seconds in silent] == [["read", "write"]] * FAILOVERS["failovers"]
    lost = len(report["lost_by_failovers"])
    assert f"| acknowledged writes they lost, which is allowed | {lost} |" in text


@pytest.mark.slow
def test_a_synchronous_standby_loses_nothing(tmp_path: Path) -> None:
    report, text = soak(tmp_path, SYNCHRONOUS, "synchronous failovers", "--synchronous")
    assert report["broken"] == report["lost_by_failovers"] == report["stale"] == report["differences"] == []
    assert len(report["outages"]) == len(report["seconds_without_answers"]) == SYNCHRONOUS["failovers"]
    assert report["acknowledged_writes"] > 0
    assert report["compared_answers"] > 0
    assert "| failovers to a synchronous standby | 1 |\n| acknowledged writes they lost | 0 |" in text
    assert report["command"].endswith(" --synchronous")


def test_what_a_failover_loses_is_known_afterwards() -> None:
    old, lost, gone = Version("soak/f0/a", "old"), Version("soak/f0/a", "lost"), Version("soak/f0/b", "gone")
    client = Client(0, [], [], 0, Gate())
    kept = Page("k", [Version("soak/f0/k", "kept")])
    changed = Page("a", [lost], [ABSENT, old], written=20)
    created = Page("b", [gone], [ABSENT], written=20)
    unsure = Page(None, [ABSENT, Version("soak/f0/c", "perhaps")])
    client.pages = [kept, changed, created, unsure]
    client.live = [kept, changed, created]
    rows = {"soak/f0/k": ("k", "kept", "private"), "soak/f0/a": ("a", "old", "private")}
    failover = Failover()
    assert settle([client], rows, 10, failover) == [lost, gone]
    assert ([p.possible for p in client.pages[:3]], failover.wrong) == ([[kept.version], [old], [ABSENT]], [])
    assert client.live == [kept, changed]
    assert settle([client], rows, 10, failover) == []
    early, foreign = Failover(), Failover()
    changed.possible = [lost]
    settle([client], rows, 30, early)
    assert [line.partition(":")[0] for line in early.wrong] == ["lost, though the standby had it"]
    settle([client], rows | {"soak/f0/a": ("a", "foreign", "private")}, 10, foreign)
    assert [line.partition(":")[0] for line in foreign.wrong] == ["phantom"]


def test_a_write_that_a_failover_interrupts_is_repeated_on_what_is_left() -> None:
    old, lost = Version("soak/f0/a", "old", "published"), Version("soak/f0/a", "old")
    page = Page("a", [lost], [old])
    client = Client(0, [], [], 0, Gate())
    client.pages = [page]
    client.api = lambda *args, **options: "an answer"  # type: ignore[method-assign]
    client.write([page], partial(replace, title="new"), "edit", "PATCH", "soak/f0/a")
    rows = {"soak/f0/a": ("a", "new", "published")}
    failover, later = Failover(outage=(page.written - 1, page.written)), Failover(outage=(page.written + 1,) * 2)
    settle([client], rows, 0, failover)
    assert (page.possible, failover.wrong) == ([replace(old, title="new")], [])
    page.possible = [lost]
    settle([client], rows, 0, later)
    assert [line.partition(":")[0] for line in later.wrong] == ["phantom"]


def test_the_ledger_names_what_is_lost_and_what_nobody_made(portal: Any) -> None:
    create(portal, "Folder", "soak")
    folder = create(portal.soak, "Folder", "f0")
    for name in ("kept", "changed", "unsearchable", "unknown"):
        create(folder, "Document", name, title=f"word {name}1")
    transaction.commit()

    def page(name: str, *versions: Version) -> Page:
        return Page(IUUID(folder[name]), list(versions))

    def version(name: str) -> Version:
        return Version(f"soak/f0/{name}", f"word {name}1")

    pages = [page(name, version(name)) for name in ("kept", "changed", "unsearchable", "unknown")]
    unsure = [page("kept", version("other"), version("kept")), Page(None, [ABSENT, version("other")])]
    assert compare(portal, "soak", [*pages, *unsure]) == {"compared": 6, "lost": [], "phantom": []}
    portal.portal_catalog.uncatalog_object("/plone/soak/f0/unsearchable")
    pages[1].possible = [replace(version("changed"), title="word changed2")]
    transaction.commit()
    lost, phantom = itemgetter("lost", "phantom")(compare(portal, "soak", [*pages[:3], Page("gone", [ABSENT])]))
    assert [line.partition(":")[0] for line in lost] == [
        "soak/f0/unsearchable",
        pages[1].uid,
        "soak/f0/unsearchable",
    ]
    assert phantom == ["soak/f0/unknown: nobody has made it"]
