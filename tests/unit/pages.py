"""Helpers for tests of the documentation: the project's files, the parts of a page, and the existing commands."""

from importlib.metadata import EntryPoint
from pathlib import Path
from tests.unit.sources import ROOT
from tests.unit.sources import text

import click
import re
import subprocess
import tomllib


GENERATED = {"build", "dist", "node_modules", "demo-data", "__pycache__", "_build"}

FENCE = re.compile(r"^( *)```\{?([\w-]*)\}?[^`\n]*\n(.*?)^\1```$", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def project_files() -> list[Path]:
    """Return the files of the project: those that git tracks or does not ignore."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # no git, or no checkout
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(part.startswith(".") or part in GENERATED for part in path.relative_to(ROOT).parts)
        ]
    return sorted(path for path in paths if path.is_file())


def commands() -> list[tuple[str, click.Command]]:
    """Return (name, command) of the console scripts of the package, and of their subcommands."""
    scripts = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["scripts"]
    found: list[tuple[str, click.Command]] = []
    for script, target in scripts.items():
        command = EntryPoint(script, target, "console_scripts").load()
        if not isinstance(command, click.Group):
            found.append((script, command))
            continue
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            found.append((f"{script} {name}", subcommand))
    return found
