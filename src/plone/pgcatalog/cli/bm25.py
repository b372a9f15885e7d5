"""``pgcatalog bm25``: builds and drops the index by which the extension pg_textsearch ranks."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.database import statistics
from plone.pgcatalog.fulltext.pg_textsearch_index import index_name
from plone.pgcatalog.protocols import Connection
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.names import RANKING_INDEX
from psycopg import sql
from rich.console import Console
from typing import Any

import click
import json
import psycopg


#: The column with the text of SearchableText; only that index keeps one.
COLUMN = "searchable_text_source"
REASON = "ranking by pg_textsearch"

REGISTER = (
    "INSERT INTO pgcatalog_indexes (catalog, name, definition, columns, reason) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (catalog, name) DO UPDATE SET definition = excluded.definition, columns = excluded.columns"
)
CATALOGS = (
    "SELECT catalog, relation, %s = ANY(columns) AS has_text,"
    " (SELECT definition FROM pgcatalog_indexes i WHERE i.catalog = s.catalog AND i.name = %s) AS definition"
    " FROM pgcatalog_state s ORDER BY catalog"
)
CONFIG = (
    "SELECT CASE n.nspname WHEN 'pg_catalog' THEN c.cfgname ELSE quote_ident(n.nspname) || '.' || quote_ident(c.cfgname)"
    " END AS name FROM pg_ts_config c JOIN pg_namespace n ON n.oid = c.cfgnamespace WHERE c.oid = %s::text::regconfig"
)
IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s))"


@click.command()
@needs_database
@click.option("--text-config", default="simple", show_default=True, help="Text search configuration of the index.")
@click.option("--drop", "gone", is_flag=True, help="Drop the index; the built-in ranking takes over.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def bm25(dsn: str, text_config: str, gone: bool, as_json: bool) -> None:
    """Build the bm25 index of each catalog for ranking by pg_textsearch; searches and saves continue meanwhile.

    One that is there and valid, with the same configuration, stays.  Exit code 0: done; 1: PostgreSQL refuses it, or
    somebody else is at it; 2: there is no catalog.
    """
    console = Console(stderr=True)
    done: list[str] = []
    with connected(dsn, read_only=False) as connection:
        if not gone:
            text_config = checked(connection, text_config)
        for catalog in connection.execute(CATALOGS, [COLUMN, RANKING_INDEX]).fetchall():
            name = index_name(catalog["relation"])
            with locked(connection, catalog["catalog"]), console.status(name):
                if gone:
                    drop(connection, catalog)
                    done.append(name)
                elif catalog["has_text"]:
                    build(connection, catalog, text_config)
                    done.append(name)
        version = statistics.textsearch_version(connection)
    if as_json:
        click.echo(json.dumps({"dropped" if gone else "built": done, "version": version}))
        return
    click.echo(f"{'dropped' if gone else 'built'}: {', '.join(done) or 'nothing'}")
    if not gone:
        click.echo("ranking uses it in processes that have PGCATALOG_RANKING=pg_textsearch")
        if version is not None and statistics.is_unsafe(version):
            click.echo(f"pg_textsearch {version} {statistics.UNSAFE}", err=True)


def checked(connection: Connection, text_config: str) -> str:
    """Return *text_config* as the extension finds it: with its schema, if that is not PostgreSQL's own.

    Raises click's errors when the server has no such extension or text search configuration.
    """
    if statistics.textsearch_version(connection) is None:
        raise click.ClickException("the database has no extension pg_textsearch: CREATE EXTENSION pg_textsearch")
    try:
        [row] = connection.execute(CONFIG, [text_config]).fetchall()
    except (psycopg.ProgrammingError, psycopg.DataError) as error:
        raise click.UsageError(f"there is no text search configuration {text_config!r}") from error
    return str(row["name"])


@contextmanager
def locked(connection: Connection, catalog: int) -> Iterator[None]:
    """Hold the lock of the index of *catalog*; raises ClickException when somebody else has it."""
    keys = locks.of_catalog(locks.RANKING_INDEX, catalog)
    [row] = connection.execute("SELECT pg_try_advisory_lock(%s, %s) AS free", keys).fetchall()
    if not row["free"]:
        raise click.ClickException("somebody else is building or dropping the index")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", keys)


def build(connection: Connection, catalog: dict[str, Any], text_config: str) -> None:
    """Build and register the index of *catalog*, unless it is there; a failed build leaves nothing."""
    name, config = index_name(catalog["relation"]), sql.Literal(text_config).as_string(None)
    definition = f'USING bm25 ("{COLUMN}") WITH (text_config = {config})'
    found = connection.execute(IS_VALID, [name]).fetchone()
    if found is not None and found["indisvalid"] and definition == catalog["definition"]:
        return
    drop(connection, catalog)
    create = sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} ").format(
        sql.Identifier(name), sql.Identifier(catalog["relation"])
    )
    # First, so that a clear or a rebuild that happens meanwhile makes it, too.
    connection.execute(REGISTER, [catalog["catalog"], RANKING_INDEX, definition, [COLUMN], REASON])
    built = False
    try:
        connection.execute(create + sql.SQL(definition))
        built = True
    finally:
        if not built and not connection.closed:
            drop(connection, catalog)


def drop(connection: Connection, catalog: dict[str, Any]) -> None:
    """Forget and drop the index of *catalog*; no harm if there is none."""
    connection.execute(
        "DELETE FROM pgcatalog_indexes WHERE catalog = %s AND name = %s", [catalog["catalog"], RANKING_INDEX]
    )
    name = sql.Identifier(index_name(catalog["relation"]))
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
