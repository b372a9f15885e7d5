"""The conditions of a measurement: machine, versions, day."""

from datetime import datetime
from datetime import UTC
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

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


def header(postgresql: str) -> dict[str, object]:
    """Return the header of every result file."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "versions": versions(postgresql),
    }


def resident_mb() -> float:
    """Return the resident memory of this process in MB."""
    return float(psutil.Process().memory_info().rss) / 2**20
