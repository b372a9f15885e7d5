"""``pgcatalog copy``, ``export`` and ``vacuum``: commands on the data of a database.  They load no Plone."""

from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import MutableMapping
from collections.abc import Sequence
from contextlib import closing
from contextlib import contextmanager
from contextlib import ExitStack
from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import counting
from plone.pgcatalog.cli.target import main_storage
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.counts import repair as repair_counts
from plone.pgcatalog.database.layout import view_name
from plone.pgcatalog.database.retirement import clear_stale
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.database.retirement import vacuum_analyze
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.queue.progress import recorded
from plone.pgcatalog.queue.progress import vacuumed
from psycopg import Connection
from psycopg import sql
from rich.console import Console
from rich.progress import BarColumn
from rich.progress import MofNCompleteColumn
from rich.progress import Progress
from rich.progress import TimeRemainingColumn
from time import monotonic
from typing import Any
from typing import IO

import click
import csv
import json
import logging
import os
import psycopg


# -- copy

#: Maximum number of missing objects that are listed.
NAMED = 20
#: A ZEO client would copy objects without their files.
ZEO = "a copy cannot write through a ZEO server: stop the server, and configure its <filestorage> in the TARGET_CONF"


@click.command()
@click.argument("source_conf", type=CONF)
@click.argument("target_conf", type=CONF)
@click.option("--check", "only_check", is_flag=True, help="Compare the target with the source, and copy nothing.")
@click.option("--repair", is_flag=True, help="Compare, and copy the objects that are missing in the target.")
@click.option(
    "--sample",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    help="Number of objects of each class whose values are compared.",
)
@prints_result
def copy(source_conf: str, target_conf: str, only_check: bool, repair: bool, sample: int) -> Result:
    """Copy all objects, with their history and files, from the storage of SOURCE_CONF to that of TARGET_CONF.

    Both are zope.conf files.  The source is only read, and must not change meanwhile; the target must be empty.  Then the
    target is searched for all objects, and the values of some objects of each class are compared.

    Exit code 0: the target has all objects, with the same values; 1: the objects listed are missing or differ; 2: the command
    failed.
    """
    # Imported late: it imports ZODB, which --help does not need.
    from plone.pgcatalog.migration import copying

    started = monotonic()
    console = Console(stderr=True)
    # The storage returns connections to its pool within a transaction, and the pool logs a warning each time.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        with opened(source_conf, read_only=True) as storage, opened(target_conf) as target, counting(console) as count:
            source = copying.SourceStorage(storage, count("Copying"), sample)
            if only_check or repair:
                source = copying.seen(storage, count("Reading the source"), sample)
            else:
                copying.copy(source, target)
            copied = copying.seen(target, count("Reading the target"), 0)
            missing = copying.missing(source, copied)
            before = len(missing)
            if repair and missing:
                copying.repair(source, target, missing)
                copied = copying.seen(target, count("Reading the target again"), 0)
                missing = copying.missing(source, copied)
            compared = list(copying.changed(source, copied))
    except (copying.CopyError, psycopg.Error, OSError) as error:
        raise click.UsageError(str(error).strip()) from error
    data = {
        "transactions": source.transactions,
        "objects": len(source.tids),
        "files": len(source.blobs),
        "files_lost_before": len(source.lost_files),
        "missing": missing,
        "repaired": before - len(missing),
        "compared": len(compared),
        "changed": [each._asdict() | {"text": str(each)} for each in compared if each],
        "seconds": round(monotonic() - started, 3),
    }
    return Result(data, copy_lines(data), 1 if missing or data["changed"] else 0)


@contextmanager
def opened(zope_conf: str, read_only: bool = False) -> Iterator[Any]:
    """Yield the opened main storage of *zope_conf*; *read_only* applies only if its configuration has that setting."""
    factory = main_storage(zope_conf)
    kind = factory.config.getSectionType()
    if read_only and kind != "relstorage" and hasattr(factory.config, "read_only"):
        factory.config.read_only = True
    if not read_only and kind == "zeoclient":
        raise click.UsageError(ZEO)
    if kind == "pgjsonb":
        # The storage is not in use for long enough to profit from its cache warmer.
        factory.config.cache_warm_pct = 0
    with waiting(os.environ):
        storage = factory.open()
        try:
            yield storage
        finally:
            storage.close()


@contextmanager
def waiting(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Disable the timeout of zodb-pgjsonb for idle transactions: the target may take long to write what was read.

    The timeout is an environment variable, in *environ*.
    """
    from zodb_pgjsonb.storage import ENV_IDLE_IN_XACT_TIMEOUT

    before = environ.get(ENV_IDLE_IN_XACT_TIMEOUT)
    environ[ENV_IDLE_IN_XACT_TIMEOUT] = "0"
    try:
        yield
    finally:
        del environ[ENV_IDLE_IN_XACT_TIMEOUT]
        if before is not None:
            environ[ENV_IDLE_IN_XACT_TIMEOUT] = before


def copy_lines(data: dict[str, Any]) -> Iterator[str]:
    moved = f"{data['objects']} objects and {data['files']} files of {data['transactions']} transactions"
    yield f"{moved} in {data['seconds']:.1f} s"
    if data["files_lost_before"]:
        yield f"{data['files_lost_before']} files are missing in the source"
    if data["repaired"]:
        yield f"{data['repaired']} missing objects were copied to the target"
    named = ", ".join(f"0x{oid:x}" for oid in data["missing"][:NAMED])
    lost = len(data["missing"])
    yield f"{lost} objects are missing in the target: {named}" if lost else "the target has all objects"
    other = data["changed"]
    yield f"{data['compared']} objects were compared by value: {len(other) or 'none'} differ"
    yield from (each["text"] for each in other[:NAMED])


# -- export

#: Rows per round trip.
BATCH = 1000
METADATA = "metadata"


@click.command()
@needs_database
@click.option("--site", help="First path of the catalog, such as /Plone; required if there are several.")
@click.option(
    "--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True, help="Output format."
)
@click.option(
    "--columns", help="Columns, separated by commas; by default all except those of type tsvector, and metadata."
)
@click.option(
    "--output", type=click.Path(dir_okay=False, writable=True), help="Write to this file instead of standard output."
)
def export(dsn: str, site: str | None, kind: str, columns: str | None, output: str | None) -> None:
    """Write all rows of a catalog as JSON lines or CSV, from one snapshot, in constant memory.

    Permissions are not applied: all rows are written.

    Exit code 0: done; 2: there is no such catalog or column.
    """
    bars = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with connected(dsn) as connection:
        catalog = choose(statistics.catalogs(connection), site)
        relation = readable(connection, catalog["relation"])
        names = choose_columns(connection, relation, columns)
        # Closed first, also if the reader of the output is gone: its transaction must end before its connection.
        with (
            closing(rows_of(connection, relation, names)) as rows,
            output_file(output) as file,
            Progress(*bars, console=Console(stderr=True), transient=True) as progress,
        ):
            task = progress.add_task("Exporting", total=catalog["rows"])
            for _row in write(file, kind, names, rows):
                progress.advance(task)


def choose(catalogs: list[dict[str, Any]], site: str | None) -> dict[str, Any]:
    """Return the one of *catalogs* that belongs to *site*, or the only one if *site* is None.

    Raises click.UsageError if none or several of *catalogs* match.
    """
    chosen = [c for c in catalogs if site is None or c["site"] == f"/{site.strip('/')}"]
    if len(chosen) == 1:
        return chosen[0]
    sites = ", ".join(str(c["site"]) for c in catalogs) or "none"
    raise click.UsageError(f"choose a catalog with --site: {sites}")


def readable(connection: Connection[Any], relation: str) -> str:
    """Return the view of *relation* that shows interned lists; *relation* itself if the view is missing."""
    view = view_name(relation)
    [row] = connection.execute("SELECT to_regclass(quote_ident(%s)) IS NOT NULL AS found", [view]).fetchall()
    return view if row["found"] else relation


def choose_columns(connection: Connection[Any], relation: str, names: str | None) -> list[str]:
    """Return the columns to write, *names* or all; raises click.UsageError for an unknown column."""
    rows = connection.execute(
        "SELECT attname, format_type(atttypid, NULL) AS type FROM pg_attribute"
        " WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 AND NOT attisdropped AND attname <> 'idx'"
        " ORDER BY attnum",
        [relation],
    ).fetchall()
    types = {row["attname"]: row["type"] for row in rows} | {METADATA: "jsonb"}
    if names is None:
        return [name for name, kind in types.items() if kind != "tsvector"]
    chosen = [name.strip() for name in names.split(",")]
    if unknown := [name for name in chosen if name not in types]:
        raise click.UsageError(f"no such column: {', '.join(unknown)}; the columns are {', '.join(types)}")
    return chosen


def rows_of(connection: Connection[Any], relation: str, names: Sequence[str]) -> Generator[dict[str, Any]]:
    """Yield the rows of *relation* by path, as dicts of JSON values, fetched in batches."""
    fields = [
        sql.SQL("'metadata', coalesce(c.idx, o.idx)")
        if name == METADATA
        else sql.SQL("{}, c.{}").format(sql.Literal(name), sql.Identifier(name))
        for name in names
    ]
    statement = sql.SQL(
        "SELECT jsonb_build_object({}) AS row FROM {} c LEFT JOIN object_state o ON o.zoid = c.zoid ORDER BY c.path"
    ).format(sql.SQL(", ").join(fields), sql.Identifier(relation))
    with connection.transaction(), connection.cursor("pgcatalog_export") as cursor:
        cursor.itersize = BATCH
        for row in cursor.execute(statement):
            yield {name: row["row"][name] for name in names}


def write(file: IO[str], kind: str, names: list[str], rows: Iterator[dict[str, Any]]) -> Iterator[None]:
    """Write *rows* to *file*; yield after each row."""
    table = csv.writer(file)
    if kind == "csv":
        table.writerow(names)
    for row in rows:
        if kind == "csv":
            table.writerow([text_of(row[name]) for name in names])
        else:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        yield


def text_of(value: Any) -> str:
    """Return a JSON *value* for a cell: a string as it is, null as "", other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def output_file(output: str | None) -> Iterator[IO[str]]:
    try:
        file = click.open_file(output or "-", "w", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from error
    with file:
        yield file


# -- vacuum


@click.command()
@needs_database
@prints_result
def vacuum(dsn: str) -> Result:
    """Remove leftovers, and run VACUUM ANALYZE on the catalogs of a database.

    Drop retired relations, clear the idx of objects without a row, run VACUUM ANALYZE, repair counts of values, count words.

    Exit code 0: done; 2: there is no catalog.
    """
    console = Console(stderr=True)
    with connected(dsn, read_only=False) as connection, ExitStack() as records:
        catalogs = statistics.catalogs(connection)
        relations = [c["relation"] for c in catalogs]
        jobs = [records.enter_context(recorded(dsn, "vacuum", c["catalog"])) for c in catalogs]
        with console.status("Dropping retired relations"):
            dropped, _left = drop_retired(connection.cursor())
        with console.status("Clearing the idx of objects without a row"):
            cleared = clear_stale(connection)
        for relation in (*relations, "pgcatalog_sets", "pgcatalog_counts", "pgcatalog_count_changes"):
            with console.status(f"VACUUM ANALYZE {relation}"):
                vacuum_analyze(connection, relation)
        with console.status("Checking the counts of values"):
            repaired = [name for name in relations if repair_counts(connection, name)]
        with console.status("Counting the words of texts"):
            counted = [c["catalog"] for c in catalogs if count_words(connection, c["catalog"])]
        waiting = [row["relation"] for row in statistics.retired(connection)]
        for job in jobs:
            job.lines.append(vacuumed(len(dropped), cleared))
    data = {"dropped": dropped, "waiting": waiting, "cleared": cleared, "vacuumed": relations}
    data |= {"counted": counted, "mended": repaired}
    lines = [
        f"{len(dropped)} retired relations dropped, {len(waiting)} still in use",
        f"idx cleared of {cleared} objects without a row",
        f"vacuumed: {', '.join(relations) or 'nothing'}",
        f"words counted: {len(counted)} catalogs",
        f"counts of values repaired: {len(repaired)} catalogs",
    ]
    return Result(data, lines)
