"""Sphinx configuration; build with ``make docs``."""

from pathlib import Path
from typing import Any

import runpy
import sys
import tomllib


_root = Path(__file__).parents[1]
sys.path.insert(0, str(_root))
_project = tomllib.loads((_root / "pyproject.toml").read_text("utf-8"))["project"]

project = _project["name"]
author = "Plone Community"
project_copyright = author
release = version = runpy.run_path(str(_root / "scripts" / "version.py"))["__version__"]

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["linkify"]
myst_heading_anchors = 4
myst_linkify_fuzzy_links = False
copybutton_prompt_text = r"\$ |>>> |=> "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"{project} {release}"


def setup(app: Any) -> None:
    """Let the page with the benchmark's results be made before pages are looked for."""
    app.connect("builder-inited", write_results)
    app.connect("build-finished", write_llms)


def write_results(app: Any) -> None:
    from benchmarks.report import ALL_RESULTS
    from benchmarks.report import all_results
    from benchmarks.report import load

    text = all_results(load())
    # A page that has not changed is not read again.
    if not ALL_RESULTS.exists() or ALL_RESULTS.read_text("utf-8") != text:
        ALL_RESULTS.write_text(text, "utf-8")


def write_llms(app: Any, error: Exception | None) -> None:
    """Put llms.txt beside the pages."""
    from scripts.llms import llms_text

    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "llms.txt").write_text(llms_text(), "utf-8")
