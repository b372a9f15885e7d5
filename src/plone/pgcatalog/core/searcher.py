"""A search: normalise, compile, and hand over to a result.  Each step is taken once, and none asks the one before."""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextlib import contextmanager
from contextlib import nullcontext
from dataclasses import replace
from DateTime.interfaces import DateTimeError
from functools import partial
from plone.pgcatalog.core.configuration import Configuration
from plone.pgcatalog.fulltext.site import visitors_tuning
from plone.pgcatalog.fulltext.term_statistics import request_count
from plone.pgcatalog.fulltext.word_lookup import find_globs
from plone.pgcatalog.fulltext.word_lookup import find_word_parts
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.indexing.transition import expects_relation
from plone.pgcatalog.indexing.transition import report_missing
from plone.pgcatalog.meaning.question import has_question
from plone.pgcatalog.meaning.question import is_hybrid
from plone.pgcatalog.meaning.question import question_of
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from plone.pgcatalog.observe.trace import report_slow
from plone.pgcatalog.observe.trace import Trace
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import query_key
from plone.pgcatalog.query.compiler import sort_directions
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.query.expression import as_dict
from plone.pgcatalog.query.expression import expression_in
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.expression import names_read
from plone.pgcatalog.query.expression import with_lists
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


#: (index name, reverse) pairs
Sort = list[tuple[str, bool]]


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


# -- a query in the form that is compiled, as Products.ZCatalog.Catalog makes it before its indexes see it


def merged(query: Any, keywords: Mapping[str, Any], indexes: Container[str]) -> dict[str, Any]:
    """Return the query dict of *query* and *keywords*, which count more, for a catalog with *indexes*.

    Of a *query* that is neither a query dict nor a query object nothing counts, as in ZCatalog.
    """
    query = as_dict(query)
    return with_lists({**(query if isinstance(query, dict) else {}), **keywords}, indexes)


def option(query: Mapping[str, Any], name: str) -> Any:
    """Return the value of ``sort-`` or ``sort_`` *name* in *query*, None if there is none."""
    value = query.get(f"sort-{name}")
    return query.get(f"sort_{name}") if value is None else value


def sort_of(query: Mapping[str, Any], indexes: Mapping[str, IndexTranslator]) -> Sort:
    """Return what ``sort_on`` and ``sort_order`` of *query* mean.

    Raises CatalogError for an index that is not there, or by which nothing can be sorted.
    """
    names = option(query, "on")
    if names is None:
        return []
    names = names if isinstance(names, list | tuple) else [names]
    for name in names:
        translator = indexes.get(name)
        if translator is None:
            raise CatalogError(f"Unknown sort_on index: {name!r}")
        if not is_sortable(translator.index):
            raise CatalogError(f"The index chosen for sort_on is not capable of being used as a sort index: {name!r}")
    return list(zip(names, sort_directions(len(names), option(query, "order")), strict=True))


def is_sortable(index: Any) -> bool:
    """True when ZCatalog sorts by indexes of the type of *index*."""
    return hasattr(aq_base(index), "documentToKeyMap")


def rewritten(query: Mapping[str, Any], configuration: Configuration, tool: Any) -> Mapping[str, Any]:
    """Return *query* as the indexes of the *tool* that rewrite queries want it; what holds several values is a list."""
    query = with_lists(query, configuration.translators)
    for index in configuration.rewriters.values():
        query = index.__of__(tool).make_query(query)
    return query


def canonical(query: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return *query* with its plain lists under *names* sorted, as ``Catalog.make_query`` does."""
    lists = {name: query[name] for name in names if isinstance(query[name], list | tuple)}
    return {**query, **{name: sorted(values) for name, values in lists.items()}}


def check_values(query: Mapping[str, Any], translators: Mapping[str, IndexTranslator]) -> None:
    """Raise TypeError for a value of an index that is a list or a dict itself, as ZCatalog does, which caches by values."""
    for name, translator in translators.items():
        if name in query and isinstance(translator, UnIndexTranslator):
            record = parse(translator.index, query)
            hash((*record.keys, *(record.get("not") or ())))


# -- a search


def search(catalog: "Catalog", query: Mapping[str, Any]) -> CatalogSearchResults:
    """Return the results of the query dict *query* in the fixed *catalog*, sorted and limited as it says.

    Raises CatalogError for a bad ``sort_on``, and what indexes raise for wrong values.
    """
    return find(catalog, query, sort_of(query, catalog.indexes), option(query, "limit"))


def find(catalog: "Catalog", query: Mapping[str, Any], sort: Sort, limit: Any) -> CatalogSearchResults:
    """Return the results of *query*, sorted by *sort* whatever it says itself; *limit* is the ``sort_limit``."""
    asked = rewritten(query, catalog.configuration, catalog.tool)
    criteria = canonical(asked, names_read(asked, catalog.indexes))
    result_cache().set_limit(catalog.jar.db(), catalog.zoid, result_cache_mb(catalog.tool))
    trace = Trace(catalog, criteria, sort, limit)
    context = search_context(catalog, criteria, trace.embedding)
    compiled = compiled_query(catalog.configuration, criteria, context, sort, limit)
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
    asking: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> SearchContext:
    """Return the context of a search by *query*, a whole query dict; an embedder is asked within a context of *asking*.

    Raises WrongRank for an unknown way to rank, LimitExceeded, and psycopg.Error.
    """
    context, indexes = catalog.context, catalog.indexes
    is_hybrid_search = RANK in query and is_hybrid(query, indexes)
    if expression_in(query) is None and catalog.configuration.lexicons.keys().isdisjoint(query):
        return context
    context = replace(context, globs=find_globs(catalog, query))
    if SOURCE_INDEX in indexes:
        if query.get(AS_SITE) is True and AS_SITE not in indexes:
            context = replace(context, tuning=visitors_tuning(context.tuning, catalog.tool))
        if parts_of_words(catalog.tool):
            context = replace(context, word_parts=find_word_parts(catalog, query))
        if is_hybrid_search and has_question(context, query):
            context = replace(context, question=question_of(catalog, query, asking=asking))
    return context


def compiled_query(
    configuration: Configuration, query: Mapping[str, Any], context: SearchContext, sort: Sort, limit: Any
) -> CompiledQuery:
    """Return *query* compiled, from memory if the same has been asked in the saved state of these settings."""
    key = None
    if configuration.is_saved and (context.is_plain or configuration.lexicons.keys().isdisjoint(query)):
        key = query_key(query, context.indexes, configuration.lexicons, sort, limit)
    compiled = configuration.compiled.get(key)
    if compiled is None:
        check_values(query, context.indexes)
        compiled = compile_query(query, context, sort, limit)
        configuration.compiled.put(key, compiled)
    return compiled


def log_missing(tool: Any, view: CatalogView) -> None:
    """Log it when the catalog *tool* should have a table and has none."""
    session = view.session
    has_state = view.zoid in session.pending or not session.knows_states() or view.zoid in session.read_states()
    if not has_state and expects_relation(tool):
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
    if compiled.score is not None and session.knows_states() and view.zoid in session.read_states():
        request_count(dsn_of(catalog.jar), view.zoid, session.read_states()[view.zoid].generation)
