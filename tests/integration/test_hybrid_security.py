"""Searches by meaning reveal neither the existence nor the content of pages that the user may not see.

All answers to a user are about one set of hits.
"""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Sequence
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import Phase
from hypothesis import settings
from hypothesis import strategies as st
from itertools import count
from plone.pgcatalog.discovery.passages import passages
from tests.integration import site as sites
from tests.integration.meanings import embedder
from tests.integration.meanings import fill
from tests.integration.meanings import page
from tests.integration.meanings import THINGS
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import PEOPLE
from tests.integration.people import publish
from tests.integration.people import share
from tests.integration.people import viewable
from typing import Any

import pytest
import transaction


NUMBERS = count()
QUESTIONS = ("vacation", "puppy and automobile", "pay for the holiday", "leave", "hund", "quiet")
WORDS = [word for line in THINGS for word in line.split()] + ["quiet", "paper", "rules"]


def answers(portal: Any, user: str | None, questions: Sequence[str] = QUESTIONS) -> dict[str, Any]:
    """Return all answers to *user*: hits in their order, counts, facets, snippets, passages, similar pages, corrections."""
    told: dict[str, Any] = {}
    with acting_as(portal, user):
        for question in questions:
            results = portal.portal_catalog.searchResults(SearchableText=question, rank="hybrid")
            brains = list(results)
            parts = [portal.portal_catalog(SearchableText=question, rank="hybrid", b_start=n, b_size=2) for n in (0, 2)]
            told[question] = (
                [brain.getPath() for brain in brains],
                [brain.data_record_score_ for brain in brains],
                [(part.actual_result_count, [brain.getPath() for brain in part]) for part in parts],
                results.facets(["Subject", "Creator"]),
                results.snippets(brains),
                [(each.brain.getPath(), each.text, each.similarity) for each in passages(results, 5)],
                [brain.getPath() for brain in portal.portal_catalog.more_like_this(brains[0], 5)] if brains else [],
                (portal.portal_catalog.did_you_mean(f"{question}x"), portal.portal_catalog.suggest(question[:3])),
            )
    return told


@pytest.fixture(scope="module")
def portal(site_template: str, postgres: Any) -> Iterator[Any]:
    with sites.opened(sites.clone(postgres, site_template)) as db, sites.inside(db) as portal, embedder():
        add_users(portal)
        for number, line in enumerate(THINGS):
            words = line.split()
            publish(
                page(portal, f"public-{number}", f"About {words[0]}", f"Rules for each {words[1]}.", subject=("seen",))
            )
        fill(portal)
        yield portal


@pytest.fixture
def clean(portal: Any) -> Iterator[Any]:
    yield portal
    transaction.abort()
    portal.manage_delObjects([id for id in portal.objectIds() if id.startswith("hidden")])
    transaction.commit()


def test_private_pages_change_no_answer_to_anonymous(clean: Any) -> None:
    portal = clean
    before = answers(portal, None)
    assert any(hits for hits, *_ in before.values())
    for number in range(30):
        # Nearer to the questions than any public page, and with their words.
        text = f"{QUESTIONS[number % len(QUESTIONS)]} " * 5
        page(portal, f"hidden-{number}", text, text, subject=("hidden",))
    fill(portal)
    assert answers(portal, "boss") != before
    assert answers(portal, None) == before


def test_a_page_that_is_retracted_is_gone_from_all_answers_at_once(clean: Any) -> None:
    portal = clean
    before = answers(portal, None)
    hidden = page(portal, "hidden", "Vacation", "vacation vacation vacation")
    publish(hidden)
    fill(portal)
    assert answers(portal, None) != before
    portal.portal_workflow.doActionFor(hidden, "retract")
    transaction.commit()
    assert answers(portal, None) == before


PAGES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
        st.booleans(),
        st.sampled_from([None, "mara", "edith", "rita", "staff"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAGES)
@pytest.mark.slow
def test_answers_with_any_roles_are_about_viewable_pages_only(portal: Any, made: Any) -> None:
    try:
        for words, is_public, reader in made:
            # borg.localrole caches the roles at a path on the request: each page has a path that was never used before.
            each = page(portal, f"hidden-{next(NUMBERS)}", words[0], " ".join(words))
            if is_public:
                publish(each)
            if reader:
                share(each, reader, "Reader")
        fill(portal)
        for user in PEOPLE:
            with acting_as(portal, user):
                mine = set(viewable(portal, portal.portal_catalog))
            told = answers(portal, user)
            for hits, _, _, _, snippets, found, similar, _ in told.values():
                assert {*hits, *similar, *(path for path, _, _ in found)} <= mine
                assert len(snippets) == len(hits)
    finally:
        transaction.abort()
        portal.manage_delObjects([id for id in portal.objectIds() if id.startswith("hidden")])
        transaction.commit()


#: Content of a page: its words, its language, its subjects.
TEXTS = st.tuples(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8),
    st.sampled_from(["en", "de"]),
    st.sampled_from([(), ("red",), ("blue",), ("red", "blue")]),
)
ASKED = st.tuples(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), st.sampled_from([" ", " OR "]), st.integers(1, 4)
)


def assert_of_one_set(portal: Any, user: str | None, text: str, size: int, **criteria: Any) -> None:
    """Compare the pages of *size*, counts, facets and snippets shown to *user* with the hits themselves."""
    with acting_as(portal, user):
        catalog = portal.portal_catalog
        query = {"SearchableText": text, "rank": "hybrid", **criteria}
        results = catalog.searchResults(query)
        hits = list(results)
        paths = [hit.getPath() for hit in hits]
        assert len(set(paths)) == len(paths) == len(results) == results.actual_result_count
        parts = [catalog.searchResults(query, b_start=start, b_size=size) for start in range(0, len(hits), size)]
        assert [hit.getPath() for part in parts for hit in part] == paths
        assert {part.actual_result_count for part in parts} <= {len(hits)}
        facets = results.facets(["Subject", "review_state", "Creator"])
        assert facets.total == len(hits)
        assert facets["Subject"] == Counter(subject for hit in hits for subject in hit.Subject)
        for name in ("review_state", "Creator"):
            values = [getattr(hit, name) for hit in hits]
            # A site has no state.
            assert facets[name] == Counter(value for value in values if isinstance(value, str))
        wider = results.facets(["Subject"], exclude_own=True)
        assert wider.total == len(hits)
        if "Subject" in criteria:
            assert wider["Subject"].get(criteria["Subject"], 0) == len(hits)
        assert set(results.snippets(hits)) == {hit.getRID() for hit in hits}


@settings(
    max_examples=4, phases=[Phase.generate], deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(TEXTS, min_size=1, max_size=6),
    st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from([None, "mara", "staff"])), min_size=1, max_size=5),
    st.lists(ASKED, min_size=2, max_size=4),
)
@pytest.mark.slow
def test_answers_are_of_one_set_that_private_pages_do_not_change(
    portal: Any, public: Any, private: Any, asked: Any
) -> None:
    """For any content, user and page size; private pages are added, changed and removed."""
    questions = [separator.join(words) for words, separator, _ in asked]

    def made(text: Any) -> Any:
        words, language, subjects = text
        id = f"hidden-{next(NUMBERS)}"
        return page(portal, id, words[0], " ".join(words), subject=subjects, language=language)

    def assert_all() -> None:
        fill(portal)
        for user in (None, "mara", "boss"):
            for question, (*_, size) in zip(questions, asked, strict=True):
                assert_of_one_set(portal, user, question, size)
                assert_of_one_set(portal, user, question, size, Subject="red")
        assert answers(portal, None, questions) == before

    try:
        for text in public:
            publish(made(text))
        fill(portal)
        before = answers(portal, None, questions)
        hidden = []
        for text, _, reader in private:
            hidden.append(made(text))
            if reader:
                share(hidden[-1], reader, "Reader")
        assert_all()
        for each, (_, (words, language, subjects), _) in zip(hidden, private, strict=True):
            each.title, each.description, each.language = words[0], " ".join(words * 9), language
            each.setSubject(subjects)
            each.reindexObject()
        assert_all()
        portal.manage_delObjects([each.getId() for each in hidden])
        assert_all()
    finally:
        transaction.abort()
        portal.manage_delObjects([id for id in portal.objectIds() if id.startswith("hidden")])
        transaction.commit()
