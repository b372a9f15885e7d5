"""A site's search finds other forms of words, and its order is useful to visitors."""

from benchmarks import ranking
from collections.abc import Sequence
from plone.pgcatalog.fulltext.ranking import RankedText
from plone.pgcatalog.fulltext.ranking import SearchBackend
from plone.pgcatalog.fulltext.ranking import Term
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.interfaces import IPGSearchBackend
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Text
from plone.registry.interfaces import IRegistry
from statistics import fmean
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.web import Site
from typing import Any
from zope.component import getGlobalSiteManager
from zope.component import getUtility

import pytest
import transaction


FILLING = "and some other words of a page that says nothing at all about it"


@pytest.fixture(scope="module")
def site(shared_site: Site, shared_portal: Any) -> Any:
    set_record("plone.available_languages", ["en", "de", "ja"])
    fill(shared_portal)
    transaction.commit()
    counted(shared_site.dsn, shared_portal.portal_catalog)
    return shared_portal


def set_record(name: str, value: Any) -> None:
    getUtility(IRegistry)[name] = value


def fill(site: Any) -> None:
    def page(id: str, title: str = "", **fields: Any) -> None:
        create(site, "Document", id, title=title, **{"description": FILLING, **fields})

    page("in-title", "Comets", description=FILLING)
    page("in-description", "Stars", description=f"Comets {FILLING}")
    page("in-keywords", "Planets", subject=("Comets",))
    page("in-body", "Moons", text=rich("Comets"))
    page("house", "One house")
    page("houses", "Two houses")
    page("housing", "Housing")
    page("haus", "Das Haus", language="de")
    page("haeuser", "Die Häuser", language="de")
    page("japanese", "houses", language="ja")
    page("long", "Quasar", description=f"{FILLING} " * 20)
    page("short", "Quasar", description="")
    page("often", "Pulsar", description=f"pulsar pulsar pulsar {FILLING}")
    page("once", "Pulsar", description=f"{FILLING} one two three")
    page("rare", "rarity", description=f"commonplace {FILLING}")
    for number in range(9):
        page(f"common-{number}", "commonplace", description=f"commonplace {FILLING}")


def rich(text: str) -> Any:
    from plone.app.textfield.value import RichTextValue

    return RichTextValue(f"<p>{text}</p>", "text/html", "text/html")


def found(site: Any, query: Any, **options: Any) -> list[str]:
    query = {"SearchableText": query} if isinstance(query, str) else query
    return [brain.getId for brain in site.portal_catalog.unrestrictedSearchResults(query, **options)]


# -- other forms of words


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("houses", {"house", "houses", "housing", "japanese"}),
        ("house", {"house", "houses", "housing"}),
        ("HOUSED*", {"house", "houses", "housing"}),
        ("haus", {"haus", "haeuser"}),
        ("Häuser", {"haus", "haeuser"}),
        ('"two houses"', {"houses"}),
        ('"two house"', set()),
        ("house AND NOT houses", {"house", "housing"}),
        ("h?uses", {"houses", "japanese"}),
        ("house two", {"houses"}),
        # A quoted word is literal.
        ('"houses"', {"houses", "japanese"}),
        ('"HOUSES"', {"houses", "japanese"}),
        ('"housed"', set()),
        ('"hous"', set()),
        ('"house" two', set()),
        ('"house" house', {"house"}),
        ('"house" OR haus', {"house", "haus", "haeuser"}),
        ('("house" OR "housing") AND NOT one', {"housing"}),
        ('house -"houses"', {"house", "housing"}),
        ('house AND NOT "housed"', {"house", "houses", "housing"}),
        ('NOT "house"', {"house"}),
        ('"hous*"', {"house", "houses", "housing", "japanese"}),
        ('"housed*"', set()),
        ('"h?uses"', {"houses", "japanese"}),
        ('"Häuser"', {"haeuser"}),
    ],
)
def test_search_finds_other_forms_of_a_word_that_is_not_quoted(site: Any, query: str, expected: set[str]) -> None:
    assert set(found(site, query)) == set(found(site, {"where": Text(query)})) == expected


def test_quoted_word_finds_only_pages_with_that_word(site: Any) -> None:
    catalog = site.portal_catalog
    index = catalog._catalog.getIndex("SearchableText")
    brains = catalog.unrestrictedSearchResults(portal_type="Document")
    pages = {brain.getId: set(index.getEntryForObject(brain.getRID())) for brain in brains}
    for word in set().union(*pages.values()):
        assert set(found(site, f'"{word}"')) == {id for id, words in pages.items() if word in words}, word


def test_exclusion_in_a_query_object_is_literal(site: Any) -> None:
    query = Text("house") & Not(Text("houses"))
    assert set(found(site, {"where": query})) == {"house", "housing"}


def test_the_word_itself_comes_before_its_other_forms(site: Any) -> None:
    assert found(site, "house")[0] == "house"
    assert set(found(site, "houses")[:2]) == {"houses", "japanese"}


def test_stems_are_in_the_searchable_text_alone_and_no_words_of_it(site: Any) -> None:
    catalog = site.portal_catalog
    [brain] = catalog.unrestrictedSearchResults(getId="houses")
    words = catalog._catalog.getIndex("SearchableText").getEntryForObject(brain.getRID())
    assert words[:3] == ["houses", "two", "houses"]
    assert not any("\2" in word for word in words)
    assert set(found(site, {"Title": "houses"})) == {"houses", "japanese"}


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("housed", ["<mark>Housing</mark>", "One <mark>house</mark>", "Two <mark>houses</mark>"]),
        ('"house"', ["One <mark>house</mark>"]),
        ('"two houses"', ["<mark>Two</mark> <mark>houses</mark>"]),
        ('"houses" one', ["<mark>One</mark> house", "Two <mark>houses</mark>"]),
        ('"house" OR housing', ["<mark>Housing</mark>", "One <mark>house</mark>", "Two <mark>houses</mark>"]),
    ],
)
def test_snippets_mark_other_forms_of_a_word_that_is_not_quoted(site: Any, query: str, marked: list[str]) -> None:
    mark = site.portal_catalog.unrestrictedSearchResults(SearchableText=query).highlighter().mark
    titles = ("Housing", "One house", "Two houses")
    assert [mark(title) for title in titles if mark(title) != title] == marked


def test_words_are_suggested_after_other_forms_of_a_word(site: Any) -> None:
    assert site.portal_catalog.suggest("houses on") == ["one"]


def test_stemming_can_be_switched_off(site: Any) -> None:
    set_record("plone.pgcatalog.stemming", False)
    try:
        assert set(found(site, "houses")) == {"houses", "japanese"}
        create(site, "Document", "unstemmed", title="Three houses")
        assert found(site, "three houses") == ["unstemmed"]
    finally:
        set_record("plone.pgcatalog.stemming", True)
    # Pages catalogued without stems are found by their words.
    assert "unstemmed" in found(site, "houses")
    assert "unstemmed" not in found(site, "housing")
    site.manage_delObjects(["unstemmed"])


# -- order


@pytest.mark.parametrize(
    ("query", "first"),
    [
        # Title over description over keywords over body, the shorter text, more occurrences, rare words.
        ("comets", ["in-title", "in-description", "in-keywords", "in-body"]),
        *(("quasar", ["short", "long"]), ("pulsar", ["often", "once"])),
        *(("commonplace OR rarity", ["rare"]), ("commonplac* OR rarit*", ["rare"])),
    ],
)
def test_better_match_comes_first(site: Any, query: str, first: list[str]) -> None:
    assert found(site, query)[: len(first)] == first


def test_all_words_are_equally_rare_without_counts(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "one", title="Comets")
    create(portal, "Document", "two", title="Comets of a longer title")
    assert found(portal, "comets") == ["one", "two"]
    transaction.commit()
    assert found(portal, "comets") == ["one", "two"]


class ByLength(SearchBackend):
    """Ranks by the length of the text only."""

    def score(self, text: RankedText, terms: Sequence[Term], weights: Weights) -> Condition:
        assert [term.word for term in terms] == ["quasar"]
        return Condition(f"{text.words}::float8")


def test_another_backend_ranks_the_hits(site: Any) -> None:
    manager = getGlobalSiteManager()
    backend = ByLength()
    manager.registerUtility(backend, IPGSearchBackend)
    try:
        assert found(site, "quasar") == ["long", "short"]
    finally:
        manager.unregisterUtility(backend, IPGSearchBackend)
    assert found(site, "quasar") == ["short", "long"]


def test_the_first_ten_are_those_of_okapi(site_template: str, postgres: Any) -> None:
    """A small version of ``make bench-ranking``."""
    with sites.opened(sites.clone(postgres, site_template)) as db, sites.inside(db) as portal:
        catalog = portal.portal_catalog
        lexicon = catalog._catalog.getIndex("SearchableText").getLexicon()
        oracle, content = ranking.Okapi(lexicon), list(ranking.pages(150))
        ranking.use(catalog, {"stemming": False})
        ranking.fill(portal, oracle, content)
        asked = ranking.queries(oracle, lexicon, content, 30)
        found = ranking.overlaps(catalog, oracle, asked, ranking.NEUTRAL | {"stemming": False})
        assert fmean(found) >= 0.8
