"""What the page about large catalogs says in figures: of the largest stored result of ``scale``, and on paper beyond it."""

from benchmarks.scale_parallel import NONE
from benchmarks.scale_parallel import PER_GATHER
from benchmarks.table import number
from benchmarks.table import size_of
from benchmarks.table import Table
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any


#: Sizes that nobody has measured here.
ON_PAPER = (10_000_000, 100_000_000)
MARKS = ("scale searches", "scale costs", "scale on paper")
#: Of a catalog that was multiplied, and of a rebuild that was killed.
COPIES, COPIES_COST, PARALLEL, RESUMED = "scale copies", "scale copies cost", "scale parallel", "scale resumed"
KILOBYTE, GIGABYTE, HOUR, MONTH = 1024, 2**30, 3600, 30 * 24 * 3600
#: Documents that all machines together can create in a second: commits of the storage follow each other.
CREATIONS = 33
#: Which measures the page shows: as the benchmark calls them, and as the page does.
COSTS = {
    "rebuild: rows written, without taking them from objects": "rebuild: rows written in a second, one process",
    "rebuild: SQL indexes and VACUUM": "rebuild: SQL indexes and VACUUM",
    "rebuild: the commit that lets the new table take over": "rebuild: the last commit, for which others wait",
    "rebuild: words counted": "rebuild: counting words",
    "size: the catalog, a row": "the catalog with its indexes and words, a row",
    "size: its table, texts included": "its table, texts included",
    "size: its SQL indexes": "its SQL indexes",
    "size: its words": "its words",
    "size: its lists by number": "its lists by number",
    "lists by number": "lists by number",
    "memory of the process, more behind all searches": "memory of a Zope process, more after all of these searches",
    "write-ahead log of that": "write-ahead log of a changed document, the storage's part included",
    "write-ahead log of that, the first one after a checkpoint": "the same, the first one after a checkpoint",
    "a third of the rows changed by one statement": "a third of the rows changed by one statement",
    "VACUUM ANALYZE after it": "VACUUM ANALYZE after it",
    "pages read by a count, all visible": "pages read by the count of what is published, as anonymous",
    "pages read by a count, a third changed": "the same, a third of the rows changed and not yet vacuumed",
    "pages read by a count, vacuumed": "the same, vacuumed",
}
#: The same of one whose rows were copied; nothing of this is measured by the other.
COSTS_OF_COPIES = {
    "size: the catalog, a row": "the catalog with its indexes and words, a row",
    "size: its table, texts included": "its table, texts included",
    "size: its SQL indexes": "its SQL indexes",
    "size: its words": "its words",
    "lists by number": "lists by number",
    "size: the objects (a title and a description each) with their metadata": "the objects with their metadata",
    "memory of the process, more behind all searches": "memory of a Zope process, more after all of these searches",
    "VACUUM ANALYZE of the filled table": "the first VACUUM ANALYZE",
    "a fiftieth of the rows changed by one statement": "a fiftieth of the rows changed by one statement",
    "VACUUM ANALYZE after a fiftieth has changed": "VACUUM ANALYZE after it",
    "pages read by a count, all visible": "pages read by the count of what is published, as anonymous",
    "pages read by a count, a fiftieth changed": "the same, a fiftieth of the rows changed and not yet vacuumed",
    "pages read by a count, a fiftieth changed, vacuumed": "the same, vacuumed",
}
RESUMING = {
    "killed while rows are written: rows written": "killed: rows committed",
    "killed while rows are written: rows visited": "rows visited until then",
    "resumed: rows visited again": "resumed: rows visited again",
    "killed while SQL indexes are made: indexes when its connections had ended": "killed again: SQL indexes made",
    "resumed again: rows visited": "resumed again: rows visited",
    "resumed again: SQL indexes kept": "SQL indexes kept",
    "resumed again: SQL indexes made": "SQL indexes made",
}


def texts(stored: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return by mark what the page has there; nothing without a result."""
    runs = sorted((data for data in stored if data["command"] == "scale"), key=size_of)
    filled = [data for data in runs if "copies" not in data["options"]]
    copied = [data for data in runs if "copies" in data["options"]]
    resumed = sorted((data for data in stored if data["command"] == "resume"), key=size_of)
    found = {}
    if filled:
        data = filled[-1]
        tables = (searches(data), costs(data), on_paper(data))
        found = {mark: below(data, table) for mark, table in zip(MARKS, tables, strict=True)}
    if filled and copied:
        found[COPIES] = below(copied[-1], multiplied(filled[-1], copied[-1]))
    if copied:
        found[COPIES_COST] = below(copied[-1], costs(copied[-1], COSTS_OF_COPIES))
        found[PARALLEL] = below(copied[-1], workers(copied[-1]))
    if resumed:
        found[RESUMED] = below(resumed[-1], costs(resumed[-1], RESUMING))
    return found


def below(data: Mapping[str, Any], table: Table) -> str:
    """Return *table* with the command above it that measured it."""
    where = f"{size_of(data):,} rows; `{data['command_line']}`, {data['date']}"
    where += f", PostgreSQL {data['versions']['PostgreSQL']}."
    if "note" in data:
        where += f" {data['note']}"
    return f"{where}\n\n{table.markdown(titled=False)}"


def by_scenario(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for record in data["results"]["pgcatalog"]["queries"]:
        found.setdefault(record["scenario"], {})[record["touch"]] = record
    return found


def multiplied(filled: Mapping[str, Any], copied: Mapping[str, Any]) -> Table:
    """Return the searches of both: what they find, the pages they read, and how long they take in the larger one."""
    small = by_scenario(filled)
    rows = [
        [
            name,
            f"{found['len']['found']:,}",
            *(pages(each[touch]) for touch in ("page", "len") for each in (small[name], found)),
            number(found["page"]["median"]),
            number(found["len"]["median"]),
        ]
        for name, found in by_scenario(copied).items()
    ]
    sizes = [f"{size_of(data):,}" for data in (filled, copied)]
    heads = [f"{touch}: 8 kB read, {size}" for touch in ("page", "count") for size in sizes]
    return Table("Copies", ["", "found", *heads, "page, ms", "count, ms"], rows)


def pages(record: Mapping[str, Any]) -> str:
    return f"{record['pages']:,}"


def workers(data: Mapping[str, Any]) -> Table:
    """Return what was run without and with parallel workers."""
    measures = {name: figure["median"] for name, figure in data["results"]["pgcatalog"]["measures"].items()}
    names = [name.removesuffix(f", {NONE}: time") for name in measures if name.endswith(f", {NONE}: time")]
    rows = [
        [
            name,
            number(measures[f"{name}, {NONE}: time"]),
            number(measures[f"{name}, {PER_GATHER}: time"]),
            number(measures[f"{name}, {PER_GATHER}: workers launched"]),
            *(f"{measures[f'{name}, {setting}: pages']:,.0f}" for setting in (NONE, PER_GATHER)),
        ]
        for name in names
    ]
    return Table("Workers", ["", "none: ms", "up to 2: ms", "workers", "none: 8 kB read", "up to 2: 8 kB read"], rows)


def searches(data: Mapping[str, Any]) -> Table:
    """Return the searches: what they find, the pages of 8 kB they read, and how long they take."""
    rows = [
        [name, f"{found['len']['found']:,}", *(cell for touch in ("page", "len") for cell in effort(found[touch]))]
        for name, found in by_scenario(data).items()
    ]
    measures = data["results"]["pgcatalog"]["measures"]
    for name, figure in measures.items():
        if f"{name}: pages read" in measures:
            read = number(measures[f"{name}: pages read"]["median"])
            rows.append([name, "", read, number(figure["median"]), "", ""])
    headers = ["", "found", "page: 8 kB read", "page, ms", "count: 8 kB read", "count, ms"]
    return Table("Searches", headers, rows)


def effort(record: Mapping[str, Any]) -> list[str]:
    return [pages(record), number(record["median"])]


def costs(data: Mapping[str, Any], labels: Mapping[str, str] = COSTS) -> Table:
    """Return what the catalog costs: the measures with these *labels*."""
    measures = data["results"]["pgcatalog"]["measures"]
    rows = [
        [label, f"{number(measures[name]['median'])} {measures[name]['unit']}".strip()]
        for name, label in labels.items()
        if name in measures
    ]
    return Table("Costs", ["", ""], rows)


def on_paper(data: Mapping[str, Any]) -> Table:
    """Return what follows for larger catalogs, if everything that grows grows with the rows."""
    measures = {name: figure["median"] for name, figure in data["results"]["pgcatalog"]["measures"].items()}
    rows = size_of(data)
    sizes = (rows, *ON_PAPER)
    walking = measures["rebuild: rows written, without taking them from objects"]
    rest = measures["rebuild: SQL indexes and VACUUM"] + measures["rebuild: words counted"]
    log = measures["write-ahead log of that"]
    lines = {
        "the catalog, GB": [size * measures["size: the catalog, a row"] / GIGABYTE for size in sizes],
        "of it the SQL indexes, GB": [
            size * measures["size: its SQL indexes"] * 2**20 / rows / GIGABYTE for size in sizes
        ],
        f"creating it at {CREATIONS} documents a second, days": [size / CREATIONS / HOUR / 24 for size in sizes],
        "its rows written by a rebuild, one process, hours": [size / walking / HOUR for size in sizes],
        "its SQL indexes made and words counted, hours": [size / rows * rest / HOUR for size in sizes],
        "VACUUM after a third has changed, hours": [
            size / rows * measures["VACUUM ANALYZE after it"] / HOUR for size in sizes
        ],
        "the index that counts what visitors see, MB": [
            size / rows * measures["size: index seen_by_type"] for size in sizes
        ],
        f"write-ahead log of {CREATIONS} changes a second, GB a day": [log * CREATIONS * 86400 / GIGABYTE] * len(sizes),
    }
    return Table(
        "On paper",
        ["", *(f"{size:,} rows" for size in sizes)],
        [[name, *(number(each) for each in found)] for name, found in lines.items()],
    )
