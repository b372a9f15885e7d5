"""The soak of files, small: despite kills each file is found in the end, and its text stored once."""

from pathlib import Path

import json
import pytest
import subprocess
import sys


ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_each_file_is_found_despite_kills(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    command = [sys.executable, "-W", "ignore", "-m", "checks.soak.files", "--files", "12", "--kills", "3"]
    done = subprocess.run([*command, "--output", str(output)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(output.read_text("utf-8"))
    assert report["kills"] == {"PostgreSQL": 1, "reading process": 1, "worker": 1}
    assert report["texts"] == report["files"] == 12
    assert report["waiting"] == report["failed"] == report["extracted_twice"] == 0
    assert report["not_found"] == []
