"""The input of commands (a zope.conf, or a DSN for commands that need no site), and their output."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from psycopg.rows import dict_row
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from typing import Any
from typing import NamedTuple

import click
import json
import psycopg


CONF = click.Path(exists=True, dir_okay=False)


class Result(NamedTuple):
    """The result of a command: JSON *data*, the same as *lines* and tables for people, and the exit *code*."""

    data: dict[str, Any]
    lines: Iterable[str | Table]
    code: int = 0


def prints_result(command: Callable[..., Result | None]) -> Callable[..., None]:
    """Add the option ``--json`` to a command that returns its result; the result is printed, and the process exits."""

    @wraps(command)
    def printed(*args: Any, as_json: bool, **options: Any) -> None:
        result = command(*args, **options)
        if result is None:
            return
        if as_json:
            click.echo(json.dumps(result.data, ensure_ascii=False, default=datetime.isoformat))
        else:
            for line in result.lines:
                if isinstance(line, Table):
                    Console().print(line)
                else:
                    click.echo(line)
        raise SystemExit(result.code)

    option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
    return option(printed)


def needs_site(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument ZOPE_CONF and the option ``--site`` to a command."""
    command = click.option("--site", default="Plone", show_default=True, help="Path of the site below the Zope root.")(
        command
    )
    return click.argument("zope_conf", type=CONF)(command)


def needs_database(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the optional argument ZOPE_CONF and the option ``--dsn`` to a command, which gets a *dsn*."""

    @wraps(command)
    def with_dsn(*args: Any, zope_conf: str | None, dsn: str | None, **options: Any) -> Any:
        return command(*args, dsn=find_dsn(zope_conf, dsn), **options)

    return click.argument("zope_conf", type=CONF, required=False)(
        click.option("--dsn", envvar="PGCATALOG_DSN", help="DSN of the database, instead of a ZOPE_CONF.")(with_dsn)
    )


def find_dsn(zope_conf: str | None, dsn: str | None) -> str:
    """Return *dsn*, or the DSN of the first zodb-pgjsonb storage in *zope_conf*; raises click.UsageError."""
    if zope_conf is None:
        if not dsn:
            raise click.UsageError("a ZOPE_CONF or the option --dsn is required")
        return dsn
    for database in configured_databases(zope_conf):
        if database.dsn:
            return database.dsn
    raise click.UsageError(f"{zope_conf} has no zodb-pgjsonb storage")


@dataclass(frozen=True)
class Configured:
    """A database of a zope.conf; *dsn* and *pool_max* are settings of its zodb-pgjsonb storage, None without one."""

    name: str
    is_main: bool
    storage: str
    pool_size: int
    dsn: str | None
    pool_max: int | None


def main_storage(zope_conf: str) -> Any:
    """Return the factory of the storage of the Zope root in *zope_conf*; raises click.UsageError."""
    for database in _databases(zope_conf):
        if "/" in database.config.mount_points:
            return database.config.storage
    raise click.UsageError(f"{zope_conf} has no database for the root")


def _databases(zope_conf: str) -> list[Any]:
    from ZConfig import ConfigurationError
    from Zope2.Startup.options import ZopeWSGIOptions

    try:
        return list(ZopeWSGIOptions(configfile=zope_conf)().configroot.databases)
    except ConfigurationError as error:
        raise click.UsageError(f"{zope_conf} cannot be read: {error}") from error


def configured_databases(zope_conf: str) -> list[Configured]:
    """Return the databases of *zope_conf*, without opening one; raises click.UsageError."""
    return [configured(database) for database in _databases(zope_conf)]


def configured(database: Any) -> Configured:
    config = database.config
    jsonb = _jsonb(config.storage)
    is_main, section = "/" in config.mount_points, _section_of(config.storage)
    dsn, pool_max = getattr(jsonb, "dsn", None), getattr(jsonb, "pool_max_size", None)
    return Configured(database.name, is_main, section, config.pool_size, dsn, pool_max)


def _section_of(storage: Any) -> str:
    """Return the name of *storage*'s section in a zope.conf."""
    section = getattr(getattr(storage, "config", None), "getSectionType", None)
    return str(section()) if section else type(storage).__name__


def _jsonb(storage: Any) -> Any:
    """Return the configuration with a DSN, of *storage* or of a storage that it wraps; None without one."""
    config = getattr(storage, "config", None)
    if config is None or getattr(config, "dsn", None):
        return config
    return _jsonb(getattr(config, "base", None))


@contextmanager
def connected(dsn: str, read_only: bool = True) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """Yield an autocommit connection to *dsn* with rows as dicts; errors of the database become errors of click.

    Without *read_only*, the connection has its own session of the server, bypassing a pooler.
    """
    try:
        with (
            connect(dsn, "command", 0, read_only=True, row_factory=dict_row)
            if read_only
            else connect_directly(dsn, "command", 0, row_factory=dict_row)
        ) as connection:
            yield connection
    except psycopg.errors.UndefinedTable as error:
        raise click.UsageError("this database has no catalog of plone.pgcatalog") from error
    except psycopg.Error as error:
        raise click.ClickException(str(error).strip()) from error


@contextmanager
def counting(console: Console) -> Iterator[Any]:
    """Yield a function: it adds a line of progress, and returns a function that takes the number of transactions."""
    with Progress("{task.description}: {task.completed} transactions", console=console, transient=True) as progress:

        def begin(description: str) -> Any:
            task = progress.add_task(description, total=None)
            return lambda transactions: progress.update(task, completed=transactions)

        yield begin
