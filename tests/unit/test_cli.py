"""The command pgcatalog itself: its subcommands, the modules it loads, and its recorded sessions in the reference."""

from pathlib import Path
from plone.pgcatalog.cli.commands import COMMANDS
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.cli.commands import SECTIONS
from plone.pgcatalog.indexing import rebuild_worker
from tests.unit.sources import ROOT
from tests.unit.sources import text

import click
import click.testing
import os
import pytest
import re
import subprocess
import sys


#: Packages that only a command with a ZOPE_CONF may load, and those that no other command needs.
ZOPE = "AccessControl Acquisition OFS Products.CMFCore Products.CMFPlone Products.ZCatalog Zope2 ZPublisher"
LOOK = "Acquisition ZODB Zope2 zope.component psycopg_pool"
#: Prints after each step the number of loaded modules, and those of the named packages that are loaded.
SCRIPT = f"""
import importlib, sys
from plone.pgcatalog.cli.commands import main

def loaded(names=""):
    print("loaded", len(sys.modules), *(name for name in names.split() if name in sys.modules))

for option in ("--help", "--version"):
    main([option], standalone_mode=False)
    loaded()
for name in ("reports", "data"):
    importlib.import_module("plone.pgcatalog.cli." + name)
loaded("{LOOK}")
for name in ("status", "vacuum", "export", "check"):
    main([name, "--help"], standalone_mode=False)
loaded("{ZOPE}")
"""


def output(*arguments: str) -> str:
    return click.testing.CliRunner().invoke(main, arguments).output


def test_commands_that_need_no_zope_load_few_modules_and_none_of_zope() -> None:
    """Most of them are of psycopg and rich; Plone has some 5,000."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    counts, packages = zip(*re.findall(r"^loaded (\d+) ?(.*)$", done.stdout, re.M), strict=True)
    assert [int(count) < most for count, most in zip(counts, (200, 250, 500, 600), strict=True)] == [True] * 4, counts
    assert packages == ("", "", "", "")


def test_every_command_is_there_under_its_name_and_those_for_production_first() -> None:
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert isinstance(command, click.Command)
        assert (command.name, bool(command.help)) == (name, True)
    help = output("--help")
    places = [help.index(f"{title}:") for title in SECTIONS]
    assert places == sorted(places)
    assert help.index("  bench ") > help.index("Measure:") > help.index("  rebuild ")
    assert max(map(len, help.splitlines())) <= 80
    assert re.match(r"plone\.pgcatalog 1\.[^\n]*zodb-pgjsonb 1\.", output("--version"), re.S)
    assert "No such command 'instal'" in output("instal")


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
OF_A_CATALOG = ("rebuild", "verify", "advise", "uninstall", "searches")


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
        ("searches", "away", ["--replay", "nowhere.txt"], "No such file"),
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


REFERENCE = ROOT / "docs" / "reference"


def test_reference_shows_a_session_of_each_command_without_places_of_a_machine() -> None:
    page = text(REFERENCE / "commands.md")
    sessions = re.findall(r"^## pgcatalog (\w+)\n(?:(?!## ).*\n)*?```\{literalinclude\} cli/(\S+)$", page, re.M)
    assert {name for _, name in sessions} == {path.name for path in (REFERENCE / "cli").iterdir()}
    assert {command for command, _ in sessions} == set(COMMANDS)
    for command, name in sessions:
        session = text(REFERENCE / "cli" / name)
        assert re.match(rf"\$ pgcatalog {command}\b.*\n.", session), name
        assert not re.search(r"/tmp|/root|/home|/usr|host=|user=|password=|Traceback", session), name


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], found: str | None
) -> None:
    (tmp_path / "zope.conf").write_text("")
    (tmp_path / "wsgi.ini").write_text("[server:main]\nport = 1\n[app:zope]\nzope_conf = %(here)s/zope.conf\n")
    (tmp_path / "other.ini").write_text("[a]\nb = 1\n")
    (tmp_path / "broken.ini").write_bytes(b"\xff not an ini")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["runwsgi", *arguments])
    assert rebuild_worker.own_zope_conf() == (found and str(tmp_path / found))
