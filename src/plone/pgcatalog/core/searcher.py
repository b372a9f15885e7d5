"""The search pipeline: normalise, compile, return a lazy result."""

from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from DateTime.interfaces import DateTimeError
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexing.transition import expects_relation
from plone.pgcatalog.indexing.transition import report_missing
from plone.pgcatalog.meaning.question import search_context
from plone.pgcatalog.observe.trace import Trace
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.query.criteria import canonical
from plone.pgcatalog.query.criteria import option
from plone.pgcatalog.query.criteria import Sort
from plone.pgcatalog.query.criteria import sort_of
from plone.pgcatalog.query.criteria import text_queries
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.request import without_addresses
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.settings import result_cache_mb
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from typing import TYPE_CHECKING
from zExceptions import BadRequest


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


@contextmanager
def bad_values() -> Iterator[None]:
    """Raise BadRequest for an error that the catalog raises for a value, an option or an order sent by a visitor."""
    try:
        yield
    except LimitExceeded:
        raise  # handled by ``unavailable``
    except (*VALUE_ERRORS, CatalogError) as error:
        raise BadRequest(_message_of(error)) from error


def _message_of(error: Exception) -> str:
    """Return the message of *error* without memory addresses, with an introduction if it needs one."""
    if isinstance(error, DateTimeError | OverflowError):
        return f"not a searchable date: {error}"
    text = without_addresses(str(error))
    return text if isinstance(error, ValueError | CatalogError) else f"a value of a wrong type or format: {text}"


# -- a search


def search(
    catalog: "Catalog", query: Mapping[str, Any], sort: Sort | None = None, limit: Any = None
) -> CatalogSearchResults:
    """Return the results of the query dict *query* in the fixed *catalog*, sorted by *sort*, at most *limit*.

    If *sort* is None, sort and limit are read from *query*; an empty *sort* means unsorted.  Raises CatalogError for a bad
    ``sort_on``, and the errors of indexes for wrong values.
    """
    if sort is None:
        sort, limit = sort_of(query, catalog.indexes), option(query, "limit")
    criteria = canonical(query, catalog.indexes, catalog.rewriters)
    texts = text_queries(criteria, catalog.configuration.lexicons)
    result_cache().set_limit(catalog.jar.db(), catalog.zoid, result_cache_mb(catalog.tool))
    trace = Trace(catalog)
    context = search_context(catalog, criteria, texts, not sort, trace.embedding)
    compiled = catalog.configuration.compiled_queries.find_or_compile(criteria, context, sort, limit)
    trace.compiled(criteria, sort, limit)
    view = catalog.search_view()
    view.trace = trace
    log_missing(catalog.tool, view)
    return CatalogSearchResults(catalog, view, compiled, context, criteria, sort, trace.started)


def everything(catalog: "Catalog") -> CatalogSearchResults:
    """Return all rows of *catalog*, ordered by rid."""
    compiled = CompiledQuery(EVERYTHING, (OLDEST_FIRST,), None, Window())
    return CatalogSearchResults(catalog, catalog.view(), compiled, catalog.context)


def log_missing(tool: Any, view: CatalogView) -> None:
    """Log that the catalog *tool* has no table, if it should have one."""
    session = view.session
    if view.zoid not in session.pending and view.zoid not in session.read_states() and expects_relation(tool):
        report_missing(tool)
