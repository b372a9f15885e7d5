"""Hybrid searches as data: the statement for a question by its meaning."""

from collections.abc import Callable
from dataclasses import replace
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query import nearest
from plone.pgcatalog.query import statements
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.settings import RANKED_ROWS
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import Predicate
from tests.unit.compiling import text_index
from tests.unit.compiling import TRANSLATORS
from typing import Any

import pytest


VECTOR = "[0.6,0.8]"
QUESTION = nearest.Question('"chunks"', Fragment("%s::halfvec", (VECTOR,)), "<#>", 0.8)
TEXT = ZCTextIndexTranslator(text_index("SearchableText"), "searchable_text")
TEXT.relate(TRANSLATORS.__getitem__)
FILTERS: dict[str, Any] = {"portal_type": "Document", "Subject": ["water", "wood"]}
QUERY = FILTERS | {"SearchableText": "rain in spring"}

STATEMENTS: dict[str, Callable[[CompiledQuery, Stored], Statement]] = {
    "page": lambda query, stored: statements.page(query, stored, 0, 25),
    "page with total": lambda query, stored: statements.page(query, stored, 0, 25, with_total=True),
    "page behind": lambda query, stored: statements.page(query, stored, 5000, 25, with_total=True),
    "all": lambda query, stored: statements.page(query, stored, 0, None),
    "page with metadata": lambda query, stored: statements.page_with_metadata(
        query, stored, 0, 25, ["Title"], True, False
    ),
    "count": statements.count,
    "count up to 100": lambda query, stored: statements.count(replace(query, count_limit=100), stored),
    "ids": statements.ids,
}
CATALOG = Stored(('"catalog_1"', ()), rows=5_000, full=RANKED_ROWS)
FORMS = {
    "few rows": replace(CATALOG, rows=300),
    "candidates": CATALOG,
    "very many": replace(CATALOG, rows=50_000),
    "noted": replace(CATALOG, relation="catalog_1"),
    "pending": replace(CATALOG, source=("(SELECT * FROM t WHERE n = %s) AS catalog", (7,))),
}


def compiled(
    query: dict[str, Any], question: nearest.Question | None = QUESTION, *sort: tuple[str, bool]
) -> CompiledQuery:
    context = SearchContext({**TRANSLATORS, "SearchableText": TEXT}, question=question)
    return compile_query(query, context, sort)


@pytest.mark.parametrize(
    ("chunks", "rows"), [(-1, 1000), (10_000, 2000), (20_400, 4000), (50_000, 10_000), (10**7, 10_000)]
)
def test_rows_whose_chunks_are_all_compared_are_a_share_of_a_small_site(chunks: int, rows: int) -> None:
    assert nearest.few_of(chunks) == rows


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_each_placeholder_has_its_value_and_a_page_searches_for_the_nearest_chunks_once(
    form: str, is_indexed: bool
) -> None:
    for name, make in STATEMENTS.items():
        # Metadata is read from committed rows only.
        if (name, form) != ("page with metadata", "pending"):
            made = make(compiled(QUERY, replace(QUESTION, is_indexed=is_indexed)), FORMS[form])
            assert made.sql.replace("%%", "").count("%s") == len(made.params)
            assert "NEAR" not in made.sql
            if "page" in name or name == "all":
                assert made.params.count(VECTOR) == made.sql.count("AS vector") == 1, name


def test_only_rows_that_match_all_criteria_but_the_words_are_compared_with_the_question() -> None:
    query = compiled(QUERY)
    assert isinstance(query.score, nearest.Fusion)
    assert query.score.near.among == compiled(FILTERS).where
    assert query.score.found == compiled(QUERY, None).where
    [either] = [part for part in query.where.conjuncts() if not isinstance(part, Predicate)]
    words, near = either.parts  # type: ignore[attr-defined]
    assert isinstance(near, nearest.Near)
    assert words == TEXT.where(QUERY)


def test_hits_by_meaning_stay_without_hits_by_words() -> None:
    assert compiled({"SearchableText": ""}, None).where is NOTHING
    assert isinstance(compiled({"SearchableText": ""}).where, nearest.Near)


def test_a_sort_changes_the_order_and_not_the_hits() -> None:
    by_date = compiled(QUERY, QUESTION, ("Creator", False))
    assert by_date.score is None
    assert any(part == compiled(QUERY).where for part in (by_date.where, *getattr(by_date.where, "parts", ())))


def test_key_of_an_answer_has_the_question_and_no_vector() -> None:
    other = replace(QUESTION, vector=Fragment("%s::halfvec", ("[0.8,0.6]",)))
    keys = {compiled(QUERY, asked).key for asked in (QUESTION, other, replace(QUESTION, threshold=0.9), None)}
    assert len(keys) == 4
    assert None not in keys
    assert not any(VECTOR in repr(key) for key in keys)
