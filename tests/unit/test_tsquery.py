"""The SQL of search texts; their hits are tested elsewhere."""

from collections.abc import Sequence
from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.fulltext import word_lookup
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.fulltext.tsquery import compile_text
from plone.pgcatalog.fulltext.tsquery import MAX_LEXEMES
from plone.pgcatalog.fulltext.tsquery import MAX_WORDS
from plone.pgcatalog.fulltext.tsquery import parse
from plone.pgcatalog.fulltext.tsquery import plain_words
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.sql.column import Column
from Products.ZCTextIndex.Lexicon import Lexicon
from tests.unit.compiling import text_index
from tests.unit.lexicons import plaintext_lexicon
from tests.unit.lexicons import plone_lexicon
from types import SimpleNamespace
from typing import Any

import pytest


T = Column("t", "tsvector")


@pytest.mark.parametrize(
    ("text", "tsquery"),
    [
        ("Über", "'uber'"),
        ("quick fox", "('quick' & 'fox')"),
        ("quick AND fox", "('quick' & 'fox')"),
        ("quick or fox", "('quick' | 'fox')"),
        ("quick -fox", "('quick' & !'fox')"),
        ("quick AND NOT (fox OR cat)", "('quick' & !('fox' | 'cat'))"),
        *(('"quick fox"', "('quick' <-> 'fox')"), ('"quick"', "'quick'"), ("well-known", "('well' <-> 'known')")),
        *(("qui*", "'qui':*"), ("qui**", "'qui':*"), ("it's", "('it' <-> 's')")),
        ('super* AND expi* AND "a phrase" AND "and"', "('super':* & 'expi':* & ('a' <-> 'phrase') & 'and')"),
        ("foo AND", "'foo'"),
        ("NOT foo", "'foo'"),
        ("(foo bar", "('foo' & 'bar')"),
        ("日本語", "('日本' <-> '本語')"),
        ("日", "'日':*"),
    ],
)
def test_tsquery(text: str, tsquery: str) -> None:
    own = plone_lexicon()
    clause = compile_text(own, text, T)
    assert clause.tsquery == tsquery
    assert clause.condition.sql == '"t" @@ %s::tsquery'
    assert clause.condition.params == (tsquery,)
    assert list(own.words()) == []


def ranked_by(text: str, own: Any = None) -> list[str]:
    return [term.tsquery for term in compile_text(own or plone_lexicon(), text, T).rank]


def test_rank_ignores_negations() -> None:
    assert ranked_by("quick -fox") == ["'quick'"]
    assert ranked_by("(quick AND NOT fox) OR f?x") == ["'quick'", "'f':*"]


def test_each_word_is_ranked_once() -> None:
    assert ranked_by('quick "the quick fox" OR fox OR qui*') == ["'quick'", "'the'", "'fox'", "'qui':*"]


WORDS = [f"word{i}" for i in range(MAX_WORDS)]


def test_a_query_of_very_many_words_is_ranked_by_the_first_ones() -> None:
    for text in (" ".join(WORDS), " OR ".join(WORDS), f'"{" ".join(WORDS)}"'):
        assert ranked_by(text) == [f"'{word}'" for word in WORDS[:20]]


@pytest.mark.parametrize(
    "text",
    [
        " ".join(WORDS),
        " OR ".join(WORDS),
        "* OR ".join(WORDS),
        f'"{" ".join(WORDS)}"',
        f"{WORDS[0]} -{' -'.join(WORDS[1:])}",
    ],
    ids=["AND", "OR", "prefixes", "phrase", "NOT"],
)
def test_number_of_words_in_a_text_is_limited(text: str) -> None:
    assert parse(plone_lexicon(), text) is not None
    for more in (
        f"{text} AND more",
        f"{text} -more",
        f'{text} AND NOT "more"',
        f"more* OR {text}",
        f"more AND ({text} AND",
    ):
        with pytest.raises(LimitExceeded, match=f"more than {MAX_WORDS} words"):
            parse(plone_lexicon(), more)


def lexemes(text: str) -> list[int]:
    """Return the number of lexemes in each tsquery to which *text* is compiled."""
    condition = compile_text(plone_lexicon(), text, T, None, Stemming.of(("en", "de")).related).condition
    return [param.count("'") // 2 for param in condition.params]


@pytest.mark.parametrize(
    "text", ["{0} OR {1}", "{0} {1}", "{0} OR ({1})", "x -{2}", "x AND NOT ({0} OR f?x)", "(x* {1}) OR ({2})"]
)
def test_lexemes_of_a_tsquery_are_limited_for_gin(text: str) -> None:
    """GIN needs time that grows with the square of the lexemes of a tsquery, before it reads anything."""
    words = WORDS[: MAX_WORDS // 3]
    found = lexemes(text.format(" OR ".join(words), " ".join(words), " -".join(words)))
    assert max(found) <= MAX_LEXEMES
    assert len(found) < sum(found) / MAX_LEXEMES * 1.5 + 5


def test_repeated_word_is_looked_up_once() -> None:
    assert compile_text(plone_lexicon(), "fox OR fox* OR Fox OR fox*", T).tsquery == "('fox' | 'fox':*)"
    assert compile_text(plone_lexicon(), "fox Fox -cat -cat", T).tsquery == "('fox' & !'cat')"


FOUND = '"t" @@ %s::tsquery'
WILD = 'EXISTS (SELECT FROM unnest(tsvector_to_array("t")) AS lexeme WHERE lexeme LIKE %s)'


@pytest.mark.parametrize(
    ("text", "sql", "params"),
    [
        ("f?x", f"({FOUND}) AND ({WILD})", ("'f':*", "f_x")),
        ("f*x_y?", f"({FOUND}) AND ({WILD})", ("'f':*", r"f%x\_y_")),
        (
            "quick f?x dog -cat",
            f"({FOUND}) AND (({FOUND}) AND ({WILD}))",
            ("('quick' & 'dog' & !'cat')", "'f':*", "f_x"),
        ),
        ("quick -f?x", f"({FOUND}) AND ((({FOUND}) AND ({WILD})) IS NOT TRUE)", ("'quick'", "'f':*", "f_x")),
    ],
)
def test_wildcards_inside_a_word_are_patterns(text: str, sql: str, params: Sequence[str]) -> None:
    clause = compile_text(plone_lexicon(), text, T)
    assert (clause.condition.sql, clause.condition.params) == (sql, params)


class Verbatim:
    """Splits at white space only, so that a word can contain any other character."""

    def process(self, texts: Sequence[str]) -> list[str]:
        return [word for text in texts for word in text.split()]


@pytest.mark.parametrize(
    ("text", "tsquery"),
    [("it's", "'it''s'"), ("a\\b", "'a\\\\b'"), ("a:*|!&<->", "'a:':*"), ("*foo", "'foo'"), ("?foo*", "'foo':*")],
)
def test_any_characters_can_be_searched_for(text: str, tsquery: str) -> None:
    """Wildcards at the beginning, with which ZCTextIndex raises, are ignored."""
    assert ranked_by(text, Lexicon(Verbatim())) == [tsquery]


def test_like_pattern_is_escaped() -> None:
    clause = compile_text(Lexicon(Verbatim()), "a%_\\?b", T)
    assert clause.condition.params == ("'a%_\\\\':*", r"a\%\_\\_b")


@pytest.mark.parametrize("text", ["", " ", "-", "***", "?", "()", "((", '""', "the", "the AND a", "NOT the"])
def test_impossible_query_finds_nothing(text: str) -> None:
    clause = compile_text(plaintext_lexicon(), text, T)
    assert clause.condition is NOTHING
    assert clause.rank == ()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        *(("foo AND", "foo"), ('NOT (foo "bar', "foo bar"), ('NOT "foo bar" AND "baz', '"foo bar" baz')),
        *(('-"foo"', '"foo"'), ("--foo -", "foo"), ("and OR", '"and" "OR"'), ("", "")),
    ],
)
def test_plain_words_are_compiled(text: str, plain: str) -> None:
    assert plain_words(text) == plain


# -- words with wildcards inside


@pytest.mark.parametrize("text", ["annual* AND report*", "rain", "*ain", "(wat* OR win*)", '"w* d"', "w* *d"])
def test_wildcards_at_the_ends_of_words_are_no_patterns(text: str) -> None:
    assert list(word_lookup._patterns(parse(plone_lexicon(), text))) == []


def test_plones_search_texts_are_not_parsed_for_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog: Any = SimpleNamespace(configuration=SimpleNamespace(lexicons={"Title": None}))
    monkeypatch.setattr(word_lookup.tsquery, "parse", None)
    assert word_lookup.find_globs(catalog, [("Title", "annual* AND report*"), ("Title", "rain")]) == {}


@given(st.text('ab*?"() -\u3000é', max_size=12))
@example("w*d")
@example("w?")
@example('"a w*d"')
@example("NOT w*d")
@example("a*-b")
def test_no_pattern_is_missed(text: str) -> None:
    known = {"Title": plone_lexicon()}
    translator = ZCTextIndexTranslator(text_index("Title"), "title")
    catalog: Any = SimpleNamespace(configuration=SimpleNamespace(lexicons=known), translator=lambda name: translator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_lookup, "_words_like", lambda catalog, translator, patterns: patterns)
        found = word_lookup.find_globs(catalog, [("Title", text)])
    patterns = list(word_lookup._patterns(parse(plone_lexicon(), text)))
    assert found == ({"Title": list(dict.fromkeys(patterns))} if patterns else {})
