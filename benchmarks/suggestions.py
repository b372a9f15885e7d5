"""What suggestions cost, over generated rows with texts of a large vocabulary; see ``benchmarks.search_extras``."""

from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.results.cache import result_cache
from typing import Any

import psycopg
import random
import statistics
import time


VOCABULARY = Path(__file__).parents[1] / "src/plone/pgcatalog/demo/vocabulary"
#: Words of the vocabulary, and of a text.
WORDS, LENGTH = 30_000, 120
TEXTS = """
UPDATE "{relation}" r SET searchable_text = t.text::tsvector, searchable_text_words = %s
FROM texts t WHERE t.rid = r.rid
"""


def vocabulary(chance: random.Random) -> list[str]:
    """Return words of several lengths, made of known ones."""
    known = [w for name in ("en", "de") for w in (VOCABULARY / f"{name}.txt").read_text("utf-8").split() if w.isascii()]
    words = dict.fromkeys(w.lower() for w in known if w.isalpha())
    while len(words) < WORDS:
        words[(chance.choice(known) + chance.choice(known)).lower()[: chance.randrange(4, 16)]] = None
    return [word for word in words if word.isalpha()]


def fill(dsn: str, relation: str) -> list[str]:
    """Give the rows of *relation* texts, the words of which follow Zipf's law, and count them; return the words."""
    chance = random.Random(11)
    words = vocabulary(chance)
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE texts (rid bigint, text text)")
        rids = [rid for (rid,) in connection.execute(f'SELECT rid FROM "{relation}" WHERE rid > 1000000')]
        with connection.cursor().copy("COPY texts FROM STDIN") as copy:
            for rid in rids:
                copy.write_row((rid, " ".join(sorted(set(chance.choices(words, weights, k=LENGTH))))))
        connection.execute(TEXTS.replace("{relation}", relation), (LENGTH,))
        connection.execute(f'VACUUM ANALYZE "{relation}"')
        started = time.perf_counter()
        [(catalog,)] = connection.execute("SELECT catalog FROM pgcatalog_state").fetchall()
        count_words(connection, catalog)
        print(f"\n{len(rids)} texts of {LENGTH} words counted in {time.perf_counter() - started:.1f} s")
        sizes = [
            connection.execute("SELECT pg_relation_size(%s)", (name,)).fetchone()
            for name in ("pgcatalog_words", "pgcatalog_words_pkey", "pgcatalog_words_deletions")
        ]
        print("words: table, key, index of deletions: " + ", ".join(f"{s[0] / 1e6:.1f} MB" for s in sizes if s))
        connection.execute("VACUUM ANALYZE pgcatalog_words")
    return words


def actions(catalog: Any, words: list[str]) -> dict[str, Callable[[], Any]]:
    """Return what is measured; a typo has two letters exchanged, as the most frequent kind."""
    long = [word for word in words[:3000] if len(word) > 7]
    typo = long[40][:3] + long[40][4] + long[40][3] + long[40][5:]
    uid = catalog(getId="d4711")[0].UID
    return {
        "one letter typed": lambda: catalog.suggest("s"),
        "three letters typed": lambda: catalog.suggest(long[7][:3]),
        "the same behind another word": lambda: catalog.suggest(f"{words[5]} {long[7][:3]}"),
        "six letters, one wrong": lambda: catalog.suggest(long[9][:3] + "q" + long[9][4:6]),
        "nothing begins so": lambda: catalog.suggest("qqqqqq"),
        "did you mean, a typo": lambda: catalog.did_you_mean(typo),
        "did you mean, three words, a typo": lambda: catalog.did_you_mean(f"{words[1]} {words[2]} {typo}"),
        "did you mean, all known": lambda: catalog.did_you_mean(f"{words[1]} {words[2]}"),
        "more like this, 10": lambda: list(catalog.more_like_this(uid)),
    }


def suggestions(catalog: Any, words: list[str], rounds: int) -> None:
    """Print how long they take for a visitor."""
    print("\n| suggestion | median | fastest | found |\n|---|---|---|---|")
    for name, action in actions(catalog, words).items():
        seconds = []
        for _ in range(rounds):
            result_cache().clear()
            started = time.perf_counter()
            found = action()
            seconds.append(time.perf_counter() - started)
        number = len(found) if isinstance(found, list) else int(found is not None)
        print(f"| {name} | {statistics.median(seconds) * 1000:.1f} ms | {min(seconds) * 1000:.1f} ms | {number} |")
