"""Texts of visitors: their exclusions, in Plone's search page and in the syntax of ZCTextIndex."""

from plone.base.utils import munge_search_term
from plone.pgcatalog.fulltext.tsquery import parse
from plone.pgcatalog.fulltext.typed import search_text
from plone.pgcatalog.fulltext.typed import wanted_text
from plone.pgcatalog.fulltext.typed import with_exclusions
from tests.unit.lexicons import plone_lexicon
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("typed", "wanted", "excluded"),
    [
        *((text, "schools", ["climate"]) for text in ("schools NOT climate", "schools -climate", "-climate schools")),
        *((text, "schools", ["climate"]) for text in ("NOT climate schools", "schools AND NOT climate")),
        *((text, "a d", ["b c"]) for text in ('a -"b c" d', 'a NOT "b c" d', 'NOT "b c" a d')),
        *(
            ("a NOT b NOT c", "a", ["b", "c"]),
            ("a -b-c", "a", ["b-c"]),
            ("a -(b)", "a", ["b"]),
            ("a -bb*", "a", ["bb"]),
        ),
        *((text, text, []) for text in ("to be or not to be", "e-mail", "a - b", "a --", "NOT", "a NOT", "Not a", "")),
        *((text, text, []) for text in ('"a NOT b"', 'x "a -b" y', "a OR b", "a AND b", "NOT AND a", 'a -""', "(a)")),
    ],
)
def test_minus_and_not_exclude_words_and_phrases(typed: str, wanted: str, excluded: list[str]) -> None:
    assert search_text(typed) == "".join([munge_search_term(wanted), *(f' AND NOT "{word}"' for word in excluded)])


@pytest.mark.parametrize("text", ["-climate", "NOT climate", '-"a b" -cc', "-climate -bb"])
def test_text_of_excluded_words_alone_finds_nothing(text: str) -> None:
    for made in (search_text(text), with_exclusions(text)):
        assert parse(plone_lexicon(), made) is None


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("schools NOT climate", "schools -climate"),
        ("NOT climate schools", "-climate schools"),
        ('a NOT "b c" d', 'a -"b c" d'),
        ("a AND -bb", "a AND NOT bb"),
        ("a AND (b AND NOT c)", "a AND (b AND NOT c)"),
        ("a AND NOT (b OR c)", "a AND NOT (b OR c)"),
        ('a "b NOT c"', 'a "b NOT c"'),
        ("a OR b NOT c", "a OR b -c"),
        ("ls -l --all", r"ls \-l \--all"),
        ("a* b?c", "a* b?c"),
    ],
)
def test_operators_of_zctextindex_are_unchanged(typed: str, text: str) -> None:
    assert with_exclusions(typed) == text
    tree = parse(plone_lexicon(), text)
    assert tree is not None


def test_asterisk_of_volto_makes_no_prefix_of_an_excluded_word() -> None:
    assert with_exclusions("schools NOT art*", is_completed=True) == "schools -art"
    assert with_exclusions("schools -art*", is_completed=True) == "schools -art"
    assert with_exclusions("art* -schools x*", is_completed=True) == "art* -schools x*"
    assert with_exclusions("schools -art*") == "schools -art*"


@pytest.mark.parametrize("sign", "？＊：（）－、。﹖⁇")
def test_full_width_sign_is_no_operator(sign: str) -> None:
    for made in (search_text(f"数据{sign}目录"), with_exclusions(f"数据{sign}目录*", is_completed=True)):
        assert not {"?", "-", "("} & set(made)
    assert search_text("＂a b＂") == '"a b"'


@pytest.mark.parametrize("value", [None, 7, ["a"], {"query": "a NOT b"}])
def test_values_other_than_texts_are_unchanged(value: object) -> None:
    assert with_exclusions(value) is value


def test_positive_text_has_no_excluded_word() -> None:
    assert wanted_text('a NOT b -cc "d e" NOT "f g" x --all') == 'a "d e" x --all'


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("C++ compiler", "C*++ AND compiler*"),
        ("ls -l", r"ls* AND \-l*"),
        ("--color -fence", r'\--color* AND NOT "fence"'),
        ('"C++" x', '"C++" AND x*'),
        (".NET", ".NET*"),
    ],
)
def test_signs_of_words_stay_and_change_no_word(typed: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_text(typed) == text
    plain = munge_search_term(typed.replace(" -fence", ""))
    lexicon = plone_lexicon()
    assert _terms(parse(lexicon, search_text(typed.replace(" -fence", "")))) == _terms(parse(lexicon, plain))
    monkeypatch.setattr("plone.pgcatalog.settings.WORDS_WITH_SIGNS", False)
    assert "+" not in search_text(typed).replace('"C++"', "")


def _terms(node: Any) -> Any:
    value = node.getValue()
    return node.nodeType(), [_terms(part) for part in value] if node.nodeType() == "AND" else value
