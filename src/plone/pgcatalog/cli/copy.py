"""``pgcatalog copy``: the objects of one zope.conf go to the storage of another."""

from collections.abc import Iterator
from collections.abc import MutableMapping
from contextlib import contextmanager
from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import main_storage
from rich.console import Console
from rich.progress import Progress
from time import monotonic
from typing import Any

import click
import json
import logging
import os
import psycopg


#: So many objects that are missing are named.
NAMED = 20
#: Its client copies objects without their files.
ZEO = "a copy cannot write through a ZEO server: stop it, and name its <filestorage> in the TARGET_CONF"


@click.command()
@click.argument("source_conf", type=CONF)
@click.argument("target_conf", type=CONF)
@click.option("--check", "only_check", is_flag=True, help="Copy nothing, only look for what the target has not.")
@click.option("--repair", is_flag=True, help="Look, and give the target what an earlier copy has lost.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def copy(source_conf: str, target_conf: str, only_check: bool, repair: bool, as_json: bool) -> None:
    """Copy all objects, with their history and files, from the storage of SOURCE_CONF to that of TARGET_CONF.

    Both are zope.conf files.  The source is only read, and nobody may change it meanwhile; the target must be empty.
    Then all objects are looked for in the target.

    Exit code 0: all are there; 1: some are not, and are named; 2: it cannot be done.
    """
    # They import ZODB, which --help does not need.
    from plone.pgcatalog.migration import copying

    started = monotonic()
    console = Console(stderr=True)
    # The storage returns connections to its pool within a transaction, and that says so.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    try:
        with opened(source_conf, read_only=True) as storage, opened(target_conf) as target, counting(console) as count:
            source = copying.Source(storage, count("Copying"))
            if only_check or repair:
                source = copying.seen(storage, count("Reading the source"))
            else:
                copying.copy(source, target)
            lost = copying.missing(source, copying.seen(target, count("Reading the target")))
            if repair and lost:
                found = len(lost)
                copying.repair(source, target, lost)
                lost = copying.missing(source, copying.seen(target, count("Reading the target again")))
            else:
                found = len(lost)
    except (copying.CopyError, psycopg.Error, OSError) as error:
        raise click.UsageError(str(error).strip()) from error
    data = {
        "transactions": source.transactions,
        "objects": len(source.tids),
        "files": len(source.blobs),
        "files_lost_before": len(source.lost_files),
        "missing": lost,
        "repaired": found - len(lost),
        "seconds": round(monotonic() - started, 3),
    }
    click.echo(json.dumps(data) if as_json else text(data))
    raise SystemExit(1 if lost else 0)


@contextmanager
def opened(zope_conf: str, read_only: bool = False) -> Iterator[Any]:
    """Yield the main storage of *zope_conf*, opened, for reading only where it has such a setting."""
    factory = main_storage(zope_conf)
    kind = factory.config.getSectionType()
    if read_only and kind != "relstorage" and hasattr(factory.config, "read_only"):
        factory.config.read_only = True
    if not read_only and kind == "zeoclient":
        raise click.UsageError(ZEO)
    if kind == "pgjsonb":
        # Nobody uses the storage long enough for its warmer.
        factory.config.cache_warm_pct = 0
    with waiting(os.environ):
        storage = factory.open()
        try:
            yield storage
        finally:
            storage.close()


@contextmanager
def waiting(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Let zodb-pgjsonb wait in a transaction as long as it takes, as the target may need a while for what it has read.

    That is a variable of the storage's in *environ*.
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


@contextmanager
def counting(console: Console) -> Iterator[Any]:
    """Yield a function that begins a line of progress, and returns what to call with the number of transactions."""
    with Progress("{task.description}: {task.completed} transactions", console=console, transient=True) as progress:

        def begin(description: str) -> Any:
            task = progress.add_task(description, total=None)
            return lambda transactions: progress.update(task, completed=transactions)

        yield begin


def text(data: dict[str, Any]) -> str:
    """Return *data* in sentences."""
    lines = [
        f"{data['objects']} objects and {data['files']} files of {data['transactions']} transactions"
        f" in {data['seconds']:.1f} s"
    ]
    if data["files_lost_before"]:
        lines.append(f"{data['files_lost_before']} files are missing in the source itself")
    if data["repaired"]:
        lines.append(f"{data['repaired']} that were missing in the target were copied now")
    named = ", ".join(f"0x{oid:x}" for oid in data["missing"][:NAMED])
    lost = len(data["missing"])
    lines.append(f"{lost} objects are missing in the target: {named}" if lost else "the target has all of them")
    return "\n".join(lines)
