"""How PostgreSQL runs the catalog's statements."""

from dataclasses import replace
from plone.pgcatalog.database.prepared import numbered
from plone.pgcatalog.database.prepared import with_planner_hints
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.query import bind
from plone.pgcatalog.query import statements
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.expression import Condition
from typing import Any


def select_statement(view: CatalogView, expressions: str, where: Condition) -> Any:
    """Return the statement that selects *expressions* of the rows that match *where* in what *view* sees."""
    return view.statement(lambda stored: bind.select(expressions, bind.condition(where, stored), stored), where)


def page_statement(view: CatalogView, query: CompiledQuery, start: int, size: int | None) -> Any:
    """Return the statement for a page of *query* in what *view* sees."""
    return view.statement(lambda stored: statements.page(query, stored, start, size), query.where)


def count_statement(view: CatalogView, query: CompiledQuery) -> Any:
    """Return the statement that counts the rows of *query* in what *view* sees."""
    return view.statement(lambda stored: statements.count(query, stored), query.where)


def rids_statement(view: CatalogView, query: CompiledQuery) -> Any:
    """Return the statement for the rids of all rows of *query* in what *view* sees."""
    return view.statement(lambda stored: statements.ids(query, stored), query.where)


def plan_of(session: Session, statement: Any) -> str:
    """Return how *statement* is run, as one text."""
    return "\n".join(line for (line,) in session.ask(replace(statement, sql=f"EXPLAIN {statement.sql}")))


def plan_for_any_values(session: Session, statement: Any) -> str:
    """Return how *statement* is run when its plan was made without its values, as one text."""
    statements, at = with_planner_hints(statement)
    texts = [numbered(each.sql) for each in statements]
    values = b", ".join([b"NULL"] * len(statement.params))
    # PostgreSQL 15 has no EXPLAIN (GENERIC_PLAN); the hints of a statement that is planned once say that it is.
    texts[at : at + 1] = [
        b"PREPARE explained AS " + texts[at],
        b"EXPLAIN EXECUTE explained (%s)" % values,
        b"DEALLOCATE explained",
    ]
    # Not by the protocol for statements with values, which wants them.
    results = [session.connection.pgconn.exec_(text) for text in texts]
    assert not any(result.error_message for result in results), [result.error_message for result in results]
    plan = results[at + 1]
    return "\n".join(plan.get_value(row, 0).decode() for row in range(plan.ntuples))
