"""The conditions of a measurement: machine, versions, source, day."""

from collections.abc import Iterable
from datetime import datetime
from datetime import UTC
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

import ast
import os
import platform
import psutil


PACKAGES = (
    "Plone",
    "Products.ZCatalog",
    "ZODB",
    "RelStorage",
    "psycopg2-binary",
    "zodb-pgjsonb",
    "zodb-json-codec",
    "psycopg",
    "plone.pgcatalog",
)


SOURCE = Path(__file__).parents[1] / "src"
#: Suffixes of files in ``src`` that are compiled.
COMPILED = (".pyc", ".mo")
#: Modules that cut and embed texts: a site without a model runs of them no more than the name of a column.
OF_MODEL = [
    SOURCE / "plone" / "pgcatalog" / "meaning" / f"{name}.py" for name in ("calibration", "embedder", "job", "text")
]


def machine() -> dict[str, str]:
    """Return processor, memory, system and load of this machine."""
    return {
        "processor": processor(),
        "processors": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "load at start": f"{os.getloadavg()[0]:.1f}",
    }


def processor() -> str:
    """Return the name of the processor, as far as the system reports it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def versions(postgresql: str) -> dict[str, str]:
    """Return the versions of Python, PostgreSQL and the relevant packages."""
    found = {"Python": platform.python_version(), "PostgreSQL": postgresql}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "–"
    return found


def hash_of(paths: Iterable[Path]) -> str:
    """Return a short hash of the names and contents of the files *paths*, of Python modules without comments and layout."""
    digest = sha256()
    for path in paths:
        content = path.read_bytes()
        code = ast.unparse(ast.parse(content)).encode() if path.suffix == ".py" else content
        digest.update(path.name.encode() + sha256(code).digest())
    return digest.hexdigest()[:12]


@cache
def source(model: bool = False) -> str:
    """Return a hash of the source files of the package: the version of a measurement, exact to a line of code.

    The modules OF_MODEL count only for a measurement that embeds texts by a *model*.
    """
    files = (path for path in sorted(SOURCE.rglob("*")) if path.is_file() and path.suffix not in COMPILED)
    return hash_of(path for path in files if model or path not in OF_MODEL)


def sources() -> dict[str, str]:
    """Return both hashes, by their names in a result."""
    return {"source": source(), "source with model": source(model=True)}


def header(postgresql: str) -> dict[str, object]:
    """Return the header of every result file."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "versions": versions(postgresql),
        **sources(),
    }


def resident_mb() -> float:
    """Return the resident memory of this process in MB."""
    return float(psutil.Process().memory_info().rss) / 2**20
