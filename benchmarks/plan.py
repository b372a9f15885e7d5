"""The measurements of the documentation: their commands, their results, and the pages that show these."""

from benchmarks.kept import CONTENTS
from benchmarks.machine import source
from benchmarks.machine import sources
from benchmarks.machine import versions
from benchmarks.report import EXPLANATION
from benchmarks.report import FILES
from benchmarks.report import MEANING
from benchmarks.report import PERFORMANCE
from benchmarks.report import PLOT
from benchmarks.report import README
from benchmarks.report import RESULTS
from benchmarks.report import ROOT
from benchmarks.report import SCALE
from benchmarks.report import SITES_PLOT
from benchmarks.report import STORAGE
from benchmarks.tables import number
from benchmarks.tables import Record
from benchmarks.tables import Table
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from datetime import UTC
from pathlib import Path
from time import perf_counter

import json
import shlex
import subprocess
import sys


#: Name of a result file -> its measurement by run_benchmarks.py; the most valuable first.
COMMANDS = {
    "pages-20000": "pages --docs 20000",
    "pages-6000": "pages --docs 6000",
    "pages-500": "pages --docs 500",
    "pages-debian-6000": "pages --docs 6000 --texts debian",
    "search-debian-6000": "search --docs 6000 --texts debian",
    "pages-debian-20000": "pages --docs 20000 --texts debian",
    "search-debian-20000": "search --docs 20000 --texts debian",
    "search-20000": "search --docs 20000",
    "level2-500": "level2 --docs 500",
    "level2-20000": "level2 --docs 20000 --iterations 30",
    "scripts-500": "scripts --docs 500",
    "files": "files",
    "rebuild-20000": "rebuild --docs 20000",
    "scale-200000": "scale --rows 200000 --iterations 10",
    "pages-50000": "pages --docs 50000",
    "level1-500": "level1 --rows 500",
    "level1-20000": "level1 --rows 20000",
    "storage": "storage",
    "zodb": "zodb",
    "pack": "pack",
    "plone": "plone",
    "codec": "codec all --with-site",
    "zodbbench": "zodbbench",
    "level1-200000": "level1 --rows 200000 --iterations 20",
    "scripts-5000": "scripts --docs 5000",
    "scale-100000": "scale --rows 100000 --iterations 10",
    "scale-1000000": "scale --rows 1000000 --iterations 10",
    # Without ZCatalog, which needs hours for a million rows.
    "level1-1000000": "level1 --rows 1000000 --iterations 20 --backend bare-sql --backend pgcatalog",
}
#: Name of a result file -> the program that measures it, and updates its page.
PROGRAMS = {
    "known_items": "make bench-known-items",
    "ranking": "make bench-ranking",
    "compounds": "make bench-compounds",
    "corrections": "make bench-corrections",
    "meaning": "make bench-meaning MEANING_ARGS='quality fill latency saves'",
    "scans": "python -m benchmarks.scans --pages 100",
    "topology-pgbouncer": (
        "make topology T=pgbouncer TOPOLOGY_ARGS='--output benchmarks/results/topology-pgbouncer.json"
        " --page docs/how-to/pgbouncer.md'"
    ),
    "pooler": "make test-pooler POOLER_ARGS='--mark \"not slow\"'",
}
#: Results that need libraries outside of the project: they are listed, but not measured again.
BY_HAND = {"readers": "python -m benchmarks.readers"}
#: Measurements of storages without a catalog: they depend on the versions of other packages, and not on ``src``.
OF_STORAGES = ("storage", "zodb", "pack", "plone", "codec", "zodbbench")
#: Measurements that embed texts by a model.
OF_MODEL = ("meaning", "known_items")
HOW_TO = ROOT / "docs" / "how-to"
RANKING = EXPLANATION / "ranking.md"
#: (page, mark or name of a picture) -> the results that it shows; a name ending with ``-`` stands for all sizes.
SHOWN: dict[tuple[Path, str], tuple[str, ...]] = {
    (README, "results"): ("pages-",),
    (PERFORMANCE, "states"): ("level2-",),
    (PERFORMANCE, "pages"): ("pages-",),
    (PERFORMANCE, "measures"): ("level2-",),
    (PERFORMANCE, "scripts"): ("scripts-",),
    (PERFORMANCE, "slower"): ("level2-", "search-", "scripts-", "pages-"),
    (PERFORMANCE, "real texts"): ("pages-debian-", "search-debian-"),
    (PERFORMANCE, SITES_PLOT.name): ("pages-",),
    (PERFORMANCE, PLOT.name): ("level1-",),
    (SCALE, "largest"): ("scale-1000000",),
    **{(STORAGE, name): (name,) for name in OF_STORAGES},
    **{(MEANING, name): ("meaning",) for name in ("quality", "silence", "latency", "costs")},
    (FILES, "costs"): ("files",),
    (FILES, "scans"): ("scans",),
    (RANKING, "yardstick"): ("ranking",),
    (RANKING, "known items"): ("known_items",),
    (RANKING, "signs"): ("known_items",),
    (HOW_TO / "compounds.md", "compounds"): ("compounds",),
    (HOW_TO / "suggestions.md", "corrections"): ("corrections",),
    (HOW_TO / "pgbouncer.md", "topology"): ("topology-pgbouncer",),
    (HOW_TO / "pgbouncer.md", "through-pooler"): ("pooler",),
    (ROOT / "docs" / "lab" / "readers.md", "readers"): ("readers",),
}
#: The first programs run before the long commands, the other ones at the end.
FIRST = ("corrections", "known_items", "ranking", "compounds")
ORDER = [*list(COMMANDS)[:11], *FIRST, *list(COMMANDS)[11:], *(name for name in PROGRAMS if name not in FIRST)]
MISSING, OLD, PARTIAL, CURRENT = "missing", "stale", "incomplete", "current"


@dataclass(frozen=True)
class Measurement:
    """The measurement *name* by *command*; its results are in the folder *results*."""

    name: str
    command: str
    results: Path

    @property
    def is_program(self) -> bool:
        """True if another program than run_benchmarks.py measures it."""
        return self.name not in COMMANDS

    @property
    def path(self) -> Path:
        return (RESULTS if self.is_program else self.results) / f"{self.name}.json"

    @property
    def runs(self) -> Path:
        """The file with sources, day and duration of the programs' last runs."""
        return RESULTS / "runs.json"

    @property
    def data(self) -> Record:
        """The stored result.  Raises FileNotFoundError."""
        found: Record = json.loads(self.path.read_text("utf-8"))
        return found

    @property
    def stored(self) -> Record:
        """The conditions of the stored result: date, sources, versions, minutes; empty if there is none.

        A program that also runs alone writes its own, which are newer than those of its last run in the plan.
        """
        data = self.data if self.path.exists() else {}
        found = {name: data[name] for name in ("date", "versions", *sources(), "minutes") if name in data}
        runs = json.loads(self.runs.read_text("utf-8")) if self.is_program and self.runs.exists() else {}
        return {**runs.get(self.name, {}), **found} if data else {}

    @property
    def state(self) -> str:
        """MISSING, OLD, PARTIAL (of this version, but interrupted) or CURRENT."""
        if not self.path.exists():
            return MISSING
        if not self.is_of_this_version:
            return OLD
        return CURRENT if self.is_program or "minutes" in self.stored else PARTIAL

    @property
    def is_of_this_version(self) -> bool:
        """True if the stored result was measured with this code, or for storages with the installed versions of packages."""
        stored = self.stored
        if self.name in OF_STORAGES:
            return of_storages().items() <= stored.get("versions", {}).items()
        needed = "source with model" if self.name in OF_MODEL else "source"
        return bool(stored.get(needed) == sources()[needed])

    @property
    def words(self) -> list[str]:
        """The words of the command line."""
        if self.is_program:
            return shlex.split(self.command)
        words = ["python", "benchmarks/run_benchmarks.py", *shlex.split(self.command)]
        return [*words, "--output", self.path.as_posix()]

    def run(self, *more: str) -> bool:
        """Run the command with *more* options, and store its duration; return whether it succeeded."""
        begin = perf_counter()
        first, *others = self.words
        command = [sys.executable, "-W", "ignore"] if first == "python" else [first]
        if subprocess.run([*command, *others, *more], cwd=ROOT, check=False).returncode:
            return False
        if self.is_program:
            runs = json.loads(self.runs.read_text("utf-8")) if self.runs.exists() else {}
            date = datetime.now(UTC).strftime("%Y-%m-%d")
            minutes = round((perf_counter() - begin) / 60, 1)
            runs[self.name] = {"date": date, **sources(), "minutes": minutes}
            self.runs.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", "utf-8")
        return True

    def options(self, sites: Path | None, shown: str, filestorage: Path | None = None) -> list[str]:
        """Return the further options for ``run``.

        A stale result is measured again, sites are stored in the folder *sites*, and codec reads *filestorage*, a Data.fs.
        """
        if self.is_program:
            return []
        more = ["--format", shown]
        command = self.command.split()[0]
        if sites and command in CONTENTS:
            # A folder for each version: figures of a fill belong to the version that is measured.
            more += ["--keep", (sites / source()).as_posix()]
        if filestorage and command == "codec":
            more += ["--filestorage", filestorage.resolve().as_posix()]
        return [*more, "--again"] if self.state == OLD else more


def of_storages() -> dict[str, str]:
    """Return the versions of Python and of the packages on which measurements of storages depend."""
    return {name: found for name, found in versions("").items() if name not in ("PostgreSQL", "plone.pgcatalog")}


def measurements(results: Path = RESULTS) -> list[Measurement]:
    """Return all measurements that can run unattended, in their order."""
    commands = {**COMMANDS, **PROGRAMS}
    return [Measurement(name, commands[name], results) for name in sorted(commands, key=ORDER.index)]


def states(chosen: Iterable[Measurement]) -> Table:
    """Return the table of *chosen* with their states."""
    rows = []
    for each in chosen:
        stored = each.stored
        version = stored.get("versions", {}).get("plone.pgcatalog", "–")
        minutes = number(stored["minutes"]) if "minutes" in stored else "–"
        rows.append([each.name, stored.get("date", "–"), version, each.state, minutes, each.command])
    return Table("Stored results", ["", "date", "version", "state", "minutes", "command"], rows)


def stale_figures() -> Iterator[str]:
    """Yield a line for each table or picture of the documentation with a result that is not of this version."""
    by_hand = [Measurement(name, command, RESULTS) for name, command in BY_HAND.items()]
    old = [each.name for each in (*measurements(), *by_hand) if each.path.exists() and each.state != CURRENT]
    for (page, mark), names in SHOWN.items():
        found = [name for name in old if any(shows(each, name) for each in names)]
        if found:
            yield f"{page.relative_to(ROOT).as_posix()}, {mark}: {', '.join(found)}"


def shows(pattern: str, name: str) -> bool:
    """Return whether *pattern*, a value of SHOWN, stands for the result *name*."""
    return name == pattern or (pattern.endswith("-") and name.startswith(pattern))
