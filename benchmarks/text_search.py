"""Worker of ``search``: searches for words by a member with local roles, in a Plone site; our catalog's own features."""

from AccessControl.SecurityManagement import newSecurityManager
from benchmarks import queries
from benchmarks.backends import OURS
from benchmarks.backends import vacuum
from benchmarks.content import filled_site
from benchmarks.scenarios import PAGE
from benchmarks.scenarios import Place
from benchmarks.scenarios import Scenario
from benchmarks.scenarios import touch_page
from benchmarks.scenarios import TOUCHES
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from collections.abc import Callable
from statistics import median
from typing import Any

import psycopg
import transaction


READER = "reader"
#: One folder in this many gives the reader a local role.
SHARED = 4
FACETS = ("portal_type", "review_state", "Creator", "Subject")


def words(*texts: str) -> Callable[[Place, int], dict[str, Any]]:
    """Return the query for the n-th of *texts*."""
    return lambda place, n: {"SearchableText": texts[n % len(texts)]}


#: The types in the query of Plone's search page.
TYPES = ["Collection", "Document", "Event", "File", "Folder", "Image", "Link", "News Item"]


def on_the_search_page(*texts: str) -> Callable[[Place, int], dict[str, Any]]:
    """Return the query of Plone's search page for the n-th of *texts*."""
    return lambda place, n: {"SearchableText": texts[n % len(texts)], "portal_type": TYPES}


#: The word with the number n occurs in about 1/n as many documents as the first one.
SCENARIOS = (
    Scenario("a word of all documents", words("document")),
    Scenario("a frequent word", words("word0", "word1", "word2")),
    Scenario("a common word", words(*(f"word{n}" for n in range(10, 30)))),
    Scenario("a rare word", words(*(f"word{n}" for n in range(500, 1000)))),
    Scenario("two frequent words", words("word0 word1", "word1 word2", "word0 word3")),
    Scenario("either of two frequent words", words("word0 OR word1", "word1 OR word2", "word0 OR word3")),
    Scenario("a word with a wildcard inside", words(*(f"w*d{n}" for n in range(10, 30)))),
    Scenario(
        "ten words with wildcards inside", words(*(" OR ".join(f"w*d{n}{m}" for m in range(10)) for n in range(9)))
    ),
    Scenario("a word's beginning, as the search page asks", on_the_search_page("word2*", "word3*", "word4*")),
)


class ReaderSite(PloneSite):
    """A site with requests by the reader, as soon as the reader exists."""

    def enter(self, anonymous: bool = False) -> Any:
        context = super().enter(anonymous)
        users = context.acl_users
        if context.getId() == SITE and (reader := users.getUser(READER)) is not None:
            newSecurityManager(None, reader.__of__(users))
        return context


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the search records of one backend; for our catalog also those of its additional features."""
    place = filled_site(options, progress, ReaderSite)
    is_ours = options["backend"] == OURS
    share(place)
    vacuum(options["dsn"])
    result: dict[str, Any] = {"measures": {}, "queries": []}
    if is_ours:
        count_the_words(place)
    for scenario in SCENARIOS:
        progress(scenario.name)
        result["queries"] += list(records(place, scenario, options["iterations"], options["warmup"]))
    if is_ours:
        progress("facets, snippets, suggestions")
        result["measures"] = extras(place, options["iterations"])
    place.close()
    return result


def share(place: PloneSite) -> None:
    """Create the reader, a member who may also see private content in some of the folders."""
    site = place.enter()
    for number, folder in enumerate(site.objectValues("Dexterity Container")):
        if number % SHARED == 0:
            folder.manage_setLocalRoles(READER, ["Reader"])
            folder.reindexObjectSecurity()
    transaction.commit()
    site.acl_users.userFolderAddUser(READER, "secret", ["Member"], [])
    transaction.commit()
    place.end_request()


def count_the_words(place: PloneSite) -> None:
    """Count the words of our catalog, as a process does automatically some time after the first search."""
    from plone.pgcatalog.fulltext.term_statistics import count_words

    catalog = place.request()._core.zoid
    place.end_request()
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        count_words(connection, catalog)
        connection.execute("VACUUM ANALYZE pgcatalog_words")


def records(place: PloneSite, scenario: Scenario, iterations: int, warmup: int) -> Any:
    """Yield a record for each touch: with other words each time, in separate requests, uncached."""
    found = place.request()(**scenario.query(place.place, 0)).actual_result_count
    for touch in TOUCHES:
        times = queries.run(place, scenario, touch, "varying", "request", iterations, warmup)
        record = {"scenario": scenario.name, "touch": touch, "values": "varying", "state": "request"}
        yield record | {"found": found, "limited": False} | summary(times)


def extras(place: PloneSite, iterations: int) -> dict[str, Any]:
    """Return the costs of facets and snippets in addition to their page, and of suggestions."""
    plain, full = [], []
    for n in range(iterations):
        # In turns, so that other load of the machine affects both.
        plain.append(timed(page, uncached(place), n))
        full.append(timed(full_page, uncached(place), n))
    return {
        "page of a frequent word": summary(plain),
        "the same with 4 facets and 25 snippets": summary(full),
        "with facets and snippets / without": value(median(full) / median(plain), ""),
        "suggest, two letters typed": summary([timed(uncached(place).suggest, "wo") for _ in range(iterations)]),
        "suggest, behind another word": summary(
            [timed(uncached(place).suggest, "word0 doc") for _ in range(iterations)]
        ),
        "did you mean, a typo in two words": summary(
            [timed(uncached(place).did_you_mean, "word0 docuemnt") for _ in range(iterations)]
        ),
    }


def uncached(place: PloneSite) -> Any:
    """Return the catalog in a new request, with empty caches and after the request's initial work."""
    catalog = place.request()
    len(catalog(getId="folder0"))
    place.forget_results()
    return catalog


def page(catalog: Any, n: int) -> Any:
    """Return the results for a frequent word, after using their first page like a listing."""
    results = catalog(SearchableText=f"word{n % 3}", b_start=0, b_size=PAGE)
    touch_page(results)
    assert results.actual_result_count
    return results


def full_page(catalog: Any, n: int) -> None:
    """Use such a page with facets and snippets."""
    results = page(catalog, n)
    results.facets(FACETS)
    results.snippets(results[:PAGE])
