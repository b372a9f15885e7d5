"""What the page about large catalogs says in figures: of the largest stored result of ``scale``, and on paper beyond it."""

from benchmarks.table import number
from benchmarks.table import size_of
from benchmarks.table import Table
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any


#: Sizes that nobody has measured here.
ON_PAPER = (10_000_000, 100_000_000)
MARKS = ("scale searches", "scale costs", "scale on paper")
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


def texts(stored: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return by mark what the page has there; nothing without a result."""
    found = sorted((data for data in stored if data["command"] == "scale"), key=size_of)
    if not found:
        return {}
    data = found[-1]
    tables = (searches(data), costs(data), on_paper(data))
    where = f"{size_of(data):,} rows; `{data['command_line']}`, {data['date']}"
    where += f", PostgreSQL {data['versions']['PostgreSQL']}."
    if "note" in data:
        where += f" {data['note']}"
    return {mark: f"{where}\n\n{table.markdown(titled=False)}" for mark, table in zip(MARKS, tables, strict=True)}


def searches(data: Mapping[str, Any]) -> Table:
    """Return the searches: what they find, the pages of 8 kB they read, and how long they take."""
    by_scenario: dict[str, dict[str, Any]] = {}
    for record in data["results"]["pgcatalog"]["queries"]:
        by_scenario.setdefault(record["scenario"], {})[record["touch"]] = record
    rows = [
        [name, f"{found['len']['found']:,}", *(cell for touch in ("page", "len") for cell in effort(found[touch]))]
        for name, found in by_scenario.items()
    ]
    measures = data["results"]["pgcatalog"]["measures"]
    for name, figure in measures.items():
        if f"{name}: pages read" in measures:
            pages = number(measures[f"{name}: pages read"]["median"])
            rows.append([name, "", pages, number(figure["median"]), "", ""])
    headers = ["", "found", "page: 8 kB read", "page, ms", "count: 8 kB read", "count, ms"]
    return Table("Searches", headers, rows)


def effort(record: Mapping[str, Any]) -> list[str]:
    return [f"{record['pages']:,}", number(record["median"])]


def costs(data: Mapping[str, Any]) -> Table:
    """Return what the catalog costs."""
    measures = data["results"]["pgcatalog"]["measures"]
    rows = [
        [label, f"{number(measures[name]['median'])} {measures[name]['unit']}".strip()] for name, label in COSTS.items()
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
