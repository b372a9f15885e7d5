"""``pgcatalog status``, ``slow``, ``check`` and ``metrics``: the state of a database's catalogs, read without Zope."""

from collections.abc import Iterator
from dataclasses import asdict
from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import Configured
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.database.direct import is_pooled
from plone.pgcatalog.database.findings import connection_findings
from plone.pgcatalog.database.findings import database_findings
from plone.pgcatalog.database.findings import ERROR
from plone.pgcatalog.database.findings import Finding
from plone.pgcatalog.database.findings import hostile_blocks
from plone.pgcatalog.database.findings import pooler_findings
from plone.pgcatalog.database.findings import reference_findings
from plone.pgcatalog.database.findings import WARNING
from plone.pgcatalog.database.restored import exists
from plone.pgcatalog.database.restored import is_expected
from plone.pgcatalog.database.statistics import has_catalogs
from plone.pgcatalog.database.statistics import saved_at
from plone.pgcatalog.distribution import mixture
from plone.pgcatalog.distribution import numbers_of
from plone.pgcatalog.distribution import version_of
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import ms
from plone.pgcatalog.i18n import percent
from plone.pgcatalog.i18n import when
from plone.pgcatalog.observe import health
from plone.pgcatalog.observe.log import Choice
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import History
from plone.pgcatalog.observe.log import SlowQueryLog
from plone.pgcatalog.observe.plan import deviation
from plone.pgcatalog.observe.plan import reason
from psycopg import Connection
from psycopg.rows import tuple_row
from rich.filesize import decimal
from rich.table import Table
from typing import Any

import click
import psycopg
import re


# -- status


@click.command()
@needs_database
@click.option("--indexes", is_flag=True, help="List the SQL indexes, the largest first.")
@click.option(
    "--check",
    is_flag=True,
    help="Also check for damaged rows, lost objects and embedders (reads all rows and objects).",
)
@prints_result
def status(dsn: str, indexes: bool, check: bool) -> Result:
    """Show sizes, generation, indexes, connections and rebuilds of the catalogs of a database, and their health in one line.

    Exit code 0: healthy; 1: something needs attention, and is listed; 2: there is no catalog.
    """
    with connected(dsn) as connection:
        overview = health.collect(connection, check, embedder_check() if check else health.check_no_embedder)
    return Result(overview, status_lines(overview, indexes), 1 if overview["attention"] else 0)


def status_lines(overview: dict[str, Any], with_indexes: bool) -> Iterator[str | Table]:
    for catalog in overview["catalogs"]:
        yield from block(catalog)
        if with_indexes:
            yield index_table(catalog)
    if overview["catalogs"]:
        yield f"counts of values: {decimal(overview['counts_bytes'])}"
    for relation in overview["retired"]:
        yield f"to be dropped: {relation['relation']}, {decimal(relation['bytes'])}"
    if c := overview["connections"]:
        yield (
            f"connections: {c['connections']} of {c['max_connections']}, {c['active']} active,"
            f" {c['in_transaction']} idle in a transaction, {c['waiting']} waiting for a lock"
        )
    for sentence in overview["attention"]:
        yield click.style(sentence, "red", bold=True)
    yield english(health.line(overview))


def block(catalog: dict[str, Any]) -> Iterator[str]:
    yield f"catalog of {catalog['site'] or '(empty)'}"
    yield f"  {catalog['rows']} rows in {catalog['relation']}, {decimal(catalog['table_bytes'])}"
    yield f"  {len(catalog['indexes'])} SQL indexes, {decimal(catalog['index_bytes'])}"
    time = saved_at(catalog["tid"])
    change = f"number {catalog['generation']}{f', {when(time)}' if time else ''}"
    yield f"  last change: {change}; {catalog['dead_rows']} dead rows"
    yield f"  {english(health.slow_queries(catalog))}"
    files, pages = health.of_files(catalog), health.unfinished(catalog, "embed")
    if any(files.values()) or "text" in catalog["queue"]:
        scans = f", {files['scans']} scans waiting" if files["scans"] else ""
        empty = f", no text found in {files['empty']}" if files["empty"] else ""
        yield f"  text of files: {files['waiting']} without a text so far{scans}, {files['failed']} failed{empty}"
    if pages or catalog["vectors"]:
        chunks, size = (sum(table[figure] for table in catalog["vectors"]) for figure in ("chunks", "bytes"))
        yield f"  vectors of {chunks} chunks, {decimal(size)}; {pages} pages without vectors so far"
    if rebuild := catalog["rebuild"]:
        state = "running" if rebuild["running"] else "interrupted"
        progress = f"{rebuild['done']} of {rebuild['total']}"
        yield f"  rebuild {state}: phase {rebuild['phase']}, {progress}, {rebuild['changes']} changes to apply"


def index_table(catalog: dict[str, Any]) -> Table:
    table = Table("index", "method", title=f"SQL indexes of {catalog['relation']}")
    for heading in ("size", "scans"):
        table.add_column(heading, justify="right")
    for index in catalog["indexes"]:
        table.add_row(index["name"], index["method"], decimal(index["bytes"]), str(index["scans"]))
    return table


# -- slow

#: Each catalog with slow queries, and the path of its tool.
CATALOGS = "SELECT catalog, max(path) FROM pgcatalog_slow_queries GROUP BY catalog ORDER BY max(path), catalog"
#: Hours for which queries are stored.
LONGEST_HOURS = 30 * 24


class Period(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A number of hours or days, such as 24h or 7d; converted to hours."""

    name = "period"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        match = re.fullmatch(r"([1-9][0-9]{0,2})([hd])", str(value))
        hours = int(match[1]) * (24 if match[2] == "d" else 1) if match else 0
        if not 0 < hours <= LONGEST_HOURS:
            self.fail(f"{value!r} is not a period such as 24h or 7d, of at most 30 days", param, ctx)
        return hours


@click.command()
@needs_database
@click.option("--since", "hours", type=Period(), help="Only the last hours or days, such as 24h or 7d.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of shapes shown for each catalog.",
)
@prints_result
def slow(dsn: str, hours: int | None, limit: int) -> Result:
    """Show slow queries by shape, those slow for the site first: times, page, cause, and an example.

    Exit code 0: there are none; 1: there are some; 2: there is no catalog.
    """
    choice = Choice(hours)
    with connected(dsn) as connection:
        cursor = connection.cursor(row_factory=tuple_row)
        shown = {}
        for zoid, path in cursor.execute(CATALOGS).fetchall():
            log = SlowQueryLog(lambda query, values: cursor.execute(query, values).fetchall(), zoid)
            history = log.history(choice) if hours else History()
            groups = [
                (group, group_data(group, log.example(group.newest), english(deviation(group, history, hours))))
                for group in log.groups(limit, choice)
            ]
            if groups:
                shown[path] = groups
    data = {path: [figures for _group, figures in groups] for path, groups in shown.items()}
    return Result(data, slow_lines(shown, f" in the last {hours} hours" if hours else ""), 1 if shown else 0)


def group_data(group: Group, example: Example | None, last_week: str) -> dict[str, Any]:
    """Return *group* as JSON data, with its reason, and page and query of its newest example."""
    # Imported late: it decodes values of indexes, which takes many imports that other commands need not load.
    from plone.pgcatalog.observe.record import query_text

    page, query = ("", "") if example is None else (example.page, query_text(example.query))
    return asdict(group) | {"why": english(reason(group)), "last_week": last_week, "page": page, "example": query}


def slow_lines(shown: dict[str, list[tuple[Group, dict[str, Any]]]], period: str) -> Iterator[str]:
    for path, groups in shown.items():
        yield f"Slow queries of {path}{period}; times in ms"
        for group, data in groups:
            yield ""
            yield from group_lines(group, data)
    if not shown:
        yield f"No slow query is recorded{period}."


def group_lines(group: Group, data: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about *group* and its *data*, a result of ``group_data``."""
    yield f"{group.count} × {group.operation}: {group.shape or '(everything)'}"
    times = f"median {ms(group.median_ms)}, 95 % {ms(group.p95_ms)}, max {ms(group.max_ms)}"
    yield f"  {times}; {percent(group.share)} of all; last {when(group.last)}"
    marks = [f"{group.long} slow for this site"] if group.long else []
    marks += ["new since the last start"] if group.is_new else []
    marks += [f"last week: {data['last_week']}"] if data["last_week"] else []
    if marks:
        yield f"  {', '.join(marks)}"
    yield f"  why: {data['why']}"
    if data["example"]:
        yield f"  page: {data['page'] or '(none: a script or a command)'}"
        yield f"  example: {data['example']}"


# -- check

#: Maximum number of objects that are listed.
NAMED = 5
#: The oldest version of zodb-pgjsonb with all that the catalog needs.
STORAGE = (1, 19)


@click.command()
@click.argument("zope_conf", type=CONF, required=False)
@click.option("--dsn", envvar="PGCATALOG_DSN", help="DSN of the database, instead of that in ZOPE_CONF.")
@click.option("--site", help="Path of a site below the Zope root; by default all sites.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(min=1), help="Zope processes in use.")
@click.option("--threads", default=4, show_default=True, type=click.IntRange(min=1), help="Threads of each.")
@prints_result
def check(zope_conf: str | None, dsn: str | None, site: str | None, processes: int, threads: int) -> Result:
    """Check a site for faults, before and after the catalog is installed.

    It only reads.  With a ZOPE_CONF it also checks the storage and the sites.

    Exit code 0: no findings; 1: findings, a line each, with the remedy; 2: the check is not possible.
    """
    if zope_conf is None and not dsn:
        raise click.UsageError("a ZOPE_CONF or the option --dsn is required")
    configured = [] if zope_conf is None else configured_databases(zope_conf)
    findings = [*distribution_findings(), *storage_findings(configured)]
    ours = next((database for database in configured if database.dsn), None)
    target = dsn or (ours.dsn if ours else None)
    is_reachable = target is None
    if target is not None:
        try:
            with connected(target) as connection:
                findings += database_findings(connection)
                if is_pooled(connection):
                    findings += pooler_findings(connection, target)
                elif ours is not None and ours.pool_max is not None:
                    findings += connection_findings(connection, processes, threads, ours.pool_size, ours.pool_max)
                findings += catalog_findings(connection)
                findings += reference_findings(connection)
                findings += block_findings(connection)
            is_reachable = True
        except click.ClickException as error:
            remedy = "Start the server, or correct the connection string."
            findings.append(Finding(ERROR, "database", error.message, remedy))
    if zope_conf is not None and is_reachable:
        from plone.pgcatalog.cli.site import site_findings

        findings += site_findings(zope_conf, site)
    end = f"{len(findings)} findings" if findings else "no findings"
    data = {"findings": [asdict(finding) for finding in findings]}
    return Result(data, [*map(str, findings), end], 1 if findings else 0)


def distribution_findings() -> Iterator[Finding]:
    sentence = mixture()
    if sentence is not None:
        text, _, remedy = sentence.partition(". ")
        yield Finding(ERROR, "packages", text, remedy)
    version = version_of("zodb-pgjsonb")
    if version is None or numbers_of(version) < STORAGE:
        oldest = ".".join(map(str, STORAGE))
        text = f"zodb-pgjsonb {version or 'is not installed'}"
        yield Finding(ERROR, "packages", text, f"Install zodb-pgjsonb {oldest} or newer.")


def storage_findings(databases: list[Configured]) -> Iterator[Finding]:
    """Yield a finding if the main storage of a zope.conf is not supported by the catalog."""
    for database in databases:
        if database.is_main and not database.dsn:
            text = f"the database {database.name} has the storage {database.storage}"
            remedy = "Copy the objects to zodb-pgjsonb first; see docs/how-to/from-your-site.md."
            yield Finding(ERROR, "storage", text, remedy)


def embedder_check() -> health.CheckEmbedders:
    """Return the function that checks embedders; imported late, because it needs asyncio."""
    from plone.pgcatalog.meaning.embedder import check_embedders

    return check_embedders


def block_findings(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield a finding for each of the first objects whose blocks name code, and one with the number of further ones."""
    if not exists(connection, "SELECT to_regclass('object_state') IS NOT NULL AS found"):
        return
    try:
        found = hostile_blocks(connection)
    except psycopg.errors.QueryCanceled:
        text = "the search for blocks that name code exceeded the time limit"
        yield Finding(WARNING, "blocks", text, "Run pgcatalog blocks with your zope.conf.")
        return
    for each in found[:NAMED]:
        text = f"blocks of {each.path} ({each.class_name} 0x{each.oid:x}) may call code when loaded: {', '.join(each.names)}"
        remedy = (
            f"Run pgcatalog blocks with your zope.conf and --repair 0x{each.oid:x}, unless an add-on has stored it."
        )
        yield Finding(ERROR, "blocks", text, remedy)
    if len(found) > NAMED:
        text = f"{len(found) - NAMED} more objects have such blocks"
        yield Finding(ERROR, "blocks", text, "Run pgcatalog blocks with your zope.conf to list them.")


def catalog_findings(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield the sentences of ``attention`` in ``pgcatalog status`` as findings."""
    if not has_catalogs(connection) and not is_expected(connection):
        return
    figures = health.collect(connection, check_embedders=embedder_check())
    waiting = {kind for catalog in figures.get("catalogs", ()) for kind in health.overdue(catalog)}
    if version_of("httpx") is None and "embed" in waiting:
        text = "pages wait for vectors, but httpx is not installed"
        yield Finding(WARNING, "packages", text, "Install plone.pgcatalog[meaning].")
    if version_of("xberg") is None and "text" in waiting:
        text = "files wait for text extraction, but xberg is not installed"
        yield Finding(
            WARNING, "packages", text, "Install plone.pgcatalog[files], unless the site has another extractor."
        )
    for sentence in figures["attention"]:
        text, _, remedy = sentence.rpartition("; ")
        yield Finding(ERROR, "catalog", text, f"{remedy[:1].upper()}{remedy[1:]}.")


# -- metrics


@click.command()
@needs_database
@click.option(
    "--serve",
    "port",
    type=click.IntRange(1, 65535),
    help="Serve the metrics over HTTP on this port until the process ends.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve on.")
@click.option("--check", is_flag=True, help="Also count damaged rows (reads all rows).")
def metrics(dsn: str, port: int | None, host: str, check: bool) -> None:
    """Print or serve metrics of the database in the text format of Prometheus.

    Exit code 0: done; 1: the database is not available, or has no catalog; 2: the port cannot be served.
    """
    try:
        from plone.pgcatalog.metrics import prometheus
    except ImportError as error:
        raise click.UsageError("prometheus-client is not installed; it is in the extra 'metrics'") from error
    if port is None:
        text = prometheus.text(dsn, check)
        click.echo(text, nl=False)
        raise SystemExit(0 if "pgcatalog_up 1.0" in text else 1)
    try:
        thread: Any = prometheus.serve(dsn, host, port, check)[1]
    except OSError as error:
        raise click.UsageError(f"{host}:{port}: {error.strerror}") from error
    click.echo(f"http://{host}:{port}/metrics", err=True)
    thread.join()
