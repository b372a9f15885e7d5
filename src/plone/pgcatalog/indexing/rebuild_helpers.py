"""More processes for a rebuild: Python visits objects on one core only."""

from collections.abc import Iterator
from configparser import ConfigParser
from configparser import Error
from contextlib import contextmanager
from pathlib import Path

import os
import subprocess
import sys


#: Starting a Zope process takes as long as visiting about so many objects.
FEW_OBJECTS = 2000


def default_workers(objects: int | None) -> int:
    """Return how many processes should visit *objects*, None for an unknown number: as many as this one may use cores.

    One for few objects.
    """
    return len(os.sched_getaffinity(0)) if objects is None or objects > FEW_OBJECTS else 1


def own_zope_conf() -> str | None:
    """Return the path of the zope.conf that this process was started with; None if its command does not tell.

    It names the file itself, or the ini file of a WSGI server that does.
    """
    for argument in sys.argv[1:]:
        path = Path(argument)
        if path.suffix == ".conf" and path.is_file():
            return str(path.resolve())
        if path.suffix == ".ini" and path.is_file():
            found = _zope_conf_of(path.resolve())
            if found is not None:
                return found
    return None


def _zope_conf_of(ini: Path) -> str | None:
    parser = ConfigParser(defaults={"here": str(ini.parent)})
    try:
        parser.read(ini, "utf-8")
        names = [parser[section]["zope_conf"] for section in parser.sections() if "zope_conf" in parser[section]]
    except (Error, UnicodeDecodeError):
        return None
    files = [ini.parent / name for name in names]
    return next((str(file) for file in files if file.is_file()), None)


@contextmanager
def helpers(count: int, zope_conf: str, site: str, skip_broken: bool) -> Iterator[None]:
    """Have *count* more processes visit objects meanwhile; they end when none is left to visit."""
    command = [sys.executable, "-m", "plone.pgcatalog.cli", "rebuild", zope_conf, "--site", site, "--worker"]
    if skip_broken:
        command.append("--skip-broken")
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait()
