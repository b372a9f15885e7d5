"""Decomposed letters, letters with signs and half-width kana are marked, suggested and corrected like any others."""

from plone.app.textfield import RichTextValue
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.search_pages import search
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from unicodedata import normalize

import pytest
import re
import transaction


FILLER = "Nothing to see here. " * 30
#: Word, the beginning that is completed, its completion, the mistyped word, and its correction ("" for none).
WORDS = {
    "latin": ("Münsterstraße", "Münsterst", "munsterstrasse", "Münsterstrase", "Münsterstraße"),
    "devanagari": ("हिन्दी", "हिन्", "हिन्दी", "हिन्दि", "हिन्दी"),
    "thai": ("ที่นี่", "ที่นี่", "", "ที่นู่", ""),
    "hebrew": ("שָׁלוֹם", "שָׁל", "שלום", "שָׁלוֹן", "שלום"),
    "arabic": ("مُحَمَّد", "مُحَ", "محمد", "مُحَمَّر", "محمد"),
    "kana": ("ｶﾞｲﾄﾞ", "ｶﾞ", "ガイ", "ｶﾞｲﾄ", ""),
    "hangul": ("한국어", "한", "한국", "한굴어", ""),
    "greek": ("Ελληνικά", "Ελλη", "ελληνικά", "Ελληνκά", "Ελληνικά"),
}
FORMS = ("NFC", "NFD")


def fill(portal: Any) -> None:
    for script, (word, *_) in WORDS.items():
        for form in FORMS:
            text = RichTextValue(f"<p>{FILLER}{normalize(form, word)} behind</p>", "text/html", "text/x-html-safe")
            create(portal, "Document", f"{script}-{form}", title="A page", text=text)
    for number, tag in enumerate(("2024-05", "x")):
        create(portal, "Document", f"tagged{number}", title="Tagged", subject=(tag,))


SHARED = fill


@pytest.fixture
def catalog(shared_site: Site, shared_filled: Any) -> Any:
    counted(shared_site.dsn, shared_filled.portal_catalog)
    return shared_filled.portal_catalog


@pytest.mark.parametrize("typed_form", FORMS)
@pytest.mark.parametrize("script", WORDS)
def test_word_in_any_form_is_found_marked_completed_and_corrected(catalog: Any, script: str, typed_form: str) -> None:
    word, begun, completed, mistyped, corrected = (normalize(typed_form, text) for text in WORDS[script])
    results = catalog(SearchableText=word)
    assert {brain.getId for brain in results} == {f"{script}-{form}" for form in FORMS}
    snippets = results.snippets(list(results))
    for brain in results:
        marked = normalize(brain.getId.partition("-")[2], WORDS[script][0])
        assert re.findall("<mark>(.*?)</mark>", snippets[brain.getRID()]) == [marked]
        assert results.highlighter().mark(f"({marked})") == f"(<mark>{marked}</mark>)"
    assert catalog.suggest(begun)[:1] == ([normalize("NFKC", completed)] if completed else [])
    assert catalog.did_you_mean(mistyped) == (normalize("NFKC", corrected) or None)


def test_tag_that_looks_like_a_month_is_called_as_it_is(shared_site: Site) -> None:
    page = search(Web(shared_site.db), "admin:secret", SearchableText="tagged", **{"Subject:list": "2024-05"})
    assert page.labels["2024-05"] == "2024-05"
    assert list(page.chips) == ["2024-05"]


# -- whole words: the deviation text-whole-words

#: Name of a page -> its title; word -> the pages it finds now, and as by Plone's splitter.
PAGES = {
    **{"soft": "Ein Jahres\u00adbericht lag bei", "zero": "Donau\u200bdampf\u200bschiff", "file": "Haushalt_2023.pdf"},
    **{"mark": "Wombat™", "note": "Fußnote¹", "pointed": "שָׁלוֹם", "vowels": "مُحَمَّد", "plain": "Jahresbericht"},
}
FOUND = [
    *(("Jahresbericht", {"soft", "plain"}, {"plain"}), ("Jahres\u00adbericht", {"soft", "plain"}, {"soft"})),
    *(
        ("bericht", {"soft"}, {"soft"}),
        ("Jahresberich*", {"soft", "plain"}, {"plain"}),
        ("Jahr?sbericht", {"soft", "plain"}, {"plain"}),
    ),
    *((f'"{phrase}"', {"soft"}, set()) for phrase in ("Ein Jahresbericht", "Jahresbericht lag")),
    *(("Donaudampfschiff", {"zero"}, set()), ("dampf", {"zero"}, {"zero"}), ("2023", {"file"}, set())),
    *(("Haushalt 2023", {"file"}, set()), ("Haushalt_2023", {"file"}, {"file"}), ("2024", set(), set())),
    *(("Wombat", {"mark"}, set()), ("wombattm", {"mark"}, {"mark"}), ("Wombat™", {"mark"}, {"mark"})),
    *(("Fußnote", {"note"}, set()), ("שלום", {"pointed"}, set()), ("שָׁלוֹם", {"pointed"}, {"pointed"})),
    *(("محمد", {"vowels"}, set()), ("lag -Jahresbericht", set(), {"soft"})),
]


@pytest.mark.parametrize("has_whole_words", [True, False])
def test_words_are_found_whole_and_in_the_pieces_of_the_splitter(
    portal: Any, has_whole_words: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr("plone.pgcatalog.settings.WHOLE_WORDS", has_whole_words)
    for name, title in PAGES.items():
        create(portal, "Document", name, title=title)
    catalog = portal.portal_catalog
    transaction.commit()
    entry = catalog.getIndexDataForRID(catalog.getrid("/plone/file"))["SearchableText"]
    assert entry == ["file", "haushalt_2023", "pdf"]
    assert not {"haushalt", "שלום"} & set(catalog.Indexes["SearchableText"].getLexicon().words())
    for words, now, by_splitter in FOUND:
        results = catalog(SearchableText=words)
        assert {brain.getId for brain in results} == (now if has_whole_words else by_splitter), words
        if has_whole_words:
            assert all("<mark>" in results.highlighter().mark(brain.Title) for brain in results), words


@pytest.mark.parametrize("words", ["88-46-0", "88* AND 46* AND 0*", '"88-46-0"', "88 46 0"])
def test_page_with_the_number_comes_first(portal: Any, words: str, monkeypatch: Any) -> None:
    for number in range(9):
        text = "88-46-0 is rare" if number == 3 else "88 46 0, 88 46 0 and 88 46 0 again"
        create(portal, "Document", f"p{number}", title="A page", description=text)
    transaction.commit()
    for full in (600, 2):
        monkeypatch.setattr("plone.pgcatalog.settings.RANKED_ROWS", full)
        results = portal.portal_catalog(SearchableText=words)
        assert (len(results), results[0].getId) == (9, "p3")
