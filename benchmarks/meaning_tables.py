"""The stored results of ``make bench-meaning``, as tables of the documentation."""

from benchmarks.tables import number
from benchmarks.tables import Record
from benchmarks.tables import Table
from collections.abc import Mapping
from pathlib import Path

import json


STORED = Path(__file__).parent / "results" / "meaning.json"
MODES = {"words": "by words", "vectors": "by vectors alone", "hybrid": "hybrid"}
GROUPS = {
    "paraphrases": "without a word of the page",
    "paraphrases, same language": "of these in the language of the page",
    "paraphrases, across languages": "of these in the other language",
    "own words": "in the page's own words",
}
SERVER, PROCESS, RECALL = "in the server, ms", "in the process, ms", "recall@10"


def stored() -> dict[str, Record]:
    """Return the stored figures of each part."""
    return dict(json.loads(STORED.read_text("utf-8")))


def generated(parts: Mapping[str, Record]) -> dict[str, str]:
    """Return mark -> the text of the guide at that mark."""
    return {mark: table.markdown(titled=False) for mark, table in tables(parts).items()}


def tables(parts: Mapping[str, Record]) -> dict[str, Table]:
    """Return the tables of the *parts* that have been measured."""
    found = {"latency": latency(parts["latency"])} if "latency" in parts else {}
    if "quality" in parts:
        found |= {"quality": quality(parts["quality"]), "silence": silence(parts["quality"])}
    if "fill" in parts and "saves" in parts:
        found["costs"] = costs(parts["fill"], parts["saves"])
    return found


def quality(part: Record) -> Table:
    """Return the share of the questions whose page is among the first ten hits, and nDCG."""
    figures = part["calibrated"]
    rows = [
        [text, *(f"{figures[name][mode]['recall@10']:.0%} ({figures[name][mode]['nDCG@10']:.2f})" for mode in MODES)]
        for name, text in GROUPS.items()
    ]
    return Table("Questions that find their page: recall@10 (nDCG@10)", ["questions", *MODES.values()], rows)


def silence(part: Record) -> Table:
    """Return the share of the questions without an answer that show no page, and the figures of titles."""
    shares, titles = part["calibrated"]["without an answer"], part["calibrated"]["titles"]
    rows = [[f"questions {name} that show no page", f"{share:.0%}"] for name, share in shares.items()]
    rows += [
        [f"titles, of {titles['titles']}, with their page first", str(titles["first"])],
        ["pages by meaning that a title shows besides, mean", str(titles["more hits"])],
    ]
    return Table("Questions without an answer, and titles", ["", ""], rows)


def latency(part: Record) -> Table:
    """Return the times of pages, the worst of the filters for each share, and recall and cost of the index."""
    sizes = {name: sites for name, sites in part.items() if name.endswith(" chunks")}
    filters = dict.fromkeys(name for site in sizes.values() for name in site if name.endswith("%"))
    rows = []
    for share in dict.fromkeys(name.partition(", ")[2] for name in filters):
        of_share = {
            name: [site[each] for each in filters if each.endswith(f", {share}")] for name, site in sizes.items()
        }
        rows += timings(f"a filter that leaves {share}", of_share)
    rows = timings("a page, all rows", {name: [site["all"]] for name, site in sizes.items()}) + rows
    for cost in ("bytes a chunk", "HNSW, bytes a chunk", "HNSW, s"):
        rows.append([cost, *(number(site.get(cost)) for site in sizes.values())])
    return Table("Searches by meaning in large sites", ["", *sizes], rows)


def timings(label: str, sites: Mapping[str, list[Record]]) -> list[list[str]]:
    """Return the rows about *label*: median (p95) of the slowest filter, recall of the worst."""
    rows = []
    for where in (SERVER, PROCESS):
        slowest = [max((each[where] for each in site), key=lambda figure: figure["p50"]) for site in sites.values()]
        rows.append([f"{label}: {where}", *(f"{number(each['p50'])} ({number(each['p95'])})" for each in slowest)])
    worst = [min(each[RECALL] for each in site) for site in sites.values()]
    return [*rows, [f"{label}: {RECALL}", *(f"{each:.3f}" for each in worst)]]


def costs(fill: Record, saves: Record) -> Table:
    """Return the cost of the vectors of pages, and of saves with an embedder."""
    rows = [
        [name, number(fill[name])] for name in ("pages an hour", "chunks a second", "bytes a page", "bytes a chunk")
    ]
    rows += [
        [name if "page" in name else f"a save, {name}", number(figure)]
        for name, figure in saves.items()
        if "with" in name and isinstance(figure, float)  # not a hash of "source with model"
    ]
    return Table("Vectors of pages", ["", ""], rows)
