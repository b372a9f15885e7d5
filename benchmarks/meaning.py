"""Search by meaning, measured: ``make bench-meaning``.

``quality``: how many questions find their page (``meaning_quality``).
"""

from benchmarks.machine import header
from benchmarks.meaning_quality import measured as quality
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from typing import Any

import argparse
import json


PARTS = {"quality": quality}


def merged(path: Path | None, part: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept at *path* with the *result* of *part* in place of an earlier one."""
    kept = json.loads(path.read_text("utf-8")) if path is not None and path.exists() else {}
    return kept | {part: result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS], help="what to measure; all by default")
    parser.add_argument("--output", type=Path, help="keep the figures in this JSON file")
    parser.add_argument("--thresholds", type=float, nargs="*", help="similarities to try instead of the site's default")
    options = parser.parse_args()
    for part in options.parts or PARTS:
        with EmbeddedPostgres(settings=TEST_SETTINGS) as server:
            result = PARTS[part](server, options)
            result = header(server.version) | result
        print(json.dumps({part: result}, indent=2, ensure_ascii=False))
        if options.output:
            options.output.write_text(json.dumps(merged(options.output, part, result), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
