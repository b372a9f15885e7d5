"""EXPLAIN of a query, with ANALYZE and BUFFERS if it may run: on a connection of its own, read-only, and not for long."""

from dataclasses import dataclass
from plone.pgcatalog.advice.replay import compile_example
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.advice.replay import statement_of
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain
from plone.pgcatalog.database.planning import NO_SCAN
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.record import page_in
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.sql.fragment import Statement
from plone.pgcatalog.storage import dsn_of
from typing import Any

import psycopg


#: Longest time that the explained statement may run.
SECONDS = 30


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement, the values of its placeholders, and how PostgreSQL ran it."""

    statement: str
    values: tuple[Any, ...]
    text: str


def explain_example(catalog: Catalog, example: Example, run: bool = True) -> Plan:
    """Return the plan of a recorded query in the *catalog*.  Raises ReplayError.

    Without *run* PostgreSQL only says how it would run the query.
    """
    _query, compiled = compile_example(catalog, example)
    statement = statement_of(catalog, compiled, example.operation, page_in(example.query))
    return explain(dsn_of(catalog.jar), statement, run=run)


def explain(dsn: str, statement: Statement, seconds: float = SECONDS, run: bool = True) -> Plan:
    """Run *statement* in a read-only transaction and return its plan; without *run* it is planned only.

    Raises ReplayError when it takes longer than *seconds* or PostgreSQL refuses it.
    """
    try:
        with connect(dsn, "explain", seconds) as connection:
            # What searches run with: a plan for the very values.
            connection.execute("SET plan_cache_mode = force_custom_plan")
            connection.execute("BEGIN READ ONLY")
            if statement.is_costly:
                connection.execute(NO_SCAN)
            options = "ANALYZE, BUFFERS" if run else "ANALYZE false"
            lines = connection.execute(f"EXPLAIN ({options}) {statement.sql}", statement.params).fetchall()
            connection.execute("ROLLBACK")
    except psycopg.errors.QueryCanceled as error:
        raise ReplayError(f"the query was stopped after {seconds:g} seconds") from error
    except psycopg.Error as error:
        raise ReplayError(f"PostgreSQL: {plain(error)}") from error
    return Plan(statement.sql, statement.params, "\n".join(line for (line,) in lines))
