"""The context of a search and, for a search by meaning, its question: the plain words and their vector.

Without a vector (no embedder is set up, or it is slow or down) the search uses words only.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from plone.pgcatalog.fulltext.site import left_out
from plone.pgcatalog.fulltext.site import SiteTuning
from plone.pgcatalog.fulltext.site import visitors_tuning
from plone.pgcatalog.fulltext.word_lookup import find_globs
from plone.pgcatalog.fulltext.word_lookup import find_word_parts
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import QueryError
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.meaning.embedder import Embedder
from plone.pgcatalog.meaning.embedder import EmbedderError
from plone.pgcatalog.meaning.embedder import Vector
from plone.pgcatalog.meaning.table import literal
from plone.pgcatalog.meaning.table import Vectors
from plone.pgcatalog.meaning.table import vectors_of
from plone.pgcatalog.query.criteria import text_queries
from plone.pgcatalog.query.nearest import AS_SITE
from plone.pgcatalog.query.nearest import few_of
from plone.pgcatalog.query.nearest import HYBRID
from plone.pgcatalog.query.nearest import Question
from plone.pgcatalog.query.nearest import RANK
from plone.pgcatalog.query.nearest import SECTION
from plone.pgcatalog.query.nearest import WORDS
from plone.pgcatalog.settings import parts_of_words
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from time import monotonic
from typing import Any
from zExceptions import BadRequest

import logging
import re
import threading


logger = logging.getLogger(__name__)

#: Most characters of a question, and the size of the cache of vectors: a page and the next one need the same vector several
#: times, and an embedder takes about as long as the search.
LONGEST_QUESTION = 1000
REMEMBERED = 256

#: Seconds after a failure without requests for questions, unless the embedder requests more; and embedder -> monotonic time
#: of their end.
QUESTION_PAUSE = 5.0
paused_until: dict[Embedder, float] = {}

#: Operators of a search text: excluded words; AND and OR between words; quotes, parentheses and wildcards.
_EXCLUDED = re.compile(r"(?:\b(?:AND\s+)?NOT\s+|(?<!\S)-)(?:\"[^\"]*+\"|[^\s-]\S*)")
_OPERATOR = re.compile(r"(?<![\w\"])(?:AND|OR)(?![\w\"])")
_MARK = re.compile(r"[\"()*?]+")

#: Number of questions with a vector (``answered``) and without one (``failed``).
counts: Counter[str] = Counter()
_lock = threading.Lock()


class WrongRank(QueryError, BadRequest):
    """A search with an unknown ``rank``; over the web, the status 400."""


def is_hybrid(query: Mapping[str, Any], indexes: Container[str]) -> bool:
    """Return whether *query*, a query dict, searches by words and meaning; False if the catalog has an index named ``rank``.

    Raises WrongRank for another value than ``hybrid`` and ``words``.
    """
    value = None if RANK in indexes else query.get(RANK)
    if value in (None, "", WORDS):
        return False
    if value != HYBRID:
        raise WrongRank(f"{RANK} must be {HYBRID!r} or {WORDS!r}, not {value!r}"[:200])
    return SOURCE_INDEX in query


def search_context(
    catalog: Any,
    query: Mapping[str, Any],
    texts: Sequence[tuple[str, str]],
    is_ranked: bool,
    timing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> SearchContext:
    """Return the context of a search by *query*, a whole query dict with the ``text_queries`` *texts*.

    *is_ranked*: its results are ordered by relevance.  An embedder is called within the context of ``timing()``.
    Raises WrongRank, LimitExceeded, and psycopg.Error.
    """
    # The context must not be shared with other searches if it depends on the texts of this one.
    context: SearchContext = catalog.context
    indexes = context.indexes
    # The context is copied once: a copy costs as much Python as a condition.
    changes: dict[str, Any] = {"is_ranked": True} if is_ranked else {}
    is_hybrid_search = RANK in query and is_hybrid(query, indexes)
    is_as_site = query.get(AS_SITE) is True and AS_SITE not in indexes
    if is_as_site and (pages := left_out_of(catalog.tool, context.tuning, query, texts, indexes)) is not None:
        changes["left_out"] = pages
    if texts:
        changes["globs"] = find_globs(catalog, texts)
    if texts and SOURCE_INDEX in indexes:
        if is_as_site:
            changes["tuning"] = visitors_tuning(context.tuning, catalog.tool)
        if parts_of_words(catalog.tool):
            changes["word_parts"] = find_word_parts(catalog, texts)
        if is_hybrid_search:
            changes["question"] = question_of(catalog, replace(context, **changes), query, timing=timing)
    return replace(context, **changes) if changes else context


def left_out_of(
    tool: Any,
    tuning: SiteTuning | None,
    query: Mapping[str, Any],
    texts: Sequence[tuple[str, str]],
    indexes: Mapping[str, IndexTranslator],
    settings: Mapping[str, Any] | None = None,
) -> Condition | None:
    """Return ``left_out`` for *query* with the ``text_queries`` *texts*, with *settings* in place of the site's of *tool*."""
    words = [text for name, text in texts if name == SOURCE_INDEX]
    return left_out(tuning, site_settings(tool) if settings is None else settings, words, query, indexes.__getitem__)


def as_site_searches(tool: Any, query: Mapping[str, Any], context: Any = None) -> dict[str, Any]:
    """Return *query* marked as the search of a visitor on the site of the catalog *tool*, on the page of *context*.

    Stop words apply to it, it leaves pages out, and it has the pins of the section of *context*.
    """
    indexes, tuning = tool._core.indexes, tool._core.configuration.tuning
    if AS_SITE in indexes:
        return dict(query)
    has_sections = tuning is not None and any(pin.section for pin in tuning.tuning.pins)
    if context is None or not has_sections or SECTION in indexes:
        return {**query, AS_SITE: True}
    return {**query, AS_SITE: True, SECTION: "/".join(context.getPhysicalPath())}


def question_of(
    core: Any,
    context: SearchContext,
    query: Mapping[str, Any],
    least: float | None = None,
    timing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Question | None:
    """Return the question of *query* in the catalog *core*; None if the search has to use words only.

    - *context* is the context of a search by words.
    - *least* replaces the site's least similarity.  Without either, there is no question until the model is calibrated.
    - The embedder is called within the context of ``timing()``.
    - A query without ranking, or of stop words only, has no question.
    - A question without a vector is not sent again in the same snapshot: a page waits for an embedder at most once, and
      all its parts show the same rows.
    """
    texts = text_queries({SOURCE_INDEX: query[SOURCE_INDEX]}, {SOURCE_INDEX: None})
    words = question_in(" ".join(text for _, text in texts))
    text = context.indexes[SOURCE_INDEX]
    has_words = text.score(query, context) is not None or text.where(query, context) in (None, NOTHING)
    if not (words and has_words and text.has_meaning(query, context)):
        return None
    vectors = vectors_of(core)
    if vectors is not None and least is not None:
        vectors = replace(vectors, least=least)
    if vectors is None or not (vectors.least or vectors.calibration) or (core.zoid, words) in core.session.unanswered:
        return None
    with timing():
        vector = vector_of(vectors, words)
    if vector is None:
        core.session.unanswered.add((core.zoid, words))
        return None
    calibration = vectors.of_questions
    bias = 0.0 if calibration is None else calibration.length_bias
    return question_by(vectors, Fragment(f"%s::{sql(vectors.halfvec)}", (vector,)), bias)


def question_by(vectors: Vectors, vector: Fragment, length_bias: float = 0.0) -> Question:
    """Return the question for the rows in *vectors*, a table of chunks, that are nearest to *vector*."""
    threshold = vectors.least or (vectors.calibration.threshold if vectors.calibration else 0.0)
    few = few_of(vectors.chunks)
    return Question(quote(vectors.name), vector, sql(vectors.distance), threshold, vectors.has_hnsw, few, length_bias)


def sql(composable: Any) -> str:
    """Return *composable*, of psycopg.sql, as text for a statement with placeholders: each ``%`` is doubled."""
    return str(composable.as_string()).replace("%", "%%")


def question_in(text: str) -> str:
    """Return the question in the search text *text*: its words without operators, wildcards and excluded words."""
    plain = _OPERATOR.sub(" ", _EXCLUDED.sub(" ", text[: 4 * LONGEST_QUESTION]))
    return " ".join(_MARK.sub(" ", plain).split())[:LONGEST_QUESTION].replace("\0", "")


def vector_of(vectors: Vectors, question: str) -> str | None:
    """Return the vector of *question* as a parameter; None if the embedder of *vectors* returns none of the same model.

    It is centred, unless the site has set a least similarity, or the model is not calibrated.
    """
    try:
        vector, name = _embedded(vectors.embedder, question)
        if len(vector) != vectors.dimension or not vectors.embedder.is_same_model(name, vectors.answers_as):
            raise EmbedderError(f"the embedder is another model now: {name}, {len(vector)} dimensions")
    except EmbedderError as error:
        logger.debug("the search uses words only: %s", error)
        _count("failed")
        return None
    _count("answered")
    calibration = vectors.of_questions
    return literal(vector if calibration is None else calibration.centred(vector))


@lru_cache(REMEMBERED)
def _embedded(embedder: Embedder, question: str) -> tuple[Vector, str]:
    if monotonic() < paused_until.get(embedder, 0.0):
        raise EmbedderError("the embedder is not queried again so soon after a failure")
    try:
        return embedder.embed_question(question)
    except EmbedderError as error:
        if error.is_down:
            paused_until[embedder] = monotonic() + (error.retry_after or QUESTION_PAUSE)
        raise


def _count(outcome: str) -> None:
    with _lock:
        counts[outcome] += 1
