"""Runs a program that measures one thing on a server of its own; prints and stores its result."""

from benchmarks.marks import put_between
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from typing import Any

import argparse
import json


Result = dict[str, Any]


def run_program(
    parser: argparse.ArgumentParser,
    run: Callable[[EmbeddedPostgres, argparse.Namespace], Result],
    tables: Mapping[str, Callable[[Result], str]],
) -> Result:
    """Return the result of *run* on a new server, after printing it, and storing it if the command line says so.

    *tables* are functions that return a table of the result as Markdown, by the name of its place in a page.
    """
    parser.add_argument("--output", type=Path, help="store the figures in this JSON file")
    parser.add_argument("--page", type=Path, help="put the tables into this page of the documentation")
    options = parser.parse_args()
    with EmbeddedPostgres(settings=TEST_SETTINGS) as server:
        result = run(server, options)
    texts = {name: table(result) for name, table in tables.items()}
    print("\n\n".join(texts.values()))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if options.page:
        for name, text in texts.items():
            put_between(options.page, name, text)
    return result
