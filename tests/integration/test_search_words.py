"""Words of a visitor's query on all search pages of a site: excluded words, stop words, signs; and the resulting hits."""

from collections.abc import Callable
from plone.app.textfield import RichTextValue
from plone.namedfile.file import NamedBlobFile
from plone.pgcatalog.fulltext.tuning import listed_stop_words
from plone.pgcatalog.observe.searches import words_of
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.search_pages import search
from tests.integration.search_pages import site as site
from tests.integration.search_pages import web as web
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import re
import transaction


TITLES = [
    "数据库：目录（一）",
    "什么是目录？如何使用",
    "全角＊符号",
    "〔北京－上海〕高铁",
    "“上海”高铁",
    "ＡＢＣ：入门·第１章",
]
LONG = "Text that says much about other things. " * 40


def fill(portal: Any) -> None:
    add_users(portal)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    portal.portal_workflow.setChainForPortalTypes(("Link", "File"), ("simple_publication_workflow",))
    pages: dict[str, tuple[str, str, str]] = {
        "both": ("Schools and the climate", "", "What schools do"),
        "schools": ("Schools in the town", "", "All schools"),
        "climates": ("Schools and climates", "", ""),
        "garden": ("A garden", "", f"In this garden the gardener and the cat. {LONG}"),
        "the-garden": ("The garden", "In the north of the town", "Nothing else"),
        "in": ("In the", "", "Of all things"),
        "it": ("IT department", "", "Who may help you"),
        "department": ("Another department", "", "Much work"),
        "haus": ("Der Garten der Oma", "", "Das Haus und der Hund"),
        "gaerten": ("Garten und Hof", "", "Für die Oma über Bücher"),
        "books": ("Bücher und Straßen", "", "Lesen"),
    }
    for name, (title, description, text) in pages.items():
        value = RichTextValue(f"<p>{text}</p>", "text/html", "text/html")
        publish(create(portal, "Document", name, title=title, description=description, text=value))
    for number, title in enumerate(TITLES):
        publish(create(portal, "Document", f"cn{number}", title=title))
    link = "https://example.org/kestrel/a-long-address"
    publish(create(portal, "Link", "kestrel-link", title="Kestrel", remoteUrl=link, subject=("Birds", "Kestrel tag")))
    file = NamedBlobFile(b"Kestrel", "text/plain", "kestrel.txt")
    publish(create(portal, "File", "kestrel-file", title="Kestrel", file=file, subject=("Birds",)))
    text = RichTextValue(f"<p>{LONG}</p>", "text/html", "text/html")
    publish(create(portal, "Document", "kestrel", title="Kestrel", text=text, subject=("Birds", "Falcons")))
    publish(create(portal, "Document", "falcon", title="Falcon", text=RichTextValue("Kestrel", "text/plain")))
    folder = create(portal, "Folder", "kestrel-folder", title="Place", description="", subject=("Kestrel", "Raptors"))
    publish(folder)


SHARED = fill


Search = Callable[[Web, str], list[str]]


def classic(web: Web, text: str) -> list[str]:
    page = search(web, SearchableText=text, b_size=50)
    return [
        url.removesuffix("/view").rsplit("/", 1)[-1]
        for url in page.tree.xpath('//*[@class="result-title h5 mb-1"]/a/@href')
    ]


def live(web: Web, text: str) -> list[str]:
    items = web.get("/plone/@@ajax-search", SearchableText=text, perPage=50).json["items"]
    return [item["url"].removesuffix("/view").rsplit("/", 1)[-1] for item in items]


def rest(web: Web, text: str) -> list[str]:
    """Search as Volto's search page does, with an asterisk behind the text."""
    query = f"SearchableText={quote(text)}%2A&use_site_search_settings=1&b_size=50"
    items = web.open(f"/plone/@search?{query}", accept="application/json").json["items"]
    return [item["@id"].rsplit("/", 1)[-1] for item in items]


def pgsearch(web: Web, text: str) -> list[str]:
    docs = web.get("/plone/@pgsearch", accept="application/json", q=text, rows=50).json["response"]["docs"]
    return [doc["@id"].rsplit("/", 1)[-1] for doc in docs]


PAGES = pytest.mark.parametrize("find", [classic, live, rest, pgsearch], ids=lambda find: find.__name__)


@PAGES
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("schools", {"both", "schools", "climates"}),
        # Excluded words.
        ("schools NOT climate", {"schools", "climates"}),
        ("schools -climate", {"schools", "climates"}),
        ("-climate schools", {"schools", "climates"}),
        ("NOT climate schools", {"schools", "climates"}),
        ('schools -"the climate"', {"schools", "climates"}),
        ("-climate", set()),
        # Stop words.
        ("in the schools of the town", {"schools"}),
        ("who is in the garden", {"garden", "the-garden"}),
        ('"the garden"', {"the-garden"}),
        ("in the", {"schools", "the-garden", "in"}),
        ("the", set()),
        ('"it department"', {"it"}),
        ("IT department", {"it"}),
        ("it department", {"it", "department"}),
    ],
)
def test_excluded_words_are_in_no_hit_and_stop_words_can_be_missing(
    web: Web, find: Search, text: str, names: set[str]
) -> None:
    """Stop words are not searched for alone."""
    assert set(find(web, text)) == names


def test_search_of_code_has_no_minus_and_no_stop_words_of_its_own(site: Site) -> None:
    with site.inside() as portal:
        find = portal.portal_catalog.searchResults
        # NOT without AND is no query for ZCTextIndex.
        assert {brain.getId for brain in find(SearchableText="schools NOT climate")} == {"both", "climates"}
        assert {brain.getId for brain in find(SearchableText="in the town")} == {"schools", "the-garden"}
        assert {brain.getId for brain in find(SearchableText="the garden")} == {"garden", "the-garden"}


def test_page_explains_excluded_words_and_stop_words(web: Web) -> None:
    page = search(web, SearchableText="schools")
    [field] = page.tree.xpath('//*[@id="search-text"]')
    [help] = page.texts(f'//*[@id="{field.get("aria-describedby")}"]')
    assert "garden -fence, garden NOT fence" in help
    advice = '//*[@id="search-advice"]//li'
    assert "not searched for alone" in search(web, SearchableText="the").texts(advice)[0]
    assert "not searched for alone" not in " ".join(search(web, SearchableText="the unheardof").texts(advice))


def test_stop_words_are_those_of_the_visitors_language(site: Site) -> None:
    with site.inside() as portal:
        tool = portal.portal_catalog

        def found(language: str, text: str) -> set[str]:
            return {brain.getId for brain in tool.searchResults(SearchableText=text, as_site=True, **more[language])}

        more: dict[str, dict[str, Any]] = {"none": {}, "en": {"Language": ["en", ""]}, "de": {"Language": ["de", "en"]}}
        assert found("none", "der Garten") == found("en", "der Garten") == {"haus"}
        portal.portal_registry["plone.available_languages"] = ["en", "de"]
        assert found("de", "der Garten für Oma") == {"haus", "gaerten"}
        assert found("de", "Der DAS Garten") == {"haus"}
        # A line for a language replaces its list.
        tune(stop_words="de: oma\nen:")
        assert found("de", "die Oma Garten") == {"gaerten"}
        assert found("none", "the town") == {"schools", "the-garden"}
        transaction.abort()


def test_listed_stop_words_are_those_of_postgresql(postgres: EmbeddedPostgres) -> None:
    names = {"da": "danish", "de": "german", "en": "english", "fr": "french", "no": "norwegian", "ru": "russian"}
    with psycopg.connect(postgres.dsn("postgres")) as connection:
        for code, name in names.items():
            sql = "SELECT array_agg(word) FROM unnest(%s::text[]) AS word WHERE ts_lexize(%s, word) <> '{}'"
            assert connection.execute(sql, (list(listed_stop_words()[code]), f"{name}_stem")).fetchone() == (None,), (
                code
            )


def test_stop_words_are_not_marked(web: Web) -> None:
    for text in ("in the garden", '"the garden"'):
        page = search(web, SearchableText=text)
        marked = {each.lower() for each in page.texts('//*[@id="search-results"]//mark')}
        assert marked
        assert all(each.startswith("garden") for each in marked)
    assert {each.lower() for each in search(web, SearchableText="in the").texts("//mark")} == {"in", "the"}


# -- hits


@PAGES
def test_page_comes_before_link_and_file_with_the_same_words(web: Web, find: Search) -> None:
    names = [name for name in find(web, "kestrel") if name != "kestrel-folder"]
    assert names[0] == "kestrel"
    assert set(names[1:3]) == {"kestrel-link", "kestrel-file"}
    assert names[3] == "falcon"


def test_type_boost_of_a_site_counts_more_than_the_order_of_pages_and_links(site: Site) -> None:
    with site.inside() as portal:
        tune(type_boosts="Link = 1")
        names = [b.getId for b in portal.portal_catalog.searchResults(SearchableText="kestrel", as_site=True)]
        assert names[0] == "kestrel-link"
        transaction.abort()


def test_snippet_has_no_tags_ids_and_addresses(site: Site, web: Web) -> None:
    page = search(web, SearchableText="kestrel", b_size=50)
    assert len(page.titles) == 5
    assert not re.search(
        "example.org|Birds|Raptors|tag|kestrel-|kestrel.txt", " ".join(page.texts('//*[@class="result-text mb-1"]'))
    )
    with site.inside() as portal, acting_as(portal, None):
        results = portal.portal_catalog.searchResults(SearchableText="kestrel")
        page_of_brains = list(results[:10])
        found = results.snippets(page_of_brains)
        texts = {brain.getId: found.get(brain.getRID()) for brain in page_of_brains}
    assert texts["kestrel-link"] == texts["kestrel-folder"] == ""
    assert texts["falcon"] == "<mark>Kestrel</mark>"


@PAGES
@pytest.mark.parametrize("title", TITLES)
def test_title_with_full_width_signs_finds_itself(web: Web, find: Search, title: str) -> None:
    assert find(web, title)[:1] == [f"cn{TITLES.index(title)}"]


def test_correction_is_spelled_as_the_pages_are(web: Web) -> None:
    for typed, meant in (("Büchr", "Bücher"), ("Buchr", "Bücher"), ("strasen", "Straßen"), ("gardn", "garden")):
        page = search(web, SearchableText=typed)
        assert page.texts('//*[@id="search-corrected"]/strong') == [meant]
        answer = web.get("/plone/@@ajax-search", SearchableText=typed).json
        assert answer["corrected"]["text"] == meant
        answer = web.get("/plone/@pgsearch", accept="application/json", q=typed).json
        assert answer["did_you_mean"] == meant


def test_direction_of_titles_and_snippets_is_that_of_their_text(web: Web) -> None:
    page = search(web, SearchableText="garden")
    for name in ("result-title h5 mb-1", "result-text mb-1"):
        found = page.tree.xpath(f'//*[@class="{name}"]')
        assert found
        assert {each.get("dir") for each in found} == {"auto"}


def test_completions_need_no_stop_words_and_complete_no_excluded_word(web: Web) -> None:
    def completed(text: str) -> list[str]:
        return [word["text"] for word in web.get("/plone/@@ajax-search", SearchableText=text).json["words"]]

    assert completed("the of gard") == ["the of garden", "the of gardener"]
    assert completed("schools -climate tow") == ["schools -climate town"]
    assert completed("schools -clim") == []


def test_excluded_words_are_not_counted_as_searched_for() -> None:
    for text in ('schools* AND NOT "climate"', "schools NOT climate", "Schools -climate"):
        assert words_of(text) == "schools"
