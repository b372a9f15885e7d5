"""EXPLAIN of a query, with ANALYZE and BUFFERS if it may run: on a connection of its own, read-only, and not for long."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from plone.pgcatalog.advice.replay import compile_example
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.advice.replay import statement_of
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain
from plone.pgcatalog.i18n import _
from plone.pgcatalog.observe import plan
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.record import page_in
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from typing import Any

import psycopg


#: Longest time that the explained statement may run.
SECONDS = 30


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement, the values of its placeholders, and how PostgreSQL ran it; in figures, too, if they are wanted."""

    statement: str
    values: tuple[Any, ...]
    text: str
    figures: plan.PlanFigures | None = None


def explain_example(catalog: Catalog, example: Example) -> Plan:
    """Run a recorded query in the *catalog* and return its plan, with its figures.  Raises ReplayError."""
    _query, compiled = compile_example(catalog, example)
    statement = statement_of(catalog, compiled, example.operation, page_in(example.query))
    with explaining(dsn_of(catalog.jar), SECONDS) as connection:
        found = plan.explain_json(connection, statement)
    figures = plan.PlanFigures.of(plan.summary(found))
    text = plan.text(found["Plan"], None if figures is None else figures.server_ms)
    return Plan(statement.sql, statement.params, text, figures)


def explain(dsn: str, statement: Statement, seconds: float = SECONDS) -> Plan:
    """Run *statement* in a read-only transaction and return its plan as PostgreSQL writes it.

    Raises ReplayError when it takes longer than *seconds* or PostgreSQL refuses it.
    """
    with explaining(dsn, seconds) as connection:
        lines = plan.explain_rows(connection, statement, "ANALYZE, BUFFERS")
    return Plan(statement.sql, statement.params, "\n".join(line for (line,) in lines))


@contextmanager
def explaining(dsn: str, seconds: float) -> Iterator[Any]:
    """Yield a connection on which a statement may take *seconds*; an error of the database becomes a ReplayError."""
    try:
        with connect(dsn, "explain", seconds) as connection:
            yield connection
    except psycopg.errors.QueryCanceled as error:
        raise ReplayError(_("the query was stopped after ${seconds} seconds", {"seconds": f"{seconds:g}"})) from error
    except psycopg.Error as error:
        raise ReplayError(_("PostgreSQL: ${error}", {"error": plain(error)})) from error
