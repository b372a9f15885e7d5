"""The pages that the benchmark ``pages`` requests, and their users."""

from benchmarks.documents import CREATORS
from benchmarks.texts import GENERATED
from benchmarks.texts import Vocabulary
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote
from urllib.parse import urlencode

import json


PASSWORD = "secret-of-benchmarks"
EDITOR = f"editor:{PASSWORD}"
READER = f"reader:{PASSWORD}"
HTML, DATA, VOLTO = "HTML", "REST, JSON, live search", "Volto"
GROUPS = (HTML, DATA, VOLTO)
#: The folder of Volto's pages, and their number; the page with relations, and the number of relations.
VOLTO_FOLDER, VOLTO_PAGES = "volto", 10
RELATED, RELATIONS = "related", 50
#: The expansions of Volto 18 in each page; plone.restapi refuses the last two to visitors.
EXPANSIONS = ("actions", "breadcrumbs", "contextnavigation", "navigation", "navroot", "types", "workflow")
FOR_MEMBERS = ("types", "workflow")
#: Columns of the contents of a folder.
COLUMNS = ["ModificationDate", "EffectiveDate", "review_state", "is_folderish", "Title", "id", "portal_type", "getURL"]


@dataclass(frozen=True)
class Visited:
    """The site: path, number of folders, paths of published documents below it, and the words of its texts."""

    path: str
    folders: int
    documents: list[str]
    words: Vocabulary = GENERATED

    def folder(self, n: int) -> str:
        return f"{self.path}/folder{n % self.folders}"

    def document(self, n: int) -> str:
        return f"{self.path}/{self.documents[n * 7 % len(self.documents)]}"


@dataclass(frozen=True)
class Page:
    """A kind of page: ``path(site, n)`` is the path of the n-th request; *weight* is its share of the mix."""

    name: str
    group: str
    path: Callable[[Visited, int], str]
    weight: int
    login: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        is_json = self.group == VOLTO or self.name.startswith("@")
        return {"Accept": "application/json" if is_json else "text/html,*/*"}


def with_query(path: str, **query: str) -> str:
    """Return the path with the parameters *query*."""
    return f"{path}?{urlencode(query, quote_via=quote)}"


def two_words(site: Visited, n: int) -> str:
    """Return the n-th pair of a frequent and a usual word."""
    return nth(site.words.pairs, n)


def nth(words: Sequence[str], n: int) -> str:
    return words[n % len(words)]


def searched(words: Callable[[Visited, int], str]) -> Callable[[Visited, int], str]:
    """Return the path of a REST search for the n-th of *words*."""
    return lambda site, n: with_query(f"{site.path}/@search", SearchableText=words(site, n), metadata_fields="modified")


def live(site: Visited, n: int) -> str:
    """Return the path of a live search: words, the last of which is incomplete."""
    return with_query(f"{site.path}/@@ajax-search", SearchableText=two_words(site, n)[:-1], perPage="10", page="1")


def contents(site: Visited, n: int) -> str:
    """Return the path of the contents of a folder."""
    folder = site.folder(n)
    criteria = [
        {
            "i": "path",
            "o": "plone.app.querystring.operation.string.path",
            "v": f"{folder.removeprefix(site.path)}::1",
        }
    ]
    query = {"criteria": criteria, "sort_on": "modified", "sort_order": "descending"}
    return with_query(
        f"{site.path}/@@getVocabulary",
        name="plone.app.vocabularies.Catalog",
        query=json.dumps(query),
        batch=json.dumps({"page": 1, "size": 15}),
        attributes=json.dumps(COLUMNS),
    )


def expanded(path: str, login: str | None = None) -> str:
    """Return the address with which Volto requests the content at *path*."""
    names = [name for name in EXPANSIONS if login or name not in FOR_MEMBERS]
    return with_query(path, expand=",".join(names), **{"expand.navigation.depth": "1"})


def volto_page(site: Visited, n: int) -> str:
    """Return the path of the n-th page with blocks."""
    return f"{site.path}/{VOLTO_FOLDER}/page{n % VOLTO_PAGES}"


def search_block(site: Visited, n: int) -> str:
    """Return the path for a search block with facets and two typed words."""
    operation = "plone.app.querystring.operation"
    criteria = [
        {"i": "portal_type", "o": f"{operation}.selection.any", "v": ["Document"]},
        {"i": "SearchableText", "o": f"{operation}.string.contains", "v": two_words(site, n)},
    ]
    query = {
        "query": criteria,
        "facets": ["Subject", "portal_type", "review_state"],
        "b_size": 10,
        "sort_on": "modified",
    }
    return with_query(f"{site.path}/@querystring-search", query=json.dumps(query))


def relations(site: Visited, n: int) -> str:
    """Return the path for the relations of a page."""
    return with_query(f"{site.path}/@relations", source=f"/{VOLTO_FOLDER}/{RELATED}")


PAGES = (
    Page("front page", HTML, lambda site, n: site.path, 10),
    Page("document", HTML, lambda site, n: site.document(n), 25),
    Page("listing", HTML, lambda site, n: f"{site.folder(n)}/listing_view", 10),
    Page("collection", HTML, lambda site, n: f"{site.path}/newest", 4),
    Page(
        "search page", HTML, lambda site, n: with_query(f"{site.path}/@@search", SearchableText=two_words(site, n)), 4
    ),
    Page("sitemap", HTML, lambda site, n: f"{site.path}/sitemap", 1),
    Page("document, as editor", HTML, lambda site, n: site.document(n), 8, EDITOR),
    Page("sitemap.xml.gz", DATA, lambda site, n: f"{site.path}/sitemap.xml.gz", 1),
    Page("live search", DATA, live, 8),
    Page("@search, new words", DATA, searched(two_words), 5),
    Page("@search, repeated", DATA, searched(lambda site, n: two_words(site, 0)), 5),
    Page("@search, new words, as member", DATA, searched(two_words), 3, READER),
    Page(
        "@search, a member's name",
        DATA,
        lambda site, n: with_query(f"{site.path}/@search", Creator=CREATORS[n % len(CREATORS)], sort_on="modified"),
        2,
    ),
    Page("@search, a rare word", DATA, searched(lambda site, n: nth(site.words.rare, n * 7)), 3),
    Page("@search, a usual word", DATA, searched(lambda site, n: nth(site.words.usual, n * 7)), 3),
    Page("@search, a frequent word", DATA, searched(lambda site, n: nth(site.words.frequent, n)), 2),
    Page(
        "@navigation",
        DATA,
        lambda site, n: with_query(f"{site.document(n)}/@navigation", **{"expand.navigation.depth": "2"}),
        4,
    ),
    Page("contents data", DATA, contents, 2, EDITOR),
    Page("Volto page", VOLTO, lambda site, n: expanded(volto_page(site, n)), 8),
    Page("Volto page, editor", VOLTO, lambda site, n: expanded(volto_page(site, n), EDITOR), 2, EDITOR),
    Page("front page of Volto", VOLTO, lambda site, n: expanded(site.path), 4),
    Page("search block with facets", VOLTO, search_block, 2),
    Page(f"relations of {RELATIONS}", VOLTO, relations, 1),
)
BY_NAME = {page.name: page for page in PAGES}
#: The first requests of a process, in this order.
FIRST = ("front page", "document", "live search", "Volto page", "front page of Volto", f"relations of {RELATIONS}")
#: The pages that are requested after a save of another page.
AFTER_SAVE = (
    *("front page", "document", "listing", "live search", "@navigation"),
    *(page.name for page in PAGES if page.group == VOLTO),
)
MIX = "mix"
READ_ONLY, WITH_WRITER, AFTER, FIRST_REQUEST = "read only", "with a writer", "after a save", "first request"
