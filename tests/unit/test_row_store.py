"""The rows of a catalog in the process's cache: the right version for each state, and their number."""

from collections.abc import Iterator
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.rows import Row
from plone.pgcatalog.results.rows import RowStore

import json
import pytest
import tracemalloc


FORMER, LATTER = (Stamp(1, 1, "relation", number, 100 + number) for number in (1, 2))


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    result_cache().clear()
    yield
    result_cache().clear()


@pytest.fixture
def store() -> RowStore:
    return RowStore("history 1")


def row(version: str = "1.1", stamp: Stamp | None = FORMER) -> Row:
    return Row("/plone/page", b'{"Title": "Page"}', version, stamp)


def test_stored_row_is_shared_by_all_users_of_a_source(store: RowStore) -> None:
    page = row()
    store.put([(7, page, 20)])
    assert [RowStore(source).get(7) for source in ("history 1", "history 2", None)] == [page, None, None]
    # An unknown history caches nothing.
    RowStore(None).put([(8, row(), 20)])
    assert (len(result_cache()), RowStore(None).count) == (1, 0)


def test_row_is_confirmed_in_its_version_only(store: RowStore) -> None:
    page = row()
    store.put([(7, page, 20)])
    assert store.confirm(7, "2.1", LATTER) is store.confirm(8, "1.1", LATTER) is None
    # A transaction with changes confirms without a state.
    assert store.confirm(7, "1.1", None) is page
    assert page.stamp == FORMER
    assert store.confirm(7, "1.1", LATTER) is page
    assert (page.stamp, page.used) == (LATTER, True)
    # An older snapshot does not set the state back.
    assert store.confirm(7, "1.1", FORMER) is page
    assert page.stamp == LATTER
    store.put([(7, row("0.9", FORMER), 20)])
    assert store.get(7) is page


def test_path_alone_is_no_complete_row(store: RowStore) -> None:
    store.put([(7, Row("/plone/page", placed=FORMER), 0), (8, row(), 20)])
    assert store.confirm(7, "", FORMER) is None
    assert store.get_whole([7, 8, 9]).keys() == {8}
    assert store.count == 1


def test_complete_rows_are_counted_through_all_changes(store: RowStore) -> None:
    store.put([(7, Row("/plone/page", placed=FORMER), 0)])
    store.put([(7, row(), 20), (8, row(), 20)])
    store.put([(8, row("1.2", LATTER), 20)])
    assert store.count == 2
    result_cache().clear(ROWS)
    assert store.count == 0
    limit = result_cache().limit
    store.put([(number, row(), limit // 15) for number in range(100)])
    assert store.count == len(result_cache()) < 100


def test_memory_of_rows_is_the_counted_one(store: RowStore) -> None:
    """Of 25 values a page shows six; the others stay the text in which they were received."""
    tracemalloc.start()
    try:
        for number in range(1000):
            idx = json.dumps(
                {f"name{n}": f"Value {n} of the page with the number {number}" for n in range(25)}
            ).encode()
            page = Row(f"/plone/folder/page{number}", idx, f"{number}.{number}", FORMER)
            store.put([(number, page, len(idx))])
            assert [page.value(f"name{n}") for n in range(6)][5] == f"Value 5 of the page with the number {number}"
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.75 < taken / result_cache().size < 1.25
