"""Which processes help with a rebuild, and with which zope.conf."""

from pathlib import Path
from plone.pgcatalog.indexing import rebuild_worker
from typing import Any

import os
import pytest
import sys


def test_few_objects_are_visited_by_one_process_and_many_by_all_cores() -> None:
    assert rebuild_worker.default_workers(rebuild_worker.FEW_OBJECTS) == 1
    assert rebuild_worker.default_workers(rebuild_worker.FEW_OBJECTS + 1) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["-v", "wsgi.ini"], "zope.conf"),
        (["other.ini", "wsgi.ini"], "zope.conf"),
        (["debug", "zope.conf"], "zope.conf"),
        (["missing.ini"], None),
        (["broken.ini"], None),
        (["run.py"], None),
        ([], None),
    ],
)
def test_the_zope_conf_of_a_process_is_told_by_its_command(
    tmp_path: Path, monkeypatch: Any, arguments: list[str], found: str | None
) -> None:
    (tmp_path / "zope.conf").write_text("")
    (tmp_path / "wsgi.ini").write_text("[server:main]\nport = 1\n[app:zope]\nzope_conf = %(here)s/zope.conf\n")
    (tmp_path / "other.ini").write_text("[a]\nb = 1\n")
    (tmp_path / "broken.ini").write_bytes(b"\xff not an ini")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["runwsgi", *arguments])
    assert rebuild_worker.own_zope_conf() == (found and str(tmp_path / found))
