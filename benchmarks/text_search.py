"""Worker of ``search``: searches for words by a member with local roles, in a Plone site; our catalog's own features."""

from AccessControl.SecurityManagement import newSecurityManager
from benchmarks import queries
from benchmarks.backends import database_mb
from benchmarks.backends import OURS
from benchmarks.backends import vacuum
from benchmarks.content import filled_site
from benchmarks.debian import debian_texts
from benchmarks.http_load import cpu
from benchmarks.scenarios import PAGE
from benchmarks.scenarios import Place
from benchmarks.scenarios import Scenario
from benchmarks.scenarios import touch_page
from benchmarks.scenarios import TOUCHES
from benchmarks.texts import Vocabulary
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil
import psycopg
import transaction


READER = "reader"
#: One folder in this many gives the reader a local role.
SHARED = 4
#: The bytes of some tables in all, and those of their SQL indexes.
SIZES = (
    "SELECT sum(pg_total_relation_size(quote_ident(name)))::bigint, sum(pg_indexes_size(quote_ident(name)))::bigint"
    " FROM unnest(%s::text[]) AS name"
)
FACETS = ("portal_type", "review_state", "Creator", "Subject")


def words(*texts: str) -> Callable[[Place, int], dict[str, Any]]:
    """Return the query for the n-th of *texts*."""
    return lambda place, n: {"SearchableText": texts[n % len(texts)]}


#: The types in the query of Plone's search page.
TYPES = ["Collection", "Document", "Event", "File", "Folder", "Image", "Link", "News Item"]


def on_the_search_page(*texts: str) -> Callable[[Place, int], dict[str, Any]]:
    """Return the query of Plone's search page for the n-th of *texts*."""
    return lambda place, n: {"SearchableText": texts[n % len(texts)], "portal_type": TYPES}


@dataclass(frozen=True)
class Typed:
    """Texts that visitors type, by the kind of search; *wild* are words with a wildcard inside."""

    everywhere: str
    frequent: Sequence[str]
    common: Sequence[str]
    rare: Sequence[str]
    wild: Sequence[str]
    many_wild: Sequence[str]
    beginnings: Sequence[str]
    #: two letters; a frequent word and the beginning of another; a frequent word and a misspelled one
    letters: str
    begun: str
    misspelled: str

    @property
    def pairs(self) -> list[tuple[str, str]]:
        first, second, third, fourth = self.frequent
        return [(first, second), (second, third), (first, fourth)]


#: The word with the number n occurs in about 1/n as many documents as the first one.
GENERATED_WORDS = Typed(
    everywhere="document",
    frequent=[f"word{n}" for n in range(4)],
    common=[f"word{n}" for n in range(10, 30)],
    rare=[f"word{n}" for n in range(500, 1000)],
    wild=[f"w*d{n}" for n in range(10, 30)],
    many_wild=[" OR ".join(f"w*d{n}{m}" for m in range(10)) for n in range(9)],
    beginnings=["word2*", "word3*", "word4*"],
    letters="wo",
    begun="word0 doc",
    misspelled="word0 docuemnt",
)


def typed(vocabulary: Vocabulary) -> Typed:
    """Return searches for words of *vocabulary*."""
    frequent, wild = list(vocabulary.frequent[:4]), [f"{word[:2]}*{word[3:]}" for word in vocabulary.usual]
    known = max(vocabulary.usual, key=len)
    return Typed(
        everywhere=frequent[0],
        frequent=frequent,
        common=vocabulary.usual[:20],
        rare=vocabulary.rare[:500],
        wild=wild[:20],
        many_wild=[" OR ".join(wild[n : n + 10]) for n in range(0, 90, 10)],
        beginnings=[f"{word[:4]}*" for word in vocabulary.usual[:3]],
        letters=frequent[0][:2],
        begun=f"{frequent[0]} {known[:4]}",
        # The last two letters but one are swapped.
        misspelled=f"{frequent[0]} {known[:-3]}{known[-2]}{known[-3]}{known[-1]}",
    )


def scenarios(typed: Typed) -> list[Scenario]:
    return [
        Scenario(
            "a word of all documents" if typed is GENERATED_WORDS else "the most frequent word", words(typed.everywhere)
        ),
        Scenario("a frequent word", words(*typed.frequent[:3])),
        Scenario("a common word", words(*typed.common)),
        Scenario("a rare word", words(*typed.rare)),
        Scenario("two frequent words", words(*(f"{first} {second}" for first, second in typed.pairs))),
        Scenario("either of two frequent words", words(*(f"{first} OR {second}" for first, second in typed.pairs))),
        Scenario("a word with a wildcard inside", words(*typed.wild)),
        Scenario("ten words with wildcards inside", words(*typed.many_wild)),
        Scenario("a word's beginning, as on the search page", on_the_search_page(*typed.beginnings)),
    ]


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
    result: dict[str, Any] = {"measures": {"database size": value(database_mb(options["dsn"]), "MB")}, "queries": []}
    searched = typed(debian_texts(options["docs"]).words) if options.get("texts") else GENERATED_WORDS
    if is_ours:
        result["measures"] |= count_the_words(place)
    for scenario in scenarios(searched):
        progress(scenario.name)
        result["queries"] += list(records(place, scenario, options["iterations"], options["warmup"]))
    if is_ours:
        progress("facets, snippets, suggestions")
        result["measures"] |= extras(place, searched, options["iterations"])
        result["measures"] |= sizes(place, options["docs"])
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


def count_the_words(place: PloneSite) -> dict[str, Any]:
    """Count the words of our catalog, as a process does automatically some time after the first search; return the cost."""
    from plone.pgcatalog.fulltext.term_statistics import count_words

    catalog = place.request()._core.zoid
    place.end_request()
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        postgres = psutil.Process(connection.info.backend_pid)
        before = cpu(postgres)
        count_words(connection, catalog)
        seconds = cpu(postgres) - before
        connection.execute("VACUUM ANALYZE pgcatalog_words, pgcatalog_spellings")
        [(words,)] = connection.execute(
            "SELECT sum((SELECT count(*) FROM pgcatalog_spelled(catalog, text_column, '', chr(1114111))))"
            " FROM pgcatalog_texts WHERE catalog = %s",
            [catalog],
        )
    return {
        "counting words: processor time of PostgreSQL": value(seconds, "s"),
        "counted words": value(int(words), ""),
    }


def sizes(place: PloneSite, documents: int) -> dict[str, Any]:
    """Return the sizes of our catalog's tables."""
    catalog = place.request()._core.zoid
    place.end_request()
    with psycopg.connect(place.dsn) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state WHERE catalog = %s", [catalog])
        names = {"rows of the catalog": [relation], "counts of words": ["pgcatalog_words", "pgcatalog_spellings"]}
        found = {name: connection.execute(SIZES, [tables]).fetchall()[0] for name, tables in names.items()}
    return {
        **{f"size: {name}": value(size / 2**20, "MB") for name, (size, _) in found.items()},
        **{f"size: {name}, SQL indexes": value(size / 2**20, "MB") for name, (_, size) in found.items()},
        "size: counts of words, bytes a page": value(found["counts of words"][0] / documents, ""),
    }


def records(place: PloneSite, scenario: Scenario, iterations: int, warmup: int) -> Any:
    """Yield a record for each touch: with other words each time, in separate requests, uncached."""
    found = place.request()(**scenario.query(place.place, 0)).actual_result_count
    for touch in TOUCHES:
        times = queries.run(place, scenario, touch, "varying", "request", iterations, warmup)
        record = {"scenario": scenario.name, "touch": touch, "values": "varying", "state": "request"}
        yield record | {"found": found, "limited": False} | summary(times)


def extras(place: PloneSite, typed: Typed, iterations: int) -> dict[str, Any]:
    """Return the costs of facets and snippets in addition to their page, of suggestions, and of similar pages."""
    plain, full = [], []
    for n in range(iterations):
        # In turns, so that other load of the machine affects both.
        plain.append(timed(page, uncached(place), typed, n))
        full.append(timed(full_page, uncached(place), typed, n))
    return {
        "page of a frequent word": summary(plain),
        "the same with 4 facets and 25 snippets": summary(full),
        "with facets and snippets / without": value(median(full) / median(plain), ""),
        "suggest, two letters typed": summary(
            [timed(uncached(place).suggest, typed.letters) for _ in range(iterations)]
        ),
        "suggest, behind another word": summary(
            [timed(uncached(place).suggest, typed.begun) for _ in range(iterations)]
        ),
        "10 similar pages": summary([timed(uncached(place).more_like_this, f"{n:032x}") for n in range(iterations)]),
        "did you mean, a typo in two words": summary(
            [timed(uncached(place).did_you_mean, typed.misspelled) for _ in range(iterations)]
        ),
    }


def uncached(place: PloneSite) -> Any:
    """Return the catalog in a new request, with empty caches and after the request's initial work."""
    catalog = place.request()
    len(catalog(getId="folder0"))
    place.forget_results()
    return catalog


def page(catalog: Any, typed: Typed, n: int) -> Any:
    """Return the results for a frequent word, after using their first page like a listing."""
    results = catalog(SearchableText=typed.frequent[n % 3], b_start=0, b_size=PAGE)
    touch_page(results)
    assert results.actual_result_count
    return results


def full_page(catalog: Any, typed: Typed, n: int) -> None:
    """Use such a page with facets and snippets."""
    results = page(catalog, typed, n)
    results.facets(FACETS)
    results.snippets(results[:PAGE])
