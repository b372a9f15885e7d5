"""``pgcatalog explain``: how PostgreSQL runs a query."""

from plone.pgcatalog.advice.replay import compiled
from plone.pgcatalog.advice.replay import explain as run
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.advice.replay import statement_of
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.core import searcher
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.query.compiler import sort_directions
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from Products.ZCatalog.Catalog import CatalogError
from typing import Any

import ast
import click
import json


#: What a query has besides the names of indexes.
OPTIONS = ("sort_on", "sort_order", "sort_limit", "b_start", "b_size", "show_inactive")


class QueryType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A query dict, as JSON or as a Python literal."""

    name = "query"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, Any]:
        for parse in (json.loads, ast.literal_eval):
            try:
                query = parse(value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(query, dict) and all(isinstance(name, str) for name in query):
                return query
        self.fail(f'{value!r:.80} is not a query, such as {{"portal_type": "Document"}}', param, ctx)


@click.command()
@needs_site
@click.argument("query", type=QueryType())
@click.option(
    "--part", type=click.Choice(["page", "count", "rids"]), default="page", show_default=True, help="What to explain."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def explain(zope_conf: str, site: str, query: dict[str, Any], part: str, as_json: bool) -> None:
    """Show the SQL of QUERY and how PostgreSQL runs it; it does run it, read-only, for 30 seconds at the most.

    QUERY is a query dict, as JSON or as a Python literal; nothing is added to it, not even what a user may see.

    Exit code 0: explained; 1: the catalog or PostgreSQL refuses it; 2: the site cannot be opened.
    """
    try:
        sort_of(query)  # before Plone is started
        with open_site(zope_conf, site) as portal:
            catalog = portal.portal_catalog._core
            found = statement(catalog, query, part)
            dsn = dsn_of(catalog.jar)
        plan = run(dsn, found)
    except ReplayError as error:
        raise click.ClickException(str(error)) from error
    values = [value if isinstance(value, str | int | list) else str(value) for value in plan.values]
    if as_json:
        click.echo(json.dumps({"statement": plan.statement, "values": values, "plan": plan.text.splitlines()}))
    else:
        click.echo(f"{plan.statement}\n{values}\n\n{plan.text}")


def statement(catalog: Catalog, query: dict[str, Any], part: str) -> Statement:
    """Return the statement of the *part* of a search for *query*; raises ReplayError for a query that is refused.

    A search takes no notice of names that are no index's; who explains one has mistyped it.
    """
    check_names(catalog, query)
    try:
        query = catalog.make_query(query)
        searcher.sort_of(query, catalog.configuration)
    except (CatalogError, *VALUE_ERRORS) as error:
        raise ReplayError(f"the catalog refuses the query: {error}") from error
    return statement_of(catalog, compiled(catalog, query, *sort_of(query)), part)


def check_names(catalog: Catalog, query: dict[str, Any]) -> None:
    """Raise ReplayError for names in *query* that are neither of an index nor of an option."""
    known = {*OPTIONS, *catalog.indexes}
    for name, translator in catalog.indexes.items():
        known.update(f"{name}_{option}" for option in ("usage", *getattr(translator.index, "query_options", ())))
    if unknown := sorted(query.keys() - known):
        there = ", ".join(sorted(catalog.indexes))
        raise ReplayError(f"there is no index {', '.join(map(repr, unknown))}; there are: {there}")


def sort_of(query: dict[str, Any]) -> tuple[list[tuple[str, bool]], Any]:
    """Return what ``sort_on``, ``sort_order`` and ``sort_limit`` of *query* mean; raises ReplayError."""
    names, orders = texts_of(query, "sort_on"), texts_of(query, "sort_order")
    return list(zip(names, sort_directions(len(names), orders), strict=True)), query.get("sort_limit")


def texts_of(query: dict[str, Any], key: str) -> list[str]:
    """Return the strings that *query* has under *key*; raises ReplayError for anything else."""
    found = query.get(key) or []
    texts = [found] if isinstance(found, str) else found
    if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
        return list(texts)
    raise ReplayError(f"{key} is a string, or a list of strings, and not {found!r:.80}")
