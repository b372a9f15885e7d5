"""A snippet of a file is from the page that has the words, wherever it is in the text, and says so."""

from collections.abc import Iterator
from demo import documents as files
from plone.pgcatalog.discovery.file_pages import FilePage
from plone.pgcatalog.discovery.highlight import plain_text
from plone.pgcatalog.files.extractor import ITextExtractor
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.uploads import extractor as extractor
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.integration.uploads import worker as worker
from typing import Any
from zope.component import getGlobalSiteManager
from zope.component import getUtility

import pytest
import re
import transaction


FILLER = " ".join(f"filler{n}" for n in range(75))


class AsIs:
    """Extractor whose texts are the files' bytes."""

    name, is_ready = "as is", True

    def kinds(self, kind: str) -> bool:
        return True

    def extract(self, path: str, kind: str) -> str:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()


def pages(number: int, **texts: str) -> str:
    """Return a text of *number* pages; ``p7`` is put into the middle of page 7."""
    return "\f".join(f"{FILLER} {texts.get(f'p{n}', '')} {FILLER}" for n in range(1, number + 1))


def fill(portal: Any) -> None:
    add_users(portal)
    for number, (texts, *_) in enumerate(CASES.values()):
        upload(portal, f"case{number}", pages(200, **texts).encode())
    transaction.commit()
    database = portal._p_jar.db()
    manager, usual = getGlobalSiteManager(), getUtility(ITextExtractor)
    manager.registerUtility(AsIs(), ITextExtractor)
    work(Worker(database, database_dsn(database)))
    manager.registerUtility(usual, ITextExtractor)
    transaction.begin()


SHARED = fill


def snippets(portal: Any, words: str, **query: Any) -> dict[str, Any]:
    """Return id -> snippet of a search for *words*."""
    results = portal.portal_catalog(SearchableText=words, **query)
    brains = results[:10]
    found = results.snippets(brains)
    return {brain.getId: found[brain.getRID()] for brain in brains}


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
    "words at the end and beginning of pages": ({"p90": "wombat\f\fnumbat"}, "numbat", "<mark>numbat</mark> filler0", 92),
}


@pytest.mark.parametrize(("number", "case"), enumerate(CASES.values()), ids=CASES)
def test_snippet_is_from_the_page_with_the_words(shared_filled: Any, number: int, case: Any) -> None:
    _, words, expected, page = case
    [text] = snippets(shared_filled, words, getId=f"case{number}").values()
    assert expected in text
    assert text.page.number == page
    assert "\f" not in text
    assert len(plain_text(text)) < 260
