"""A site that splits compounds finds them by their parts: the deviation text-compounds."""

from plone.app.textfield import RichTextValue
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.rebuilding import differences
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import rebuilding
from typing import Any
from zope.component import getUtility

import pytest
import transaction


BODY = "Der Urlaubsantrag liegt im Formularschrank, und der Bauantrag auch."


def fill(portal: Any) -> None:
    registry = getUtility(IRegistry)
    registry["plone.available_languages"] = ["en", "de"]
    for number in range(4):
        text = f"Urlaub {number}. Antrag. Bau. Formular. Schrank."
        create(portal, "Document", f"words-{number}", title="Wort", language="de", description=text)
    create(
        portal, "Document", "compound", title="Seite", language="de", text=RichTextValue(BODY, "text/html", "text/html")
    )
    create(portal, "Document", "titled", title="Urlaubsantrag", language="de")
    create(portal, "Document", "english", title="Urlaubsantrag", language="en")


@pytest.fixture
def site(db: Any, portal: Any) -> Any:
    """A site with pages that was rebuilt with compounds."""
    fill(portal)
    transaction.commit()
    rebuild(db)
    transaction.begin()
    return portal


def found(portal: Any, text: str) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog.unrestrictedSearchResults(SearchableText=text)]


WORDS = {"words-0", "words-1", "words-2", "words-3"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Antrag", {*WORDS, "compound", "titled"}),
        ("Antrag*", {*WORDS, "compound", "titled"}),
        ("Anträge", {*WORDS, "compound", "titled"}),
        ("Urlaubsantrag", {"compound", "titled", "english"}),
        ("Urlaubsanträge", {"compound", "titled", "english"}),
        ("Schrank", {*WORDS, "compound"}),
        ('"Antrag"', WORDS),
        ("trag", set()),
        ("Bau AND Schrank AND NOT Wort", {"compound"}),
        ("Seite AND NOT Antrag", {"compound"}),
    ],
)
def test_compound_is_found_by_its_parts(site: Any, text: str, expected: set[str]) -> None:
    assert set(found(site, text)) == expected


def test_word_itself_counts_more_than_a_compound(site: Any) -> None:
    for name in ("whole", "part"):
        word = "Schrank" if name == "whole" else "Formularschrank"
        create(site, "Document", name, title="Neu", language="de", description=f"Neu {word} neu")
    transaction.commit()
    ids = found(site, "Schrank Neu")
    assert ids[:2] == ["whole", "part"]


def test_new_compound_is_found_before_and_after_the_commit(site: Any) -> None:
    create(site, "Document", "new", title="Die Urlaubsformulare", language="de")
    assert "new" in found(site, "Formular")
    transaction.commit()
    assert "new" in found(site, "Formular")


def test_compound_is_marked(site: Any) -> None:
    results = site.portal_catalog.unrestrictedSearchResults(SearchableText="Antrag", getId="compound")
    [snippet] = results.snippets(results[:1], 200).values()
    assert "Der <mark>Urlaubsantrag</mark> liegt im Formularschrank, und der <mark>Bauantrag</mark> auch" in snippet
    marks = site.portal_catalog.unrestrictedSearchResults(SearchableText="Urlaubsantrag").highlighter()
    assert marks.mark("Antrag Urlaubsantrag") == "Antrag <mark>Urlaubsantrag</mark>"


def test_texts_agree_with_the_stored_words_until_a_rebuild(db: Any, site: Any, dsn: str) -> None:
    """A later count of words changes no text, and no new one is split in another way."""
    for number in range(4):
        create(site, "Document", f"later-{number}", title="Schein", language="de")
    create(site, "Document", "new", title="Urlaubsschein", language="de")
    transaction.commit()
    counted(dsn, site.portal_catalog)
    assert differences(site) == []
    assert "new" not in found(site, "Schein")
    rebuild(db)
    transaction.begin()
    assert "new" in found(site, "Schein")
    assert differences(site) == []


def test_words_of_a_text_are_those_of_the_splitter(site: Any) -> None:
    [brain] = site.portal_catalog.unrestrictedSearchResults(getId="titled")
    data = site.portal_catalog.getIndexDataForRID(brain.getRID())
    assert data["SearchableText"] == ["titled", "urlaubsantrag"]


@pytest.mark.parametrize("settings", [{"split_compounds": False}, {"stemming": False}])
def test_site_without_the_setting_splits_nothing(db: Any, portal: Any, settings: dict[str, Any]) -> None:
    fill(portal)
    tune(**settings)
    transaction.commit()
    rebuild(db)
    transaction.begin()
    assert set(found(portal, "Antrag")) == WORDS
    assert (getattr(portal.portal_catalog, "_compound_words", None) is None) == ("split_compounds" in settings)


def test_setting_changes_nothing_before_a_rebuild(portal: Any) -> None:
    fill(portal)
    transaction.commit()
    assert set(found(portal, "Antrag")) == WORDS


def test_interrupted_rebuild_resumes_with_its_words(db: Any, portal: Any) -> None:
    fill(portal)
    transaction.commit()
    with rebuilding(db) as steps:
        steps.step()
        steps.kill()
    transaction.begin()
    words = portal.portal_catalog._compound_words._p_oid
    rebuild(db)
    transaction.begin()
    assert portal.portal_catalog._compound_words._p_oid == words
    assert set(found(portal, "Antrag")) == {*WORDS, "compound", "titled"}


def test_process_without_the_words_in_memory_reads_them(site: Any) -> None:
    with sites.opened(str(site._p_jar.db().storage._dsn)) as other, sites.inside(other) as portal:
        create(portal, "Document", "other", title="Antragsformular", language="de")
        transaction.commit()
        assert "other" in found(portal, "Formular")
