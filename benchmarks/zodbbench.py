"""Worker of ``zodbbench``: objects of a kilobyte go into an OOBTree; how fast, as it grows, and how fast are lookups?"""

from benchmarks.backends import close_db
from benchmarks.backends import STORES
from benchmarks.worker import Progress
from BTrees.OOBTree import OOBTree
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from persistent import Persistent
from random import Random
from time import perf_counter
from typing import Any
from ZODB.DB import DB

import psycopg
import transaction


LOOKUPS = 200
KILOBYTE = "x" * 1000
PLAIN = "plain-sql"


class Item(Persistent):
    """An object of about a kilobyte."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = KILOBYTE


def checkpoints(count: int) -> Iterator[int]:
    """Yield the sizes at which is measured: 1, 2, 5 times each power of ten, up to *count*."""
    power = 100
    while power <= count:
        yield from (power * factor for factor in (1, 2, 5) if power * factor <= count)
        power *= 10


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the curve: insertions per second, and milliseconds per lookup, by size."""
    if options["backend"] == PLAIN:
        with psycopg.connect(options["dsn"]) as connection:
            connection.execute("CREATE TABLE item (key text PRIMARY KEY, text text)")
            connection.commit()
            return {
                "measures": {},
                "curve": curve(options, plain_insert(connection), plain_lookup(connection), progress),
            }
    storage = STORES[options["backend"]].storage(options["dsn"], Path(options["folder"]))
    db = DB(storage, cache_size=options["cache_size"])
    connection = db.open()
    connection.root()["tree"] = OOBTree()
    transaction.commit()
    points = curve(options, tree_insert(connection), tree_lookup(connection), progress)
    connection.close()
    close_db(db)
    return {"measures": {}, "curve": points}


def curve(
    options: dict[str, Any],
    insert: Callable[[range], None],
    lookup: Callable[[list[int]], None],
    progress: Progress,
) -> list[dict[str, Any]]:
    """Insert up to the count asked for, in transactions of *batch*; return what was measured at each checkpoint."""
    rng, points, done = Random(4711), [], 0
    for size in checkpoints(options["count"]):
        started = perf_counter()
        for first in range(done, size, options["batch"]):
            insert(range(first, min(first + options["batch"], size)))
        rate = (size - done) / (perf_counter() - started)
        done = size
        numbers = [rng.randrange(size) for _ in range(LOOKUPS)]
        started = perf_counter()
        lookup(numbers)
        milliseconds = (perf_counter() - started) / LOOKUPS * 1000
        points.append({"size": size, "inserts per second": rate, "ms per lookup": milliseconds})
        progress(f"{size} of {options['count']}")
    return points


def key(number: int) -> str:
    """Return keys whose order is not that of the insertions."""
    return f"{number * 7919 % 1_000_003:07}-{number}"


def tree_insert(connection: Any) -> Callable[[range], None]:
    def insert(numbers: range) -> None:
        tree = connection.root()["tree"]
        for number in numbers:
            tree[key(number)] = Item(number)
        transaction.commit()
        connection.cacheGC()

    return insert


def tree_lookup(connection: Any) -> Callable[[list[int]], None]:
    def lookup(numbers: list[int]) -> None:
        # What is in memory would not say how fast a lookup is.
        connection.cacheMinimize()
        tree = connection.root()["tree"]
        for number in numbers:
            tree[key(number)].text  # noqa: B018
        transaction.abort()

    return lookup


def plain_insert(connection: Any) -> Callable[[range], None]:
    def insert(numbers: range) -> None:
        rows = [(key(number), KILOBYTE) for number in numbers]
        connection.cursor().executemany("INSERT INTO item VALUES (%s, %s)", rows)
        connection.commit()

    return insert


def plain_lookup(connection: Any) -> Callable[[list[int]], None]:
    def lookup(numbers: list[int]) -> None:
        for number in numbers:
            connection.execute("SELECT text FROM item WHERE key = %s", (key(number),)).fetchone()
        connection.commit()

    return lookup
