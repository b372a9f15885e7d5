"""A search: normalise, compile, and hand over to a result.  Each step is taken once, and none asks the one before."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextlib import contextmanager
from contextlib import nullcontext
from dataclasses import replace
from DateTime.interfaces import DateTimeError
from functools import partial
from plone.pgcatalog.fulltext.site import visitors_tuning
from plone.pgcatalog.fulltext.term_statistics import request_count
from plone.pgcatalog.fulltext.word_lookup import find_globs
from plone.pgcatalog.fulltext.word_lookup import find_word_parts
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexing.transition import expects_relation
from plone.pgcatalog.indexing.transition import report_missing
from plone.pgcatalog.meaning.question import is_hybrid
from plone.pgcatalog.meaning.question import question_of
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.observe.trace import report_slow
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
from plone.pgcatalog.query.nearest import AS_SITE
from plone.pgcatalog.query.nearest import RANK
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.request import without_addresses
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.settings import parts_of_words
from plone.pgcatalog.settings import result_cache_mb
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.storage import dsn_of
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from typing import TYPE_CHECKING
from zExceptions import BadRequest


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


@contextmanager
def bad_values() -> Iterator[None]:
    """Turn what the catalog says about a value, an option or an order that a visitor has sent into a BadRequest."""
    try:
        yield
    except LimitExceeded:
        raise  # which has an answer of its own, see ``unavailable``
    except (*VALUE_ERRORS, CatalogError) as error:
        raise BadRequest(_told(error)) from error


def _told(error: Exception) -> str:
    """Return what *error* says, with what it leaves unsaid."""
    if isinstance(error, DateTimeError | OverflowError):
        return f"no date that can be searched for: {error}"
    text = without_addresses(str(error))
    return text if isinstance(error, ValueError | CatalogError) else f"a value of a wrong type or form: {text}"


# -- a search


def search(catalog: "Catalog", query: Mapping[str, Any]) -> CatalogSearchResults:
    """Return the results of the query dict *query* in the fixed *catalog*, sorted and limited as it says.

    Raises CatalogError for a bad ``sort_on``, and what indexes raise for wrong values.
    """
    return find(catalog, query, sort_of(query, catalog.indexes), option(query, "limit"))


def find(catalog: "Catalog", query: Mapping[str, Any], sort: Sort, limit: Any) -> CatalogSearchResults:
    """Return the results of *query*, sorted by *sort* whatever it says itself; *limit* is the ``sort_limit``."""
    criteria = canonical(query, catalog.indexes, catalog.rewriters)
    result_cache().set_limit(catalog.jar.db(), catalog.zoid, result_cache_mb(catalog.tool))
    trace = Trace(catalog, criteria, sort, limit)
    context = search_context(catalog, criteria, sort, trace.embedding)
    compiled = catalog.configuration.compiled.find_or_compile(criteria, context, sort, limit)
    trace.compiled()
    view = catalog.search_view()
    view.trace = trace
    log_missing(catalog.tool, view)
    started = partial(report, catalog, view, compiled, criteria, trace)
    return CatalogSearchResults(catalog, view, compiled, context, criteria, sort, started)


def everything(catalog: "Catalog") -> CatalogSearchResults:
    """Return all rows of *catalog*, ordered by rid."""
    query = CompiledQuery(EVERYTHING, (OLDEST_FIRST,), None, Window())
    return CatalogSearchResults(catalog, catalog.view(), query, catalog.context)


def search_context(
    catalog: "Catalog",
    query: Mapping[str, Any],
    sort: Sort,
    asking: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> SearchContext:
    """Return the context of a search by *query*, a whole query dict, and *sort*; an embedder is asked within a context of *asking*.

    Raises WrongRank for an unknown way to rank, LimitExceeded, and psycopg.Error.
    """
    # A context of its own: it stores the texts of one search.
    context, indexes = replace(catalog.context, is_ranked=not sort), catalog.indexes
    is_hybrid_search = RANK in query and is_hybrid(query, indexes)
    texts = text_queries(query, catalog.configuration.lexicons)
    if not texts:
        return context
    context = replace(context, globs=find_globs(catalog, texts))
    if SOURCE_INDEX in indexes:
        if query.get(AS_SITE) is True and AS_SITE not in indexes:
            context = replace(context, tuning=visitors_tuning(context.tuning, catalog.tool))
        if parts_of_words(catalog.tool):
            context = replace(context, word_parts=find_word_parts(catalog, texts))
        if is_hybrid_search:
            context = replace(context, question=question_of(catalog, context, query, asking=asking))
    return context


def log_missing(tool: Any, view: CatalogView) -> None:
    """Log it when the catalog *tool* should have a table and has none."""
    session = view.session
    if view.zoid not in session.pending and view.zoid not in session.read_states() and expects_relation(tool):
        report_missing(tool)


def report(
    catalog: "Catalog", view: CatalogView, compiled: CompiledQuery, query: Mapping[str, Any], trace: Trace, found: bool
) -> None:
    """Called when a result first reads rows: feed the query report, note the words, schedule what is done now and then."""
    report_slow(catalog.tool, query, trace.seconds)
    if catalog.jar.isReadOnly():
        return
    recorder.tick(dsn_of(catalog.jar))
    if SOURCE_INDEX in query:
        searches.note(catalog, query[SOURCE_INDEX], found)
    session = view.session
    state = None if compiled.score is None else session.read_states().get(view.zoid)
    if state is not None:
        request_count(dsn_of(catalog.jar), view.zoid, state.generation)
