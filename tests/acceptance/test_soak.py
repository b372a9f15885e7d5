"""The soak, small: a killed server costs what was on its way, and nothing that was acknowledged."""

from benchmarks.soak_ledger import ABSENT
from benchmarks.soak_ledger import compare
from benchmarks.soak_ledger import Page
from benchmarks.soak_ledger import Version
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from plone.uuid.interfaces import IUUID
from tests.integration.content import create
from typing import Any

import json
import subprocess
import sys
import transaction


ROOT = Path(__file__).parents[2]
OPTIONS = {"seconds": 15, "kills": 1, "clients": 2, "processes": 1, "threads": 2, "objects": 40}


def test_a_small_soak_keeps_every_promise(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    page = tmp_path / "soak.md"
    page.write_text("before\n<!-- soak -->\nthe former table\n<!-- end of soak -->\nafter\n")
    command = [sys.executable, "-W", "ignore", str(ROOT / "benchmarks" / "soak.py")]
    for name, value in OPTIONS.items():
        command += [f"--{name}", str(value)]
    command += ["--output", str(output), "--page", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(output.read_text())
    assert report["broken"] == report["lost"] == report["phantom"] == report["stale"] == report["differences"] == []
    assert len(report["outages"]) == OPTIONS["kills"]
    assert report["requests"] > report["acknowledged_writes"] > 0
    assert report["compared"] > 0
    assert report["verified"] >= OPTIONS["objects"]
    assert [n for n in report["errors"].values() if n["outside"]] == []
    assert 0 < report["connections"]["zope1"] <= report["connections_bound"]
    text = page.read_text()
    assert text.startswith("before\n<!-- soak -->\n")
    assert text.endswith("<!-- end of soak -->\nafter\n")
    assert "the former table" not in text
    assert f"| requests | {report['requests']} |" in text


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
