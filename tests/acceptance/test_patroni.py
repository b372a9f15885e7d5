"""Real servers under Patroni, with etcd, HAProxy and Zopes: the leader is killed once."""

from checks.topology import cluster
from pathlib import Path

import json
import pytest
import subprocess
import sys


ROOT = Path(__file__).parents[2]
OPTIONS = {"kills": 1, "pauses": 0, "cuts": 0, "switchovers": 1, "clients": 2, "threads": 2, "objects": 40}


@pytest.mark.slow
@pytest.mark.skipif(bool(cluster.missing()), reason=f"not installed: {cluster.missing()}")
def test_new_leader_has_the_saved_objects_and_the_former_one_follows(tmp_path: Path) -> None:
    output, page = tmp_path / "patroni.json", tmp_path / "page.md"
    page.write_text("<!-- cost of Patroni -->\n<!-- end of cost of Patroni -->\n")
    options = [word for name, value in OPTIONS.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "checks.topology", "patroni", "--standby", "synchronous", *options]
    command += ["--output", str(output), "--page", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(output.read_text())["runs"]["synchronous"]
    assert [failure["way"] for failure in found["failures"]] == [cluster.KILLED, cluster.SWITCHED]
    assert found["lost"] == found["stale"] == 0 < found["acknowledged"]
    assert found["compared"] > 0
    assert "| synchronous | 2 | 0 of " in page.read_text()
