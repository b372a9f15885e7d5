"""Pages with the very word with its signs come first: the deviation ``text-signs``."""

from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from plone.app.textfield import RichTextValue
from plone.pgcatalog.fulltext.typed import search_text
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.web import Site
from typing import Any

import pytest


#: Name of a page -> the word in its text; the query that finds it, and the words that other pages have in their titles.
PAGES = {
    "cpp": ("C++", "C++", "c"),
    "csharp": ("C#", "C#", "c"),
    "net": (".NET", ".NET", "net"),
    "help": ("--help", r"\--help", "help"),
    "option": ("ls -l", r"ls \-l", "ls l"),
    "version": ("3.13", "3.13", "3 13"),
    "law": ("§ 823", "§ 823", "823"),
    "law-alike": ("§§ 824", "§§824", "824"),
    "name": ("AT&T", "AT&T", "at t"),
}
FILLER = "Nothing to see here, and much more of the same. " * 30
OTHERS = 3
SWITCH = "plone.pgcatalog.settings.WORDS_WITH_SIGNS"


def fill(portal: Any) -> None:
    for name, (word, _, plain) in PAGES.items():
        text = RichTextValue(f"<p>{FILLER} {word.replace('&', '&amp;')} {FILLER}</p>", "text/html", "text/x-html-safe")
        create(portal, "Document", name, title="A page", text=text)
        for number in range(OTHERS):
            create(portal, "Document", f"{name}-{number}", title=f"{plain} {plain} {plain}", description=plain)


SHARED = fill


@pytest.fixture
def catalog(shared_site: Site, shared_filled: Any) -> Any:
    counted(shared_site.dsn, shared_filled.portal_catalog)
    return shared_filled.portal_catalog


def ids(results: Any) -> list[str]:
    return [brain.getId for brain in results]


@pytest.mark.parametrize("full", [600, 2])
@pytest.mark.parametrize("name", PAGES)
def test_page_with_the_very_word_comes_first_and_none_is_lost(
    catalog: Any, name: str, full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plone.pgcatalog.settings.RANKED_ROWS", full)
    word, query, _ = PAGES[name]
    texts = (query, search_text(word))
    found = [ids(catalog(SearchableText=text)) for text in texts]
    assert [each[0] for each in found] == [name, name]
    monkeypatch.setattr(SWITCH, False)
    others = [ids(catalog(SearchableText=f"{text} ")) for text in texts]
    assert [sorted(each) for each in others] == [sorted(each) for each in found]
    assert {f"{name}-{number}" for number in range(OTHERS)} < set(found[0])


def test_words_with_signs_are_no_words_of_the_catalog(catalog: Any) -> None:
    index = catalog.Indexes["SearchableText"]
    assert not [word for word in index.getLexicon().words() if "+" in word]
    entry = catalog.getIndexDataForRID(catalog.getrid("/plone/cpp"))["SearchableText"]
    assert "c" in entry
    assert not [word for word in entry if "+" in word]
    assert catalog.suggest("c+") == catalog.suggest("c") or not catalog.suggest("c+")
    [brain, *_] = results = catalog(SearchableText=search_text("C++"))
    assert "<mark>C</mark>" in results.snippets([brain])[brain.getRID()]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from([word for word, _, _ in PAGES.values()]), min_size=1, max_size=3),
    st.sampled_from([" OR ", " "]),
)
def test_pages_are_ordered_by_their_number_of_the_words(catalog: Any, typed: list[str], operator: str) -> None:
    query = operator.join(typed)
    found = ids(catalog(SearchableText=query))
    having = [sum(PAGES[name][0] == word for word in set(typed)) if name in PAGES else 0 for name in found]
    visible = [number for number, name in zip(having, found, strict=True) if not name.startswith("option")]
    assert visible == sorted(visible, reverse=True)
