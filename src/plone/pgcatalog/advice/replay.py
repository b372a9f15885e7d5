"""Recompiles the statements of recorded queries: SQL is compiled here, and never read from the log or a browser."""

from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.indexing.codec import CodecError
from plone.pgcatalog.meaning.question import search_context
from plone.pgcatalog.observe import plan
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.record import page_in
from plone.pgcatalog.observe.record import recall
from plone.pgcatalog.query import statements
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.criteria import text_queries
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.results.reader import WINDOW
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from typing import Any

import psycopg


#: (start, size) of a page; without a size all rows from start on.
PageBounds = tuple[int, int | None]


class ReplayError(MessageError):
    """A recorded query cannot be run again; the message says why."""


def compile_example(catalog: Catalog, example: Example) -> tuple[dict[str, Any], CompiledQuery]:
    """Return the recorded query, and the result of compiling it for *catalog* now.  Raises ReplayError."""
    if example.left_out:
        names = ", ".join(example.left_out)
        raise ReplayError(
            _("values of ${names} were not recorded (masked, too long or of an unknown type)", {"names": names})
        )
    try:
        query, sort, limit = recall(example.query)
    except CodecError as error:
        raise ReplayError(_("the record is damaged: ${error}", {"error": str(error)})) from error
    return query, recompiled(catalog, query, sort, limit)


def recompiled(catalog: Catalog, query: Mapping[str, Any], sort: list[tuple[str, bool]], limit: Any) -> CompiledQuery:
    """Return *query* compiled as in a search; raises ReplayError if the indexes of *catalog* refuse it."""
    missing = [name for name, _reverse in sort if name not in catalog.indexes]
    if missing:
        raise ReplayError(_("there is no index ${index} any more", {"index": repr(missing[0])}))
    try:
        texts = text_queries(query, catalog.configuration.lexicons)
        return compile_query(query, search_context(catalog, query, texts, not sort), sort, limit)
    except (*VALUE_ERRORS, LookupError) as error:
        raise ReplayError(_("the catalog refuses the query: ${error}", {"error": str(error)})) from error


def statement_of(
    catalog: Catalog, compiled: CompiledQuery, operation: str = "page", page: PageBounds | None = None
) -> Statement:
    """Return a statement of a search for the query *compiled*; *operation* is "page", "count" or "rids".

    For a page, *page* is the recorded one; by default it is the page of *compiled*.  Raises ReplayError if no statement
    is run.
    """
    if compiled.is_empty:
        raise ReplayError(_("the query matches nothing, so it is not sent to PostgreSQL"))
    view = catalog.view()
    statement: Statement | None
    if operation == "count":
        statement = view.statement(partial(statements.count, compiled), compiled.where)
    elif operation == "rids":
        statement = view.statement(partial(statements.ids, compiled), compiled.where)
    elif operation == "page":
        start, size = page or page_of(compiled)
        statement = view.statement(lambda stored: statements.page(compiled, stored, start, size), compiled.where)
    else:
        raise ReplayError(_("${operation} is read for certain rows, which are not recorded", {"operation": operation}))
    if statement is None:
        raise ReplayError(_("the catalog is empty: it has no table yet"))
    return statement


def page_of(compiled: CompiledQuery) -> PageBounds:
    """Return the page in the window of *compiled*."""
    if compiled.python_sort or not compiled.window.fits_sql:
        return 0, None
    size = compiled.window.size
    return compiled.window.start, WINDOW if size is None else size


#: Time limit of the explained statement, in seconds.
SECONDS = 30


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement, the values of its placeholders, its plan as text, and optionally the figures of the plan.

    It is shown to people, so numbers of vectors are left out.
    """

    statement: str
    values: tuple[Any, ...]
    text: str
    figures: plan.PlanFigures | None = None


def explain_example(catalog: Catalog, example: Example) -> Plan:
    """Run a recorded query in the *catalog* and return its plan, with its figures.  Raises ReplayError."""
    _query, compiled = compile_example(catalog, example)
    statement = statement_of(catalog, compiled, example.operation, page_in(example.query))
    with explaining(dsn_of(catalog.jar), SECONDS) as connection:
        data = plan.explain_json(connection, statement)
    figures = plan.PlanFigures.of(plan.summary(data))
    text = plan.text(data["Plan"], None if figures is None else figures.server_ms)
    return Plan(statement.sql, values_of(statement), text, figures)


def explain(dsn: str, statement: Statement, seconds: float = SECONDS) -> Plan:
    """Run *statement* in a read-only transaction, and return its plan as written by PostgreSQL.

    Raises ReplayError if it takes longer than *seconds*, or if PostgreSQL refuses it.
    """
    with explaining(dsn, seconds) as connection:
        lines = plan.explain_rows(connection, statement, "ANALYZE, BUFFERS")
    return Plan(statement.sql, values_of(statement), "\n".join(plan.without_vectors(line) for (line,) in lines))


def values_of(statement: Statement) -> tuple[Any, ...]:
    """Return the parameters of *statement*, with vectors shortened."""
    return tuple(plan.without_vectors(value) if isinstance(value, str) else value for value in statement.params)


@contextmanager
def explaining(dsn: str, seconds: float) -> Iterator[Any]:
    """Yield a connection with a time limit of *seconds* per statement; an error of the database becomes a ReplayError."""
    try:
        with connect(dsn, "explain", seconds) as connection:
            yield connection
    except psycopg.errors.QueryCanceled as error:
        raise ReplayError(_("the query was stopped after ${seconds} seconds", {"seconds": f"{seconds:g}"})) from error
    except psycopg.Error as error:
        raise ReplayError(_("PostgreSQL: ${error}", {"error": plain(error)})) from error
