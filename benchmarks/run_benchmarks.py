"""The benchmark: the catalogs, and the storages below them, side by side on one PostgreSQL server.

Each backend runs in a separate process, on a fresh database of one embedded server, with the same seeded data.  If
catalogs are compared, the backends take turns, so that they run under the same conditions.
"""

from pathlib import Path

import sys


# As a script: import from the checkout's folder; this folder would hide modules with the same names.
if sys.path[0] == str(Path(__file__).resolve().parent):
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import plan
from benchmarks.backends import BACKENDS
from benchmarks.backends import OTHER
from benchmarks.backends import OURS
from benchmarks.backends import PLAIN
from benchmarks.debian import fetched
from benchmarks.debian import NoTexts
from benchmarks.page_kinds import PAGES
from benchmarks.report import load
from benchmarks.report import write_pages
from benchmarks.running import compact
from benchmarks.running import Job
from benchmarks.running import OtherOptions
from benchmarks.running import ResultFile
from benchmarks.running import run_jobs
from benchmarks.scenarios import SCENARIOS
from benchmarks.scripts import SCRIPTS
from benchmarks.tables import tables
from benchmarks.worker import WorkerFailed
from click.core import ParameterSource
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from rich.console import Console
from typing import Any

import click


RELATIONAL = ("pgjsonb", "relstorage")
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


OUTPUT = click.option("--output", type=FILE, help="Keep the results in this file; an interrupted run is resumed.")
FORMAT = click.option(
    "--format",
    "shown",
    type=click.Choice(["table", "json", "both"]),
    default="table",
    show_default=True,
    help="How to print the results.",
)
PROFILE = click.option("--profile", is_flag=True, help="Print a profile (cProfile) of what is measured to stderr.")
AGAIN = click.option("--again", is_flag=True, help="Measure again what the file already has.")
DOCS = click.option("--docs", default=500, show_default=True, help="Documents in the site.")
CACHE = click.option("--cache-size", default=400, show_default=True, help="Objects in the ZODB cache of a connection.")
TEXTS = click.option(
    "--texts",
    type=click.Choice(["debian"]),
    help="Real texts instead of generated words: the manual pages of Debian in nine languages, which are downloaded.",
)
ELSEWHERE = click.option(
    "--other",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="A checkout of another version, with its .venv: measured in turn with this one, and compared with it.",
)
KEEP = click.option(
    "--keep",
    type=FOLDER,
    help="Keep the filled sites in this folder; later runs with the same sites open these instead of filling new ones.",
)
ONLY = click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice([scenario.name for scenario in SCENARIOS]),
    help="Only this one (may be repeated).",
)


@dataclass(frozen=True)
class Outcome:
    """Results go to the file *output*, and are printed as *shown*; filled sites go to the folder *sites*.

    With *again* the file's results are measured again.
    """

    output: Path | None
    shown: str
    again: bool
    sites: Path | None


def with_outcome(command: Any) -> Any:
    """Add the options of an Outcome to *command*, which gets it as ``outcome``."""

    @wraps(command)
    def decorated(output: Path | None, shown: str, again: bool, keep: Path | None = None, **options: Any) -> None:
        command(outcome=Outcome(output, shown, again, keep), **options)

    return AGAIN(OUTPUT(FORMAT(decorated)))


def compared(*default: str, others: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Return the option that selects the compared backends, by *default* these, and *others*."""
    choice = click.Choice([*others, *BACKENDS])
    return click.option(
        "--backend", "chosen", multiple=True, default=default, show_default=True, type=choice, help="What to compare."
    )


def repeated(iterations: int, warmup: int) -> Callable[[Any], Any]:
    """Return a decorator with the options of commands that repeat measurements."""

    def decorate(command: Any) -> Any:
        for option in (
            with_outcome,
            click.option("--warmup", default=warmup, show_default=True, help="Repetitions that do not count."),
            click.option("--iterations", default=iterations, show_default=True, help="Counted repetitions."),
        ):
            command = option(command)
        return command

    return decorate


#: Commands whose backends are measured in turns: scenario by scenario, size by size.
IN_TURN = ("files", "level1", "level2", "search", "scripts", "pages", "plone", "storage", "zodb", "zodbbench")


def run(command: str, options: dict[str, Any], jobs: list[Job], outcome: Outcome) -> None:
    """Run *jobs*; write and print the results."""
    if outcome.sites and any(job.checkout for job in jobs):
        raise click.UsageError("--keep and --other exclude each other: another version fills its own site.")
    context = click.get_current_context()
    is_chosen = context.get_parameter_source("chosen") is ParameterSource.COMMANDLINE
    # As they will be loaded from JSON; results without a profile, or with generated texts, do not mention these.
    options = {
        name: list(given) if isinstance(given, tuple) else given
        for name, given in options.items()
        if given or name not in ("profile", "texts")
    }
    try:
        if options.get("texts"):
            fetched()
        file = ResultFile(command, options, outcome.output, context.params["chosen"] if is_chosen else ())
        data = run_jobs(file, jobs, outcome.again, command in IN_TURN, outcome.sites)
    except (NoTexts, OtherOptions, WorkerFailed) as error:
        raise click.ClickException(str(error)) from error
    if outcome.shown != "json":
        for table in tables(data):
            Console().print(table.rich())
    if outcome.shown != "table":
        click.echo(compact(data), nl=False)


def jobs_of(module: str, chosen: Sequence[str], other: Path | None, options: dict[str, Any]) -> list[Job]:
    """Return a job for each of the *chosen* backends, and one for OURS in the checkout *other*."""
    jobs = [Job(module, name, options) for name in chosen]
    return [*jobs, Job(module, OTHER, options, checkout=other)] if other else jobs


@click.group()
def main() -> None:
    """Compare the catalogs, and the storages below them."""


@main.command()
@KEEP
@click.option("--rows", default=20_000, show_default=True, help="Rows in the catalog.")
@CACHE
@compared("bare-sql", "relstorage-zcatalog", "pgcatalog", others=["bare-sql"])
@ONLY
@repeated(50, 5)
def level1(chosen: tuple[str, ...], outcome: Outcome, **options: Any) -> None:
    """The query layer without Plone: catalog rows only, next to SQL written by hand."""
    modules = {"bare-sql": "benchmarks.bare_sql"}
    jobs = [Job(modules.get(name, "benchmarks.level1"), name, options) for name in chosen]
    run("level1", options, jobs, outcome)


@main.command()
@KEEP
@click.option("--rows", default=100_000, show_default=True, help="Rows in the catalog.")
@click.option("--cache-size", default=30_000, show_default=True, help="Objects in the ZODB cache of a connection.")
@repeated(20, 3)
def scale(outcome: Outcome, **options: Any) -> None:
    """The catalog of a large site: searches with the pages they read, sizes, changes, VACUUM, memory."""
    run("scale", options, [Job("benchmarks.scale", OURS, options)], outcome)


@main.command()
@KEEP
@DOCS
@click.option(
    "--cache-size",
    "cache_sizes",
    multiple=True,
    default=(400, 30_000),
    show_default=True,
    help="Objects in the ZODB cache of a connection (may be repeated).",
)
@click.option("--rebuild", default=1, show_default=True, help="How often to rebuild the whole catalog.")
@compared(*BACKENDS)
@ONLY
@ELSEWHERE
@PROFILE
@repeated(50, 5)
def level2(
    chosen: tuple[str, ...],
    other: Path | None,
    outcome: Outcome,
    **options: Any,
) -> None:
    """A real Plone site: creation, modification, rebuild, searches, sizes."""
    run("level2", options, jobs_of("benchmarks.level2", chosen, other, options), outcome)


@main.command()
@KEEP
@DOCS
@CACHE
@TEXTS
@compared("relstorage-zcatalog", "pgcatalog")
@repeated(30, 3)
def search(chosen: tuple[str, ...], outcome: Outcome, **options: Any) -> None:
    """Searches for words by a member with local roles; facets, snippets and suggestions."""
    run("search", options, [Job("benchmarks.text_search", name, options) for name in chosen], outcome)


@main.command()
@KEEP
@DOCS
@TEXTS
@click.option("--seconds", default=0.5, show_default=True, help="For each kind of page in each round.")
@click.option("--rounds", default=6, show_default=True, help="How often it is each backend's turn for a page.")
@click.option("--starts", default=5, show_default=True, help="Processes whose first requests are measured.")
@compared("relstorage-zcatalog", "pgcatalog")
@click.option(
    "--page",
    "pages",
    multiple=True,
    type=click.Choice([page.name for page in PAGES]),
    help="Only this one, and the mix (may be repeated).",
)
@ELSEWHERE
@with_outcome
def pages(
    chosen: tuple[str, ...],
    other: Path | None,
    outcome: Outcome,
    **options: Any,
) -> None:
    """Whole pages over HTTP: Zope processes, clients, a writer."""
    run("pages", options, jobs_of("benchmarks.pages", chosen, other, options), outcome)


@main.command()
@KEEP
@DOCS
@CACHE
@compared("relstorage-zcatalog", "pgcatalog")
@click.option(
    "--script",
    "scripts",
    multiple=True,
    type=click.Choice([script.name for script in SCRIPTS]),
    help="Only this one (may be repeated).",
)
@ELSEWHERE
@PROFILE
@repeated(5, 1)
def scripts(
    chosen: tuple[str, ...],
    other: Path | None,
    outcome: Outcome,
    **options: Any,
) -> None:
    """Many changes in one transaction: moves with searches in between, workflow, security of a tree, copies."""
    run("scripts", options, jobs_of("benchmarks.scripts", chosen, other, options), outcome)


@main.command()
@CACHE
@click.option("--iterations", default=10, show_default=True, help="Large files.")
@click.option("--files", default=1000, show_default=True, help="Files that one worker reads, and two read.")
@click.option("--uploads", default=50, show_default=True, help="Files that are uploaded at once.")
@click.option("--seconds", default=10.0, show_default=True, help="Of searches before the uploads.")
@compared("relstorage-zcatalog", "pgcatalog")
@with_outcome
def files(chosen: tuple[str, ...], outcome: Outcome, **options: Any) -> None:
    """PDFs: saved, renamed, copied, found; needs pdftotext (poppler-utils) for Plone's own catalog."""
    run("files", options, [Job("benchmarks.files", name, options) for name in chosen], outcome)


@main.command()
@KEEP
@DOCS
@CACHE
@click.option(
    "--worker",
    "workers",
    multiple=True,
    default=(1, 2),
    show_default=True,
    type=click.IntRange(min=1),
    help="With so many processes (may be repeated).",
)
@with_outcome
def rebuild(outcome: Outcome, **options: Any) -> None:
    """A rebuild beside the live catalog, with searches at the same time."""
    run("rebuild", options, [Job("benchmarks.beside", OURS, options)], outcome)


@main.command()
@click.option("--docs", default=50, show_default=True, help="Documents to create.")
@CACHE
@compared("relstorage-zcatalog", "pgjsonb-zcatalog")
@repeated(100, 10)
def plone(chosen: tuple[str, ...], outcome: Outcome, **options: Any) -> None:
    """The storages below a Plone site with ZCatalog."""
    settings = {**options, "queries": False}
    run("plone", options, [Job("benchmarks.level2", name, settings) for name in chosen], outcome)


@main.command()
@repeated(100, 10)
def storage(outcome: Outcome, **options: Any) -> None:
    """PGJsonbStorage against RelStorage: store and load."""
    storages("storage", options, outcome)


@main.command()
@repeated(100, 10)
def zodb(outcome: Outcome, **options: Any) -> None:
    """PGJsonbStorage against RelStorage through ZODB.DB."""
    storages("zodb", options, outcome)


def storages(table: str, options: dict[str, Any], outcome: Outcome) -> None:
    jobs = [Job("benchmarks.storage", name, {**options, "table": table}) for name in RELATIONAL]
    run(table, options, jobs, outcome)


@main.command()
@click.option("--sizes", default="100,1000,10000", show_default=True, help="Numbers of objects.")
@with_outcome
def pack(sizes: str, outcome: Outcome) -> None:
    """PGJsonbStorage against RelStorage: packing, with half of the objects being garbage."""
    jobs = [
        Job("benchmarks.storage", name, {"table": "pack", "size": int(size)})
        for size in sizes.split(",")
        for name in RELATIONAL
    ]
    run("pack", {"sizes": sizes}, jobs, outcome)


@main.command()
@click.argument("what", type=click.Choice(["synthetic", "filestorage", "all"]), default="synthetic")
@click.argument("data_fs", type=FILE, required=False)
@click.option("--filestorage", type=FILE, help="The Data.fs whose records are read and written.")
@click.option("--with-site", is_flag=True, help="Make a Plone site in a Data.fs, and take that.")
@repeated(1000, 100)
def codec(
    what: str,
    data_fs: Path | None,
    filestorage: Path | None,
    with_site: bool,
    outcome: Outcome,
    **options: Any,
) -> None:
    """Pickle against zodb-json-codec: ten kinds of record (synthetic), the records of a Data.fs (filestorage), or all."""
    path = data_fs or filestorage
    if what == "filestorage" and not (path or with_site):
        raise click.UsageError("Name a Data.fs, or add --with-site.")
        # A result file contains the name of the Data.fs, but no path of a machine.
    named = {"what": what, **options, "filestorage": path.name if path else False, "with_site": with_site}
    settings = {**named, "filestorage": str(path.resolve()) if path else None}
    run("codec", named, [Job("benchmarks.codec", "codec", settings, several=True)], outcome)


@main.command()
@click.option("--count", default=100_000, show_default=True, help="Objects to insert.")
@click.option("--batch", default=100, show_default=True, help="Objects in a transaction.")
@click.option("--cache-size", default=20_000, show_default=True, help="Objects in the ZODB cache.")
@PROFILE
@with_outcome
def zodbbench(outcome: Outcome, **options: Any) -> None:
    """Objects of 1 kB in a growing OOBTree: inserts and look-ups, next to a plain table of PostgreSQL."""
    jobs = [Job("benchmarks.zodbbench", name, options) for name in ("filestorage", *RELATIONAL, PLAIN)]
    run("zodbbench", options, jobs, outcome)


NAMES = [each.name for each in plan.measurements()]


@main.command(name="all")
@click.option(
    "--results",
    default=plan.RESULTS,
    type=FOLDER,
    help="Folder for the results; benchmarks/results by default, as always for the results of other programs.",
)
@click.option("--list", "only_list", is_flag=True, help="Only list the stored results, and the pages with stale ones.")
@click.option("--stale", is_flag=True, help="Measure again what is not of this version of the package.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Only this one (may be repeated).")
@KEEP
@click.option("--filestorage", type=FILE, help="The Data.fs whose records codec reads and writes, too.")
@click.option("--output", type=FILE, help="Write all results into this one file, too.")
@FORMAT
def everything(
    results: Path,
    only_list: bool,
    stale: bool,
    only: tuple[str, ...],
    keep: Path | None,
    filestorage: Path | None,
    output: Path | None,
    shown: str,
) -> None:
    """Everything the documentation shows, one file for each command and size; an interrupted run continues.

    A command that fails does not stop the others.
    """
    chosen = [each for each in plan.measurements(results.resolve()) if not only or each.name in only]
    if only_list:
        click.echo(plan.states(chosen).markdown(titled=False))
        figures = [*plan.stale_figures()]
        click.echo("\n".join(["", f"Figures that are not of this version: {len(figures)}", *figures]))
        return
    done = (plan.CURRENT, plan.OLD) if not stale else (plan.CURRENT,)
    open_ones = [each for each in chosen if each.state not in done]
    failed = [each.name for each in open_ones if not each.run(*each.options(keep, shown, filestorage))]
    if output:
        output.write_text(compact([each.data for each in chosen if each.path.exists()]), "utf-8")
    if failed:
        raise click.ClickException(f"These failed: {', '.join(failed)}")


@main.command()
@click.argument("results", type=click.Path(exists=True, path_type=Path))
@click.option("--pages", "renew", is_flag=True, help="Renew the figures of the documentation and the README instead.")
def report(results: Path, renew: bool) -> None:
    """The tables of stored results: one file, or a folder of them."""
    stored = load(results)
    if renew:
        write_pages(stored)
    else:
        click.echo("\n\n".join(table.markdown() for data in stored for table in tables(data)))


if __name__ == "__main__":
    main()
