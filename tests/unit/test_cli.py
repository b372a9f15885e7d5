"""The command pgcatalog itself: its subcommands, the modules it loads, and its recorded sessions in the reference."""

from pathlib import Path
from plone.pgcatalog.cli import commands
from plone.pgcatalog.cli.commands import COMMANDS
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.cli.commands import SECTIONS
from plone.pgcatalog.indexing import rebuild_worker
from typing import Any

import click
import click.testing
import os
import pytest
import re
import subprocess
import sys


#: Packages that only a command with a ZOPE_CONF may load.
ZOPE = (
    *("AccessControl", "Acquisition", "OFS", "Products.CMFCore", "Products.CMFPlone", "Products.ZCatalog", "Zope2"),
    "ZPublisher",
)
LOADED = "import sys; print(sorted(set(sys.modules) & set(sys.argv[1:])))"


def loaded(code: str) -> str:
    """Return the packages of Zope that a new process has loaded after *code*."""
    program = f"{code}\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", program, *ZOPE], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in ("status", "vacuum", "export", "check"))]
)
def test_help_and_version_load_no_zope(arguments: list[str]) -> None:
    code = f"from plone.pgcatalog.cli.commands import main\nmain({arguments!r}, standalone_mode=False)\n"
    assert loaded(code) == "[]"


#: Upper limits for the modules loaded on Python 3.12, most of them of psycopg and rich; Plone has some 5,000.
@pytest.mark.parametrize(
    ("code", "most"),
    [
        ("from plone.pgcatalog.cli.commands import main; main(['--help'], standalone_mode=False)", 200),
        ("from plone.pgcatalog.cli.commands import main; main(['--version'], standalone_mode=False)", 250),
        *((f"import plone.pgcatalog.cli.{name}", 500) for name in ("reports", "data")),
    ],
)
def test_commands_that_need_no_zope_load_few_modules(code: str, most: int) -> None:
    count = "import sys; print(len(sys.modules), *(name for name in sys.argv[1:] if name in sys.modules))"
    command = [
        sys.executable,
        "-c",
        f"{code}\n{count}",
        "Acquisition",
        "ZODB",
        "Zope2",
        "zope.component",
        "psycopg_pool",
    ]
    last = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    assert int(last[0]) < most
    assert last[1:] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_under_its_name(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert isinstance(command, click.Command)
    assert (command.name, bool(command.help)) == (name, True)


def test_commands_for_production_come_before_those_for_trying_out() -> None:
    text = click.testing.CliRunner().invoke(main, ["--help"]).output
    places = [text.index(f"{title}:") for title in SECTIONS]
    assert places == sorted(places)
    assert text.index("  bench ") > text.index("Measure:") > text.index("  rebuild ")
    assert max(map(len, text.splitlines())) <= 80


def test_the_version_names_the_storage_too() -> None:
    text = click.testing.CliRunner().invoke(main, ["--version"]).output
    assert text.startswith("plone.pgcatalog 1.")
    assert "zodb-pgjsonb 1." in text


def test_an_unknown_command_is_an_error() -> None:
    result = click.testing.CliRunner().invoke(main, ["instal"])
    assert result.exit_code == 2
    assert "No such command 'instal'" in result.output


# -- arguments are checked before Plone is started


AWAY = "host=127.0.0.1 port=1 dbname=x"
STORAGES = {
    "file": "<filestorage>\n path {folder}/Data.fs\n</filestorage>",
    "away": f"<pgjsonb>\n dsn {AWAY}\n</pgjsonb>",
    "unreadable": "<nothing>\n</nothing>",
}
CONF = """\
%import zodb_pgjsonb
instancehome {folder}
<zodb_db main>
  mount-point /
  {storage}
</zodb_db>
"""
OF_A_CATALOG = ("rebuild", "verify", "advise", "uninstall")


@pytest.mark.parametrize(
    ("command", "storage", "more", "told"),
    [
        *((name, "unreadable", [], "cannot be read") for name in (*OF_A_CATALOG, "install", "compare")),
        *((name, "file", [], "is filestorage, and not zodb-pgjsonb") for name in OF_A_CATALOG),
        *((name, "away", [], "the database of") for name in (*OF_A_CATALOG, "install")),
        ("explain", "file", ["{}"], "is filestorage, and not zodb-pgjsonb"),
        ("explain", "away", ["a query"], "is not a query"),
        ("explain", "away", ['{"sort_on": 5}'], "sort_on must be a string"),
        ("compare", "file", ["--scratch", AWAY], "the scratch database"),
        ("compare", "file", ["--limit", "0"], "0 is not in the range"),
        ("copy", "file", ["nowhere.conf"], "does not exist"),
    ],
)
def test_wrong_arguments_are_reported_before_plone_is_started(
    tmp_path: Path, command: str, storage: str, more: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(zope_conf: str) -> None:
        raise AssertionError("Plone would be started")

    monkeypatch.setattr("plone.pgcatalog.cli.site.open_zope", start)
    conf = tmp_path / "zope.conf"
    conf.write_text(CONF.format(folder=tmp_path, storage=STORAGES[storage].format(folder=tmp_path)))
    done = click.testing.CliRunner().invoke(main, [command, str(conf), *more])
    assert done.exit_code in (1, 2), done.exception
    assert told in done.output


REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "commands.md").read_text("utf-8")
SECTION = re.compile(r"^## pgcatalog (\w+)\n(.*?)(?=^## |\Z)", re.M | re.S)
INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)$", re.M)


def test_reference_shows_a_session_of_each_command_without_places_of_a_machine() -> None:
    sessions = [(name, path) for name, section in SECTION.findall(PAGE) for path in INCLUDE.findall(section)]
    assert {path for _, path in sessions} == {f"cli/{path.name}" for path in (REFERENCE / "cli").iterdir()}
    assert {Path(path).stem for _, path in sessions} == set(commands.COMMANDS)
    for command, path in sessions:
        text = (REFERENCE / path).read_text("utf-8")
        assert re.match(rf"\$ pgcatalog {command}\b.*\n.", text), path
        assert not re.search(r"/tmp|/root|/home|/usr|host=|user=|password=|Traceback", text), path


def test_few_objects_are_visited_by_one_process_and_many_by_all_cores() -> None:
    assert rebuild_worker.default_workers(rebuild_worker.FEW_OBJECTS) == 1
    assert rebuild_worker.default_workers(rebuild_worker.FEW_OBJECTS + 1) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        *((["-v", "wsgi.ini"], "zope.conf"), (["other.ini", "wsgi.ini"], "zope.conf")),
        *((["debug", "zope.conf"], "zope.conf"), (["missing.ini"], None), (["broken.ini"], None), (["run.py"], None)),
        ([], None),
    ],
)
def test_zope_conf_of_a_process_is_that_of_its_command(
    tmp_path: Path, monkeypatch: Any, arguments: list[str], found: str | None
) -> None:
    (tmp_path / "zope.conf").write_text("")
    (tmp_path / "wsgi.ini").write_text("[server:main]\nport = 1\n[app:zope]\nzope_conf = %(here)s/zope.conf\n")
    (tmp_path / "other.ini").write_text("[a]\nb = 1\n")
    (tmp_path / "broken.ini").write_bytes(b"\xff not an ini")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["runwsgi", *arguments])
    assert rebuild_worker.own_zope_conf() == (found and str(tmp_path / found))
