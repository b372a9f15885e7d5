"""What the results say, in sentences.  Each figure, and each "slower", comes from the stored results."""

from benchmarks.page_kinds import AFTER
from benchmarks.page_kinds import FIRST_REQUEST
from benchmarks.page_kinds import GROUPS
from benchmarks.page_kinds import MIX
from benchmarks.page_kinds import READ_ONLY
from benchmarks.page_tables import both
from benchmarks.page_tables import quotients
from benchmarks.tables import number
from benchmarks.tables import PAIRS
from benchmarks.tables import records_of
from benchmarks.tables import size_of
from benchmarks.timing import mean_ratio
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any


#: Ours / theirs from which on something counts as slower: two runs differ by as much.
SLOWER = 1.05


@dataclass(frozen=True)
class State:
    """In which state of the caches a search is made: *values* and *state* are the names in the result files.

    *label* is said of a page or a count: the word takes the place of ``{}``.
    """

    label: str
    values: str
    state: str
    #: objects in the ZODB cache; None: as few as were measured
    cache: int | None = None


AGAIN = State("the same {} again", "repeating", "request")
NEW = State("a new {}", "varying", "request")
IN_MEMORY = State("a new {}, ZCatalog's trees in memory", "varying", "warm")
AFTER_WRITE = State("the first {} after a save", "repeating", "after write")
COLD = State("the first {} of a new process", "repeating", "cold")
#: Plone's own default.
NEW_DEFAULT = State("a new {}, ZODB cache of 30,000 objects", "varying", "request", 30_000)
STATES = (AGAIN, NEW, NEW_DEFAULT, IN_MEMORY, AFTER_WRITE, COLD)
BATCH = "page with count"
TOUCHES = {"page": "page", "len": "count"}
SITE_TOUCHES = {**TOUCHES, BATCH: BATCH}
CREATION = "creation of a document"
MODIFICATION = "modification of a document"


@dataclass(frozen=True)
class Pair:
    """A figure of what we are compared with, and ours."""

    theirs: float
    ours: float
    unit: str = "ms"

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs if self.theirs else 1.0

    @property
    def speed(self) -> str:
        """How many times as fast ours is."""
        times = 1 / self.ratio
        return f"{times:,.0f}" if times >= 10 else f"{times:.2g}"

    def __str__(self) -> str:
        return f"{number(self.ours)} instead of {number(self.theirs)} {self.unit}".rstrip()


def of_command(stored: Sequence[dict[str, Any]], command: str) -> list[dict[str, Any]]:
    """Return the results of *command*, the smallest first."""
    return sorted((data for data in stored if data["command"] == command), key=size_of)


def compared(stored: Sequence[dict[str, Any]], command: str) -> list[dict[str, Any]]:
    """Return those results of *command* that have both sides, the smallest first."""
    return [data for data in of_command(stored, command) if set(PAIRS[command]) <= set(data["results"])]


def documents(data: dict[str, Any]) -> str:
    return f"{size_of(data):,} documents"


def scenarios(data: dict[str, Any], state: State, touch: str) -> dict[str, Pair]:
    """Return kind of search -> its figures in *state*."""
    ours, theirs = (
        records_of(data, name, state.values, state.state, touch, state.cache) for name in PAIRS[data["command"]]
    )
    return {name: Pair(theirs[name]["median"], ours[name]["median"]) for name in ours if name in theirs}


def typical(data: dict[str, Any], state: State, touch: str) -> Pair | None:
    """Return the geometric means of all kinds of search in *state*; None when they were not measured."""
    pairs = list(scenarios(data, state, touch).values())
    theirs, ours = mean_ratio([pair.theirs for pair in pairs]), mean_ratio([pair.ours for pair in pairs])
    return None if theirs is None or ours is None else Pair(theirs, ours)


def measured(data: dict[str, Any], name: str) -> Pair | None:
    """Return the figures of the measure *name*; None when one is missing."""
    ours, theirs = (data["results"].get(side, {}).get("measures", {}).get(name) for side in PAIRS[data["command"]])
    return None if ours is None or theirs is None else Pair(theirs["median"], ours["median"], ours["unit"])


@dataclass(frozen=True)
class Slower:
    """Something that takes longer than with ZCatalog: *what* in a site of the size *where*."""

    what: str
    where: str
    pair: Pair


def slower(stored: Sequence[dict[str, Any]]) -> Iterator[Slower]:
    """Yield what takes longer: of a site the means of all kinds of search, of searches for words each kind."""
    for data in compared(stored, "level2"):
        for touch, label in SITE_TOUCHES.items():
            for state in STATES:
                yield from if_slower(state.label.format(label), data, typical(data, state, touch))
    for data in compared(stored, "search"):
        for touch, label in TOUCHES.items():
            for name, pair in scenarios(data, NEW, touch).items():
                yield from if_slower(f"a {label} for {name}", data, pair)
    for data in compared(stored, "pages"):
        for state in (READ_ONLY, AFTER, FIRST_REQUEST):
            for kind, (ours, theirs) in both(data, state).items():
                if kind.page != MIX:
                    what = f"*{kind.page}* over HTTP" + ("" if state == READ_ONLY else f", {state}")
                    yield from if_slower(what, data, Pair(theirs["median"], ours["median"]))
    for data in compared(stored, "level2"):
        yield from if_slower("`uniqueValuesFor`", data, measured(data, "uniqueValuesFor, first time"))


def if_slower(what: str, data: dict[str, Any], pair: Pair | None) -> Iterator[Slower]:
    if pair is not None and pair.ratio > SLOWER:
        yield Slower(what, documents(data), pair)


def in_short(stored: Sequence[dict[str, Any]]) -> str:
    """Return where we win, by how much, where not, and what it costs: five sentences, as a list."""
    sites = compared(stored, "level2")
    # The largest site first, then the smallest.
    sites = [sites[-1], sites[0]] if len(sites) > 1 else sites
    if not sites:
        return "Nothing was measured."
    sentences = {
        "New searches": f"A page of 25 results that is in no cache comes {speeds(sites, NEW, times=True)}",
        "With Plone's default cache": f"A new page with its count, as each batch of Plone asks, comes"
        f" {speeds(sites, NEW_DEFAULT, BATCH, times=True)} when the ZODB cache holds 30,000 objects",
        "Whole pages over HTTP": whole_pages(stored),
        "Again, and cold": f"The same page again comes {speeds(sites, AGAIN)};"
        f" the first page of a new process {speeds(sites, COLD)}",
        "Saves": f"Creating a document takes {figures(sites, CREATION)}; changing one {figures(sites, MODIFICATION)}",
        "Slower than ZCatalog": slower_in_short(stored),
        "The price": f"The database takes {figures(sites, 'database size')};"
        f" the memory of a process {figures(sites, 'resident memory')}",
    }
    if not any(typical(data, NEW_DEFAULT, BATCH) for data in sites):
        del sentences["With Plone's default cache"]
    if not compared(stored, "pages"):
        del sentences["Whole pages over HTTP"]
    return "\n".join(filled(f"**{name}.** {sentence}.", "- ") for name, sentence in sentences.items())


def headline(stored: Sequence[dict[str, Any]]) -> str:
    """Return the sentence about Plone's default cache, which is what most sites have; the first one without it."""
    sentences = ["- " + sentence for sentence in in_short(stored).removeprefix("- ").split("\n- ")]
    return next(
        (sentence for sentence in sentences if sentence.startswith("- **With Plone's default cache")), sentences[0]
    )


def whole_pages(stored: Sequence[dict[str, Any]]) -> str:
    """Return how long whole pages take, by their group and the size of the site."""
    parts = []
    for data in compared(stored, "pages"):
        means = (
            f"{group} {number(mean)} (worst: {number(max(found.values()))})"
            for group in GROUPS
            if (mean := mean_ratio(list((found := quotients(data, READ_ONLY, group)).values())))
        )
        parts.append(f"with {documents(data)} {', '.join(means)}")
    return f"Their time, ours / ZCatalog's, geometric mean: {'; '.join(parts)}"


def filled(text: str, bullet: str = "") -> str:
    """Return *text* in lines of at most 118 characters, as an item of a list behind *bullet*."""
    return fill(text, 118, initial_indent=bullet, subsequent_indent=" " * len(bullet), break_on_hyphens=False)


def slower_in_short(stored: Sequence[dict[str, Any]]) -> str:
    """Return what is slower, by the size of the site."""
    found = list(slower(stored))
    sizes = dict.fromkeys(each.where for each in found)
    parts = (
        f"With {where}: " + "; ".join(f"{each.what} ({each.pair})" for each in found if each.where == where)
        for where in sizes
    )
    return ". ".join(parts) or "Nothing, in the mean"


def speeds(sites: Sequence[dict[str, Any]], state: State, touch: str = "page", times: bool = False) -> str:
    """Return how many times as fast a page is in each of *sites*, with its *times* on request."""
    found = [(data, pair) for data in sites if (pair := typical(data, state, touch))]
    return " and ".join(
        f"{pair.speed} times as fast with {documents(data)}{f' ({pair})' if times else ''}" for data, pair in found
    )


def figures(sites: Sequence[dict[str, Any]], name: str) -> str:
    """Return the measure *name* in each of *sites*."""
    found = [(data, pair) for data in sites if (pair := measured(data, name))]
    return " and ".join(f"{pair} with {documents(data)}" for data, pair in found)
