"""Worker of ``resume``: a rebuild of a large catalog is killed twice, and resumed each time; what is done again."""

from benchmarks.scale import GROUPS
from benchmarks.scale import large_site
from benchmarks.scale_costs import connected
from benchmarks.scale_fill import made
from benchmarks.scale_fill import MeasuredRebuild
from benchmarks.scale_fill import opened
from benchmarks.scale_fill import rows_of
from benchmarks.scale_fill import store
from benchmarks.timing import value
from benchmarks.worker import Progress
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.indexing.rebuild_relation import RebuildTarget
from plone.pgcatalog.indexing.rebuild_worker import Worker
from plone.pgcatalog.protocols import Cursor
from time import perf_counter
from typing import Any

import json
import os
import signal
import time


Measures = dict[str, Any]
#: How often it is looked whether the moment to kill has come, and whether another process still holds the rebuild.
PAUSE = 0.02
#: SQL indexes that are made when the second process is killed.
INDEXES = 8  # with those of the constraints
UNDER_WAY = "SELECT relation, phase, done FROM pgcatalog_rebuild"
TASKS = "SELECT count(*) FROM pgcatalog_rebuild_task"
#: The connections of a rebuild; one whose process was killed works on until its statement ends.
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'pgcatalog: rebuild'
"""
INDEXES_OF = "SELECT indexrelid::bigint FROM pg_index WHERE indrelid = to_regclass(%s) AND indisvalid"


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return what a killed rebuild does again, and how many rows the searches of ``scale`` find when it is done."""
    measures = fill_killed(options, progress)
    progress("starting Zope")
    return {"measures": measures | counts(options)}


def counts(options: dict[str, Any]) -> Measures:
    place = large_site(options)
    found = {}
    for scenarios, as_member in GROUPS:
        place.as_member = as_member
        for scenario in scenarios:
            results = place.request(scenario.anonymous)(**scenario.query(place.place, 0))
            found[f"found: {scenario.name}"] = value(results.actual_result_count, "rows")
    place.close()
    return found


class TaskRows(Worker):
    """Visits made rows as a worker visits objects: tasks hold their numbers; each visit is a line in the file *visits*."""

    def __init__(self, catalog: Any, connection: Any, entries: Iterator[Entry], visits: Path) -> None:
        super().__init__(catalog, connection)
        self._entries = enumerate(entries)
        self._made: list[Entry] = []
        self._visits = os.open(visits, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def _at(self, paths: list[str]) -> Iterator[list[Entry]]:
        for path in paths:
            if path.startswith("/"):
                yield from super()._at([path])
            else:
                os.write(self._visits, f"{path}\n".encode())
                self._made.append(next(entry for number, entry in self._entries if number == int(path)))
                yield self._made[-1:]

    def _write(self, cursor: Cursor, target: RebuildTarget, entries: list[Entry]) -> None:
        store(cursor, tuple(self._made))
        self._made.clear()
        super()._write(cursor, target, entries)


def number(row: int) -> str:
    """Return the number of *row* as a task holds it; they are visited in this order."""
    return f"{row:09}"


def rebuild(options: dict[str, Any], first: int, life: int) -> None:
    """Rebuild, in this process, the *life*-th one; leave files about what was visited, and how long it took."""
    place = opened(options)
    count = options["rows"]
    catalog, rows = rows_of(place, count)
    folder = Path(options["folder"])
    worker = partial(TaskRows, entries=rows.entries(first), visits=visits(folder, life))
    rebuild = MeasuredRebuild(catalog, worker, [number(row) for row in range(count)])
    started = perf_counter()
    while True:
        try:
            for _ in rebuild.steps():
                rebuild.seconds.setdefault("begun", perf_counter() - started)
            break
        except RebuildRunning:
            time.sleep(PAUSE)
    rebuild.seconds["in all"] = perf_counter() - started
    (folder / f"seconds-{life}").write_text(json.dumps(rebuild.seconds))
    rebuild.close()
    place.leave()
    place.close()


def visits(folder: Path, life: int) -> Path:
    return folder / f"visits-{life}"


def fill_killed(options: dict[str, Any], progress: Progress) -> Measures:
    """Fill a catalog by a rebuild that is killed while it writes rows, and again while it makes SQL indexes."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as pool:
        progress("creating the site")
        first = pool.submit(first_oid, options).result()
    count, folder = options["rows"], Path(options["folder"])
    measures: Measures = {}
    with connected(options["dsn"]) as connection:

        def half_written() -> bool:
            return any(done >= count // 2 for _, _, done in connection.execute(UNDER_WAY))

        def half_indexed() -> bool:
            found = connection.execute(UNDER_WAY).fetchall()
            return bool(found) and found[0][1] == "index" and len(indexes_of(connection, found[0][0])) >= INDEXES

        kept = []
        for life, reached in enumerate((half_written, half_indexed), 1):
            kept.append(
                killed(connection, partial(spawn.Process, target=rebuild, args=(options, first, life)), reached)
            )
            progress(f"killed: {kept[-1]}")
        process = spawn.Process(target=rebuild, args=(options, first, 3))
        process.start()
        process.join()
        if process.exitcode:
            raise RuntimeError(f"the resumed rebuild ended with {process.exitcode}")
        at_last = indexes_of(connection, kept[-1]["relation"])
    seen = [visited(folder, life) for life in (1, 2, 3)]
    seconds = json.loads((folder / "seconds-3").read_text())
    # Those of the constraints are there from the beginning.
    made_so_far, made_later = kept[1]["indexes after"] - kept[0]["indexes"], at_last - kept[1]["indexes after"]
    twice = seen[0] & seen[1] | (seen[0] | seen[1]) & seen[2]
    measures |= {
        "killed while rows are written: rows written": value(kept[0]["done"], "rows"),
        "killed while rows are written: rows visited": value(len(seen[0]), "rows"),
        "killed while rows are written: seconds until its connections had ended": value(kept[0]["ending"], "s"),
        "resumed: rows visited": value(len(seen[1]), "rows"),
        "resumed: rows visited again": value(len(seen[0] & seen[1]), "rows"),
        "killed while SQL indexes are made: indexes made": value(
            len(kept[1]["indexes"] - kept[0]["indexes"]), "indexes"
        ),
        "killed while SQL indexes are made: indexes when its connections had ended": value(len(made_so_far), "indexes"),
        "killed while SQL indexes are made: seconds until its connections had ended": value(kept[1]["ending"], "s"),
        "resumed again: rows visited": value(len(seen[2]), "rows"),
        "resumed again: seconds until it could begin": value(seconds["begun"], "s"),
        "resumed again: SQL indexes kept": value(len(made_so_far & at_last), "indexes"),
        "resumed again: SQL indexes made": value(len(made_later), "indexes"),
        "resumed again: seconds": value(seconds["in all"], "s"),
        "rows visited twice": value(len(twice), "rows"),
        "rows visited": value(len(seen[0] | seen[1] | seen[2]), "rows"),
    }
    return measures


def first_oid(options: dict[str, Any]) -> int:
    place, first = made(options)
    place.close()
    return first


def visited(folder: Path, life: int) -> set[int]:
    path = visits(folder, life)
    # The last line of a killed process may have no end.
    return {int(line) for line in path.read_text().splitlines()} if path.exists() else set()


def indexes_of(connection: Any, relation: str) -> set[int]:
    return {oid for (oid,) in connection.execute(INDEXES_OF, [relation])}


def killed(connection: Any, process_of: Callable[[], Any], reached: Callable[[], bool]) -> dict[str, Any]:
    """Start a process, kill it when *reached* says so; return what is there then, and when its connections have ended."""
    process = process_of()
    process.start()
    while not reached():
        if not process.is_alive():
            raise RuntimeError(f"the rebuild has ended with {process.exitcode} before it was to be killed")
        time.sleep(PAUSE)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    [(relation, _, _)] = connection.execute(UNDER_WAY).fetchall()
    found = {"relation": relation, "indexes": indexes_of(connection, relation)}
    started = perf_counter()
    while connection.execute(SESSIONS).fetchone()[0]:
        time.sleep(PAUSE)
    [(_, phase, done)] = connection.execute(UNDER_WAY).fetchall()
    [(tasks,)] = connection.execute(TASKS).fetchall()
    found |= {"ending": perf_counter() - started, "phase": phase, "done": done, "tasks": tasks}
    return found | {"indexes after": indexes_of(connection, relation)}
