"""The examples of the guide *Sites in several languages*, on a site with plone.app.multilingual."""

from plone.app.multilingual.api import translate
from plone.app.multilingual.browser.setup import SetupMultilingualSite
from plone.app.multilingual.interfaces import ITranslationManager
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import In
from plone.pgcatalog.query.objects import Or
from plone.registry.interfaces import IRegistry
from tests.integration.content import create
from tests.integration.web import Web
from typing import Any
from zope.component import getUtility

import pytest
import transaction


def make_languages(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.app.multilingual:default")
    registry = getUtility(IRegistry)
    registry["plone.available_languages"] = ["en", "de"]
    registry["plone.default_language"] = "en"
    SetupMultilingualSite().setupSite(portal)
    house = create(portal.en, "Document", "houses", title="Houses of wood", language="en")
    translate(house, "de")
    german = ITranslationManager(house).get_translation("de")
    german.title = "Bilder aus Holz"
    german.reindexObject()
    create(portal.de, "Document", "hand", title="Eine Handvoll", language="de")


CONTENT = make_languages


def paths(brains: Any) -> list[str]:
    return sorted(brain.getPath() for brain in brains)


@pytest.fixture
def german(filled: Any) -> str:
    """The path of the translation."""
    house = filled.en.houses
    return "/".join(ITranslationManager(house).get_translation("de").getPhysicalPath())


def test_a_search_is_of_one_language_by_its_index_or_by_its_folder(filled: Any, catalog: Any, german: str) -> None:
    for query in ({"Language": "de"}, {"path": "/plone/de"}):
        assert paths(catalog(portal_type="Document", **query)) == sorted([german, "/plone/de/hand"])
    assert len(catalog(portal_type="Document", Language=["de", "en"])) == 3
    neutral = Or(Eq("Language", ""), In("Language", ["de"]))
    assert paths(catalog(where=neutral, portal_type="Document")) == sorted([german, "/plone/de/hand"])
    assert catalog.facets({"portal_type": "Document"}, ["Language"])["Language"] == {"de": 2, "en": 1}


def test_translations_are_one_search_and_words_have_the_forms_of_their_language(catalog: Any, german: str) -> None:
    groups = [brain.TranslationGroup for brain in catalog(Language="en", portal_type="Document")]
    assert paths(catalog(TranslationGroup=groups, Language="de")) == [german]
    # The id of a translation, which is a word of its text, is that of the English page.
    assert paths(catalog(SearchableText="house", Language="en")) == ["/plone/en/houses"]
    assert paths(catalog(SearchableText="bild")) == [german]


def test_rest_searches_one_language_and_the_folder_of_a_language(filled: Any, db: Any, german: str) -> None:
    transaction.commit()
    web = Web(db)

    def found(path: str, **query: Any) -> list[str]:
        answer = web.get(path, "admin:secret", accept="application/json", portal_type="Document", **query)
        assert answer.status == 200, answer.text
        return sorted(doc["path_string"] for doc in answer.json["response"]["docs"])

    expected = sorted([german, "/plone/de/hand"])
    assert found("/plone/@pgsearch", lang="de") == found("/plone/de/@pgsearch") == expected
    # The same place in all languages, in the front-end of kitconcept.solr.
    assert found("/plone/de/@solr", is_multilingual="false") == expected
