"""Files exchanged between the driver and its workers: the job, and the progress made."""

from pathlib import Path
from typing import Any
from typing import Self

import dataclasses
import json


#: Statuses that count as a failure of the test.
BAD = ("fail", "error", "layer-error", "crash")

#: Exit status of a worker that must be started again for the remaining tests.
EXIT_RESUME = 75


@dataclasses.dataclass
class Job:
    """One suite for a worker.

    - ``modules``: dotted names, ``package.pattern*`` allowed; with ``sdist``, folders.
    - ``exclude``, ``only``: regular expressions for the test id.
    - ``ids``: run no other tests.
    - ``profile``: GenericSetup profile, None for the control.
    - ``dsn``: a superuser's.
    - ``prefix``: of all created databases.
    - ``drive``: create our catalog where the tests create a ZCatalog.
    - ``sdist``: the package whose source distribution has the tests, for pytest.
    """

    modules: list[str]
    exclude: list[str]
    only: str | None
    ids: list[str] | None
    profile: str | None
    dsn: str
    prefix: str
    progress: str
    test_timeout: float
    drive: bool = False
    sdist: str | None = None

    def write(self, path: Path) -> None:
        """Write the job for a worker to read."""
        path.write_text(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a job written by ``write``."""
        return cls(**json.loads(path.read_text("utf-8")))


class Progress:
    """A file of JSON lines that survives the death of its writer.

    Records of a worker: ``{"collected": n}``, ``{"catalog": class}``, ``{"import_error": module, "err": text}``,
    ``{"layer_error": layer, "err": text}``, ``{"start": id}`` and, for each test that ended,
    ``{"id", "layer", "status", "secs", "err"}``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, **record: Any) -> None:
        """Write one record."""
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def records(self) -> list[dict[str, Any]]:
        """Return all records; a line that a killed writer left incomplete is skipped."""
        records = []
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else ():
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
        return records

    def finished(self) -> dict[str, dict[str, Any]]:
        """Return the records of the finished tests, by test id."""
        return {record["id"]: record for record in self.records() if "id" in record}

    def unfinished(self) -> str | None:
        """Return the id of the last started test if it has not finished."""
        running = None
        for record in self.records():
            running = record.get("start", None if "id" in record else running)
        return running

    def size(self) -> int:
        """Return the size of the file, which grows with every record."""
        return self.path.stat().st_size if self.path.exists() else 0
