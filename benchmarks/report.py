"""Writes the page of the documentation from stored results."""

from benchmarks.goals import goals_table
from benchmarks.plots import plots
from benchmarks.tables import size_of
from benchmarks.tables import Table
from benchmarks.tables import tables
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any


#: The order of the page's sections, and what each is about.
SECTIONS = {
    "level2": ("A real Plone site", "`level2` makes Plone sites, fills them, and asks as Plone's own code asks."),
    "level1": (
        "The query layer alone",
        "`level1` has the catalog tool without Plone, filled with rows, next to SQL that was written by hand for a"
        " narrow table (*bare SQL*).",
    ),
    "search": (
        "Searches for words",
        "`search` fills Plone sites without events, and asks for words of several frequencies in the order of relevance, as a"
        " member who has a local role in each fourth folder. Below are what facets and snippets cost beside a page, and suggestions.",
    ),
    "rebuild": (
        "Rebuilding beside the live catalog",
        "`rebuild` runs the command `pgcatalog rebuild` on a filled site, and asks for a page every twentieth of a second meanwhile.",
    ),
    "plone": ("The storages below Plone", "`plone` has Plone's own catalog on both storages."),
    "storage": ("Storages: store and load", "`storage` calls the storage itself; load is answered by its cache."),
    "zodb": ("Storages: through the ZODB", "`zodb` works with objects."),
    "pack": ("Storages: packing", "`pack` removes the half of the objects that nothing refers to."),
    "codec": ("Pickle and JSON", "`codec` compares pickle with zodb-json-codec, which PGJsonbStorage stores by."),
    "zodbbench": (
        "A growing tree",
        "`zodbbench` puts objects of a kilobyte into an OOBTree, next to rows in a plain table. The FileStorage is a"
        " file; all others commit to PostgreSQL.",
    ),
}
PLOTS = "performance-plots"
METHOD = """\
Each backend runs in a process of its own, on a fresh database of one embedded PostgreSQL server (unix socket,
`synchronous_commit` on, 512 MB of shared buffers), with the same seeded documents. The processes of a run take turns,
one working at a time, from one scenario and state of the caches to the next; `level2` with 500 documents was the first run measured so, those before it had
one backend after the other. RelStorage uses psycopg2; both storages
keep no history and have a process cache of 256 MB. After filling, `VACUUM ANALYZE`. Up to 500 documents are made through Plone,
one request and commit each, and timed; more are filled in below them without Plone's events (real documents with UUID, workflow
state and permissions, catalogued by `catalog_object` in batches of 250).

- *repeating*: the same values each time; *varying*: other values each time where the scenario has some, and our result
  cache emptied before each search (not what the process knows of single rows, nor ZODB's objects).
- *warm*: again in the same transaction. *request*: each search in a connection from the pool and a new transaction; closing it
  cuts the ZODB cache to its size (400 objects, unless a table says otherwise). *after write*: as request, after another thread
  has changed and committed a document. *cold*: the database newly opened, all caches of the process empty; PostgreSQL's are warm.
- *len*: `len(results)`. *page*: URL and five metadata columns of the first 25 brains.
- A cell is the median, with the 95th percentile in parentheses. *ratio* is ours / RelStorage + ZCatalog, of medians; below 1 ours is
  faster. *found* is the number of matches; two numbers mean that the backends disagree.
- A cell that takes more than 30 seconds has fewer repetitions, at least three.
"""


def write_page(page: Path, stored: Sequence[dict[str, Any]], results: Path) -> None:
    """Write *page* and its plots, in a folder next to it, from the results *stored* in *results*."""
    page.parent.mkdir(parents=True, exist_ok=True)
    figures = list(plots(stored, page.parent / PLOTS))
    page.write_text("\n\n".join(part.strip() for part in parts(stored, figures, results.as_posix())) + "\n", "utf-8")


def parts(stored: Sequence[dict[str, Any]], figures: Sequence[tuple[str, str]], results: str) -> Iterator[str]:
    """Yield the parts of the page."""
    yield f"""\
# Performance

<!-- Generated; do not edit. -->
This page is generated from the stored results of the benchmark by

```sh
python benchmarks/run_benchmarks.py report {results} --page docs/explanation/performance.md
```
"""
    yield "## Goals"
    yield goals_table(stored).markdown()
    yield "## How it was measured"
    yield METHOD
    yield machines(stored).markdown()
    yield "## Plots"
    for name, caption in figures:
        yield f"![{caption}]({PLOTS}/{name})\n\n*{caption}*"
    for command, (heading, text) in SECTIONS.items():
        own = sorted((data for data in stored if data["command"] == command), key=size_of)
        if own:
            yield f"## {heading}\n\n{text}"
            for data in own:
                yield from section(data)


def section(data: dict[str, Any]) -> Iterator[str]:
    """Yield the tables of one result file."""
    yield f"```sh\n{data['command_line']}\n```"
    for table in tables(data):
        yield table.markdown()
    for backend, result in data["results"].items():
        if backend == "pgcatalog" and "profile" in result:
            yield profile_table(data["command"], result["profile"]).markdown()


def machines(stored: Sequence[dict[str, Any]]) -> Table:
    """Return what the results were measured on."""
    names = list(dict.fromkeys(name for data in stored for name in (*data["machine"], *data["versions"])))
    rows = [["day", ", ".join(sorted({data["date"] for data in stored}))]]
    for name in names:
        found = (data["machine"].get(name) or data["versions"].get(name) for data in stored)
        rows.append([name, ", ".join(dict.fromkeys(text for text in found if text))])
    return Table("Machine and versions", ["", "value"], rows)


def profile_table(command: str, profile: dict[str, list[dict[str, Any]]]) -> Table:
    """Return where the time of our uncached pages goes: the functions with the most own time."""
    rows = []
    for scenario, functions in profile.items():
        largest = "; ".join(f"{each['function']} {each['share']:.0%}" for each in functions[:4])
        rows.append([scenario, largest.replace("<", "").replace(">", "").replace("|", "")])
    return Table(f"{command}: where the time of an uncached page goes (cProfile, own time)", ["", "functions"], rows)
