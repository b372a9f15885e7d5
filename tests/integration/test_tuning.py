"""Tuning of the search: hits by synonyms, stop words, pins and boosts, and their order."""

from collections.abc import Iterator
from plone.app.textfield import RichTextValue
from plone.base.utils import munge_search_term
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Text
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.plans import page_statement
from tests.integration.traffic import traced
from tests.integration.web import Site
from typing import Any

import pytest
import transaction


#: id -> (type, title, description); all but ``hidden`` are published
PAGES = {
    "car": ("Document", "A red car", "Wheels and more wheels"),
    "auto": ("Document", "The automobile", "Engines"),
    "vehicle": ("Document", "Any motor vehicle", "Motors"),
    "motors": ("Document", "A motor of a vehicle", "Parts"),
    "carpet": ("Document", "A carpet", "Wool"),
    "mail": ("Document", "Send an email", "Post"),
    "news": ("News Item", "News of a car", "Press"),
    "event": ("Event", "Car meeting", "Sunday"),
    "contact": ("Document", "Contact", "Where we are"),
    "hidden": ("Document", "Hidden", "Nobody sees it"),
    "the-who": ("Document", "The Who in concert", "Music"),
    "who": ("Document", "Who in concert", "Music"),
    "japan": ("Document", "日本語の辞書", "東京都"),
}


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    """A site with the pages."""
    with sites.inside(shared_site.db) as portal:
        add_users(portal)
        portal.portal_workflow.setChainForPortalTypes(("News Item", "Event"), ("simple_publication_workflow",))
        for name, (portal_type, title, description) in PAGES.items():
            page = create(portal, portal_type, name, title=title, description=description)
            if name != "hidden":
                publish(page)
        text = RichTextValue("Stork, crane and heron", "text/plain")
        create(portal, "Document", "in-title", title="A grey heron", description="Stork and crane")
        create(portal, "Document", "in-description", title="A grey bird", description="Heron and crane")
        create(portal, "Document", "in-keywords", title="A grey bird", subject=("heron",), description="A crane")
        create(portal, "Document", "in-body", title="A grey bird", text=text)
        transaction.commit()
        yield portal


@pytest.fixture
def catalog(site: Any) -> Iterator[Any]:
    """The catalog; settings and changes of a test are rolled back."""
    yield site.portal_catalog
    transaction.abort()
    site.REQUEST.other.pop("LANGUAGE", None)


def ids(results: Any) -> list[str]:
    return [brain.getId for brain in results]


def order(catalog: Any, text: str, **more: Any) -> list[str]:
    return ids(catalog.unrestrictedSearchResults(SearchableText=text, **more))


def found(catalog: Any, text: str, **more: Any) -> set[str]:
    return set(order(catalog, text, **more))


# -- nothing configured


@pytest.mark.parametrize(
    "settings",
    [
        {"pins": "", "synonyms": "", "stop_words": "", "type_boosts": ""},
        {"pins": "\n \n", "type_boosts": "Document = 1"},
        {"weight_title": 3.0, "weight_description": 2.0, "weight_keywords": 1.5, "weight_body": 1.0},
        {"synonyms": "tv, television", "stop_words": "en: the", "pins": "opening hours = /contact"},
    ],
)
def test_settings_for_other_searches_leave_the_sql_unchanged(catalog: Any, settings: dict[str, Any]) -> None:
    def statements() -> list[Any]:
        searches = [catalog.unrestrictedSearchResults(**query) for query in queries]
        return [page_statement(results.view, results.compiled, 0, 10) for results in searches]

    queries = ({"SearchableText": "car"}, {"portal_type": "Document"})
    before = statements()
    tune(**settings)
    assert statements() == before


def test_a_tuned_search_takes_no_more_messages_than_another(catalog: Any, site: Any) -> None:
    def messages() -> int:
        result_cache().clear()
        with traced(site) as traffic:
            [brain.Title for brain in catalog.unrestrictedSearchResults(SearchableText="the car", b_size=10)]
        return traffic[0].round_trips

    messages()
    plain = messages()
    tune(
        pins=f"the car = /contact\nthe car = {site.news.UID()}",
        synonyms="car, automobile, motor vehicle",
        stop_words="en: the",
        type_boosts="Event = 3",
        weight_title=9.0,
    )
    assert ids(catalog.unrestrictedSearchResults(SearchableText="the car"))[:2] == ["contact", "news"]
    assert messages() == plain == 1


# -- synonyms


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("car", {"car", "news", "event", "auto", "vehicle"}),
        ("CAR", {"car", "news", "event", "auto", "vehicle"}),
        ("automobile", {"car", "news", "event", "auto", "vehicle"}),
        ("motor vehicle", {"vehicle", "motors"}),
        ("red car", {"car"}),
        ("engines car", {"auto"}),
        ("car AND NOT automobile", {"car", "news", "event", "vehicle"}),
        ("wheels OR automobile", {"car", "news", "event", "auto", "vehicle"}),
        ("motor AND NOT car", {"vehicle", "motors"}),
        ('"car"', {"car", "news", "event"}),
        ('"red car"', {"car"}),
        ('"red automobile"', set()),
        ("c?r", {"car", "news", "event"}),
        ("e-mail", {"mail"}),
        ("辞書", {"japan"}),
        ("東京", {"japan"}),
        ("wheels", {"car", "auto"}),
        ("engines", {"auto"}),
        # Plone's search page appends a wildcard to each word.
        (munge_search_term("car"), {"car", "carpet", "news", "event", "auto", "vehicle"}),
        (munge_search_term("engines car"), {"auto"}),
        (munge_search_term('"car"'), {"car", "news", "event"}),
    ],
)
def test_synonyms_of_plain_words_are_found(catalog: Any, text: str, names: set[str]) -> None:
    tune(synonyms="car, automobile, motor vehicle\ne-mail, email\n字典, 辞書, 東京\nwheels => engines")
    assert found(catalog, text) == names


def test_synonyms_are_for_the_full_text_only(catalog: Any) -> None:
    tune(synonyms="car, automobile")
    assert set(ids(catalog.unrestrictedSearchResults(Title="car"))) == {"car", "news", "event"}


def test_snippets_mark_synonyms(catalog: Any) -> None:
    tune(synonyms="car, automobile")
    results = catalog.unrestrictedSearchResults(SearchableText="car")
    assert results.highlighter().mark("car or automobile") == "<mark>car</mark> or <mark>automobile</mark>"


# -- stop words


def test_stop_words_can_be_missing(catalog: Any) -> None:
    assert found(catalog, "the who concert") == {"the-who"}
    tune(stop_words="en: the, in")
    assert found(catalog, "the who concert") == {"the-who", "who"}
    assert found(catalog, munge_search_term("the who concert")) == {"the-who", "who"}
    assert found(catalog, '"the who" concert') == {"the-who"}
    assert found(catalog, "who AND NOT the") == {"who"}


def test_only_stop_words_are_searched_for_as_they_are(catalog: Any) -> None:
    before = found(catalog, "the who")
    tune(stop_words="en: the, who")
    assert found(catalog, "the who") == before == {"the-who"}


@pytest.mark.parametrize(
    ("language", "criterion", "names"),
    [
        ("en", None, {"the-who", "who"}),
        ("en-gb", None, {"the-who", "who"}),
        ("EN_us", None, {"the-who", "who"}),
        ("de", None, {"the-who"}),
        (None, None, {"the-who", "who"}),
        ("de", "en", {"the-who", "who"}),
        ("de", ["de", "en"], {"the-who", "who"}),
        ("en", {"query": ["de", "en"]}, {"the-who", "who"}),
        ("en", "de", {"the-who"}),
    ],
)
def test_stop_words_are_those_of_the_language_of_the_search(
    catalog: Any, language: str | None, criterion: Any, names: set[str]
) -> None:
    tune(stop_words="en: the\nde: der, die, das")
    if language:
        catalog.REQUEST.set("LANGUAGE", language)
    more = {} if criterion is None else {"Language": criterion}
    assert found(catalog, "the who concert", **more) == names


# -- pins


@pytest.mark.parametrize(
    ("text", "is_pinned"),
    [
        *(("opening hours", True), ("Hours OPENING", True), ("hours, opening", True)),
        *(("opening AND hours", True), ("opening* AND hours*", True)),
        *(("opening", False), ("opening hours today", False), ("op*", False)),
        *(("opening OR hours", False), ("opening AND NOT hours", False)),
    ],
)
def test_pinned_page_is_found_with_its_words_only(catalog: Any, text: str, is_pinned: bool) -> None:
    """It need not have the words."""
    tune(pins="opening hours = /contact")
    assert order(catalog, text) == (["contact"] if is_pinned else [])


def test_pins_have_their_order_and_come_before_all_others(catalog: Any, site: Any) -> None:
    plain = order(catalog, "car")
    uid = site.contact.UID()
    tune(pins=f"car = /carpet\nwheels = /mail\ncar = {uid}\ncar = /event\ncar = /no/such/page")
    assert order(catalog, "car") == ["carpet", "contact", "event", *(name for name in plain if name != "event")]


def test_pins_obey_all_other_conditions(catalog: Any) -> None:
    tune(pins="car = /contact\ncar = /news")
    assert order(catalog, "car", portal_type="News Item") == ["news"]
    assert order(catalog, "car", Title="contact") == ["contact"]
    assert order(catalog, "car", path="/plone/event") == ["event"]


def test_pins_show_no_hidden_page(catalog: Any, site: Any) -> None:
    tune(pins="car = /hidden\ncar = /contact")
    with acting_as(site, "mara"):
        assert ids(catalog.searchResults(SearchableText="car"))[0] == "contact"
        assert "hidden" not in ids(catalog.searchResults(SearchableText="car"))
    assert ids(catalog.searchResults(SearchableText="car"))[:2] == ["hidden", "contact"]


def test_a_sorted_search_has_no_pins(catalog: Any) -> None:
    plain = order(catalog, "car", sort_on="getId")
    tune(pins="car = /contact\ncar = /news")
    assert order(catalog, "car", sort_on="getId") == plain
    in_folder = order(catalog, "car", sort_on="getObjPositionInParent")
    assert sorted(in_folder) == sorted(plain)


def test_pages_counts_facets_and_scores_agree_with_pins(catalog: Any) -> None:
    tune(pins="car = /contact\ncar = /carpet", synonyms="car, automobile")
    everything = catalog.unrestrictedSearchResults(SearchableText="car")
    names = ids(everything)
    assert names[:2] == ["contact", "carpet"]
    assert len(everything) == everything.actual_result_count == len(names) == len(set(names)) == 6
    for size in (1, 2, 4):
        pages = []
        for start in range(0, len(names), size):
            page = catalog.unrestrictedSearchResults(SearchableText="car", b_start=start, b_size=size)
            assert page.actual_result_count == len(names)
            pages += ids(page)
        assert pages == names
    assert ids(catalog.unrestrictedSearchResults(SearchableText="car", sort_limit=3)) == names[:3]
    facets = everything.facets(["portal_type"], exclude_own=True)["portal_type"]
    assert facets == {"Document": 4, "News Item": 1, "Event": 1}
    assert sum(everything.facet_counts["facet_fields"]["portal_type"].values()) == len(names)
    assert sorted(ids(everything.iterate(2))) == sorted(names)
    late = catalog.unrestrictedSearchResults(SearchableText="car")
    late.materialize()
    assert ids(late) == names
    assert len(everything.snippets(list(everything))) == len(names)
    scores = [brain.data_record_score_ for brain in everything]
    assert scores == sorted(scores, reverse=True)
    normalized = [brain.data_record_normalized_score_ for brain in everything]
    assert normalized[:2] == [100, 100]
    assert all(0 < score <= 100 for score in normalized)


def test_pinned_pages_of_query_objects(catalog: Any) -> None:
    tune(pins="car = /contact")
    results = catalog.unrestrictedSearchResults(Or(Text("car"), Eq("getId", "mail")))
    assert ids(results)[0] == "contact"
    assert set(ids(results)) == {"contact", "car", "news", "event", "mail"}


def test_transaction_sees_its_own_pinned_pages(catalog: Any, site: Any) -> None:
    tune(pins="car = /brand-new\ncar = /contact", type_boosts="Event = 9", synonyms="car, automobile")
    create(site, "Document", "brand-new", title="Brand new")
    site.contact.reindexObject()
    assert order(catalog, "car")[:2] == ["brand-new", "contact"]
    assert found(catalog, "car") == {"brand-new", "contact", "car", "auto", "news", "event"}


def test_answers_in_the_cache_are_those_of_the_settings(catalog: Any) -> None:
    result_cache().clear()
    plain = order(catalog, "car")
    tune(pins="car = /contact")
    assert order(catalog, "car") == ["contact", *plain]
    tune(pins="car = /carpet")
    assert order(catalog, "car") == ["carpet", *plain]
    tune(pins="")
    hits = result_cache().counts[HITS].hits
    assert order(catalog, "car") == plain
    assert result_cache().counts[HITS].hits > hits


# -- boosts


@pytest.mark.parametrize("part", ["title", "description", "keywords", "body"])
def test_the_heaviest_part_of_a_page_decides(catalog: Any, part: str) -> None:
    tune(**{f"weight_{name}": 1.0 for name in ("title", "description", "keywords", "body")})
    tune(**{f"weight_{part}": 30.0})
    assert order(catalog, "heron")[0] == f"in-{part}"
    assert len(order(catalog, "heron")) == 4


def test_weights_that_are_all_zero_rank_nothing_and_find_the_same(catalog: Any) -> None:
    before = found(catalog, "heron")
    tune(**{f"weight_{name}": 0.0 for name in ("title", "description", "keywords", "body")})
    assert found(catalog, "heron") == before
    tune(pins="heron = /contact")
    assert order(catalog, "heron")[0] == "contact"


def test_a_boosted_type_comes_first(catalog: Any) -> None:
    before = found(catalog, "car")
    for boosts, first in (("News Item = 50\nNo such type = 7", "news"), ("Event = 50", "event"), ("Event = 0", "car")):
        tune(type_boosts=boosts)
        results = catalog.unrestrictedSearchResults(SearchableText="car")
        assert results[0].getId == first
        assert set(ids(results)) == before
        assert len(results) == results.actual_result_count == len(before)
    tune(type_boosts="Event = 0\nNews Item = 0.001")
    assert order(catalog, "car") == ["car", "news", "event"]


# -- odd input


@pytest.mark.parametrize(
    "text", ["", "*", "\0", "\ud800", "((", '"', "x" * 10_000, "a " * 900, "AND OR", "- -", "?", "car*", "a car"]
)
def test_every_text_is_legal(catalog: Any, text: str) -> None:
    plain = found(catalog, text)
    tune(
        synonyms="car, automobile\nvehicle, 'x', \\, a:b\n" + ", ".join(f"w{i}" for i in range(200)),
        stop_words="en: a, the, and",
        pins="* = /contact\ncar = /contact\na = /contact",
        type_boosts="Document = 3",
    )
    assert found(catalog, text) >= plain


def test_invalid_lines_are_left_out(catalog: Any, caplog: Any) -> None:
    tune(pins="nonsense\ncar = /contact", synonyms="one\ncar, automobile")
    assert order(catalog, "car")[0] == "contact"
    assert "auto" in order(catalog, "car")
    order(catalog, "car")
    logged = [record.getMessage() for record in caplog.records if "nonsense" in record.getMessage()]
    assert logged == [
        "Setting pins: Line 1: 'nonsense' is not of the form: words = /path/in/site or UID; the line is ignored"
    ]


# -- searches side by side


def test_interleaved_searches_have_the_answers_of_their_own_settings(catalog: Any) -> None:
    settings: list[dict[str, Any]] = [{"synonyms": "car, automobile"}, {"synonyms": ""}, {"pins": "car = /contact"}]

    def searched(number: int) -> Any:
        tune(**{"synonyms": "", "pins": "", **settings[number]})
        return catalog.unrestrictedSearchResults(SearchableText="car")

    def read(results: Any) -> Any:
        brains = list(results)
        return ids(results), results.facets(["portal_type"]), results.snippets(brains), bool(results.highlighter())

    alone = [read(searched(number)) for number in range(len(settings))]
    assert all(one[0] != other[0] for i, one in enumerate(alone) for other in alone[:i])
    together = [searched(number) for number in range(len(settings))]
    assert [read(results) for results in reversed(together)] == alone[::-1]


def test_a_result_that_is_read_later_has_the_columns_of_its_search(catalog: Any) -> None:
    results = catalog.unrestrictedSearchResults(getId="contact")
    title = catalog.unrestrictedSearchResults(getId="contact")[0].Title
    catalog.delColumn("Title")
    assert results[0].Title == title
