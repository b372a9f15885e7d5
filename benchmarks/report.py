"""Writes the pages of the documentation from stored results."""

from benchmarks.appendix import all_results
from benchmarks.page import page as owners_page
from benchmarks.page import PLOTS
from benchmarks.plots import plots
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import os


def write_pages(page: Path, appendix: Path, stored: Sequence[dict[str, Any]]) -> None:
    """Write *page*, its plots in a folder next to it, and *appendix* with all tables."""
    for path in (page, appendix):
        path.parent.mkdir(parents=True, exist_ok=True)
    plots(stored, page.parent / PLOTS)
    page.write_text(owners_page(stored), "utf-8")
    folder = Path(os.path.relpath(page.parent / PLOTS, appendix.parent))
    appendix.write_text(all_results(stored, folder.as_posix()), "utf-8")
