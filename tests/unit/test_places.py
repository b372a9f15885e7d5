"""Places of words: a mark holds a letter with its signs, in any script and normal form, and changes no text."""

from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import tsvector_words
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.lexicon import words_besides
from plone.pgcatalog.fulltext.places import last_word
from plone.pgcatalog.fulltext.places import pieces
from plone.pgcatalog.fulltext.places import runs
from plone.pgcatalog.fulltext.places import written_words
from tests.unit.lexicons import plone_lexicon
from unicodedata import category
from unicodedata import normalize

import html
import pytest
import re


LETTERS = (
    "ab",
    "Köln",
    "हिन्दी",
    "שָׁלוֹם",
    "مُحَمَّد",
    "ที่นี่",
    "ภาษา",
    "ｶﾞｲﾄﾞ",
    "한국",
    "数据",
    "x\u0304",
    "½",
    "㎏",
    "™",
    "ﷺ",
    "ﬁ",
    "İ",
)
SIGNS = (" ", "-", "_", "=", "…", "\u00ad", "\u200b", "\u200d", "\u0338", "\u093f", "\u1161", "\uff9e", "<", "&", "\0")
TEXTS = st.lists(
    st.sampled_from([*LETTERS, *(normalize("NFD", text) for text in LETTERS), *SIGNS])
    | st.characters(exclude_categories=["Cs"])
).map("".join)


def is_sign(char: str) -> bool:
    return category(char)[0] == "M"


@given(TEXTS)
def test_written_words_have_all_words_of_a_text_and_whole_letters(text: str) -> None:
    lexicon, places = plone_lexicon(), list(written_words(text))
    written = [text[start:end] for start, end in places]
    assert words(lexicon, written) == words(lexicon, [text])
    assert not [word for word in written if is_sign(word[0])]
    assert not [end for _, end in places if is_sign(text[end : end + 1] or " ")]
    assert last_word(text) == (written[-1] if places and places[-1][1] == len(text) else "")
    assert "".join(piece.form for word in written for piece in pieces(word)) == "".join(runs(text))


@given(TEXTS)
def test_whole_words_are_stored_besides_and_change_no_word_of_the_splitter(text: str) -> None:
    lexicon = plone_lexicon()
    pieces, besides = words(lexicon, [text]), words_besides(lexicon, [text])
    assert tsvector_words(tsvector_literal(pieces, besides=besides)[0]) == tsvector_words(tsvector_literal(pieces)[0])
    assert all(0 <= start < end <= len(pieces) for start, end, _ in besides)


@given(TEXTS, st.lists(st.sampled_from([*LETTERS, "a*", "d*"]), min_size=1, max_size=4), st.integers(1, 30))
def test_marks_change_no_text_and_part_no_letter_from_its_signs(text: str, typed: list[str], length: int) -> None:
    highlighter = Highlighter([(plone_lexicon(), " OR ".join(typed))])
    marked, snippet = highlighter.mark(text), highlighter.snippet(text, length)
    assert html.unescape(re.sub("</?mark>", "", marked)) == text
    for shown in (marked, snippet):
        edges = [(m[0], m.string[m.end() : m.end() + 1]) for m in re.finditer("</?mark>", shown)]
        assert not [edge for edge, char in edges if char and is_sign(char)]
    part = html.unescape(re.sub("</?mark>", "", snippet)).removeprefix("…").removesuffix("…")
    assert snippet[:1] != "…" or not is_sign(part[:1] or " ") or part == text


@pytest.mark.parametrize(
    ("typed", "text", "marked"),
    [
        ("köln", "in Köln, oder", ["Köln"]),
        ("münsterstraße", "MÜNSTERSTRASSE", ["MÜNSTERSTRASSE"]),
        ("हिन्दी", "लाल हिन्दी में", ["हिन्दी"]),
        ("שלום", "שלום", ["שלום"]),
        ("שָׁלוֹם", "שָׁלוֹם לך", ["שָׁלוֹם"]),
        ("مُحَمَّد", "قال مُحَمَّد له", ["مُحَمَّد"]),
        ("ที่นี่", "อยู่ ที่นี่ คะ", ["ที่นี่"]),
        ("ガイド", "ｶﾞｲﾄﾞの本", ["ｶﾞｲﾄﾞ"]),
        ("ガイド", "本のガイド", ["ガイド"]),
        ("한국어", "한국어 문서", ["한국어"]),
        ("5kg", "5㎏ Mehl", ["5㎏"]),
        ("fine", "a ﬁne day", ["ﬁne"]),
        ("plonetm", "Plone™ CMS", ["Plone™"]),
        ("jahresbericht", "Jahres-Bericht", []),
        ("bericht", "Jahres\u00adbericht", ["bericht"]),
        ("数据 plone", "Plone数据库", ["Plone数据"]),
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_words_are_marked_in_every_normal_form(typed: str, text: str, marked: list[str], form: str) -> None:
    for query in (typed, normalize("NFD", typed)):
        marks = Highlighter([(plone_lexicon(), query)]).mark(normalize(form, text))
        assert re.findall("<mark>(.*?)</mark>", marks) == [normalize(form, each) for each in marked]
