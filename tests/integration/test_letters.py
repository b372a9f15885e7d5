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


FILLER = "Nothing to see here. " * 30
#: Word, the beginning that is completed, its completion, the mistyped word, and its correction ("" for none).
WORDS = {
    "latin": ("Münsterstraße", "Münsterst", "munsterstrasse", "Münsterstrase", "Münsterstraße"),
    "devanagari": ("हिन्दी", "हिन्दी", "", "हिन्दि", ""),
    "thai": ("ที่นี่", "ที่นี่", "", "ที่นู่", ""),
    "hebrew": ("שָׁלוֹם", "שָׁלוֹם", "", "שָׁלוֹן", ""),
    "arabic": ("مُحَمَّد", "مُحَمَّد", "", "مُحَمَّر", ""),
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
