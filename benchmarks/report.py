"""Writes the figures of the documentation from the stored results; none is typed in."""

from benchmarks import meaning_tables
from benchmarks import scans
from benchmarks.marks import put_between
from benchmarks.page_kinds import GROUPS
from benchmarks.page_kinds import MIX
from benchmarks.page_kinds import READ_ONLY
from benchmarks.page_kinds import WITH_WRITER
from benchmarks.tables import measures_table
from benchmarks.tables import number
from benchmarks.tables import page_means
from benchmarks.tables import page_pairs
from benchmarks.tables import PAIRS
from benchmarks.tables import ratio
from benchmarks.tables import Record
from benchmarks.tables import records_of
from benchmarks.tables import size_of
from benchmarks.tables import Table
from benchmarks.tables import tables
from benchmarks.tables import title
from benchmarks.timing import mean_ratio
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import json


ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
EXPLANATION = ROOT / "docs" / "explanation"
PERFORMANCE, SCALE, README = EXPLANATION / "performance.md", EXPLANATION / "scale.md", ROOT / "README.md"
STORAGE = EXPLANATION / "storage.md"
MEANING = ROOT / "docs" / "how-to" / "search-by-meaning.md"
FILES = ROOT / "docs" / "how-to" / "files.md"
#: Created when the documentation is built.
ALL_RESULTS = ROOT / "docs" / "reference" / "benchmark-results.md"
PLOT = EXPLANATION / "performance-plots" / "growth.svg"
SITES_PLOT = EXPLANATION / "performance-plots" / "sites.svg"
#: The ratio ours / theirs from which on a measurement counts as slower: two runs differ by as much.
SLOWER = 1.05
#: Costs of a slower page, processor times and its size: name in the result files -> name in the pages.
COSTS = {"zope_cpu": "Zope, ms", "postgresql_cpu": "PostgreSQL, ms", "answer_kb": "KB"}
#: Use of a search's result: name in the result files -> name in the pages.
TOUCHES = {"page": "page", "len": "count", "page with count": "page with count"}
#: State of the caches, with ``{}`` for the word of ``TOUCHES`` -> (values, state, ZODB cache) in the result files.
STATES = {
    "the same {} again": ("repeating", "request", None),
    "a new {}": ("varying", "request", None),
    "a new {}, ZODB cache of 30,000 objects": ("varying", "request", 30_000),
    "a new {}, ZCatalog's trees in memory": ("varying", "warm", None),
    "the first {} after a save": ("repeating", "after write", None),
    "the first {} of a new process": ("repeating", "cold", None),
}
MEASURES = (
    *("creation of a document", "modification of a document", "creation without a catalog", "site creation"),
    *("rebuild, per object", "uniqueValuesFor, first time", "database size", "resident memory"),
)
BEGINNING = """\
# Benchmark results

All stored results of [the benchmark](benchmarks.md), computed from the files in `benchmarks/results` when this page was built.
[Performance](../explanation/performance.md) has what the owner of a site asks first."""
#: The sections of the page with all results.
HEADINGS = {
    "level2": "A real Plone site",
    "level1": "The query layer alone",
    "search": "Searches for words",
    "scripts": "Many changes in one transaction",
    "pages": "Whole pages over HTTP",
    "rebuild": "Rebuilding beside the live catalog",
    "scale": "Large catalogs",
    "plone": "The storages below Plone",
    "storage": "Storages: store and load",
    "zodb": "Storages: through the ZODB",
    "pack": "Storages: packing",
    "codec": "Pickle and JSON",
    "zodbbench": "A growing tree",
}


@dataclass(frozen=True)
class Pair:
    """The times of one measurement with ZCatalog, and with our catalog."""

    measurement: str
    documents: int
    theirs: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def times_as_fast(self) -> str:
        times = self.theirs / self.ours
        return f"{times:,.0f}" if times >= 10 else f"{times:.2g}"


def load(results: Path = RESULTS) -> list[Record]:
    """Return the results of the benchmark in a file or folder, ordered by size within each command."""
    files = sorted(results.glob("*.json")) if results.is_dir() else [results]
    stored = [json.loads(path.read_text("utf-8")) for path in files]
    # Other benchmarks write their results to the same folder.
    stored = [data for data in stored if isinstance(data, dict) and data.get("command") in PAIRS]
    return sorted(stored, key=size_of)


def compared(stored: Sequence[Record], command: str, texts: str | None = None) -> list[Record]:
    """Return the results of *command* that contain both sides, with the *texts* of that name; None: generated ones."""
    return [
        data
        for data in stored
        if (data["command"], data["options"].get("texts")) == (command, texts)
        and set(PAIRS[command]) <= set(data["results"])
    ]


def write_pages(stored: Sequence[Record]) -> None:
    """Update the figures of hand-written pages, and the plots."""
    from benchmarks import plots  # importing matplotlib takes a while

    for page, texts in generated(stored).items():
        for name, text in texts.items():
            put_between(page, name, text)
    plots.growth([data for data in stored if data["command"] == "level1"], PLOT)
    plots.sites([*compared(stored, "pages"), *compared(stored, "pages", "debian")], SITES_PLOT)


def generated(stored: Sequence[Record]) -> dict[Path, dict[str, str]]:
    """Return page -> mark -> the text at that mark."""
    return {
        README: {"results": headline(stored)},
        PERFORMANCE: {
            "states": side_by_side([typical(data) for data in compared(stored, "level2")]),
            "pages": pages(stored).markdown(titled=False),
            "measures": side_by_side([measures(data) for data in compared(stored, "level2")]),
            "scripts": side_by_side([scripts(data) for data in compared(stored, "scripts")]),
            "slower": slower(stored).markdown(titled=False),
            "real texts": real_texts(stored),
        },
        STORAGE: {
            **{
                command: measures_table(compared(stored, command)[-1]).markdown(titled=False)
                for command in ("storage", "zodb", "pack", "plone", "zodbbench")
            },
            "codec": codec(compared(stored, "codec")[-1]),
        },
        SCALE: {"largest": largest([data for data in stored if data["command"] == "scale"][-1])},
        MEANING: meaning_tables.generated(meaning_tables.stored()),
        FILES: {"costs": files_costs(compared(stored, "files")[-1]), "scans": scans.table(scans.stored())},
    }


def typical(data: Record) -> list[Pair]:
    """Return the geometric means of all kinds of search for each state of the caches."""
    pairs = []
    for touch, word in TOUCHES.items():
        for label, (values, state, cache) in STATES.items():
            ours, theirs = (records_of(data, name, values, state, touch, cache) for name in PAIRS[data["command"]])
            means = [mean_ratio([side[name]["median"] for name in ours if name in theirs]) for side in (theirs, ours)]
            if means[0] and means[1]:
                pairs.append(Pair(label.format(word), size_of(data), means[0], means[1]))
    return pairs


def measures(data: Record) -> list[Pair]:
    """Return the other measures of a site: saves, sizes."""
    ours, theirs = (data["results"][name]["measures"] for name in PAIRS[data["command"]])
    return [
        Pair(f"{name} ({ours[name]['unit']})", size_of(data), theirs[name]["median"], ours[name]["median"])
        for name in MEASURES
        if name in ours and name in theirs
    ]


def scripts(data: Record) -> list[Pair]:
    """Return the seconds of the scripts."""
    ours, theirs = (data["results"][name]["measures"] for name in PAIRS[data["command"]])
    return [
        Pair(f"{name} (s)", size_of(data), theirs[name]["median"], ours[name]["median"])
        for name in ours
        if name in theirs and "processor time" not in name
    ]


def files_costs(data: Record) -> str:
    """Return the table of the costs of files, with Plone's own conversion and with ours."""
    ours, theirs = (data["results"][name]["measures"] for name in PAIRS[data["command"]])
    rows = [
        [f"{name} ({unit})" if (unit := (ours | theirs)[name]["unit"]) else name]
        + [number(side[name]["median"]) if name in side else "–" for side in (theirs, ours)]
        for name in theirs | ours
    ]
    return Table("", ["", "Plone with pdftotext", "ours"], rows).markdown(titled=False)


def codec(data: Record) -> str:
    """Return a row for each kind of record with the steps of both sides, and the table of the FileStorage."""
    sides = [data["results"][name]["measures"] for name in reversed(PAIRS["codec"])]
    steps = ("decode", "encode", "roundtrip", "size")
    rows = []
    for kind in (name.removeprefix("decode ") for name in sides[0] if name.startswith("decode ")):
        medians = [[side[f"{step} {kind}"]["median"] for side in sides] for step in steps]
        rows.append([kind, *(number(cell) for old, new in medians for cell in (old, new, new / old))])
    headers = [column for step in steps for column in (f"{step}, pickle", "codec", "ratio")]
    scan = [
        [f"{name.removeprefix('FileStorage, ')} ({figure['unit']})".removesuffix(" ()")]
        + [number(side[name]["median"]) for side in sides]
        for name, figure in sides[0].items()
        if name.startswith("FileStorage")
    ]
    tables = Table("", ["", *headers], rows), Table("", ["records of a FileStorage", "pickle", "codec"], scan)
    return "\n\n".join(table.markdown(titled=False) for table in tables)


def side_by_side(sites: Sequence[Sequence[Pair]]) -> str:
    """Return the table of pairs of several sites."""
    rows = []
    for measurement in dict.fromkeys(pair.measurement for pairs in sites for pair in pairs):
        cells = []
        for pairs in sites:
            each = next((pair for pair in pairs if pair.measurement == measurement), None)
            cells += [number(each.theirs), number(each.ours), each.times_as_fast] if each else ["–"] * 3
        rows.append([measurement, *cells])
    sizes = [pairs[0].documents for pairs in sites]
    headers = [f"{side}, {size:,}" for size in sizes for side in ("ZCatalog", "ours", "times as fast")]
    return Table("", ["", *headers], rows).markdown(titled=False)


def headline(stored: Sequence[Record]) -> str:
    """Return the sentences about whole pages with Plone's default cache: the means of all sites, and the range of kinds."""
    sites = compared(stored, "pages")
    ratios = [
        [quotient for group in GROUPS for sides in page_pairs(data, READ_ONLY, group) if (quotient := ratio(*sides))]
        for data in sites
    ]
    means = [number(mean) for site in ratios if (mean := mean_ratio(site))]
    text = (
        "**With Plone's default cache.** A page over HTTP takes"
        f" {means[0]} of ZCatalog's time on average with {size_of(sites[0]):,} documents, and {means[-1]} with"
        f" {size_of(sites[-1]):,}. Kinds of pages range from {number(min(map(min, ratios)))} to"
        f" {number(max(map(max, ratios)))} over {len(sites)} sizes of sites."
    )
    return fill(text, 118, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def pages(stored: Sequence[Record]) -> Table:
    """Return the means of whole pages over HTTP: ours / ZCatalog's."""
    rows = []
    for data in compared(stored, "pages"):
        for group, (mean, worst) in page_means(data).items():
            rows.append([f"{group}, {size_of(data):,} documents", number(mean), number(worst)])
        for state in (READ_ONLY, WITH_WRITER):
            mixes = [sides for sides in page_pairs(data, state) if sides[0]["page"] == MIX]
            ratios = [their["per_second"] / our["per_second"] for our, their in mixes]
            rows.append([f"mix, {state}, {size_of(data):,} documents", number(mean_ratio(ratios)), number(max(ratios))])
    return Table("", ["", "ours / ZCatalog's", "the worst"], rows)


def real_texts(stored: Sequence[Record]) -> str:
    """Return the tables of the sites with real texts: the means of pages, the ratios of searches, and their measures."""
    sites, searches = compared(stored, "pages", "debian"), compared(stored, "search", "debian")
    means = [
        [f"{group}, {size_of(data):,} pages", number(mean), number(worst)]
        for data in sites
        for group, (mean, worst) in page_means(data).items()
    ]
    found = [Table("", ["", "ours / ZCatalog's", "the worst"], means).markdown(titled=False)] if means else []
    for data in sites:
        rows = [
            [
                our["page"],
                number(ratio(our, their)),
                *(number(side.get(name)) for name in COSTS for side in (their, our)),
            ]
            for our, their in page_pairs(data, READ_ONLY)
            if our["page"] != MIX and (ratio(our, their) or 0) > SLOWER
        ]
        costs = (f"{side}, {label}" for label in COSTS.values() for side in ("ZCatalog", "ours"))
        head = [f"Slower, {size_of(data):,} pages", "ours / ZCatalog's", *costs]
        found.append(Table("", head, rows).markdown(titled=False))
    for data in searches:
        found.append(search_ratios(data).markdown(titled=False))
        measured = data["results"][PAIRS["search"][0]]["measures"]
        rows = [[name, f"{number(figure['median'])} {figure['unit']}".strip()] for name, figure in measured.items()]
        found.append(Table("", [f"{size_of(data):,} pages", ""], rows).markdown(titled=False))
    return "\n\n".join(found) or "Not measured on a quiet machine yet."


def search_ratios(data: Record) -> Table:
    """Return ours / ZCatalog's time of each search for words in *data*, by what is read of its hits; and the means."""
    rows: dict[str, list[float]] = {}
    for touch in TOUCHES:
        ours, theirs = (records_of(data, name, "varying", "request", touch) for name in PAIRS["search"])
        ratios = {name: ours[name]["median"] / theirs[name]["median"] for name in ours}
        for name, value in {**ratios, "geometric mean": mean_ratio([*ratios.values()]) or 0.0}.items():
            rows.setdefault(name, []).append(value)
    head = [f"{size_of(data):,} pages: ours / ZCatalog's", *TOUCHES.values()]
    return Table("", head, [[name, *map(number, ratios)] for name, ratios in rows.items()])


def slower(stored: Sequence[Record]) -> Table:
    """Return all measurements that take longer than with ZCatalog."""
    rows = [
        [pair.measurement, f"{pair.documents:,}", number(pair.theirs), number(pair.ours), number(pair.ratio)]
        for pair in candidates(stored)
        if pair.ratio > SLOWER
    ]
    return Table("", ["", "documents", "ZCatalog (ms)", "ours (ms)", "ours / ZCatalog"], rows)


def candidates(stored: Sequence[Record]) -> Iterator[Pair]:
    """Yield all measurements to compare: the states of a site, each kind of search for words, each kind of page."""
    for data in compared(stored, "level2"):
        yield from typical(data)
        yield from (pair for pair in measures(data) if pair.measurement.startswith("uniqueValuesFor"))
    for data in compared(stored, "search"):
        for touch in ("page", "len"):
            ours, theirs = (records_of(data, name, "varying", "request", touch) for name in PAIRS["search"])
            for name in ours:
                measurement = f"a {TOUCHES[touch]} for {name}"
                yield Pair(measurement, size_of(data), theirs[name]["median"], ours[name]["median"])
    for data in compared(stored, "scripts"):
        for pair in scripts(data):
            yield Pair(pair.measurement.removesuffix(" (s)"), pair.documents, pair.theirs * 1e3, pair.ours * 1e3)
    for data in compared(stored, "pages"):
        for state in dict.fromkeys(page["state"] for page in data["results"][PAIRS["pages"][0]]["pages"]):
            for our, their in page_pairs(data, state):
                if our["page"] != MIX:
                    measurement = f"*{our['page']}* over HTTP" + ("" if state == READ_ONLY else f", {state}")
                    yield Pair(measurement, size_of(data), their["median"], our["median"])


def largest(data: Record) -> str:
    """Return the costs of a catalog, and the pages of 8 kB that its searches read."""
    result = data["results"][PAIRS["scale"][0]]
    where = f"{size_of(data):,} rows; `{data['command_line']}`, {data['date']}. {data.get('note', '')}".strip()
    searches: dict[str, dict[str, Record]] = {}
    for record in result["queries"]:
        searches.setdefault(record["scenario"], {})[record["touch"]] = record
    rows = [
        [name, f"{each['len']['found']:,}"]
        + [cell for touch in ("page", "len") for cell in (f"{each[touch]['pages']:,}", number(each[touch]["median"]))]
        for name, each in searches.items()
    ]
    headers = ["", "found", "page: 8 kB read", "page, ms", "count: 8 kB read", "count, ms"]
    costs = [
        [name, f"{number(cost['median'])} {cost['unit']}".strip()]
        for name, cost in result["measures"].items()
        if not name.startswith("size: index") and not name.endswith("rows read")
    ]
    found = [Table("", headers, rows), Table("", ["", ""], costs)]
    return "\n\n".join([where, *(table.markdown(titled=False) for table in found)])


def all_results(stored: Sequence[Record]) -> str:
    """Return the page with the tables of all *stored* results."""
    parts = [BEGINNING]
    for command, heading in HEADINGS.items():
        mine = [data for data in stored if data["command"] == command]
        parts += [f"## {heading}"] if mine else []
        for data in mine:
            parts += [f"### {title(data)}", f"```sh\n{data['command_line']}\n```"]
            parts += [f"*Note:* {data['note']}"] if "note" in data else []
            run = {"day": data["date"], **data["machine"], **data["versions"]}
            parts.append("; ".join(f"{name}: {value}" for name, value in run.items()))
            parts += [table.markdown() for table in tables(data)]
    parts += ["## Search by meaning", "```sh\nmake bench-meaning\n```"]
    parts += [table.markdown() for table in meaning_tables.tables(meaning_tables.stored()).values()]
    return "\n\n".join(parts) + "\n"
