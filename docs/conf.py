"""Sphinx configuration; build with ``make docs``."""

from pathlib import Path

import runpy
import tomllib


_root = Path(__file__).parents[1]
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
