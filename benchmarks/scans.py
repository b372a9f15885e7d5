"""Measures the recognition of scanned pages: ``python -m benchmarks.scans --pages 100``.

The pages are drawn from random words, as a scanner makes them with 150 dots per inch.  One worker has Tesseract recognise
them.  The result is stored in ``results/scans.json``, and shown in docs/how-to/files.md by ``make bench-page``.
"""

from benchmarks.machine import header
from benchmarks.texts import text
from collections.abc import Mapping
from demo.documents import PDF
from demo.documents import scan
from pathlib import Path
from plone.pgcatalog.files.extractor import Xberg
from plone.pgcatalog.files.scans import installed
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import argparse
import json
import subprocess


RESULT = Path(__file__).with_name("results") / "scans.json"
#: Lines of a page, words in a line, and pixels of its letters.
LINES, WORDS_OF_A_LINE, SIZE = 30, 8, 28
LANGUAGES = ("eng", "deu")


def measure(pages: int) -> dict[str, Any]:
    """Return the figures of a PDF with so many scanned *pages*.  Raises RuntimeError without Tesseract and all LANGUAGES."""
    if missing := {*LANGUAGES}.difference(installed()):
        raise RuntimeError(f"install Tesseract with the languages {', '.join(sorted(missing))}")
    random = Random(1)
    texts = ["\n".join(text(random, WORDS_OF_A_LINE) for _ in range(LINES)) for _ in range(pages)]
    extractor, parts, recognised, is_complete = Xberg(), [], list[str](), False
    with TemporaryDirectory() as folder:
        path = Path(folder) / "scan.pdf"
        path.write_bytes(scan(*texts, size=SIZE))
        started = perf_counter()
        while not is_complete:
            part = perf_counter()
            found = extractor.recognise(str(path), PDF, LANGUAGES, recognised)
            recognised, is_complete = found.pages, found.is_complete
            parts.append(perf_counter() - part)
        seconds = perf_counter() - started
        size = path.stat().st_size
    extractor.end()
    shown, read = (set(" ".join(each).split()) for each in (texts, recognised))
    return {
        "pages": pages,
        "megabytes": size / 2**20,
        "seconds": seconds,
        "parts": len(parts),
        "longest part": max(parts),
        "words found": len(shown & read) / len(shown),
        "languages": LANGUAGES,
    }


def stored() -> dict[str, Any]:
    """Return the stored result."""
    result: dict[str, Any] = json.loads(RESULT.read_text("utf-8"))
    return result


def table(result: Mapping[str, Any]) -> str:
    """Return the figures of *result* as a table."""
    pages = result["pages"]
    rows = {
        "scanned pages": f"{pages}",
        "recognition, one worker (s)": f"{result['seconds']:.0f}",
        "of it, for a page (s)": f"{result['seconds'] / pages:.1f}",
        "longest time for which other jobs wait (s)": f"{result['longest part']:.0f}",
        "different words that are found (%)": f"{100 * result['words found']:.1f}",
    }
    title = f"{result['tesseract']}, {' and '.join(result['languages'])}"
    return "\n".join([f"| {title} | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    version = subprocess.run(["tesseract", "--version"], capture_output=True, text=True, check=True).stdout
    result = header("–") | {"tesseract": version.split("\n")[0]} | measure(options.pages)
    options.output.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(table(result))


if __name__ == "__main__":
    main()
