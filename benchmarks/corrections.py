"""Measures how often a search is corrected rightly: ``python -m benchmarks.corrections``.

The pages are the English and German manual pages of Debian.  Searches for one mistyped word each are corrected: pairs of a
public list (``codespell``), and German words with the errors that people make.  The weights of errors were chosen with other
pairs of the lists than the measured ones.  Rare words of the pages must not be corrected.
"""

from benchmarks.debian import fetched
from benchmarks.debian import SHORTEST
from benchmarks.machine import header
from benchmarks.manual_parts import Manual
from benchmarks.manual_parts import manuals
from benchmarks.misspellings import german_misspellings
from benchmarks.misspellings import Misspelling
from benchmarks.misspellings import public_misspellings
from benchmarks.programs import run_program
from benchmarks.ranking import use
from benchmarks.tables import Table
from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.stemming import stem
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.fulltext.word_lookup import LAST
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from random import Random
from statistics import median
from statistics import quantiles
from symspellpy import SymSpell
from symspellpy import Verbosity
from tests.integration import site as sites
from tests.integration.people import acting_as
from tests.integration.traffic import traced
from typing import Any

import argparse
import psutil
import psycopg
import time
import transaction


#: The seed of the measured half of each list, and of the half that the weights were chosen with.
SEED, TUNED = 48, 7
BATCH = 500
#: Folder of manual pages -> its language.
FOLDERS = {"": "en", "de": "de"}
#: Number of words whose corrections are timed, and whose messages are counted.
TIMED, TRACED = 200, 20
PUBLIC, GERMAN = "codespell", "German words, mistyped"
OUTCOMES = ("hits by a stem", "right", "same stem", "otherwise", "not at all")


@dataclass(frozen=True)
class Page:
    """A manual page that the catalog indexes; it is not in the ZODB."""

    id: str
    manual: Manual
    allowedRolesAndUsers = ("Anonymous",)

    def Title(self) -> str:
        return ", ".join(self.manual.names[:3])

    def Description(self) -> str:
        return self.manual.summary

    def Language(self) -> str:
        return self.manual.language

    def SearchableText(self) -> str:
        return "\n".join((self.id, self.Title(), self.manual.summary, *self.manual.texts))


def pages() -> list[Page]:
    """Return the English and German manual pages.  Raises NoTexts."""
    folder = fetched()
    found = [each for name, language in FOLDERS.items() for each in manuals(folder / name, language)]
    long = [each for each in found if sum(map(len, each.texts)) >= SHORTEST]
    return [Page(f"page-{number}", manual) for number, manual in enumerate(long)]


def fill(portal: Any, dsn: str, content: Sequence[Page]) -> None:
    """Catalogue *content*, and count its words."""
    root = "/".join(portal.getPhysicalPath())
    for start in range(0, len(content), BATCH):
        for page in content[start : start + BATCH]:
            portal.portal_catalog._catalog.catalogObject(page, f"{root}/{page.id}")
        transaction.commit()
    with psycopg.connect(dsn, autocommit=True) as connection:
        count_words(connection, portal.portal_catalog._core.zoid)
        # As autovacuum does in a site: without it, the index has a list of entries that each search reads.
        connection.execute("VACUUM ANALYZE")
    transaction.begin()


def halves(pairs: Sequence[Misspelling], count: int) -> tuple[list[Misspelling], list[Misspelling]]:
    """Return up to *count* of *pairs* to choose weights with, and as many others to measure."""
    shuffled = sorted(pairs, key=lambda pair: pair.typed)
    Random(TUNED).shuffle(shuffled)
    middle = len(shuffled) // 2
    first, second = shuffled[:middle], shuffled[middle:]
    return first[:count], Random(SEED).sample(second, min(count, len(second)))


def same_stem(one: str, other: str) -> bool:
    return any(stem(language, one) == stem(language, other) for language in FOLDERS.values())


def outcome(pair: Misspelling, corrected: str | None) -> str:
    """Return the one of OUTCOMES of *pair*, which was *corrected* to a word of the lexicon."""
    if corrected is None:
        return "not at all"
    if corrected in pair.meant:
        return "right"
    return "same stem" if any(same_stem(corrected, word) for word in pair.meant) else "otherwise"


class Measurement:
    """Corrections in the site *portal*."""

    def __init__(self, portal: Any, rounds: int) -> None:
        self.portal, self.catalog, self.rounds = portal, portal.portal_catalog, rounds
        self.lexicon = self.catalog._core.translator("SearchableText").index.getLexicon()
        self.backend = psutil.Process(portal._p_jar._normal_storage.pg_connection.info.backend_pid)

    def stored(self, text: str) -> str | None:
        """Return the word of the lexicon for *text*; None if it is not a single word."""
        found = words(self.lexicon, [text])
        return found[0] if len(found) == 1 else None

    def corrected(self, text: str) -> str | None:
        better = did_you_mean(self.catalog, text)
        return None if better is None else self.stored(better)

    def outcomes(self, pairs: Sequence[Misspelling]) -> Iterator[tuple[Misspelling, str, str | None]]:
        """Yield (pair, outcome, correction) for *pairs*."""
        for pair in pairs:
            if len(self.catalog({"SearchableText": pair.typed, "b_size": 1})):
                yield pair, "hits by a stem", None
            else:
                corrected = self.corrected(pair.typed)
                yield pair, outcome(pair, corrected), corrected

    def costs(self, typed: Sequence[str]) -> dict[str, float]:
        """Return the milliseconds, the CPU time and the messages of a correction of *typed*: the fastest of several rounds."""
        times, messages = [float("inf")] * len(typed), 0
        before, started = self._cpu(), time.process_time()
        for _ in range(self.rounds):
            for number, text in enumerate(typed):
                self._new_request()
                begun = time.perf_counter()
                did_you_mean(self.catalog, text)
                times[number] = min(times[number], 1000 * (time.perf_counter() - begun))
        calls = self.rounds * len(typed)
        zope, postgresql = time.process_time() - started, self._cpu() - before
        for text in typed[:TRACED]:
            self._new_request()
            with traced(self.portal) as traffic:
                did_you_mean(self.catalog, text)
            messages = max(messages, traffic[0].round_trips)
        return {
            "median_ms": round(median(times), 2),
            "p95_ms": round(quantiles(times, n=20)[-1], 2),
            "zope_cpu_ms": round(1000 * zope / calls, 2),
            "postgresql_cpu_ms": round(1000 * postgresql / calls, 2),
            "most_messages": messages,
        }

    def _new_request(self) -> None:
        """Begin a transaction whose snapshot exists, without cached results."""
        transaction.begin()
        result_cache().clear()
        len(self.catalog(getId="page-0"))

    def _cpu(self) -> float:
        times = self.backend.cpu_times()
        return float(times.user + times.system)


def symspell(vocabulary: Mapping[str, int], edits: int) -> SymSpell:
    """Return SymSpell with the words of *vocabulary*, which corrects up to *edits* edits."""
    spelling = SymSpell(max_dictionary_edit_distance=edits, prefix_length=7)
    for word, documents in vocabulary.items():
        spelling.create_dictionary_entry(word, documents)
    return spelling


def by_symspell(spelling: SymSpell, edits: int, pairs: Sequence[Misspelling]) -> dict[str, int]:
    """Return the outcomes of *spelling* with up to *edits* edits, on *pairs*."""
    counts: Counter[str] = Counter()
    for pair in pairs:
        found = spelling.lookup(pair.typed, Verbosity.TOP, max_edit_distance=edits)
        counts[outcome(pair, found[0].term if found else None)] += 1
    return dict(counts)


def read_vocabulary(dsn: str, catalog: int) -> dict[str, int]:
    """Return word -> number of documents, without stems."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT * FROM pgcatalog_spelled(%s, 'searchable_text', '', %s)", [catalog, LAST])
        return dict(rows.fetchall())


def measured(measurement: Measurement, others: Mapping[int, SymSpell], pairs: Sequence[Misspelling]) -> dict[str, Any]:
    """Return the figures of *pairs*: outcomes, costs, and SymSpell's outcomes for those without hits."""
    found = [*measurement.outcomes(pairs)]
    without = [pair for pair, kind, _ in found if kind != "hits by a stem"]
    counts = Counter(kind for _, kind, _ in found)
    return {
        "pairs": len(pairs),
        **{kind: counts[kind] for kind in OUTCOMES},
        "costs": measurement.costs([pair.typed for pair in without[:TIMED]]),
        "symspell": {str(edits): by_symspell(spelling, edits, without) for edits, spelling in others.items()},
        "errors": [[pair.typed, pair.meant[0], other or ""] for pair, kind, other in found if kind == "otherwise"],
    }


def run(server: EmbeddedPostgres, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one run."""
    sites.start_zope()
    dsn = server.createdb("corrections")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    content = pages()
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        use(portal.portal_catalog, {"languages": tuple(FOLDERS.values()), "stemming": True})
        transaction.commit()
        fill(portal, dsn, content)
        vocabulary = read_vocabulary(dsn, portal.portal_catalog._core.zoid)
        measurement = Measurement(portal, options.rounds)
        german = Counter(
            word
            for page in content
            if page.Language() == "de"
            for word in set(words(measurement.lexicon, [page.SearchableText()]))
        )
        lists = {
            PUBLIC: public_misspellings(vocabulary, measurement.stored),
            GERMAN: german_misspellings(german, vocabulary, SEED),
        }
        half = 0 if options.tuned else 1
        chosen = {name: halves(pairs, options.count)[half] for name, pairs in lists.items()}
        rare = sorted(word for word, documents in vocabulary.items() if documents <= 2 and word.isalpha())
        rare = Random(SEED).sample(rare, min(options.count, len(rare)))
        others = {edits: symspell(vocabulary, edits) for edits in (2, 3)}
        with acting_as(portal, None):
            figures = {name: measured(measurement, others, pairs) for name, pairs in chosen.items()}
            changed = sum(did_you_mean(portal.portal_catalog, word) is not None for word in rare)
    command = f"python -m benchmarks.corrections --count {options.count}{' --tuned' if options.tuned else ''}"
    return header(server.version) | {
        "command": command,
        "pages": len(content),
        "words": len(vocabulary),
        "pairs": {name: len(pairs) for name, pairs in lists.items()},
        "lists": figures,
        "rare": {"words": len(rare), "corrected": changed},
    }


# -- the table


def table(result: dict[str, Any]) -> str:
    """Return *result* as Markdown."""
    lists = result["lists"]
    rows = [[f"{kind}", *(f"{each[kind]:,}" for each in lists.values())] for kind in ("pairs", "hits by a stem")]
    rows += [
        [title, *(_share(each, each[kind]) for each in lists.values())]
        for kind, title in {
            "right": "**right**, of those without hits",
            "same stem": "another form of the same word",
            "otherwise": "another word",
            "not at all": "no correction",
        }.items()
    ]
    for edits in ("2", "3"):
        right = [_share(each, each["symspell"][edits].get("right", 0)) for each in lists.values()]
        wrong = [
            _share(each, sum(each["symspell"][edits].get(kind, 0) for kind in ("same stem", "otherwise")))
            for each in lists.values()
        ]
        cells = [f"{one} / {other}" for one, other in zip(right, wrong, strict=True)]
        rows.append([f"SymSpell, {edits} edits: right / another word or form", *cells])
    rows += [
        [title, *(f"{each['costs'][name]:,}" for each in lists.values())]
        for name, title in {
            "median_ms": "ms of a correction",
            "p95_ms": "p95, ms",
            "zope_cpu_ms": "mean CPU time of Zope, ms",
            "postgresql_cpu_ms": "mean CPU time of PostgreSQL, ms",
            "most_messages": "messages, at most",
        }.items()
    ]
    rare = result["rare"]
    return (
        f"{result['pages']:,} manual pages with {result['words']:,} different words; `{result['command']}`,"
        f" PostgreSQL {result['versions']['PostgreSQL']}. Of {rare['words']} words in one or two pages,"
        f" {rare['corrected']} were corrected.\n\n{Table('', ['', *lists], rows).markdown(titled=False)}"
    )


def _share(figures: Mapping[str, Any], number: int) -> str:
    return f"{number / max(1, figures['pairs'] - figures['hits by a stem']):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=700, help="number of pairs of each list")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest of so many rounds counts")
    parser.add_argument("--tuned", action="store_true", help="measure the half that the weights were chosen with")
    run_program(parser, run, {"corrections": table})


if __name__ == "__main__":
    main()
