"""Laws of a tuned search, on random texts and queries: it has all hits of the plain one, and excludes the same."""

from collections.abc import Iterator
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.tsquery import Clause
from plone.pgcatalog.fulltext.tsquery import compile_text
from plone.pgcatalog.fulltext.tuning import QueryWords
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.unit.lexicons import plone_lexicon
from typing import Any

import itertools
import psycopg
import pytest
import random


T = Column("words", "tsvector")
WORDS = ("car", "auto", "motor", "vehicle", "tv", "the", "of", "e-mail", "email", "Über", "数据库", "数据")
TUNING = {
    "synonyms": "car, auto, motor vehicle\ntv => 数据库\ne-mail, email, Über\nthe => motor",
    "stop_words": "en: the, of, e-mail\nde: auto",
}
LEXICON = plone_lexicon()
#: All texts of one or two words, and some longer ones.
_random = random.Random(7)
TEXTS = [
    *(" ".join(pair) for pair in itertools.product((*WORDS, ""), repeat=2)),
    *(" ".join(_random.choices(WORDS, k=_random.randrange(3, 9))) for _ in range(150)),
]

terms = st.sampled_from(WORDS).flatmap(
    lambda word: st.sampled_from(
        [word, word, word + "*", word[:2] + "*", f'"{word}"', "-" + word, word[0] + "?" + word]
    )
)
queries = st.recursive(
    st.lists(terms, min_size=1, max_size=3).map(" ".join),
    lambda parts: st.tuples(parts, st.sampled_from(["AND", "OR", "AND NOT"]), parts).map(
        "({0[0]}) {0[1]} ({0[2]})".format
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def rows(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a table of the texts."""
    with psycopg.connect(postgres.createdb("tuned_texts"), autocommit=True) as connection:
        connection.execute("CREATE TABLE texts (id serial, words tsvector)")
        with connection.cursor() as cursor:
            literals = [(tsvector_literal(words(LEXICON, [text]))[0],) for text in TEXTS]
            cursor.executemany("INSERT INTO texts (words) VALUES (%s)", literals)
        yield connection
    postgres.dropdb("tuned_texts")


def found(rows: psycopg.Connection[Any], clause: Clause) -> set[int]:
    condition = clause.condition
    return {i for (i,) in rows.execute(f"SELECT id FROM texts WHERE {condition.sql}", condition.params)}


@given(query=queries, most=st.sampled_from([1, 2, 3]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_limit_of_lexemes_in_a_tsquery_does_not_change_the_hits(
    rows: psycopg.Connection[Any], query: str, most: int
) -> None:
    meaning = QueryWords(tuning_in(TUNING), LEXICON).meaning(("en",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tsquery, "MAX_LEXEMES", most)
        several = compile_text(LEXICON, query, T, meaning)
    assert found(rows, several) == found(rows, compile_text(LEXICON, query, T, meaning))


@given(query=queries, languages=st.sampled_from([(), ("en",), ("en", "de")]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tuned_search_loses_no_hit_and_excludes_literally(
    rows: psycopg.Connection[Any], query: str, languages: tuple[str, ...]
) -> None:
    tuning = tuning_in(TUNING)
    assert tuning is not None
    meaning = QueryWords(tuning, LEXICON).meaning(languages)
    plain = found(rows, compile_text(LEXICON, query, T))
    tuned = found(rows, compile_text(LEXICON, query, T, meaning))
    assert tuned >= plain
    if "-" not in query:
        # Otherwise it may be an invalid query, all of which is treated as words.
        without = found(rows, compile_text(LEXICON, f"({query}) AND NOT car", T, meaning))
        assert without == tuned - found(rows, compile_text(LEXICON, "car", T))
