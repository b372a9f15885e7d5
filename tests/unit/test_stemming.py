"""Stems of words, and their place in a tsvector."""

from importlib import import_module
from itertools import product
from pathlib import Path
from plone.pgcatalog.fulltext import lexicon
from plone.pgcatalog.fulltext.lexicon import find_parts
from plone.pgcatalog.fulltext.stemming import beginnings
from plone.pgcatalog.fulltext.stemming import has_stemmer
from plone.pgcatalog.fulltext.stemming import stem
from plone.pgcatalog.fulltext.stemming import STEMMERS
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.tsquery import compile_text
from plone.pgcatalog.sql.column import Column
from string import ascii_lowercase
from tests.unit.lexicons import plone_lexicon
from types import SimpleNamespace

import plone.app.locales
import pytest
import re
import snowballstemmer


T = Column("t", "tsvector")
#: Plone's texts in many languages.
LOCALES = Path(plone.app.locales.__file__).parent / "locales"


def stemming(*languages: str) -> Stemming:
    found = Stemming.of(languages)
    assert found is not None
    return found


@pytest.mark.parametrize("language", STEMMERS)
def test_stemmers_in_c_and_in_python_agree(language: str) -> None:
    """So stems in existing tables are found with either implementation."""
    files = [LOCALES / code / "LC_MESSAGES" / "plone.po" for code in (language, "en", "de")]
    texts = [path.read_text("utf-8") for path in files if path.exists()]
    words = [word for text in texts for word in sorted(set(re.findall(r"[^\W\d_]{3,}", text.lower())))[::9][:200]]
    assert has_stemmer(language)
    name = STEMMERS[language]
    module = import_module(f"snowballstemmer.{name}_stemmer")
    in_python = getattr(module, f"{name.title()}Stemmer")()
    in_c = snowballstemmer.stemmer(name)
    assert type(in_c).__module__ == "Stemmer"
    assert [in_c.stemWord(word) for word in words] == [in_python.stemWord(word) for word in words]


@pytest.mark.parametrize("language", [each for each in STEMMERS if (LOCALES / each).exists()])
def test_words_have_a_beginning_of_their_stem(language: str) -> None:
    text = (LOCALES / language / "LC_MESSAGES" / "plone.po").read_text("utf-8")
    text = " ".join(re.findall(r'^msgstr "(.*)"$', text, re.M))
    words = {form for word in re.findall(r"[^\W\d_]{3,}", text) for form in lexicon.words(plone_lexicon(), [word])}
    stems = {word: stem(language, word) for word in words}
    assert stems
    assert [each for each in stems.items() if not each[0].startswith(tuple(beginnings(language, each[1])))] == []


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("en", ("house", "houses", "housing")),
        ("de", ("haus", "hauser", "hauses")),
        ("fr", ("maison", "maisons")),
        ("ru", ("книга", "книги", "книгу")),
    ],
)
def test_forms_of_a_word_have_one_stem(language: str, forms: tuple[str, ...]) -> None:
    assert len({stem(language, form) for form in forms}) == 1


@pytest.mark.parametrize(
    "word", ["", "a", "is", "e10s", "日本", "x" * 10_000, "user's", "\ufffd\ufffd\ufffd", "ß" * 70]
)
def test_odd_words_are_their_own_stems(word: str) -> None:
    assert all(stem(language, word) == word for language in STEMMERS)


def test_a_site_without_a_stemmer_has_no_stems() -> None:
    assert Stemming.of(()) is None
    assert Stemming.of(("zh-cn", "ja")) is None


def test_texts_have_the_stems_of_their_language() -> None:
    site = stemming("en", "de", "pt-br", "zh")
    for language, is_english in {"en": True, "": True, "en-gb": True, "de": False, "pt": False}.items():
        lexemes_of = site.lexemes_of(language)
        assert lexemes_of is not None
        assert (lexemes_of("house") == ("\2en:hous",)) == is_english
        assert is_english or "en:" not in str(lexemes_of("house"))
    assert site.lexemes_of("zh") is None
    assert site.lexemes_of("fr") is None
    assert stemming("zh", "en").lexemes_of("") is None


def test_stems_have_the_positions_of_their_words() -> None:
    lexemes_of = stemming("en").lexemes_of("en")
    text, trimmed = lexicon.tsvector_literal(["two", "houses", "one", "house", "houses"], [(0, 2, "A")], lexemes_of)
    assert text == "'two':1A 'houses':2A,5 'one':3 'house':4 '\2en:hous':2A,4,5"
    assert trimmed is None
    assert lexicon.tsvector_words(text) == ["two", "houses", "one", "house", "houses"]


@pytest.mark.slow
def test_stems_never_displace_words() -> None:
    source = [f"{a}{b}{c}houses{d}" for a, b, c in product(ascii_lowercase, repeat=3) for d in "abcd"]
    text, trimmed = lexicon.tsvector_literal(source, (), stemming("en").lexemes_of("en"))
    plain, also_trimmed = lexicon.tsvector_literal(source)
    assert text.startswith(plain)
    assert trimmed == also_trimmed


def test_no_word_of_a_text_can_be_a_stem() -> None:
    assert lexicon.words(plone_lexicon(), ["\2en:hous x\2y"]) == ["en", "hous", "x", "y"]
    assert lexicon.query_words(plone_lexicon(), "\2en:hous*") == ["en", "hous*"]


@pytest.mark.parametrize(
    ("text", "tsquery"),
    [
        ("houses", "('houses' | '\2en:hous' | '\2de:hous' | 'hous')"),
        ("houses*", "('houses':* | '\2en:hous' | '\2de:hous' | 'hous')"),
        ("run", "('run' | '\2en:run' | '\2de:run')"),
        ("it", "'it'"),
        ("run -houses", "(('run' | '\2en:run' | '\2de:run') & !'houses')"),
        ('"two houses"', "('two' <-> 'houses')"),
        ('"houses"', "'houses'"),
        ('"houses*"', "'houses':*"),
        ('"run" OR -"houses" it', "('run' | ('it' & !'houses'))"),
        ('"run" run', "('run' & ('run' | '\2en:run' | '\2de:run'))"),
        ("日本語", "('日本' <-> '本語')"),
    ],
)
def test_plain_words_of_a_query_find_other_forms(text: str, tsquery: str) -> None:
    clause = compile_text(plone_lexicon(), text, T, related=stemming("en", "de").related)
    assert clause.tsquery == tsquery


def test_quoted_word_is_ranked_by_itself_alone() -> None:
    clause = compile_text(plone_lexicon(), '"houses" house', T, related=stemming("en").related)
    assert [(term.word, bool(term.related)) for term in clause.rank] == [("houses", False), ("house", True)]


def test_wildcards_inside_a_word_are_literal() -> None:
    clause = compile_text(plone_lexicon(), "h?uses", T, related=stemming("en").related)
    assert clause.condition == compile_text(plone_lexicon(), "h?uses", T).condition


# -- parts of a page


def parts(text: str, **fields: object) -> list[tuple[int, int, str]]:
    own = plone_lexicon()
    source = lexicon.words(own, [text])
    return find_parts(SimpleNamespace(**fields), source, lambda texts: lexicon.words(own, texts))


def test_parts_of_plones_searchable_text_are_recognised() -> None:
    fields = {"Title": lambda: "My Page", "Description": lambda: "About pages", "Subject": lambda: ("tag one", "two")}
    found = parts("my-page My Page About pages Body of my page tag one two", **fields)
    assert found == [(0, 2, "A"), (4, 6, "B"), (10, 13, "C")]
    # In another order, or missing.
    assert parts("body about my page", Title="My page", Description="About") == [(2, 4, "A"), (1, 2, "B")]
    assert parts("nothing of it", Title="My page", Description="", Subject=None) == []
    assert parts("", Title="My page") == []


def test_parts_do_not_overlap() -> None:
    assert parts("news", Title="News", Description="News", Subject=("news",)) == [(0, 1, "A")]
    assert parts("news news news", Title="News", Description="News", Subject=("news",)) == [
        (0, 1, "A"), (1, 2, "B"), (2, 3, "C"),
    ]  # fmt: skip


def test_repetitive_text_is_split_in_time() -> None:
    assert parts("a " * 200_000, Title="a " * 400 + "b") == []
