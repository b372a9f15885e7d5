"""The table of how long a move takes: a straight line through two measurements."""

from pathlib import Path
from scripts.moving import table
from typing import Any

import pytest


def figure(objects: int, seconds: float, size: int) -> dict[str, Any]:
    return {"objects": objects, "bytes": size, "seconds": {key: seconds for _, key in table.STEPS}}


def test_a_line_goes_through_both_measurements() -> None:
    text = table.rows("zeo", [figure(500, 60, 50 << 20), figure(2500, 180, 130 << 20)])
    assert "| **500** | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | 50 MB |" in text
    assert "| **2,500** | 3.0 | 3.0 | 3.0 | 3.0 | 3.0 | 130 MB |" in text
    # 60 ms for each object, 30 s for all; 41 KB, 30 MB.
    assert "| 10,000 | 10.5 | 10.5 | 10.5 | 10.5 | 10.5 | 430 MB |" in text
    assert "copy 30 s + 60.0 ms" in text


@pytest.mark.parametrize("seconds", [10, 20])
def test_more_objects_never_take_less_time(seconds: int) -> None:
    text = table.rows("zeo", [figure(500, 20, 1 << 20), figure(2500, seconds, 1 << 20)])
    assert "| 200,000 | 0.3 |" in text


def test_one_size_gives_no_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- moving -->\n<!-- end of moving -->\n")
    table.write({"zeo-500": figure(500, 1, 1)}, page)
    assert page.read_text() == "<!-- moving -->\n<!-- end of moving -->\n"
    table.write({"zeo-500": figure(500, 1, 1), "zeo-900": figure(900, 2, 2)}, page)
    assert "From ZEO" in page.read_text()
