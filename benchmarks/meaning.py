"""Measures search by meaning: ``make bench-meaning``.

``quality``: how many questions find their page.  ``fill``: how fast real pages get their vectors, and the size of these.
``latency``: the time of a search in a large site, recall and cost of its index.  ``saves``: the additional cost of saves.
Parts that the output already contains are skipped, unless they are named.
"""

from benchmarks import meaning_fill
from benchmarks import meaning_latency
from benchmarks import meaning_quality
from benchmarks import meaning_saves
from benchmarks.machine import header
from benchmarks.running import SETTINGS
from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from time import perf_counter
from typing import Any

import argparse
import json


PARTS: dict[str, Callable[[EmbeddedPostgres, Any], dict[str, Any]]] = {
    "quality": meaning_quality.measured,
    "fill": meaning_fill.measured,
    "latency": meaning_latency.measured,
    "saves": meaning_saves.measured,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS], help="what to measure; all that is missing by default")
    parser.add_argument("--output", type=Path, help="store the figures in this JSON file")
    parser.add_argument("--thresholds", type=float, nargs="*", help="quality: similarities to try, not the default")
    parser.add_argument("--pages", type=int, default=320, help="fill: so many of the labelled pages")
    parser.add_argument("--chunks", type=int, nargs="*", default=[20_000, 200_000], help="latency: sizes of sites")
    parser.add_argument("--saves", type=int, default=300, help="saves: so many with an embedder, and without")
    options = parser.parse_args()
    output = options.output
    results = json.loads(output.read_text("utf-8")) if output is not None and output.exists() else {}
    for part in options.parts or [part for part in PARTS if part not in results]:
        begin = perf_counter()
        with EmbeddedPostgres(settings=SETTINGS) as server:
            results[part] = header(server.version) | PARTS[part](server, options)
        results[part]["minutes"] = round((perf_counter() - begin) / 60, 1)
        print(json.dumps({part: results[part]}, indent=2, ensure_ascii=False))
        if output is not None:
            output.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
