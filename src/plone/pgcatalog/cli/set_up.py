"""``pgcatalog install``, ``uninstall`` and ``compare``: move a site's catalog to PostgreSQL or back, or rehearse it."""

from collections.abc import Iterator
from contextlib import closing
from contextlib import contextmanager
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import counting
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.cli.work import rebuild_result
from plone.pgcatalog.cli.work import run_rebuild
from plone.pgcatalog.cli.work import STOPPED
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild_worker import default_workers
from plone.pgcatalog.indexing.rebuild_worker import helpers
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.migration import copying
from plone.pgcatalog.migration import tools
from plone.pgcatalog.migration.tools import filling_later
from plone.pgcatalog.migration.tools import refused_names
from plone.pgcatalog.migration.tools import unknown_indexes
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.storage import is_supported
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import EmbeddedPostgresError
from Products.CMFCore.indexing import processQueue
from rich.console import Console
from rich.progress import Progress
from rich.progress import track
from rich.table import Table
from time import monotonic
from typing import Any

import click
import os
import transaction


PROFILE = "profile-plone.pgcatalog:default"
UNINSTALL = "profile-plone.pgcatalog:uninstall"


# -- install


@click.command()
@needs_site
@click.option("--dry-run", is_flag=True, help="Only show the planned changes and the obstacles.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that visit objects; by default one for each core, and one only for few objects.",
)
@click.option("--skip-broken", is_flag=True, help="Leave out objects that cannot be catalogued, and log them.")
@prints_result
def install(zope_conf: str, site: str, dry_run: bool, workers: int | None, skip_broken: bool) -> Result:
    """Install the catalog in a site: switch to it in a short transaction, then fill it in batches.

    Until it is filled, searches find only the objects saved since the switch: install it while the site has no visitors.
    An interrupted installation is resumed by the same command.

    Exit code 0: done, or the catalog was installed already; 1: the dry run has found obstacles; 2: the command
    failed.
    """
    try:
        with open_site(zope_conf, site, ours=None) as portal:
            tool, paths = portal.portal_catalog, None
            if not IPGCatalogTool.providedBy(tool):
                reasons = obstacles(tool)
                if dry_run:
                    return rehearsal(tool, reasons)
                if reasons:
                    raise click.UsageError("; ".join(reasons))
                paths = switch(portal)
            elif not is_unfilled(tool._core):
                text = "the catalog is already installed"
                return Result({"installed": True, "objects": 0}, [text])
            elif dry_run:
                text = "the catalog is installed but not filled: run pgcatalog install to fill it"
                return Result({"installed": True, "filled": False}, [text], 1)
            count = workers or default_workers(None if paths is None else len(paths))
            with (
                closing(Rebuild(portal.portal_catalog, skip_broken, paths)) as runner,
                helpers(count - 1, zope_conf, site, skip_broken),
            ):
                return rebuild_result(*run_rebuild(runner))
    except STOPPED as error:
        raise click.UsageError(str(error)) from error


def obstacles(tool: Any) -> list[str]:
    """Return the reasons why plone.pgcatalog cannot replace *tool*, a ZCatalog."""
    if not is_supported(tool._p_jar):
        return ["the storage is not zodb-pgjsonb: copy the objects to it first"]
    types = [f"the index {name} has the type {kind}, which is not supported" for name, kind in unknown_indexes(tool)]
    return types + refused_names(tool)


def rehearsal(tool: Any, reasons: list[str]) -> Result:
    """Return the result of a dry run for *tool*, a ZCatalog; *reasons* are the obstacles."""
    catalog = tool._catalog
    counts = {"objects": len(catalog), "indexes": len(catalog.indexes), "columns": len(catalog.names)}
    text = "would catalogue {objects} objects, with {indexes} indexes and {columns} metadata columns".format(**counts)
    lines = [text, *(f"obstacle: {reason}" for reason in reasons)]
    return Result({**counts, "obstacles": reasons}, lines, 1 if reasons else 0)


def switch(portal: Any) -> list[str]:
    """Replace the catalog of *portal* by an empty one of plone.pgcatalog, and commit; return the paths of the former one."""
    processQueue()
    paths = list(portal.portal_catalog._catalog.uids)
    with filling_later():
        portal.portal_setup.runAllImportStepsFromProfile(PROFILE)
    transaction.get().note("catalog: installed, to be filled")
    transaction.commit()
    return paths


# -- uninstall

#: Attempts of the last transaction, in case of conflicting changes of the catalog.
ATTEMPTS = 5


@click.command()
@needs_site
@click.option("--dry-run", is_flag=True, help="Only show the planned changes.")
@click.option("--abandon", is_flag=True, help="Discard an interrupted uninstallation, and exit.")
@prints_result
def uninstall(zope_conf: str, site: str, dry_run: bool, abandon: bool) -> Result:
    """Reinstall Plone's own catalog in a site: fill it in batches, then switch to it in one transaction.

    Searches and changes continue meanwhile.  An interrupted uninstallation is resumed by the same command.

    Exit code 0: done; 2: the command failed, and the site's catalog is unchanged.
    """
    with open_site(zope_conf, site) as portal:
        tool = portal.portal_catalog
        if abandon:
            done = tools.abandon(tool)
            return Result(
                {"abandoned": done},
                ["the interrupted uninstallation was discarded" if done else "no uninstallation was interrupted"],
            )
        if dry_run:
            begun = tools.successor_of(tool)
            counts = {
                "objects": len(tools.paths_of(tool)),
                "done": 0 if begun is None else len(begun._catalog.uids),
            }
            return Result(counts, ["would catalogue {objects} objects, {done} are done".format(**counts)])
        started = monotonic()
        count = fill(tool)
        switch_back(portal)
        seconds = monotonic() - started
    text = f"{count} objects catalogued by Plone's own catalog in {seconds:.1f} s"
    return Result({"objects": count, "seconds": round(seconds, 3)}, [text])


def fill(tool: Any) -> int:
    """Fill the successor of *tool* with a progress bar; return its number of paths."""
    total = 0
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Cataloguing", total=None)
        for done, total in tools.fill_in_batches(tool, tools.begin(tool)):
            progress.update(task, completed=done, total=total)
    return total


def switch_back(portal: Any) -> None:
    """Replace the catalog by its successor, and commit; raises the error of the commit after ATTEMPTS conflicts."""
    for attempt in transaction.manager.attempts(ATTEMPTS):
        with attempt as txn:
            txn.note("catalog: uninstalled")
            portal.portal_setup.runAllImportStepsFromProfile(UNINSTALL)


# -- compare

#: Maximum number of paths that are listed for a difference.
NAMED = 5


@click.command()
@needs_site
@click.option(
    "--scratch",
    metavar="DSN",
    help="An empty database for the copy; by default one of an embedded server, deleted at the end.",
)
@click.option(
    "--limit", default=200, show_default=True, type=click.IntRange(min=1), help="Number of queries of each kind."
)
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(min=1), help="Times each query is timed.")
@prints_result
def compare(zope_conf: str, site: str, scratch: str | None, limit: int, repeats: int) -> Result:
    """Rehearse the migration of a site with Plone's own catalog, and compare the results before and after.

    The site's database is copied, and the profile is installed in the copy; the site itself is only read.  The queries are
    those of its navigation, listings, collections and listing blocks.  Pages of each type are visited with both catalogs, in
    turns.

    Exit code 0: all results are the same; 1: the results shown differ; 2: the command failed.
    """
    # Slow queries are in the table of results; they need not fill the logs, too.
    os.environ["PGCATALOG_SLOW_QUERY_MS"] = "0"
    try:
        with database_for(scratch) as dsn:
            found = rehearse(zope_conf, site, dsn, limit, repeats, Console(stderr=True))
    except (EmbeddedPostgresError, RuntimeError) as error:
        raise click.UsageError(str(error)) from error
    data = {
        "seconds": found.seconds,
        "queries": [comparison_data(c) for c in found.comparisons],
        "pages": [asdict(page) for page in found.pages],
    }
    return Result(data, compare_lines(found), 0 if all(c.is_fine for c in found.comparisons) else 1)


@contextmanager
def database_for(dsn: str | None) -> Iterator[str]:
    """Yield *dsn*, or the DSN of an embedded server; raises ScratchError if *dsn* is not empty or out of reach."""
    if dsn:
        copying.check_empty(dsn)
        yield dsn
        return
    with EmbeddedPostgres() as server:
        yield server.createdb("scratch")


@dataclass
class Rehearsal:
    """The results of ``compare``: comparisons of queries, times of pages, and seconds of each step."""

    comparisons: list[Any] = field(default_factory=list)
    pages: list[Any] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def rehearse(zope_conf: str, site: str, dsn: str, limit: int, repeats: int, console: Console) -> Rehearsal:
    """Query Plone's own catalog, copy the site, install, query the new catalog, and visit pages of both in turns."""
    with open_site(zope_conf, site, ours=False) as portal:
        # Imported late: these modules import Plone, which needs the configuration of Zope.
        from plone.pgcatalog.migration.compare import compare
        from plone.pgcatalog.migration.compare import run_query
        from plone.pgcatalog.migration.compare import site_queries
        from plone.pgcatalog.migration.pages import page_times
        from plone.pgcatalog.migration.pages import pages_of

        queries = list(track(site_queries(portal, limit), "Collecting the site's own queries", console=console))
        progress = track(queries, "Querying Plone's own catalog", console=console)
        before = [run_query(portal.portal_catalog, query, repeats) for query in progress]
        paths = pages_of(portal)
        started = monotonic()
        with counting(console) as count:
            copying.copy_to_scratch(portal._p_jar.db().storage, dsn, count("Copying the objects"))
        copied = monotonic()
        with (
            copying.opened(dsn, portal._p_jar.db()) as database,
            opened_at(database, "/".join(portal.getPhysicalPath())) as other,
        ):
            console.print("Installing the catalog")
            other.portal_setup.runAllImportStepsFromProfile(PROFILE)
            transaction.commit()
            copying.analyze(dsn)
            installed = monotonic()
            progress = track(queries, "Querying the new catalog", console=console)
            after = [run_query(other.portal_catalog, query, repeats) for query in progress]
            shown = track(paths, "Visiting pages with both catalogs", console=console)
            pages = [page_times(portal, other, path, repeats) for path in shown]
    comparisons = [compare(*three) for three in zip(queries, before, after, strict=True)]
    return Rehearsal(comparisons, pages, {"copy": round(copied - started, 3), "install": round(installed - copied, 3)})


def comparison_data(comparison: Any) -> dict[str, Any]:
    times = {name: round(getattr(comparison, name), 3) for name in ("before_ms", "after_ms", "cached_ms")}
    return {
        "kind": comparison.query.kind,
        "path": comparison.query.path,
        "verdict": comparison.verdict,
        "missing": comparison.missing,
        "additional": comparison.additional,
        **times,
    }


def compare_lines(found: Rehearsal) -> Iterator[str | Table]:
    comparisons, seconds = found.comparisons, found.seconds
    table = Table("queries", title="The site's own queries before and after, in ms", title_justify="left")
    for heading in ("number", "same", "ties", "order", "differ", "before", "after", "cached"):
        table.add_column(heading, justify="right")
    for kind in dict.fromkeys(c.query.kind for c in comparisons):
        of_kind = [c for c in comparisons if c.query.kind == kind]
        verdicts = [sum(c.verdict == v for c in of_kind) for v in ("same", "ties", "order", "different")]
        times = [sum(getattr(c, name) for c in of_kind) for name in ("before_ms", "after_ms", "cached_ms")]
        table.add_row(kind, str(len(of_kind)), *map(str, verdicts), *(f"{ms:.1f}" for ms in times))
    yield table
    for c in comparisons:
        if not c.is_fine:
            yield f"{c.verdict}: {c.query.kind} of {c.query.path}: {c.query.query}"
            for word, paths in (("missing", c.missing), ("additional", c.additional)):
                if paths:
                    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
                    yield f"  {word}: {', '.join(paths[:NAMED])}{more}"
    yield (
        f"{seconds['copy']:.1f} s to copy the objects, {seconds['install']:.1f} s to install the catalog;"
        " the site is unchanged"
    )
    yield verdict(comparisons, found.pages)


def verdict(comparisons: list[Any], pages: list[Any]) -> str:
    """Return two lines: whether the results are the same, and the time of a page with both catalogs."""
    wrong = sum(not c.is_fine for c in comparisons)
    count = len(comparisons)
    answers = f"{wrong} of {count} results differ." if wrong else f"All {count} results are the same."
    if not pages:
        return f"{answers}\nNo page of the site can be visited, so no times are compared."
    before, after = (sum(getattr(page, name) for page in pages) / len(pages) for name in ("before_ms", "after_ms"))
    return (
        f"{answers}\nA page takes {after:.1f} ms, with Plone's own catalog {before:.1f} ms: {after / before:.2f} of the time"
        f" (pages: {len(pages)}, with their caches, both catalogs in turns)."
    )
