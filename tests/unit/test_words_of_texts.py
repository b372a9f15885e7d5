"""The words of a text are those of Plone's own lexicon, computed in less time."""

from plone.pgcatalog.fulltext.lexicon import words
from Products.CMFPlone.UnicodeSplitter import splitter
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
    "",
    " \n\t--- ",
)


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_those_of_plones_splitter(text: str) -> None:
    lexicon = plone_lexicon()
    expected: list[Any] = [text]
    for element in lexicon._pipeline:
        expected = element.process([word for word in expected if word])
    assert words(lexicon, [text]) == [word.decode() if isinstance(word, bytes) else word for word in expected]
    assert words(lexicon, ["before", text, "after"]) == ["before", *words(lexicon, [text]), "after"]


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

    text = "the words " * 10_000
    lexicon = plone_lexicon()
    assert len(words(lexicon, [text])) == 20_000
    lexicon._pipeline = (*lexicon._pipeline, Stop())
    assert len(words(lexicon, [text])) == 10_000
