"""Worker of ``level1``: the query layer without Plone, with catalog rows only."""

from benchmarks import queries
from benchmarks.backends import BACKENDS
from benchmarks.backends import database_mb
from benchmarks.backends import vacuum
from benchmarks.documents import documents
from benchmarks.kept import filled
from benchmarks.machine import resident_mb
from benchmarks.rows import Rows
from benchmarks.scenarios import chosen
from benchmarks.scenarios import Place
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from itertools import islice
from pathlib import Path
from typing import Any


UIDS = 200


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the measures and the query records of one backend."""
    count = options["rows"]
    rows = Rows(BACKENDS[options["backend"]], options["dsn"], Path(options["folder"]), options["cache_size"], count)

    def make() -> dict[str, Any]:
        rows.make()
        seconds = timed(rows.fill, documents(count), count, progress)
        return {"filling, per row": value(seconds / count * 1000, "ms")}

    measures = filled(rows, options, progress, make)
    progress("vacuum")
    vacuum(options["dsn"])
    first = list(islice(documents(count), UIDS))
    rows.changed = first
    rows.place = Place(rows.place.path, rows.place.folders, [document.uid for document in first])
    scenarios = chosen(options["scenarios"])
    result = {"queries": queries.measure(rows, scenarios, options["iterations"], options["warmup"], progress)}
    rows.close()
    return result | {
        "measures": measures
        | {
            "resident memory": value(resident_mb(), "MB"),
            "database size": value(database_mb(options["dsn"]), "MB"),
        }
    }
