"""Hints: the few words of a text that are compared include all words that a search marks."""

from collections.abc import Iterator
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.discovery import hints
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.discovery.hints import Hints
from plone.pgcatalog.fulltext import lexicon
from plone.pgcatalog.fulltext.places import belongs_to_letter
from plone.pgcatalog.fulltext.places import INVISIBLE
from plone.pgcatalog.fulltext.stemming import Stemming
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from tests.unit.lexicons import plaintext_lexicon
from tests.unit.lexicons import plone_lexicon
from typing import Any
from unicodedata import normalize

import pytest
import re


LEXICON = plone_lexicon()
SPLITS = {"de": lambda word: (word[: len(word) // 2], word[len(word) // 2 :]) if len(word) > 6 else ()}
STEMMINGS = (None, Stemming("en", ("en", "de", "fr")), Stemming("de", ("de", "en"), lambda: SPLITS))
#: Pieces of texts in several scripts, with signs, ligatures and decomposed letters.
PIECES = """
water Wasser wässer groß Œuvre_2 x_y fi ﬁsch e\u0301cole soft\u00adware ™ ² ½ İstanbul Žaba ạn 1é файл ФАЙЛ xфайл 数据库 データ が
데이터 ข้อมูล हिन्दी ΟΔΟΣ · – “ ’ ， , . - _ 7 a
"""
TEXTS = st.lists(
    st.tuples(st.sampled_from(PIECES.split()), st.sampled_from(["", " ", "-", "_", "\n"])), max_size=12
).map(lambda parts: "".join(piece + behind for piece, behind in parts))
QUERIES = st.tuples(TEXTS, st.sampled_from(["{}", "{}*", "*{}*", "{}?", '"{}"', "{} OR water"])).map(
    lambda parts: parts[1].format(re.sub(r"\s+", " ", parts[0])[:12])
)


def everywhere(marks: Highlighter) -> Highlighter:
    """Return *marks*, which compares all words."""
    marks._hints = None
    return marks


@given(QUERIES, TEXTS, st.sampled_from(STEMMINGS))
def test_hints_omit_no_marked_word(query: str, text: str, stemming: Stemming | None) -> None:
    every, few = (Highlighter([(LEXICON, query)], stemming) for _ in range(2))
    assert few.spans(text) == everywhere(every).spans(text)


def usual(ranges: str) -> Iterator[str]:
    """Yield the characters of *ranges*, the inside of a class of a regular expression."""
    return (char for char in map(chr, range(0x80, 0x10000)) if re.match(f"[{ranges}]", char))


@pytest.mark.parametrize("form", ["{}b", "a{}", "1{}", "_{}", "数{}a", "“{}”"])
def test_usual_letters_are_found_in_any_word(form: str) -> None:
    letters = "".join([*hints._latin(), *map(chr, hints._CYRILLIC)])
    for word in map(form.format, letters):
        for normal in {*lexicon.words(LEXICON, [word]), *lexicon.whole_forms(LEXICON, word)}:
            [token] = Hints([normal], (), ()).tokens(word)
            assert token[0] == word


def test_usual_signs_part_words_and_unchanged_letters_are_words_themselves() -> None:
    for sign in usual(hints._SIGNS):
        assert re.search(r"\w", normalize("NFKC", sign)) is None
        assert not belongs_to_letter(sign)
        assert sign not in INVISIBLE
    for letter in usual(hints._UNCHANGED):
        assert rx_all.match(letter)
        assert normalize("NFKC", letter) == letter.lower() == letter


def compared(query: str, text: str, lexicon: Any = LEXICON) -> int:
    """Return the number of words of *text* that are compared with *query*."""
    marks = Highlighter([(lexicon, query)])
    marks.snippet(text)
    return len(marks._matches_of)


def test_other_words_are_not_compared() -> None:
    others = " ".join(f"{letter}{number}" for letter in "abcäжの" for number in range(500))
    assert compared("water", f"{others} water, {others}") == 1
    assert compared("wat* OR w*nd", f"{others} Wäter {others} wind") == 2
    assert compared("данные", f"{others} Данные {others}") == 1


def test_words_are_found_by_their_parts() -> None:
    text = "sea, bridwaters-wind"
    found = {pattern: [each[0] for each in Hints((), (), [pattern]).tokens(text)] for pattern in ("*wat*", "w?*", "?*")}
    assert found == {"*wat*": ["bridwaters"], "w?*": ["wind"], "?*": ["sea", "bridwaters", "wind"]}


@pytest.mark.parametrize(
    ("language", "searched", "found"),
    [
        ("en", "die", "dying"),
        ("ar", "كتاب", "الكتاب"),
        ("ar", "احداث", "أحداث"),
        ("de", "Übung", "Uebungen"),
        ("de", "Aerzte", "Ärzte"),
        ("el", "ένα", "εναν"),
        ("eo", "cxevalo", "cxevaloj"),
        ("fa", "خبر", "اخبار"),
        ("ga", "bád", "bhád"),
        ("ga", "bád", "mbád"),
        ("ga", "fear", "bhfear"),
        ("ga", "páirc", "bpáirc"),
        ("ga", "teach", "dteach"),
        ("id", "baca", "membaca"),
        ("id", "pukul", "memukul"),
        ("id", "jalan", "berjalan"),
        ("nl", "pakken", "gepakt"),
        ("nl", "opgepakt", "oppakken"),
        ("ru", "ёлка", "елки"),
        ("ru", "четного", "чётный"),
        ("sr", "knjiga", "књиге"),
        ("sr", "човек", "човека"),
        ("sr", "ђак", "djaka"),
        ("tr", "kitap", "kitabı"),
    ],
)
def test_forms_with_other_first_letters_are_marked(language: str, searched: str, found: str) -> None:
    marks = Highlighter([(LEXICON, searched)], Stemming(language, (language,)))
    assert marks.mark(f"x {found} x") == f"x <mark>{found}</mark> x"


def test_all_words_are_compared_with_another_lexicon() -> None:
    assert compared("water", "sea and sand", plaintext_lexicon()) == 3
