"""The words of a text are those of Plone's own lexicon, computed in less time; their form in a tsvector."""

from plone.pgcatalog.fulltext import lexicon
from plone.pgcatalog.fulltext.lexicon import words
from Products.CMFPlone.UnicodeSplitter import CaseNormalizer
from Products.CMFPlone.UnicodeSplitter import Splitter
from Products.CMFPlone.UnicodeSplitter import splitter
from Products.ZCTextIndex.Lexicon import Lexicon
from tests.unit.lexicons import plaintext_lexicon
from tests.unit.lexicons import plone_lexicon
from typing import Any
from unicodedata import normalize

import pytest


TEXTS = (
    "Die Füße des Kängurus, naïve café: Straße_12 3.5 x² ﬁne ½",
    "日本人 writes 金 beside words",
    "한국어 텍스트 and ภาษาไทย",
    "Ελληνικά Русский עברית العربية हिन्दी",
    "ｆｕｌｌ ｗｉｄｔｈ ｶﾀｶﾅ ㎏ ﷺ",
    "the-same a1 ª º ﬁ ½ İ ſ Ǆ ʹ ǀx",
    "",
    " \n\t--- ",
)


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_those_of_the_lexicon(text: str) -> None:
    for own in (plone_lexicon(), plaintext_lexicon()):
        real = [own.get_word(wid) for wid in own.sourceToWordIds([text])]
        assert words(own, [text]) == [word for word in real if word]
        assert words(own, ["before", text, "after"]) == ["before", *words(own, [text]), "after"]


def test_words_are_normalized_decoded_and_stored_in_no_lexicon() -> None:
    own = plone_lexicon()
    found = words(own, ["Über die Straße", "日本語 test"])
    assert found == ["uber", "die", "strasse", "日本", "本語", "語", "test"]
    assert list(own.words()) == []
    # Its elements return bytes.
    assert words(Lexicon(Splitter(), CaseNormalizer()), ["Größe"]) == ["größe"]
    assert words(plaintext_lexicon(), ["the fox and the dog"]) == ["fox", "dog"]


def test_a_long_text_in_an_alphabet_is_split_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    split = splitter.process_str

    def counted(text: str) -> Any:
        asked.append(normalize("NFKC", text))
        return split(text)

    monkeypatch.setattr(splitter, "process_str", counted)
    assert len(words(plone_lexicon(), ["Große Worte " * 10_000])) == 20_000
    assert asked == []
    assert words(plone_lexicon(), ["日本人"]) == ["日本", "本人", "人"]
    assert asked == ["日本人"]


def test_words_of_a_long_text_are_computed_once_and_immutable(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    normalizer = splitter.I18NNormalizer.process

    def counted(self: Any, texts: list[Any]) -> Any:
        made.append(len(texts))
        return normalizer(self, texts)

    monkeypatch.setattr(splitter.I18NNormalizer, "process", counted)
    text = " ".join(f"Wörter{n}" for n in range(10_000))
    first = words(plone_lexicon(), ["minutes", text])
    assert first == ["minutes", *(f"worter{n}" for n in range(10_000))]
    first.clear()
    assert words(plone_lexicon(), ["report", text, "end"])[1:-1] == [f"worter{n}" for n in range(10_000)]
    assert [count for count in made if count > 1] == [10_000]


def test_lexicon_with_other_elements_is_called_each_time() -> None:
    class Stop:
        def process(self, texts: list[Any]) -> list[Any]:
            return [text for text in texts if text != "the"]

    text, own = "the words " * 10_000, plone_lexicon()
    assert len(words(own, [text])) == 20_000
    own._pipeline = (*own._pipeline, Stop())
    assert len(words(own, [text])) == 10_000


def test_unstorable_characters_separate_words() -> None:
    assert lexicon.words(plone_lexicon(), ["a\0b \ud800c\udfff"]) == ["a", "b", "c"]
    assert lexicon.query_words(plone_lexicon(), "a\0b \ud800c") == ["a", "b", "c"]


def test_query_words_have_their_wildcards() -> None:
    assert lexicon.query_words(plone_lexicon(), "Über* f?o 日") == ["uber*", "f?o", "日*"]
    assert lexicon.term_words(plone_lexicon(), ["uber*", "日*"]) == ["uber", "日"]
    assert lexicon.term_words(plone_lexicon(), ["**"]) == []


# -- tsvector


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ""),
        (["a"], "'a':1"),
        (["a", "b", "a"], "'a':1,3 'b':2"),
        (["it's", "\\", "a b", "a:1"], "'it''s':1 '\\\\':2 'a b':3 'a:1':4"),
    ],
)
def test_tsvector_text(words: list[str], text: str) -> None:
    assert lexicon.tsvector_literal(words) == (text, None)
    assert lexicon.tsvector_words(text) == words


def test_tsvector_words_of_postgresql() -> None:
    """Weights and words without positions, as PostgreSQL writes them."""
    assert lexicon.tsvector_words("'a':2A,4 'b':1B 'c' 'd''e':3") == ["b", "a", "d'e", "a", "c"]


def test_positions_have_limits() -> None:
    words = ["a"] * 300 + [f"w{i}" for i in range(20_000)]
    text, trimmed = lexicon.tsvector_literal(words)
    assert trimmed is None
    assert lexicon.tsvector_words(text).count("a") == lexicon.MAX_POSITIONS
    assert set(lexicon.tsvector_words(text)) == set(words)
    assert f":{lexicon.MAX_POSITION} " in text
    assert f":{lexicon.MAX_POSITION + 1}" not in text


def test_long_words_are_cut_between_characters() -> None:
    text, trimmed = lexicon.tsvector_literal(["a" + "日" * 1000, "b"])
    assert text == "'a" + "日" * 681 + "':1 'b':2"
    assert trimmed == "1 words longer than 2046 bytes were cut"


def test_first_words_of_a_very_long_text_are_stored() -> None:
    words = [f"{i:020}" for i in range(100_000)]
    text, trimmed = lexicon.tsvector_literal(words)
    kept = len(lexicon.tsvector_words(text))
    assert 30_000 < kept < 45_000
    assert trimmed == f"the text is too long, only the first {kept} of its 100000 words are searchable"
