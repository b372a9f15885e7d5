"""Worker of ``zodbbench``: objects of a kilobyte in a growing OOBTree: inserts, look-ups, and PostgreSQL's own rate."""

from benchmarks.backends import close_db
from benchmarks.backends import PLAIN
from benchmarks.backends import STORES
from benchmarks.timing import profiled
from benchmarks.timing import timed
from benchmarks.timing import value
from benchmarks.worker import Progress
from BTrees.OOBTree import OOBTree
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from itertools import batched
from pathlib import Path
from persistent import Persistent
from random import Random
from typing import Any
from ZODB.DB import DB

import psycopg
import transaction


LOOKUPS = 200
KILOBYTE = "x" * 1000
#: (insert the items with these numbers in one transaction, look up these numbers)
Tree = tuple[Callable[[Sequence[int]], None], Callable[[Sequence[int]], None]]


class Item(Persistent):
    """An object of about a kilobyte."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = KILOBYTE


def sizes(count: int) -> Iterator[int]:
    """Yield the sizes at which a figure is recorded: 1, 2, 5 times each power of ten from 100 on, up to *count*."""
    power = 100
    while power <= count:
        yield from (power * factor for factor in (1, 2, 5) if power * factor <= count)
        power *= 10


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the figures at each size: inserts per second since the previous size, milliseconds for a look-up."""
    rng, measures, done = Random(4711), {}, 0
    opened = plain_table if options["backend"] == PLAIN else tree_in_storage
    with opened(options) as (insert, lookup), profiled(options["profile"]) as (call, report):

        def grow(numbers: range) -> None:
            for batch in batched(numbers, options["batch"]):
                call(insert, batch)

        for size in sizes(options["count"]):
            progress(f"{size:,} of {options['count']:,}")
            rate = (size - done) / timed(grow, range(done, size))
            done = size
            numbers = [rng.randrange(size) for _ in range(LOOKUPS)]
            milliseconds = timed(lookup, numbers) / LOOKUPS * 1000
            measures[f"{size:,} objects, inserts"] = value(rate, "1/s")
            measures[f"{size:,} objects, look-up"] = value(milliseconds, "ms")
    return {"measures": measures, "profile": report()}


def key(number: int) -> str:
    """Return a key for *number*; keys are not in the order of the inserts."""
    return f"{number * 7919 % 1_000_003:07}-{number}"


@contextmanager
def tree_in_storage(options: dict[str, Any]) -> Iterator[Tree]:
    """Yield functions for a new OOBTree in the storage that *options* name."""
    storage = STORES[options["backend"]].storage(options["dsn"], Path(options["folder"]))
    db = DB(storage, cache_size=options["cache_size"])
    connection = db.open()
    connection.root()["tree"] = OOBTree()
    transaction.commit()

    def insert(numbers: Sequence[int]) -> None:
        tree = connection.root()["tree"]
        for number in numbers:
            tree[key(number)] = Item(number)
        transaction.commit()
        connection.cacheGC()

    def lookup(numbers: Sequence[int]) -> None:
        # Cached objects would hide the time of a look-up.
        connection.cacheMinimize()
        tree = connection.root()["tree"]
        for number in numbers:
            tree[key(number)].text  # noqa: B018
        transaction.abort()

    yield insert, lookup
    connection.close()
    close_db(db)


@contextmanager
def plain_table(options: dict[str, Any]) -> Iterator[Tree]:
    """Yield functions for a table of PostgreSQL, without a storage."""
    with psycopg.connect(options["dsn"]) as connection:
        connection.execute("CREATE TABLE item (key text PRIMARY KEY, text text)")
        connection.commit()

        def insert(numbers: Sequence[int]) -> None:
            rows = [(key(number), KILOBYTE) for number in numbers]
            connection.cursor().executemany("INSERT INTO item VALUES (%s, %s)", rows)
            connection.commit()

        def lookup(numbers: Sequence[int]) -> None:
            for number in numbers:
                connection.execute("SELECT text FROM item WHERE key = %s", (key(number),)).fetchone()
            connection.commit()

        yield insert, lookup
