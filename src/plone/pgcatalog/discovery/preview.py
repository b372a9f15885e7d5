"""Preview of a search with settings that are not saved: its order before and after, and the reasons for each place."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.fulltext.site import site_tuning
from plone.pgcatalog.fulltext.site import visitors_tuning
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import HIGHEST_SCORE
from plone.pgcatalog.indexing.objects import site_path
from plone.pgcatalog.meaning.question import left_out_of
from plone.pgcatalog.meaning.question import question_of
from plone.pgcatalog.query import statements
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.criteria import text_queries
from plone.pgcatalog.query.nearest import Fusion
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.settings import meaning_threshold
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.predicate import any_value
from typing import Any


#: Number of pages that are explained, and of pages whose place before the change is looked up.
SHOWN, COMPARED = 10, 50


@dataclass(frozen=True, slots=True)
class PreviewHit:
    """A page in the preview, and the reasons for its place.

    - ``place``: its place, from 1, with the changed settings.
    - ``place_before``: its place without them; None if it is not among the first COMPARED.
    - ``boost``: the factor of its type; ``half_life``: the days after which pages of its type count half, 0 for no half-life.
    - ``shares``: part of the page (title, description, keywords, body) -> its share of the relevance, from 0 to 1.  Empty if
      no part matches, or the page was found by meaning only.
    - ``by_words``, ``by_meaning``, ``similarity``: in a search by meaning, its places in both rankings and its similarity to
      the question; None where it has none.
    """

    brain: Any
    place: int
    place_before: int | None
    is_pinned: bool
    boost: float
    shares: dict[str, float]
    half_life: int = 0
    by_words: int | None = None
    by_meaning: int | None = None
    similarity: float | None = None

    @property
    def has_words(self) -> bool:
        return self.by_words is not None or self.by_meaning is None


def preview(tool: Any, query: Mapping[str, Any], settings: Mapping[str, Any]) -> list[PreviewHit]:
    """Return the first SHOWN hits of ``searchResults(**query)`` of the catalog *tool*, as they are with *settings*.

    *settings*, name -> value, replace those of its site and are not saved.  *query* must search SearchableText, without
    ``sort_on``.  Three statements, four by meaning.
    """
    query = {name: value for name, value in query.items() if name not in ("b_start", "b_size")}
    before = tool.searchResults(**query)
    after = searched_with(tool, query, before, settings)
    places = {brain.getRID(): place for place, brain in enumerate(before[:COMPARED], 1)}
    brains = after[:SHOWN]
    shares = _shares(after, [brain.getRID() for brain in brains])
    both = _places(after, [brain.getRID() for brain in brains])
    tuning = after.context.tuning
    boosts = {} if tuning is None else dict(tuning.tuning.types)
    half_lives = {} if tuning is None else dict(tuning.tuning.half_lives)
    hits = [
        PreviewHit(
            brain,
            place,
            places.get(brain.getRID()),
            brain.data_record_score_ > 1000 * HIGHEST_SCORE,
            boosts.get(brain.portal_type, 1.0),
            shares.get(brain.getRID(), {}),
            half_lives.get(brain.portal_type, 0),
            *both.get(brain.getRID(), ()),
        )
        for place, brain in enumerate(brains, 1)
    ]
    return [hit if hit.has_words else replace(hit, shares={}) for hit in hits]


def searched_with(
    tool: Any, query: Mapping[str, Any], results: CatalogSearchResults, settings: Mapping[str, Any]
) -> CatalogSearchResults:
    """Return the results of *query* with *settings*; *results* are its results without them."""
    catalog, context = results.catalog, results.context
    changed = {**site_settings(tool), **settings}
    tuning = site_tuning(changed, lambda: site_path(tool))
    left_out = None
    if context.tuning is not None and context.tuning.is_visitors:
        texts = text_queries(results.criteria, catalog.configuration.lexicons)
        left_out = left_out_of(tool, tuning, results.criteria, texts, context.indexes, changed)
        tuning = visitors_tuning(tuning, tool)
    least = settings.get(meaning_threshold.name)
    question = context.question
    if question is not None and least is not None:
        question = question_of(tool._core, context, query, least)
    context = replace(context, tuning=tuning, left_out=left_out, weights=Weights.of(changed), question=question)
    compiled = compile_query(results.criteria, context, results.sort)
    return CatalogSearchResults(catalog, catalog.search_view(), compiled, context, results.criteria, results.sort)


def _places(
    results: CatalogSearchResults, rids: Sequence[int]
) -> dict[int, tuple[int | None, int | None, float | None]]:
    """Return rid -> (place by words, place by meaning, similarity) for *rids*; empty for a search by words."""
    fusion = results.compiled.score
    if not isinstance(fusion, Fusion) or not rids:
        return {}
    view = results.catalog.search_view()
    rows = view.fetch(lambda stored: statements.fused_rows(fusion, stored).places(rids), results.condition)
    return {rid: (words, meaning, similarity) for rid, words, meaning, similarity in rows.value()}


def _shares(results: CatalogSearchResults, rids: Sequence[int]) -> dict[int, dict[str, float]]:
    """Return rid -> part of the page -> its share of the relevance, for *rids*.  One statement."""
    text = results.context.indexes[SOURCE_INDEX]
    assert isinstance(text, ZCTextIndexTranslator)
    scores = text.scores_of_parts(results.criteria, results.context)
    if not scores or not rids:
        return {}
    expressions = ", ".join(["rid", *(score.sql for score in scores.values())])
    params = [param for score in scores.values() for param in score.params]
    rows = results.catalog.search_view().select(expressions, any_value(RID, list(rids)), params=params).value()
    wholes = ((rid, values, sum(values)) for rid, *values in rows)
    return {
        rid: {s: v / whole for s, v in zip(scores, values, strict=True)} for rid, values, whole in wholes if whole > 0
    }
