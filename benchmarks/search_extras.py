"""What facets, snippets and suggestions cost: ``python -m benchmarks.search_extras``.

Prints the WAL and the space that keeping texts for snippets takes, and how long a page of results takes by itself, with facets and
with snippets, over generated rows.  The pages are measured in turns, so that a busy machine slows all of them.

Next to ZCatalog, with results that are kept: ``python benchmarks/run_benchmarks.py search`` (``text_search.py``).
"""

from benchmarks.machine import machine
from benchmarks.suggestions import fill
from benchmarks.suggestions import suggestions
from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.database.embedded import EmbeddedPostgres
from plone.pgcatalog.database.embedded import TEST_SETTINGS
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.generated import fill_relation
from typing import Any

import argparse
import psycopg
import random
import statistics
import time


VOCABULARY = Path(__file__).parents[1] / "src/plone/pgcatalog/demo/vocabulary/en.txt"
FACETS = ["portal_type", "review_state", "Creator", "Subject"]
TEXT = """
UPDATE "{relation}" SET searchable_text_source = 'Title ' || rid || ' '
    || repeat('many words that stand before what is searched for ', 20) || 'common and word' || (rid - 1000000) %% 1000
    || repeat(' and as many words after it', 40)
WHERE %s
"""


def texts(count: int) -> list[str]:
    """Return *count* texts of 800 words, few of them frequent."""
    chance = random.Random(7)
    words = VOCABULARY.read_text("utf-8").split()

    def word() -> str:
        number = str(chance.randrange(400)) if chance.random() < 0.3 else ""
        return words[int(len(words) * chance.random() ** 3)] + number

    return [" ".join(word() for _ in range(800)) for _ in range(count)]


def keeping(connection: Any, documents: list[str]) -> None:
    """Print what a column with the text costs besides the tsvector."""
    print(f"\n{len(documents)} texts of {statistics.mean(map(len, documents)):.0f} characters")
    print("| column | WAL of a new row | size of a row | WAL of a change of roles |")
    print("|---|---|---|---|")
    for name, extra in (("without", ""), ("with", ", source varchar")):
        connection.execute(
            f"CREATE TABLE t_{name} (rid bigint PRIMARY KEY, roles text[], words tsvector{extra})"
            " WITH (toast_tuple_target = 256)"
        )
        connection.execute(f"CREATE INDEX ON t_{name} USING gin (words)")
        value = ", %(text)s" if extra else ""
        statement = f"INSERT INTO t_{name} VALUES (%(rid)s, '{{Anonymous}}', to_tsvector('simple', %(text)s){value})"
        rows = [{"rid": rid, "text": text} for rid, text in enumerate(documents)]
        new = wal(connection, lambda s=statement, r=rows: connection.cursor().executemany(s, r))
        [(size,)] = connection.execute(f"SELECT pg_total_relation_size('t_{name}')").fetchall()
        roles = wal(connection, lambda n=name: connection.execute(f"UPDATE t_{n} SET roles = '{{Manager}}'"))
        print("|", name, *(f"| {value / len(documents):,.0f} B" for value in (new, size, roles)), "|")


def wal(connection: Any, action: Callable[[], Any]) -> int:
    """Return the bytes of write-ahead log that *action* writes."""
    [(before,)] = connection.execute("SELECT pg_current_wal_lsn()").fetchall()
    action()
    [(size,)] = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s)", (before,)).fetchall()
    return int(size)


def page(catalog: Any, query: dict[str, Any], facets: bool = False, snippets: bool = False) -> None:
    """Read a page of results as a view does."""
    result_cache().clear()
    results = catalog.unrestrictedSearchResults(**query)
    brains = results[:20]
    assert all(brain.Title for brain in brains)
    assert len(results)
    if facets:
        results.facets(FACETS)
    if snippets:
        results.snippets(brains)


def pages(catalog: Any, rounds: int) -> None:
    """Print how long pages take."""
    queries = {
        "frequent word, all rows": {"SearchableText": "common", "allowedRolesAndUsers": ["Anonymous"]},
        "rare word, 20 rows": {"SearchableText": "word17", "allowedRolesAndUsers": ["Anonymous"]},
        "type, newest first": {"portal_type": "Event", "sort_on": "modified", "sort_order": "descending"},
    }
    ways: dict[str, dict[str, bool]] = {
        "page and count": {},
        "with 4 facets": {"facets": True},
        "with 20 snippets": {"snippets": True},
        "with both": {"facets": True, "snippets": True},
    }
    print("\n| query |", " | ".join(ways), "| both : page |")
    print("|---" * (len(ways) + 2) + "|")
    for name, query in queries.items():
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, options in ways.items():
                started = time.perf_counter()
                page(catalog, query, **options)
                seconds[way].append(time.perf_counter() - started)
        ratios = [b / a for a, b in zip(seconds["page and count"], seconds["with both"], strict=True)]
        medians = " | ".join(f"{statistics.median(s) * 1000:.1f} ms" for s in seconds.values())
        print(f"| {name} | {medians} | {statistics.median(ratios):.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(", ".join(machine().values()))
    with EmbeddedPostgres(settings=TEST_SETTINGS) as server:
        with psycopg.connect(server.createdb("texts"), autocommit=True) as connection:
            keeping(connection, texts(1000))
        sites.start_zope()
        dsn = server.createdb("site")
        sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
        with psycopg.connect(dsn, autocommit=True) as connection:
            relation = fill_relation(connection, options.rows)
            connection.execute(TEXT.replace("{relation}", relation), (True,))
            connection.execute(f'VACUUM ANALYZE "{relation}"')
        with sites.opened(dsn) as db, sites.application(db) as app:
            pages(app.plone.portal_catalog, options.rounds)
        words = fill(dsn, relation)
        with sites.opened(dsn) as db, sites.application(db) as app:
            suggestions(app.plone.portal_catalog, words, options.rounds)


if __name__ == "__main__":
    main()
