"""Compares the first hits with those of ZCatalog's Okapi: ``python -m benchmarks.ranking``.

Texts in three languages, with word frequencies of real texts (Zipf), are catalogued by a Plone site's catalog and by a
real ``ZCTextIndex`` with an OkapiIndex and the same lexicon.  For queries of one to three words it prints

- the share of common rows among the first ten, separately for queries with so many hits that only candidates are ranked;
- the time of our page compared with the same page ranked by ``ts_rank_cd``, measured in turns.
"""

from benchmarks.machine import header
from benchmarks.programs import run_program
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from demo.words import language
from demo.words import LANGUAGES
from demo.words import topics
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.fulltext.tsquery import compile_text
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.settings import RANKED_ROWS
from plone.pgcatalog.settings import SETTINGS_ATTRIBUTE
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.ZCTextIndex.OkapiIndex import OkapiIndex
from Products.ZCTextIndex.ZCTextIndex import PLexicon
from Products.ZCTextIndex.ZCTextIndex import ZCTextIndex
from random import Random
from statistics import fmean
from statistics import median
from tests.integration import site as sites
from types import SimpleNamespace
from typing import Any

import argparse
import psycopg
import sys
import time
import transaction


SEED = 2026
TOP = 10
#: Minimum number of hits of a query, so that the first ten are a selection.
LEAST = 2 * TOP
BATCH = 500
OPERATORS = ("and", "or", "not")
INDEX = "SearchableText"
NEUTRAL = {f"weight_{part}": 1.0 for part in ("title", "description", "keywords", "body")}
#: name -> settings of the site
SETTINGS: dict[str, dict[str, Any]] = {
    "neutral weights, no stemming": NEUTRAL | {"stemming": False},
    "default weights, no stemming": {"stemming": False},
    "default weights and stemming": {"stemming": True},
}


@dataclass(frozen=True)
class Page:
    """A text that both catalogs index; it is not in the ZODB."""

    id: str
    language: str
    title: str
    description: str
    body: str

    def Title(self) -> str:
        return self.title

    def Description(self) -> str:
        return self.description

    def Language(self) -> str:
        return self.language

    def SearchableText(self) -> str:
        return f"{self.id} {self.title} {self.description} {self.body}"


def pages(count: int, seed: int = SEED) -> Iterator[Page]:
    """Yield *count* texts of 20 to 2,000 words, most of them short."""
    chance = Random(seed)
    for number in range(count):
        spoken = language(LANGUAGES[number % len(LANGUAGES)])
        topic = chance.choice(topics())
        length = min(2000, max(20, int(chance.lognormvariate(5, 0.8))))
        yield Page(
            f"page-{number}",
            spoken.code,
            spoken.title(chance, topic),
            spoken.sentence(chance, topic),
            spoken.paragraph(chance, topic, length),
        )


class Okapi:
    """A ZCTextIndex as the oracle."""

    def __init__(self, lexicon: Any) -> None:
        caller = SimpleNamespace(lexicon=PLexicon("lexicon", "", *lexicon._pipeline))
        self.index = ZCTextIndex(INDEX, caller=caller, index_factory=OkapiIndex, lexicon_id="lexicon")
        self.ids: list[str] = []

    def add(self, page: Page) -> None:
        self.ids.append(page.id)
        self.index.index_object(len(self.ids) - 1, page)

    def ranked(self, query: str) -> list[str]:
        """Return the ids of the hits of *query*, the best first; of equal ones the last indexed first, as in ZCatalog."""
        scores, _ = self.index._apply_index({INDEX: query})
        return [self.ids[rid] for _, rid in sorted(((score, rid) for rid, score in scores.items()), reverse=True)]


def fill(site: Any, oracle: Okapi, content: list[Page]) -> None:
    """Catalogue *content* in the catalog of *site* and in *oracle*, and count the words."""
    catalog = site.portal_catalog
    root = "/".join(site.getPhysicalPath())
    for start in range(0, len(content), BATCH):
        for page in content[start : start + BATCH]:
            oracle.add(page)
            catalog._catalog.catalogObject(page, f"{root}/{page.id}")
        transaction.commit()
    with psycopg.connect(direct_dsn(site._p_jar.db().storage._dsn), autocommit=True) as connection:
        count_words(connection, catalog._core.zoid)
        connection.execute("VACUUM ANALYZE")
    transaction.begin()


def queries(oracle: Okapi, lexicon: Any, content: list[Page], count: int) -> list[str]:
    """Return *count* searches for one to three words of a text, each with at least LEAST hits."""
    chance = Random(SEED)
    found: dict[str, None] = {}
    while len(found) < count:
        page = chance.choice(content)
        own = [w for w in words(lexicon, [page.title, page.body]) if len(w) > 1 and w not in OPERATORS]
        query = " ".join(chance.sample(own, min(len(own), chance.randint(1, 3))))
        if len(oracle.ranked(query)) >= LEAST:
            found[query] = None
    return list(found)


def use(catalog: Any, settings: Mapping[str, Any]) -> None:
    """Apply *settings* to the site of *catalog*."""
    setattr(
        catalog, SETTINGS_ATTRIBUTE, getattr(catalog, SETTINGS_ATTRIBUTE, {}) | {**dict.fromkeys(NEUTRAL), **settings}
    )


def ours(catalog: Any, query: str) -> list[str]:
    results = catalog.unrestrictedSearchResults({INDEX: query, "b_size": TOP})
    return [brain.getPath().rpartition("/")[2] for brain in results]


def overlaps(catalog: Any, oracle: Okapi, query_texts: list[str], settings: Mapping[str, Any]) -> list[float]:
    """Return for each query the share of Okapi's first ten that is among our first ten."""
    use(catalog, settings)
    return [len(set(ours(catalog, query)) & set(oracle.ranked(query)[:TOP])) / TOP for query in query_texts]


def ratios(catalog: Any, query_texts: list[str], settings: Mapping[str, Any], rounds: int) -> tuple[float, float]:
    """Return the ratio of the times of our pages and of pages ranked by ``ts_rank_cd``: of the sums, and the median.

    Both are measured in turns, and the fastest of *rounds* counts, because other load of the machine only adds time.
    """
    use(catalog, settings)
    view, translator = catalog._core.view(), catalog._core.translator(INDEX)
    pairs: list[list[float]] = []
    for query in query_texts:
        compiled = catalog.unrestrictedSearchResults({INDEX: query}).compiled
        # The tsquery that finds the rows: other forms of words must be ranked, too.
        related = translator.stemming.related if translator.stemming else None
        clause = compile_text(translator.index.getLexicon(), query, translator.column, related=related)
        rank = Fragment(f"ts_rank_cd({translator.column.quoted}, %s::tsquery, 1)", (clause.tsquery,))
        rankings = [compiled, replace(compiled, score=rank)]
        best = [float("inf")] * len(rankings)
        for _ in range(rounds):
            for i, ranking in enumerate(rankings):
                started = time.perf_counter()
                view.page(ranking, 0, TOP).value()
                best[i] = min(best[i], time.perf_counter() - started)
        pairs.append(best)
    together = sum(a for a, _ in pairs) / sum(b for _, b in pairs)
    return together, median(a / b for a, b in pairs)


def run(server: EmbeddedPostgres, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one run."""
    sites.start_zope()
    dsn = server.createdb("ranking")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    with sites.opened(dsn) as db, sites.application(db) as app:
        sites.login(app)
        catalog = app.plone.portal_catalog
        use(catalog, {"languages": LANGUAGES})
        lexicon = catalog._catalog.getIndex(INDEX).getLexicon()
        oracle, content = Okapi(lexicon), list(pages(options.texts))
        fill(app.plone, oracle, content)
        query_texts = queries(oracle, lexicon, content, options.queries)
        much = [len(oracle.ranked(query)) > RANKED_ROWS for query in query_texts]
        figures = {}
        for name, settings in SETTINGS.items():
            found = overlaps(catalog, oracle, query_texts, settings)
            together, middle = ratios(catalog, query_texts, settings, options.rounds)
            figures[name] = {
                "overlap": round(fmean(found), 3),
                "all_ranked": of_group(found, much, False),
                "candidates_ranked": of_group(found, much, True),
                "time_ratio": round(together, 2),
                "median_time_ratio": round(middle, 2),
            }
    with psycopg.connect(dsn) as connection:
        version = connection.info.parameter_status("server_version") or ""
    command = f"python -m benchmarks.ranking --texts {options.texts} --queries {options.queries}"
    counts = {
        "texts": options.texts,
        "queries": len(query_texts),
        "queries_with_much": sum(much),
        "ranked_rows": RANKED_ROWS,
    }
    return header(version) | {"command": command} | counts | {"ways": figures}


def of_group(overlaps: list[float], much: list[bool], wanted: bool) -> float | None:
    """Return the mean of *overlaps* of the queries whose entry in *much* is *wanted*; None if there are none."""
    values = [overlap for overlap, is_much in zip(overlaps, much, strict=True) if is_much is wanted]
    return round(fmean(values), 3) if values else None


def table(result: dict[str, Any]) -> str:
    """Return *result* as Markdown."""
    limit, much, total = result["ranked_rows"], result["queries_with_much"], result["queries"]
    lines = [
        f"{result['texts']:,} texts in {len(LANGUAGES)} languages, {total} queries of one to three words;"
        f" `{result['command']}`, PostgreSQL {result['versions']['PostgreSQL']}.",
        "",
        f"| the same among the first ten | of the {total - much} that find up to {limit} | of the {much} that find more |"
        " time : `ts_rank_cd` |",
        "|---|--:|--:|--:|",
    ]
    for name, figures in result["ways"].items():
        cells = [
            percentage(figures["all_ranked"]),
            percentage(figures["candidates_ranked"]),
            f"{figures['time_ratio']:.2f}",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def percentage(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=6000)
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    result = run_program(parser, run, {"yardstick": table})
    sys.exit(0 if result["ways"][next(iter(SETTINGS))]["all_ranked"] >= 0.8 else 1)


if __name__ == "__main__":
    main()
