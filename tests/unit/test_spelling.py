"""Spellings of words in texts: capitals and accents."""

from plone.pgcatalog.discovery.spelling import as_typed
from plone.pgcatalog.discovery.spelling import letter_classes
from plone.pgcatalog.discovery.spelling import spelling
from plone.pgcatalog.discovery.spelling import spellings_in
from plone.pgcatalog.fulltext.lexicon import words
from Products.CMFPlone.UnicodeSplitter.splitter import I18NNormalizer
from Products.CMFPlone.UnicodeSplitter.splitter import Splitter
from Products.ZCTextIndex.Lexicon import Lexicon

import pytest
import re


LEXICON = Lexicon(Splitter(), I18NNormalizer())


@pytest.mark.parametrize(
    ("text", "word", "spelled"),
    [
        ("Directories contain files. Files have names.", "files", "files"),
        ("Files have names", "files", "files"),
        ("Copying Files", "files", "files"),
        ("how-to-copy Files", "files", "files"),
        ("page Files", "files", "files"),
        ("Das Ändern Dateien", "dateien", "dateien"),
        ("in einer Datei", "datei", "Datei"),
        ("Die Datei. DATEI, Datei. Sie öffnet eine\nDatei", "datei", "Datei"),
        ("Es ist eine Datei und die Datei, nicht eine datei", "datei", "Datei"),
        ("of the PostgreSQL server", "postgresql", "PostgreSQL"),
        ("Weg nach Zürich", "zurich", "Zürich"),
        ("Weg nach Zu\u0308rich", "zurich", "Zürich"),
        ("auf der Straße", "strasse", "Straße"),
        ("über", "uber", "über"),
        ("of an Æther", "aether", "Æther"),
        ("das Wort Über", "uber", "über"),
        ("of a foo_bar", "foo_bar", "foo_bar"),
        ("ve ile İstanbul", "istanbul", "İstanbul"),
        ("ve ığdır", "igdir", "ığdır"),
        ("поезд из Москвы", "москвы", "Москвы"),
    ],
)
def test_word_is_spelled_as_inside_of_sentences(text: str, word: str, spelled: str) -> None:
    assert spellings_in(LEXICON, {word}, [text]) == {word: spelled}


def test_word_that_is_in_no_text_has_no_spelling() -> None:
    assert spellings_in(LEXICON, {"datei"}, ["eine Dateien"]) == {}
    assert spelling(LEXICON, "datei", ["Dateien"]) == spelling(LEXICON, "datei", []) == "datei"


@pytest.mark.parametrize(
    ("spellings", "spelled"),
    [
        (["Datei", "datei", "Datei"], "Datei"),
        (["Datei", "datei"], "datei"),
        (["DATEI", "Datei", "Datei"], "Datei"),
    ],
)
def test_most_frequent_spelling_is_right(spellings: list[str], spelled: str) -> None:
    assert spelling(LEXICON, "datei", spellings) == spelled


@pytest.mark.parametrize(
    ("word", "token", "typed"),
    [
        ("PostgreSQL", "Postgers", "PostgreSQL"),
        ("PostgreSQL", "postgers", "PostgreSQL"),
        ("postgres", "Postgers", "Postgres"),
        ("postgres", "POSTGERS", "POSTGRES"),
        ("straße", "STRSASE", "STRASSE"),
    ],
)
def test_correction_has_the_capitals_of_the_typed_word_and_its_own(word: str, token: str, typed: str) -> None:
    assert as_typed(word, token) == typed


@pytest.mark.parametrize(
    "text", ["Datei", "Zürich", "Straße", "GROẞE", "STRASSE", "İstanbul", "ığdır", "Łódź", "Ångström"]
)
def test_letter_classes_match_each_spelling_of_a_word(text: str) -> None:
    [word] = words(LEXICON, [text])
    classes = dict(zip(*letter_classes(), strict=True))
    pattern = "".join(classes.get(letter, letter) for letter in word.replace("ss", "ß"))
    assert re.fullmatch(pattern, text), (word, pattern)
