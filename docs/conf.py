"""Sphinx configuration; build with ``make docs``."""

from pathlib import Path

import tomllib


_project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

project = _project["name"]
author = "Plone Community"
project_copyright = author
release = version = _project["version"]

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["linkify"]
myst_heading_anchors = 4
myst_linkify_fuzzy_links = False
copybutton_prompt_text = r"\$ |>>> |=> "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"{project} {release}"
