"""``python -m checks.differential``: search for differences between our catalog and a real ZCatalog."""

from checks.differential.compare import both_answers
from checks.differential.compare import compare_answers
from checks.differential.compare import compare_apply
from checks.differential.compare import compare_case
from checks.differential.compare import compare_contents
from checks.differential.compare import compare_rows
from checks.differential.compare import compare_unique
from checks.differential.compare import Difference
from checks.differential.deviations import explain
from checks.differential.queries import Case
from checks.differential.queries import QueryMaker
from checks.differential.query_values import QueryValues
from checks.differential.sequences import make_steps
from checks.differential.sequences import Run
from checks.differential.sequences import Step
from checks.differential.shrink import shrink_case
from checks.differential.shrink import shrink_steps
from collections import Counter
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from random import Random
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.conftest import memory_folder
from tests.integration import site as sites
from tests.property.pair import opened_pair
from tests.property.pair import Pair
from typing import Any

import click
import json
import logging
import sys
import time
import transaction


TEMPLATE = "differential_template"
PROFILE = "plone.pgcatalog:default"


PAGE = """# The differential test: the figures

Made by this command; changes by hand are lost:

```sh
{command}
```

The same content in a real ZCatalog and in ours: random queries, and random write sequences with queries before and after
their end, in the same and in a second connection. *Explained* differences are deliberate deviations, with their names in
[Deviations](../explanation/deviations.md).

{queries} queries, {sequences} write sequences, {unexplained} unexplained differences, {minutes} minutes of process time.

{tables}"""


@dataclass
class Report:
    """Counts of comparisons and differences, and the explanations."""

    seed: int
    queries: int = 0
    sequences: int = 0
    comparisons: int = 0
    seconds: float = 0
    found: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "explained": dict(self.explained.most_common()), "seconds": round(self.seconds)}

    def as_markdown(self) -> str:
        lines = [f"## Seed {self.seed}", "", "| what | number |", "|---|---:|"]
        lines += [f"| {name} | {number} |" for name, number in self.rows()]
        for text in self.unexplained:
            lines += ["", "```", text, "```"]
        return "\n".join(lines) + "\n"

    def rows(self) -> list[tuple[str, int]]:
        return [
            ("queries", self.queries),
            ("queries that found something", self.found),
            ("write sequences", self.sequences),
            ("comparisons within sequences", self.comparisons),
            *((f"explained: {name}", number) for name, number in self.explained.most_common()),
            ("unexplained", len(self.unexplained)),
        ]


class Differential:
    """Compares the catalogs of *pair*; *other* is the same site in a second connection."""

    def __init__(self, pair: Pair, other: Pair, seed: int, most: int = 40) -> None:
        self.pair = pair
        self.other = other
        self.seed = seed
        self.most = most
        self.report = Report(seed)
        self.values = QueryValues(pair.oracle)

    @property
    def enough(self) -> bool:
        return len(self.report.unexplained) >= self.most

    def is_explained(self, difference: Difference) -> bool:
        name = explain(self.pair, difference)
        if name is not None:
            self.report.explained[name] += 1
        return name is not None

    # -- queries

    def run_state(self) -> None:
        """Compare everything except queries once."""
        checks = [compare_contents(self.pair)]
        checks += [compare_rows(self.pair, [path]) for path in self.values.paths]
        checks += [compare_unique(self.pair, [name]) for name in self.values.names]
        for difference in filter(None, checks):
            if not self.is_explained(difference):
                self.report.unexplained.append(str(difference))

    def run_query(self, number: int) -> None:
        """Compare the answers to query *number* of this seed."""
        if number % 50 == 0:
            self.other.begin()  # the server ends transactions that are idle for long
        maker = QueryMaker(Random(f"{self.seed}-{number}"), self.values)
        case = maker.case()
        self.report.queries += 1
        ours, theirs = both_answers(self.pair, case)
        self.report.found += bool(theirs.paths)
        difference = compare_answers(self.pair, case, ours, theirs)
        if difference is None and number % 4 == 0:
            difference = compare_apply(self.pair, case)
        if difference is None or self.is_explained(difference):
            return
        if difference.kind == "_apply_index":
            self.report.unexplained.append(f"query {number}: {difference}")
            return
        smallest = shrink_case(case, self._fails)
        self.report.unexplained.append(f"query {number}: {compare_case(self.pair, smallest)}\n  from: {case}")

    def _fails(self, case: Case) -> bool:
        difference = compare_case(self.pair, case)
        return difference is not None and explain(self.pair, difference) is None

    # -- sequences

    def run_sequence(self, number: int) -> None:
        """Run sequence *number* of this seed."""
        steps = make_steps(Random(f"{self.seed}-{number}"))
        self.report.sequences += 1
        difference = self._attempt(steps, number)
        if difference is not None:
            steps = shrink_steps(steps, lambda s: self._attempt(s, number) is not None)
            again = self._attempt(steps, number)
            self.report.unexplained.append(f"sequence {number}: {steps}\n{again or difference}")

    def _attempt(self, steps: list[Step], number: int) -> Difference | None:
        maker = QueryMaker(Random(f"{self.seed}-{number}"), self.values)
        run = Run(self.pair, self.other, maker, f"seq{number}", self.is_explained)
        difference = run.run(steps)
        self.report.comparisons += run.comparisons
        return difference


def make_template(postgres: EmbeddedPostgres) -> str:
    """Return the name of a new database with a Plone site and our catalog."""

    sites.start_zope()
    dsn = postgres.createdb(TEMPLATE)
    sites.create_site(dsn)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        portal.portal_setup.runAllImportStepsFromProfile(f"profile-{PROFILE}")
        transaction.commit()
    return TEMPLATE


def run(dsn: str, seed: int, queries: int, sequences: int, progress: Progress | None = None) -> Report:
    """Run *queries* and *sequences* on the site in the database *dsn*."""
    start = time.monotonic()
    with opened_pair(dsn, seed) as (pair, other):
        work = Differential(pair, other, seed)
        work.run_state()
        for name, count, action in (("queries", queries, work.run_query), ("sequences", sequences, work.run_sequence)):
            task = progress.add_task(f"seed {seed}: {name}", total=count) if progress else None
            for number in range(count):
                if work.enough:
                    break
                action(number)
                if progress and task is not None:
                    progress.update(task, advance=1)
    work.report.seconds = time.monotonic() - start
    return work.report


def as_page(reports: list[Report]) -> str:
    """Return the page of the documentation about *reports*."""
    first = reports[0]
    seeds = " ".join(f"--seed {r.seed}" for r in reports)
    return PAGE.format(
        command=f"make differential N={first.queries} SEQUENCES={first.sequences} DIFF_ARGS='{seeds} --report FILE.md'",
        queries=sum(r.queries for r in reports),
        sequences=sum(r.sequences for r in reports),
        unexplained=sum(len(r.unexplained) for r in reports),
        minutes=round(sum(r.seconds for r in reports) / 60),
        tables="\n".join(r.as_markdown() for r in reports),
    )


def show(console: Console, report: Report) -> None:
    table = Table("what", "number", title=f"seed {report.seed}, {report.seconds:.0f} s")
    for name, number in report.rows():
        table.add_row(name, str(number))
    console.print(table)
    for text in report.unexplained:
        console.print(text, markup=False, highlight=False)


@click.command(help=__doc__)
@click.option("--queries", default=1000, show_default=True)
@click.option("--sequences", default=50, show_default=True)
@click.option("--seed", "seeds", multiple=True, type=int, default=(1,), show_default=True, help="May be repeated.")
@click.option("--report", "file", type=click.Path(path_type=Path), help="Also write a report, .md or .json.")
def main(queries: int, sequences: int, seeds: tuple[int, ...], file: Path | None) -> None:
    logging.disable(logging.ERROR)
    console = Console()
    reports = []
    with EmbeddedPostgres(settings=TEST_SETTINGS, temp_dir=memory_folder()) as postgres:
        template = make_template(postgres)
        with Progress(console=console, disable=not console.is_terminal) as progress:
            for seed in seeds:
                reports.append(run(sites.clone(postgres, template), seed, queries, sequences, progress))
    for report in reports:
        show(console, report)
    if file is not None:
        text = json.dumps([r.as_dict() for r in reports], indent=2)
        file.write_text(text if file.suffix == ".json" else as_page(reports))
    sys.exit(any(r.unexplained for r in reports))


if __name__ == "__main__":
    main()
