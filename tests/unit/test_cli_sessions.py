"""The recorded sessions in the reference: each is there, is of its command, and names no machine."""

from pathlib import Path
from plone.pgcatalog.cli import commands

import pytest
import re


REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
COMMANDS = (REFERENCE / "commands.md").read_text("utf-8")
SECTION = re.compile(r"^## pgcatalog (\w+)\n(.*?)(?=^## |\Z)", re.M | re.S)
INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)$", re.M)

SESSIONS = [(name, path) for name, section in SECTION.findall(COMMANDS) for path in INCLUDE.findall(section)]


@pytest.mark.parametrize(("command", "path"), SESSIONS)
def test_a_session_is_of_its_command(command: str, path: str) -> None:
    text = (REFERENCE / path).read_text("utf-8")
    lines = text.splitlines()
    assert lines[0].startswith(f"$ pgcatalog {command}")
    assert len(lines) > 1
    assert not re.search(r"/tmp|/root|/home|/usr|host=|user=|password=|Traceback", text)


def test_every_session_is_shown() -> None:
    assert {path for _, path in SESSIONS} == {f"cli/{path.name}" for path in (REFERENCE / "cli").iterdir()}


def test_every_command_has_a_session() -> None:
    assert set(commands.COMMANDS) == {path.stem for path in (REFERENCE / "cli").iterdir()}
