"""Tests pairs of Python and PostgreSQL, and stores the results: ``python -m checks.matrix --help``."""

from benchmarks.marks import put_between
from checks.matrix import table
from checks.matrix.places import MatrixError
from checks.matrix.places import Place
from checks.matrix.places import PLACES
from checks.matrix.places import ROOT
from checks.matrix.places import WHEELS
from checks.matrix.places import Workshop
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import datetime
import json
import re
import signal
import sys
import time


#: Options of pytest that print each failed test at once, so that the log of an interrupted run contains it.
TOLD = "--tb=short -p checks.matrix.told"
#: Stage -> (arguments of make, time limit in seconds).
STAGES = {
    "demo-check": (["demo-check"], 1200),
    "test": (["test"], 3600),
    "suites": (["test-plone", "SUITE=medium"], 5400),
}
INSTALL_SECONDS = 1800
README = ROOT / "README.md"
#: pytest's last line.
COUNTED = re.compile(r"(\d+) (passed|failed|error|skipped|xfailed)s?\b")
NAMED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)


def pairs() -> list[tuple[Place, str]]:
    """Return all pairs of a place (with its Python) and a version of PostgreSQL."""
    return [(place, version) for place in PLACES for version in sorted({*place.postgresql, *WHEELS})]


def name_of(pair: tuple[Place, str]) -> str:
    return f"{pair[0].python}/{pair[1]}"


def counts(output: str) -> dict[str, Any]:
    """Return pytest's counts and the failed tests, from its *output*."""
    last = next((line for line in reversed(output.splitlines()) if " passed" in line or " failed" in line), "")
    found: dict[str, Any] = {what: int(number) for number, what in COUNTED.findall(last)}
    return found | {"names": sorted(set(NAMED.findall(output)))}


def tried(
    workshop: Workshop, version: str, stages: list[str], logs: Path, pytest_args: str
) -> Iterator[dict[str, Any]]:
    """Test *version* of PostgreSQL in *workshop*; yield the result so far after each stage."""
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / "install.log"
    if workshop.run(["make", "install"], log, INSTALL_SECONDS) != 0:
        raise MatrixError(f"make install failed: {log}")
    binaries = workshop.binaries(version)
    found: dict[str, Any] = {}
    for name, command in (
        ("python", [".venv/bin/python", "--version"]),
        ("postgresql", [f"{binaries}/postgres", "--version"]),
    ):
        log = logs / f"{name}.log"
        log.unlink(missing_ok=True)
        workshop.run(command, log, 60)
        found[name] = re.findall(r"^\D*(\d+\.\d+(?:\.\d+)?)", log.read_text("utf-8"), re.M)[-1]
    found |= {"place": workshop.place.name, "server": "a wheel" if "site-packages" in binaries else "its packages"}
    found |= {"commit": workshop.commit, "date": datetime.date.today().isoformat(), "stages": {}}
    for stage in stages:
        targets, seconds = STAGES[stage]
        log = logs / f"{stage}.log"
        log.unlink(missing_ok=True)
        more = [f"PYTEST_ARGS={TOLD} {pytest_args}"] if stage == "test" else []
        begun = time.monotonic()
        status = workshop.run(["make", *targets, *more], log, seconds, {"PGCATALOG_PG_BIN": binaries})
        output = log.read_text("utf-8", "replace")
        found["stages"][stage] = {"status": status, **(counts(output) if stage == "test" else {})}
        minutes = (time.monotonic() - begun) / 60
        click.echo(f"  {stage}: {table.summary(found['stages'][stage])}, {minutes:.1f} minutes   ({log})")
        yield found


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--pair", "wanted", multiple=True, help="Such as 3.14/18; several times; by default all.")
@click.option("--stage", "stages", multiple=True, type=click.Choice(list(STAGES)), help="By default all.")
@click.option("--folder", default=".matrix", type=click.Path(file_okay=False, path_type=Path), help="Roots and logs.")
@click.option("--pytest-args", default="", help="For a part of `make test` (-k …): is not kept.")
@click.option("--page", is_flag=True, help="Only renew the table in README from what is kept.")
def main(wanted: tuple[str, ...], stages: tuple[str, ...], folder: Path, pytest_args: str, page: bool) -> None:
    """Test pairs of Python and PostgreSQL; store the result and update the table in README after each stage.

    Requires root, Debian and mmdebstrap for pairs that this machine does not have.  Each pair takes half an hour, most of it
    for the medium suites of Plone.  Without --pair, stages that have passed for the last commit are skipped, so an interrupted
    run continues.  The exit status is 1 if anything fails.
    """
    # This also ends the processes in a root.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    if unknown := set(wanted) - {name_of(pair) for pair in pairs()}:
        raise click.UsageError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(map(name_of, pairs()))}")
    for pair in () if page else pairs():
        name = name_of(pair)
        if wanted and name not in wanted:
            continue
        place, version = pair
        click.echo(f"Python {place.python}, PostgreSQL {version} on {place.name}")
        workshop = Workshop(place, folder)
        try:
            workshop.prepare()
            known = () if wanted or pytest_args else good(name, workshop.commit)
            todo = [stage for stage in stages or STAGES if stage not in known]
            for result in tried(workshop, version, todo, folder / "logs" / name.replace("/", "-"), pytest_args):
                failed |= any(stage["status"] != 0 for stage in result["stages"].values())
                if not pytest_args:
                    keep(name, result)
        except MatrixError as error:
            click.echo(f"  cannot be had: {error}")
            failed = True
    if page:
        put_between(README, table.MARK, table.text(table.stored()))
    sys.exit(failed)


def good(name: str, commit: str) -> set[str]:
    """Return the stages of a pair that have passed for *commit*, from the stored results."""
    former = table.stored().get(name, {})
    stages = former.get("stages", {}) if former.get("commit") == commit else {}
    return {stage for stage, told in stages.items() if told["status"] == 0}


def keep(name: str, result: dict[str, Any]) -> None:
    """Store the *result* of a pair, with the former results of other stages if their commit is the same."""
    results = table.stored()
    former = results.get(name, {})
    stages = former["stages"] if former.get("commit") == result["commit"] else {}
    results[name] = result | {"stages": stages | result["stages"]}
    table.RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n", "utf-8")
    put_between(README, table.MARK, table.text(results))


if __name__ == "__main__":
    main(prog_name="make matrix")
