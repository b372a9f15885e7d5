"""``pgcatalog rebuild``, ``verify``, ``explain`` and ``advise``: work on the catalog of a site."""

from collections.abc import Iterator
from contextlib import closing
from plone.pgcatalog.advice import builder
from plone.pgcatalog.advice.advice import Advice
from plone.pgcatalog.advice.advice import AdviceError
from plone.pgcatalog.advice.advice import advise as find_advice
from plone.pgcatalog.advice.builder import BuildError
from plone.pgcatalog.advice.builder import IndexTarget
from plone.pgcatalog.advice.replay import explain as explain_statement
from plone.pgcatalog.advice.replay import recompiled
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.advice.replay import statement_of
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.database.direct import SharedSession
from plone.pgcatalog.i18n import english
from plone.pgcatalog.indexing.rebuild import BrokenObject
from plone.pgcatalog.indexing.rebuild import PHASES
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildGone
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.indexing.rebuild_relation import read
from plone.pgcatalog.indexing.rebuild_relation import RebuildBusy
from plone.pgcatalog.indexing.rebuild_relation import RebuildTarget
from plone.pgcatalog.indexing.rebuild_worker import default_workers
from plone.pgcatalog.indexing.rebuild_worker import helpers
from plone.pgcatalog.indexing.rebuild_worker import rebuild_connection
from plone.pgcatalog.indexing.rebuild_worker import RebuildWorker
from plone.pgcatalog.indexing.rebuild_worker import StartOver
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.query import criteria
from plone.pgcatalog.query.criteria import sort_directions
from plone.pgcatalog.query.nearest import RANK
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.queue.long import JobError
from plone.pgcatalog.queue.progress import compared
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.progress import rebuilt
from plone.pgcatalog.queue.progress import recorded
from plone.pgcatalog.queue.progress import Stopped
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from Products.ZCatalog.Catalog import CatalogError
from psycopg import Connection
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn
from rich.progress import MofNCompleteColumn
from rich.progress import Progress as Bars
from rich.progress import TextColumn
from rich.progress import TimeElapsedColumn
from rich.progress import TimeRemainingColumn
from typing import Any

import ast
import click
import json
import time


# -- rebuild

STOPPED = (BrokenObject, RebuildGone, RebuildRunning, RebuildBusy, SharedSession, Stopped)


@click.command()
@needs_site
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that visit objects; by default one for each core, and one only for few objects.",
)
@click.option("--skip-broken", is_flag=True, help="Leave out objects that cannot be catalogued, and log them.")
@click.option("--abandon", is_flag=True, help="Drop the table of an interrupted rebuild, and exit.")
@click.option("--worker", is_flag=True, hidden=True)
@prints_result
def rebuild(
    zope_conf: str, site: str, workers: int | None, skip_broken: bool, abandon: bool, worker: bool
) -> Result | None:
    """Rebuild the catalog beside the live one, then replace it in one commit.

    Searches and changes continue meanwhile.  An interrupted rebuild is resumed.

    Exit code 0: done; 2: the rebuild failed, and the live catalog is unchanged.
    """
    try:
        with open_site(zope_conf, site) as portal:
            tool = portal.portal_catalog
            if worker:
                help_out(tool, skip_broken)
                return None
            with closing(Rebuild(tool, skip_broken)) as runner:
                if abandon:
                    relation = runner.abandon()
                    text = f"{relation} is dropped" if relation else "no rebuild was interrupted"
                    return Result({"abandoned": relation}, [text])
                count = workers or default_workers(len(tool))
                with (
                    helpers(count - 1, zope_conf, site, skip_broken),
                    recorded(
                        dsn_of(tool._core.jar), "rebuild", tool._core.zoid, {"skip_broken": skip_broken}
                    ) as progress,
                ):
                    target, seconds = run_rebuild(runner, progress)
                    progress.lines.append(rebuilt(target.done))
                return rebuild_result(target, seconds)
    except STOPPED as error:
        raise click.UsageError(str(error)) from error


def run_rebuild(runner: Rebuild, progress: Progress | None = None) -> tuple[RebuildTarget, float]:
    """Run the rebuild with a progress bar, and report to *progress*; return its last state, and its time in seconds."""
    started = time.monotonic()
    progress = progress or Progress()
    columns = (TextColumn("{task.description:34}"), BarColumn(), MofNCompleteColumn())
    with Bars(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task(PHASES["walk"], total=None)
        for state in runner.steps():
            target = state
            progress.report(target.done, target.total, PHASES[target.phase])
            total = max(target.total, target.done) or None
            bars.update(task, description=PHASES[target.phase], completed=target.done, total=total)
    return target, time.monotonic() - started


def rebuild_result(target: RebuildTarget, seconds: float) -> Result:
    rate = target.done / seconds if seconds else 0.0
    text = f"{target.done} objects catalogued into {target.relation} in {seconds:.1f} s, {rate:.0f} per second"
    return Result({"relation": target.relation, "objects": target.done, "seconds": round(seconds, 3)}, [text])


def help_out(catalog: Any, skip_broken: bool) -> None:
    """Catalogue objects for a rebuild that another process has begun or is about to begin."""
    connection = rebuild_connection(catalog)
    try:
        wait_for(connection, catalog)
        RebuildWorker(catalog, connection, skip_broken).run()
    except StartOver:
        pass  # the process that began the rebuild restarts it
    finally:
        connection.close()


def wait_for(connection: Connection[Any], catalog: Any, seconds: float = 30.0) -> None:
    """Wait until a rebuild of *catalog* is running; raises RebuildGone after *seconds*."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            target = read(cursor, catalog._core.zoid)
        if target is not None:
            return
        time.sleep(0.1)
    raise RebuildGone(RebuildGone.__doc__)


# -- verify


@click.command()
@needs_site
@click.option("--repair", is_flag=True, help="Repair the differences, in transactions of 500 objects.")
@prints_result
def verify(zope_conf: str, site: str, repair: bool) -> Result:
    """Compare the catalog with the content, object by object.

    Exit code 0: no differences, or all repaired; 1: differences, each of them listed; 2: the site cannot be opened.
    """
    console = Console(stderr=True)
    with open_site(zope_conf, site) as portal:
        verifier, core = Verifier(portal.portal_catalog), portal.portal_catalog._core
        with recorded(dsn_of(core.jar), "verify", core.zoid, {"repair": repair}) as progress:
            differences = remaining = differences_of(verifier, console)
            if repair and differences:
                verifier.repair_all(differences)
                remaining = differences_of(Verifier(portal.portal_catalog), console)
            progress.lines.append(compared(verifier.checked, len(differences), len(remaining) if repair else None))
        if is_unfilled(core):
            click.echo(
                "The catalog has no table, or contains only objects saved since it was lost. Run pgcatalog rebuild to fill it.",
                err=True,
            )
    repaired = len(differences) - len(remaining)
    end = f"{verifier.checked} objects compared: {len(differences)} differences"
    data = {
        "checked": verifier.checked,
        "differences": [{"path": d.path, "kind": d.kind, "names": d.names} for d in differences],
        "remaining": len(remaining),
    }
    text = [*map(str, differences), f"{end}, {repaired} repaired" if repaired > 0 else end]
    return Result(data, text, 1 if remaining else 0)


def differences_of(verifier: Verifier, console: Console) -> list[Any]:
    """Return all differences; show the progress on *console*."""
    total = len(verifier.catalog)
    with Bars(console=console, transient=True) as bars:
        task = bars.add_task("Comparing", total=total)
        verifier.progress = lambda checked: bars.update(task, completed=checked)
        return list(verifier.differences())


# -- explain

#: Keys of a query besides the names of indexes.
OPTIONS = ("sort_on", "sort_order", "sort_limit", "b_start", "b_size", "show_inactive", RANK)


class QueryType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A query dict, as JSON or as a Python literal."""

    name = "query"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, Any]:
        for parse in (json.loads, ast.literal_eval):
            try:
                query = parse(value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(query, dict) and all(isinstance(name, str) for name in query):
                return query
        self.fail(f'{value!r:.80} is not a query, such as {{"portal_type": "Document"}}', param, ctx)


@click.command()
@needs_site
@click.argument("query", type=QueryType())
@click.option(
    "--part",
    type=click.Choice(["page", "count", "rids"]),
    default="page",
    show_default=True,
    help="Statement to explain.",
)
@prints_result
def explain(zope_conf: str, site: str, query: dict[str, Any], part: str) -> Result:
    """Show the SQL of QUERY and its plan.  PostgreSQL executes the query, read-only, for 30 seconds at most.

    QUERY is a query dict, as JSON or as a Python literal.  Nothing is added to it, not even the filter for what a user may
    see.

    Exit code 0: explained; 1: the catalog or PostgreSQL refuses the query; 2: the site cannot be opened.
    """
    try:
        sort_of(query)  # before Plone is started
        with open_site(zope_conf, site) as portal:
            catalog = portal.portal_catalog._core
            explained, dsn = statement(catalog, query, part), dsn_of(catalog.jar)
        plan = explain_statement(dsn, explained)
    except ReplayError as error:
        raise click.ClickException(str(error)) from error
    values = [value if isinstance(value, str | int | list) else str(value) for value in plan.values]
    data = {"statement": plan.statement, "values": values, "plan": plan.text.splitlines()}
    return Result(data, [plan.statement, str(values), "", plan.text])


def statement(catalog: Catalog, query: dict[str, Any], part: str) -> Statement:
    """Return the statement of the *part* of a search for *query*; raises ReplayError for a query that is refused.

    A search ignores keys that are not the name of an index; here they are refused, because they are typing errors.
    """
    check_names(catalog, query)
    try:
        query = catalog.make_query(query)
        criteria.sort_of(query, catalog.indexes)
    except (CatalogError, *VALUE_ERRORS) as error:
        raise ReplayError(f"the catalog refuses the query: {error}") from error
    return statement_of(catalog, recompiled(catalog, query, *sort_of(query)), part)


def check_names(catalog: Catalog, query: dict[str, Any]) -> None:
    """Raise ReplayError if *query* has a key that belongs to no index and is not an option."""
    names = {*OPTIONS, *catalog.indexes}
    for name, translator in catalog.indexes.items():
        names.update(f"{name}_{option}" for option in ("usage", *getattr(translator.index, "query_options", ())))
    if unknown := sorted(query.keys() - names):
        listed = ", ".join(sorted(catalog.indexes))
        raise ReplayError(f"there is no index {', '.join(map(repr, unknown))}; the indexes are: {listed}")


def sort_of(query: dict[str, Any]) -> tuple[list[tuple[str, bool]], Any]:
    """Return ((index name, reverse) pairs, limit) from ``sort_on``, ``sort_order``, ``sort_limit``; raises ReplayError."""
    names, orders = texts_of(query, "sort_on"), texts_of(query, "sort_order")
    return list(zip(names, sort_directions(orders), strict=False)), query.get("sort_limit")


def texts_of(query: dict[str, Any], key: str) -> list[str]:
    """Return the string or strings in *query* under *key*, as a list; raises ReplayError for other values."""
    value = query.get(key) or []
    texts = [value] if isinstance(value, str) else value
    if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
        return list(texts)
    raise ReplayError(f"{key} must be a string or a list of strings, not {value!r:.80}")


# -- advise


@click.command()
@needs_site
@click.option("--apply", "build", is_flag=True, help="Build the suggested indexes, one by one, and wait.")
@prints_result
def advise(zope_conf: str, site: str, build: bool) -> Result:
    """Suggest SQL indexes for the recorded slow queries; each suggestion has been tested.

    Exit code 0: no suggestions are left; 1: some are left, or no advice is possible; 2: the site cannot be opened.
    """
    try:
        with open_site(zope_conf, site) as portal:
            catalog = portal.portal_catalog._core
            advice = find_advice(catalog)
            target = IndexTarget.of(catalog)
    except (AdviceError, BuildError) as error:
        raise click.ClickException(str(error)) from error
    # The site is closed by now: CREATE INDEX CONCURRENTLY waits for older snapshots.
    built = apply(advice, target) if build else {}
    data = advice_data(advice, built)
    is_left = any(not suggestion["built"] for suggestion in data["suggestions"])
    return Result(data, advice_lines(data), 1 if is_left else 0)


def apply(advice: Advice, target: IndexTarget) -> dict[str, str]:
    """Build all suggested indexes; return name -> reason why it was not built, "" if it was."""
    outcome = {}
    for suggestion in advice.suggestions:
        candidate = suggestion.candidate
        if candidate.name in outcome:
            continue
        try:
            builder.register(target, candidate, f"{suggestion.group.shape} ({suggestion.group.operation})")
            builder.do(target, candidate.name)
            outcome[candidate.name] = ""
        except (BuildError, JobError) as error:
            outcome[candidate.name] = str(error)
    return outcome


def advice_data(advice: Advice, built: dict[str, str]) -> dict[str, Any]:
    return {
        "method": english(advice.method),
        "rows": advice.rows,
        "suggestions": [
            {
                "name": s.candidate.name,
                "kind": s.candidate.kind,
                "ddl": s.ddl,
                "shape": s.group.shape,
                "operation": s.group.operation,
                "gain": s.gain,
                "before": {"cost": s.before.cost, "ms": s.before.ms},
                "after": {"cost": s.after.cost, "ms": s.after.ms},
                "bytes": s.bytes,
                "write_cost": english(s.write_cost),
                "built": s.candidate.name in built and not built[s.candidate.name],
                "error": built.get(s.candidate.name, ""),
            }
            for s in advice.suggestions
        ],
        "without": [
            {"shape": g.shape, "operation": g.operation, "reason": english(reason)} for g, reason in advice.without
        ],
    }


def advice_lines(data: dict[str, Any]) -> Iterator[str]:
    yield f"Method: {data['method']}; the table has {data['rows']:,} rows."
    for s in data["suggestions"]:
        yield "\n" + click.style(s["ddl"], bold=True)
        yield f"  for   {s['shape']} ({s['operation']})"
        yield f"  gain  {s['gain']:.0%}: {s['before']['ms']:.2f} → {s['after']['ms']:.2f} ms"
        yield f"  size  {decimal(s['bytes'])}, {s['write_cost']}"
        if s["built"] or s["error"]:
            yield "  " + click.style(s["error"] or "built", bold=True)
    if not data["suggestions"]:
        yield "No further index would help much."
    for each in data["without"]:
        text = f"{each['shape'] or '(everything)'} ({each['operation']}): {each['reason']}"
        yield "\n" + click.style(text, dim=True)
