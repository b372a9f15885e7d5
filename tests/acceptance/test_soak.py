"""The soak, small: a killed server loses unfinished writes, and nothing that was acknowledged."""

from pathlib import Path
from typing import Any

import json
import pytest
import subprocess
import sys


ROOT = Path(__file__).parents[2]
FAILOVERS = {"seconds": 30, "failovers": 2, "clients": 3, "processes": 2, "threads": 2, "objects": 40}
SYNCHRONOUS = {"seconds": 12, "failovers": 1, "clients": 2, "processes": 2, "threads": 2, "objects": 40}
OPTIONS = {"seconds": 15, "kills": 1, "clients": 2, "processes": 1, "threads": 2, "objects": 40}


def soak(folder: Path, options: dict[str, int], mark: str, *flags: str) -> tuple[dict[str, Any], str]:
    """Run a soak that must fulfil every promise; return its report, and the page with its tables at *mark*."""
    output = folder / "soak.json"
    page = folder / "soak.md"
    page.write_text(f"before\n<!-- {mark} -->\nthe former table\n<!-- end of {mark} -->\nafter\n")
    command = [sys.executable, "-W", "ignore", "-m", "checks.soak", *flags]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    command += ["--output", str(output), "--page", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(output.read_text("utf-8"))
    return report, page.read_text("utf-8")


@pytest.mark.slow
def test_small_soak_fulfils_every_promise(tmp_path: Path) -> None:
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
def test_failovers_lose_commits_and_no_zope_answers_from_them(tmp_path: Path) -> None:
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
