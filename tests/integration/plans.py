"""How PostgreSQL runs the catalog's statements."""

from dataclasses import replace
from plone.pgcatalog.database.session import Session
from typing import Any


def plan_of(session: Session, statement: Any) -> str:
    """Return how *statement* is run, as one text."""
    return "\n".join(line for (line,) in session.ask(replace(statement, sql=f"EXPLAIN {statement.sql}")))
