"""A snippet of a file is from the page that has the words, wherever it is in the text, and says so."""

from demo import documents as files
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.discovery import file_pages
from plone.pgcatalog.discovery.file_pages import FilePage
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.discovery.snippets import plain_text
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from tests.integration.builders import PPTX
from tests.integration.builders import pptx
from tests.integration.builders import row
from tests.integration.builders import s as cell
from tests.integration.builders import sp
from tests.integration.builders import XLSX
from tests.integration.builders import xlsx
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.traffic import traced
from tests.integration.uploads import AsIs
from tests.integration.uploads import extracting
from tests.integration.uploads import site as site
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any
from zope.i18n import translate

import pytest
import transaction


FILLER = " ".join(f"filler{n}" for n in range(75))


def pages(number: int, **texts: str) -> str:
    """Return a text of *number* pages; ``p7`` is put into the middle of page 7."""
    return "\f".join(f"{FILLER} {texts.get(f'p{n}', '')} {FILLER}" for n in range(1, number + 1))


def pdf(number: int, **texts: str) -> bytes:
    """Return the text of ``pages`` as a file that is known as a PDF."""
    return f"%PDF-{pages(number, **texts)}".encode()


def fill(portal: Any) -> None:
    add_users(portal)
    for number, (texts, *_) in enumerate(CASES.values()):
        upload(portal, f"case{number}", pdf(200, **texts))
    for name, text, kind in OTHERS:
        upload(portal, name, text.encode(), kind)
    create(portal, "Document", "page", title="Quagga\fzebra", description="one\ftwo")
    closed = create(portal, "Folder", "closed")
    upload(closed, "secret", pdf(3, p2="quoll zorilla"))
    publish(create(portal, "Folder", "open"))
    upload(portal["open"], "shown", pdf(3, p2="quoll"))
    transaction.commit()
    database = portal._p_jar.db()
    with extracting(AsIs()):
        work(Worker(database, database_dsn(database)))
    transaction.begin()


SHARED = fill


def snippets(portal: Any, words: str, **query: Any) -> dict[str, Any]:
    """Return id -> snippet of a search for *words*."""
    results = portal.portal_catalog(SearchableText=words, **query)
    brains = results[:10]
    found = results.snippets(brains)
    return {brain.getId: found[brain.getRID()] for brain in brains}


#: (id, text, content type) of further files.
OTHERS = (
    ("quagga", pages(200, p3="nothing"), files.PDF),
    ("unpaged", f"{FILLER * 100} bandicoot {FILLER * 100}", files.PDF),
    ("long", f"{FILLER}\f{FILLER * 100} pademelon {FILLER * 100}\f{FILLER}", files.PDF),
    ("sheets", pages(2, p2="dugong"), XLSX),
    ("slides", pages(2, p1="dugong"), "application/vnd.oasis.opendocument.presentation"),
)

CASES = {
    "on page 200": ({"p200": "a wombat sleeps"}, "wombat", "a <mark>wombat</mark> sleeps", 200),
    "on page 1": ({"p1": "a wombat sleeps"}, "wombat", "a <mark>wombat</mark> sleeps", 1),
    "on two pages, the first": ({"p7": "a wombat", "p90": "the wombat"}, "wombat", "a <mark>wombat</mark>", 7),
    "the page with all words": (
        {"p7": "a wombat", "p8": "a numbat", "p90": "wombat, numbat"},
        "wombat numbat",
        "<mark>wombat</mark>, <mark>numbat</mark>",
        90,
    ),
    "a phrase": (
        {"p2": "wombat and numbat", "p90": "a numbat wombat"},
        '"numbat wombat"',
        "a <mark>numbat</mark> <mark>wombat</mark>",
        90,
    ),
    "a phrase near the beginning": (
        {"p2": "wombat and numbat", "p4": "a numbat wombat"},
        '"numbat wombat"',
        "a <mark>numbat</mark> <mark>wombat</mark>",
        4,
    ),
    "the beginning of a word": ({"p30": "combat", "p90": "wombats"}, "wom*", "<mark>wombats</mark>", 90),
    "a wildcard": ({"p30": "combat", "p90": "wombats"}, "w?m*ts", "<mark>wombats</mark>", 90),
    "whole words only": ({"p30": "wombats", "p90": "Wombat"}, "wombat AND NOT numbat", "<mark>Wombat</mark>", 90),
    "with an accent": ({"p90": "im CAFÉ der Straße"}, "cafe strasse", "<mark>CAFÉ</mark> der <mark>Straße</mark>", 90),
    "Cyrillic": ({"p90": "Москва слезам"}, "москва", "<mark>Москва</mark> слезам", 90),
    "Chinese": ({"p90": "我们的数据库目录"}, "数据库", "我们的<mark>数据库</mark>目录", 90),
    "markup": ({"p90": "<b>wombat</b> & <i>"}, "wombat", "&lt;b&gt;<mark>wombat</mark>&lt;/b&gt; &amp; &lt;i&gt;", 90),
    "syntax of regular expressions": ({"p90": "(a|b)* [wombat] \\1"}, "wombat", "(a|b)* [<mark>wombat</mark>] \\1", 90),
    "words at the end and beginning of pages": (
        {"p90": "wombat\f\fnumbat"},
        "numbat",
        "<mark>numbat</mark> filler0",
        92,
    ),
}


@pytest.mark.parametrize(("number", "case"), enumerate(CASES.values()), ids=CASES)
def test_snippet_is_from_the_page_with_the_words(shared_filled: Any, number: int, case: Any) -> None:
    _, words, expected, page = case
    [text] = snippets(shared_filled, words, getId=f"case{number}").values()
    assert expected in text
    assert text.page.number == page
    assert "\f" not in text
    assert len(plain_text(text)) < 260


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # Only the title has the word.
        ("quagga", {"quagga": ("filler0 filler1", None), "page": ("one two", None)}),
        ("bandicoot", {"unpaged": (" <mark>bandicoot</mark> filler0", None)}),
        ("pademelon", {"long": (" <mark>pademelon</mark> filler0", 2)}),
        ("dugong", {"sheets": ("<mark>dugong</mark>", 2), "slides": ("<mark>dugong</mark>", 1)}),
        ("quoll", {"secret": ("<mark>quoll</mark> zorilla", 2), "shown": ("<mark>quoll</mark>", 2)}),
    ],
)
def test_snippets_of_other_files(shared_filled: Any, words: str, expected: dict[str, Any]) -> None:
    found = snippets(shared_filled, words)
    assert {name: text.page and text.page.number for name, text in found.items()} == {
        n: p for n, (_, p) in expected.items()
    }
    assert all(part in found[name] and "\f" not in found[name] for name, (part, _) in expected.items())


def test_texts_beyond_the_limit_are_not_searched(shared_filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pages, "MOST_BYTES", 0)
    for number, part in ((0, "filler0 filler1"), (1, "a <mark>wombat</mark> sleeps")):
        [text] = snippets(shared_filled, "wombat", getId=f"case{number}").values()
        assert (part in text, text.page) == (True, None)


def test_description_with_more_of_the_words_is_shown(shared_filled: Any) -> None:
    shared_filled.quagga.description = "Nothing but filler and zonkeys"
    shared_filled.quagga.reindexObject()
    found = snippets(shared_filled, "nothing zonkeys")["quagga"]
    assert found.startswith("<mark>Nothing</mark> but filler and <mark>zonkeys</mark> filler0")
    assert found.page is None
    assert snippets(shared_filled, "nothing filler0")["quagga"].page.number == 3


def test_visitor_sees_no_page_of_a_private_file(shared_filled: Any) -> None:
    with acting_as(shared_filled, None):
        assert set(snippets(shared_filled, "quoll")) == {"shown"}
        assert snippets(shared_filled, "zorilla") == {}


@pytest.mark.parametrize(
    ("language", "words", "texts", "others"),
    [
        ("en", "sleeping", ["he sleeps", "sleepy"], ["asleep", "happy"]),
        ("en", "happiness", ["so happy"], ["hap"]),
        ("en", "fuss", ["Der Fuß", "F\u00adU\u00adSS"], ["Fus", "Barfuß"]),
        ("en", "cafe", ["Cafe\u0301", "(CAFÉ)", "das\ncafe"], ["Coffee"]),
        ("en", "aeon", ["Æon", "aeon"], ["aon"]),
        ("en", "a.b", ["a.b", "B."], ["axe"]),
        ("en", "x*", ["xylem"], ["ox"]),
        ("en", "h?dg*g", ["Hedgehog"], ["hedge", "dog"]),
        ("en", "สวัสดี", ["สวัสดีครับ"], ["ครับ"]),
        ("en", "大学", ["東京大学の"], ["東京"]),
        ("nl", "pakken", ["zijn gepakt", "pakt in"], ["getafeld"]),
        ("ar", "كتاب", ["هذا الكتاب"], ["الناس"]),
    ],
)
def test_patterns_match_the_words_that_are_marked(
    shared_filled: Any, language: str, words: str, texts: list[str], others: list[str]
) -> None:
    marks = Highlighter([(shared_filled.portal_catalog.plone_lexicon, words)], Stemming(language, (language,)))
    with connect(database_dsn(shared_filled._p_jar.db()), "test") as connection:
        query = 'SELECT text FROM unnest(%s::text[]) AS text WHERE text COLLATE "C" ~ ANY (%s)'
        found = connection.execute(query, ([*texts, *others], marks.patterns())).fetchall()
    assert [text for (text,) in found] == texts


def test_snippets_are_one_message_with_parts_of_texts(shared_filled: Any) -> None:
    results = shared_filled.portal_catalog(SearchableText="wombat")
    brains = results[:10]
    with traced(shared_filled) as traffic:
        results.snippets(brains)
    assert len(traffic[0].statements) == 1
    assert traffic[0].row_bytes < 10 * 36_000 < 10 * 270_000


def test_pages_of_real_files_are_named(site: Any) -> None:
    portal, worker = site
    upload(portal, "page", files.pdf_of([f"filler{n} " * 9 + "wombat" * (n == 199) for n in range(200)]))
    upload(portal, "slide", pptx([sp("one"), sp("two"), sp("a wom|bat")]), PPTX)
    sheets = [f"<sheetData>{row(1, cell('A1', word))}</sheetData>" for word in ("one", "wombat")]
    upload(portal, "sheet", xlsx([("S", sheets[0], ""), ("T", sheets[1], "")]), XLSX)
    transaction.commit()
    work(worker)
    transaction.begin()
    found = {name: (plain_text(text), text.page.title) for name, text in snippets(portal, "wombat").items()}
    assert {name: translate(title) for name, (_, title) in found.items()} == {
        "page": "Page 200",
        "slide": "Slide 3",
        "sheet": "Sheet 2",
    }
    assert all("wombat" in text for text, _ in found.values())


def test_hits_link_to_their_pages(shared_site: Site) -> None:
    page = shared_site.page("/plone/@@search", SearchableText="wombat", getId="case0")
    texts = [link.text_content() for link in page.xpath("//*[@class='result-page small mb-1']")]
    assert "Page 200" in texts
    [link, *_] = page.xpath("//a[.='Page 200']/@href")
    assert link.endswith("/case0/@@display-file/#page=200")
    shown = shared_site.web.get("/plone/case0/@@display-file/")
    assert (shown.status, shown.headers["Content-Type"]) == (200, files.PDF)
    assert shown.headers.get("Content-Disposition", "inline").startswith("inline")


def test_rest_services_name_the_page(shared_site: Site) -> None:
    expected = {"number": 200, "unit": "page", "title": "Page 200"}
    for service, query in (
        ("@pgsearch", {"q": "a wombat sleeps", "passages": 3}),
        ("@search", {"SearchableText": "a wombat sleeps", "snippets": 1}),
    ):
        answer = shared_site.web.get(f"/plone/{service}", MANAGER, "application/json", **query).json
        items = answer["items"] if "items" in answer else answer["response"]["docs"]
        for item in [item for item in [*items, *answer.get("passages", ())] if item["@id"].endswith("/case0")]:
            assert item["file_page"] == {**expected, "url": f"{item['@id']}/@@display-file/#page=200"}
        assert any("file_page" in item for item in items)


@pytest.mark.parametrize(
    ("kind", "title", "url"),
    [
        (files.PDF, "Page 7", "/a/@@display-file/#page=7"),
        (XLSX, "Sheet 7", None),
        ("application/vnd.ms-excel", "Sheet 7", None),
        ("application/vnd.oasis.opendocument.spreadsheet", "Sheet 7", None),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "Slide 7", None),
        ("application/vnd.ms-powerpoint", "Slide 7", None),
        (files.DOCX, "Page 7", None),
    ],
)
def test_unit_and_link_of_a_page_follow_the_type(kind: str, title: str, url: str | None) -> None:
    page = FilePage(7, kind)
    assert (translate(page.title), page.url("/a")) == (title, url)
    assert page.before(3) == FilePage(4, kind)
    assert page.before(7) is None
