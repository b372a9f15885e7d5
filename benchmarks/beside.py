"""Worker of ``rebuild``: runs ``pgcatalog rebuild`` beside the live catalog of a site, with searches at the same time."""

from benchmarks.backends import vacuum
from benchmarks.content import filled_site
from benchmarks.scenarios import by_date
from benchmarks.scenarios import touch_page
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from pathlib import Path
from typing import Any

import json
import subprocess
import sys
import time


#: Seconds between two searches.
PAUSE = 0.05
#: Number of searches before a rebuild, for comparison.
BEFORE = 40


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the measures of a rebuild for each number of processes in ``workers``."""
    place = filled_site(options, progress, PloneSite)
    vacuum(options["dsn"])
    conf = zope_conf(place.folder / "instance", options["dsn"])
    measures = {"a page, nothing else going on": summary([search(place, n) for n in range(BEFORE)])}
    for workers in options["workers"]:
        progress(f"rebuilding, {workers} at work")
        measures |= rebuild(place, conf, workers)
    place.close()
    return {"measures": measures}


def zope_conf(instance: Path, dsn: str) -> Path:
    """Write the configuration with which the command finds the site; return its path."""
    from demo.server import Instance

    return Instance(instance, dsn).write()


def rebuild(place: PloneSite, conf: Path, workers: int) -> dict[str, Any]:
    """Run the command with *workers* processes, and search meanwhile; return the figures.

    Raises CalledProcessError if the command fails.
    """
    arguments = ["rebuild", str(conf), "--site", SITE, "--workers", str(workers), "--json"]
    command = [sys.executable, "-W", "ignore", "-m", "plone.pgcatalog.cli", *arguments]
    searches = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        while process.poll() is None:
            searches.append(search(place, len(searches)))
            time.sleep(PAUSE)
        output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    done = json.loads(output)
    name = f"{workers} process" + ("es" if workers > 1 else "")
    return {
        f"rebuild, {name}": value(done["seconds"], "s"),
        f"rebuild, {name}, per object": value(done["seconds"] / done["objects"] * 1000, "ms"),
        f"a page meanwhile, {name}": summary(searches),
    }


def search(place: PloneSite, number: int) -> float:
    """Return the seconds for an uncached page in a separate request."""
    catalog = place.request()
    place.forget_results()
    return timed(lambda: touch_page(catalog(**by_date(place.place, number))))
