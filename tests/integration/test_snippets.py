"""Snippets show the marked words of a search in their context, and are safe HTML for any content."""

from html.parser import HTMLParser
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from plone.app.textfield import RichTextValue
from plone.indexer.interfaces import IIndexer
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.fulltext.text_index import SOURCE_LENGTH
from plone.pgcatalog.fulltext.text_index import source_text
from plone.pgcatalog.fulltext.text_index import TextOfFile
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Text
from plone.pgcatalog.results.cache import result_cache
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.traffic import traced
from typing import Any
from zope.component import getMultiAdapter

import html
import pytest
import re
import transaction


LONG = " ".join(f"filler{n}" for n in range(300))
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> <mark>faked</mark> &lt;b&gt; \"quoted\" needle"


def rich(text: str) -> RichTextValue:
    return RichTextValue(f"<p>{html.escape(text)}</p>", "text/html", "text/html")


def fill(portal: Any) -> None:
    add_users(portal)
    for name, title, description, text in (
        ("early", "Early page", "The needle stands here", LONG),
        ("late", "Late page", "", f"{LONG} at last a needle in the Café of Straßburg {LONG}"),
        ("both", "Both words", "", f"one needle {LONG} a needle with haystack {LONG}"),
        ("titled", "Needle in the title", "", "nothing else"),
        ("chinese", "数据库目录", "", "我们在全文检索中使用数据库目录, 然后继续"),
        ("hostile", HOSTILE, "", HOSTILE),
    ):
        publish(create(portal, "Document", name, title=title, description=description, text=rich(text)))
    create(portal, "Document", "private", title="Secret", text=rich("the needle nobody sees"))


SHARED = fill


@pytest.fixture
def texts(shared_filled: Any) -> Any:
    """The catalog of a site with pages."""
    return shared_filled.portal_catalog


def snippets(catalog: Any, length: int = 200, **query: Any) -> dict[str, str]:
    results = catalog(**query)
    page = results[:10]
    found = results.snippets(page, length)
    return {brain.getId: found[brain.getRID()] for brain in page if brain.getRID() in found}


def marks(text: str) -> list[str]:
    return [html.unescape(found) for found in re.findall("<mark>(.*?)</mark>", text)]


def test_snippet_shows_the_words_in_context(texts: Any) -> None:
    found = snippets(texts, SearchableText="needle")
    assert set(found) == {"early", "late", "both", "titled", "hostile", "private"}
    assert found["early"].startswith("The <mark>needle</mark> stands here")
    assert found["early"].endswith("…")
    assert "at last a <mark>needle</mark> in the Café of Straßburg filler0" in found["late"]
    assert found["late"].startswith("…")
    # The part with the most of the words.
    [found] = snippets(texts, SearchableText="needle haystack").values()
    assert "a <mark>needle</mark> with <mark>haystack</mark>" in found
    assert "one" not in found
    # Without the words: the beginning.
    assert snippets(texts, SearchableText="titled")["titled"] == "nothing else"
    beginning = snippets(texts, getId="early")["early"]
    assert beginning.startswith("The needle stands here filler0")
    assert marks(beginning) == []


@pytest.mark.parametrize(
    ("search", "name", "marked"),
    [
        ("cafe", "late", ["Café"]),
        ("CAFÉ", "late", ["Café"]),
        ("strassburg", "late", ["Straßburg"]),
        ("haystack AND NOT cafe", "both", ["haystack"]),
        ("need* AND late", "late", ["needle"]),
        ('"needle with haystack"', "both", ["needle", "with", "haystack"]),
        ("cafe OR missing", "late", ["Café"]),
        ("数据库", "chinese", ["数据库"]),
        ("全文检索", "chinese", ["全文检索"]),
    ],
)
def test_snippet_marks_words_as_found_by_the_lexicon(texts: Any, search: str, name: str, marked: list[str]) -> None:
    found = snippets(texts, SearchableText=search)[name]
    assert marks(found)[: len(marked)] == marked


def test_words_of_query_objects_are_marked(texts: Any) -> None:
    where = Or(Text("haystack"), Eq("getId", "late"), Not(Text("cafe")))
    found = snippets(texts, where=where)
    assert "<mark>haystack</mark>" in found["both"]
    assert marks(found["late"]) == []
    assert marks(snippets(texts, where={"a": 1}, SearchableText="haystack")["both"]) == ["haystack"]


def test_length_is_about_the_requested_one(texts: Any) -> None:
    for length in (10, 20, 60, 100, 400):
        for text in snippets(texts, length, SearchableText="needle", getId=["early", "late", "both"]).values():
            plain = html.unescape(re.sub("</?mark>", "", text)).strip("…")
            assert len(plain) <= length
            assert "<mark>" in text


# -- safe


class OnlyMarks(HTMLParser):
    """Raises for every tag except a bare mark."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = 0
        self.data = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert (tag, attrs, self.open) == ("mark", [], 0)
        self.open = 1

    def handle_endtag(self, tag: str) -> None:
        assert (tag, self.open) == ("mark", 1)
        self.open = 0

    def handle_data(self, data: str) -> None:
        self.data += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def text_of(snippet: str) -> str:
    """Return the text of *snippet*, which has no markup except marks."""
    parser = OnlyMarks()
    parser.feed(snippet)
    parser.close()
    assert not parser.open
    return parser.data


def test_markup_of_a_page_is_text(texts: Any) -> None:
    for search in ("needle", "script", "faked", "mark", "onerror", "b", "amp", "lt", "quoted"):
        for text in snippets(texts, 400, SearchableText=search, getId="hostile").values():
            assert "<script" not in text.lower()
            assert "<img" not in text.lower()
            text_of(text)


ALPHABET = st.sampled_from(
    ["a", "b", " ", "<", ">", "&", '"', "'", "/", "mark", "<mark>", "</mark>", "é", "数", "据", "ß", "İ", "ﬁ"]
)
TEXTS = st.lists(ALPHABET, max_size=60).map("".join)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=TEXTS, search=TEXTS, length=st.integers(1, 80))
def test_only_marks_are_markup_for_any_text(texts: Any, text: str, search: str, length: int) -> None:
    """Without the marks it is a part of the text."""
    highlighter = Highlighter([(texts._catalog.getIndex("SearchableText").getLexicon(), search)])
    assert text_of(highlighter.mark(text)) == text
    part = text_of(highlighter.snippet(text, length))
    assert part.removeprefix("…").removesuffix("…") in text


# -- permissions


def test_snippets_are_only_of_hits(texts: Any) -> None:
    brains = list(texts.unrestrictedSearchResults(SearchableText="needle"))
    assert any(brain.getId == "private" for brain in brains)
    with acting_as(texts.aq_parent, None):
        results = texts(SearchableText="needle")
        allowed = results.snippets(brains)
        assert {brain.getId for brain in brains if brain.getRID() in allowed} == {b.getId for b in results}
        assert "nobody sees" not in str(allowed)
    assert texts(portal_type=[]).snippets(brains) == {}
    assert texts(SearchableText="needle").snippets([]) == {}


# -- from one moment to the next


def test_snippets_show_pending_changes(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="A", text=rich("an old needle"))
    assert snippets(catalog, SearchableText="needle") == {"page": "an old <mark>needle</mark>"}
    transaction.commit()
    page = portal.page
    page.text = rich("a new needle")
    page.reindexObject()
    assert snippets(catalog, SearchableText="needle") == {"page": "a new <mark>needle</mark>"}
    transaction.abort()
    assert snippets(catalog, SearchableText="needle") == {"page": "an old <mark>needle</mark>"}
    portal.page.reindexObject(idxs=["review_state"])
    transaction.commit()
    assert snippets(catalog, SearchableText="needle") == {"page": "an old <mark>needle</mark>"}


def test_odd_text_never_stops_a_save(portal: Any, catalog: Any) -> None:
    text = "needle \x00 \x01 " + "x" * (2 * SOURCE_LENGTH)
    page = create(portal, "Document", "page", title="A")
    page.description = text
    page.reindexObject()
    transaction.commit()
    [found] = snippets(catalog, SearchableText="needle").values()
    assert marks(found) == ["needle"]
    assert source_text(["a\ud800b", " c\x00\n", "d"]) == "a b c d"
    assert source_text(["a\fb &#xc; c", TextOfFile(" d \f e &#xc; f\n\f")]) == "a b c\fd\fe f\f"
    assert len(source_text(["x" * SOURCE_LENGTH, "y"])) == SOURCE_LENGTH


def test_references_that_plone_leaves_in_a_text_are_characters_for_readers(portal: Any, catalog: Any) -> None:
    """Plone's conversion from HTML to text handles HTML 4 names and decimal numbers only."""
    text = RichTextValue(
        "<p>needle of O&#x27;Neill &apos;and&#x2019;s AT&amp;T &lt;b&gt; &amp;lt;i&amp;gt;</p>", "text/html"
    )
    page = create(portal, "Document", "page", title="A", text=text)
    indexed = getMultiAdapter((page, catalog), IIndexer, name="SearchableText")()
    assert "O&#x27;Neill" in indexed
    transaction.commit()
    [found] = snippets(catalog, SearchableText="needle").values()
    assert html.unescape(found) == "<mark>needle</mark> of O'Neill 'and\u2019s AT&T <b> &lt;i&gt;"
    assert source_text(["&#x0; &#xd800; &#x110000; &#xffffffffffff; &unknown; &apos &amp; &amp;#39;"]) == (
        "\ufffd \ufffd \ufffd \ufffd &unknown; &apos &amp; &amp;#39;"
    )


# -- costs


def test_a_page_of_snippets_is_one_statement(texts: Any) -> None:
    result_cache().clear()
    results = texts.unrestrictedSearchResults(SearchableText="needle")
    page = results[:5]
    assert all(brain.Title for brain in page)
    with traced(texts.aq_parent) as traffic:
        assert len(results.snippets(page)) == 5
    assert traffic[0].round_trips == 1, traffic[0].statements
