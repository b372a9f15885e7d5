"""PostgreSQL's plans of the catalog's statements."""

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
    """Return the statement that selects *expressions* of the rows that match *where* among the rows visible to *view*."""
    return view.statement(lambda stored: bind.select(expressions, bind.condition(where, stored), stored), where)


def page_statement(view: CatalogView, compiled: CompiledQuery, start: int, size: int | None) -> Any:
    """Return the statement for a page of *compiled* among the rows visible to *view*."""
    return view.statement(lambda stored: statements.page(compiled, stored, start, size), compiled.where)


def count_statement(view: CatalogView, compiled: CompiledQuery) -> Any:
    """Return the statement that counts the rows of *compiled* visible to *view*."""
    return view.statement(lambda stored: statements.count(compiled, stored), compiled.where)


def rids_statement(view: CatalogView, compiled: CompiledQuery) -> Any:
    """Return the statement for the rids of all rows of *compiled* visible to *view*."""
    return view.statement(lambda stored: statements.ids(compiled, stored), compiled.where)


def plan_of(session: Session, statement: Any) -> str:
    """Return the plan of *statement* as one text."""
    return "\n".join(line for (line,) in session.query(replace(statement, sql=f"EXPLAIN {statement.sql}")))


def plan_for_any_values(session: Session, statement: Any) -> str:
    """Return the generic plan of *statement* (made without its values) as one text."""
    statements, at = with_planner_hints(replace(statement, plans_once=True))
    texts = [numbered(each.sql) for each in statements]
    values = b", ".join([b"NULL"] * len(statement.params))
    # PostgreSQL 15 has no EXPLAIN (GENERIC_PLAN); the plan-once hints of a statement stand for it.
    texts[at : at + 1] = [
        b"PREPARE explained AS " + texts[at],
        b"EXPLAIN EXECUTE explained (%s)" % values,
        b"DEALLOCATE explained",
    ]
    # Not by the extended protocol, which requires the values.
    results = [session.connection.pgconn.exec_(text) for text in texts]
    assert not any(result.error_message for result in results), [result.error_message for result in results]
    plan = results[at + 1]
    return "\n".join(plan.get_value(row, 0).decode() for row in range(plan.ntuples))
