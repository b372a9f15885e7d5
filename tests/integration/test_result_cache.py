"""Repeated searches are answered from memory, and only with the data of their snapshot."""

from collections.abc import Iterable
from DateTime import DateTime
from datetime import datetime
from datetime import UTC
from plone.app.uuid.utils import uuidToPhysicalPath
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.results.cache import FACETS
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import KINDS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ResultCache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.rows import Row
from plone.pgcatalog.sql.values import frozen
from plone.pgcatalog.sql.values import key_digest
from Products.CMFCore.indexing import processQueue
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.pages import make_pages
from tests.integration.pages import QUERY
from tests.integration.pages import second_connection
from tests.integration.pages import shown
from tests.integration.traffic import traced
from typing import Any
from zoneinfo import ZoneInfo

import copy
import psycopg
import pytest
import time
import transaction


CONTENT = make_pages


# -- costs


VALUES = ["Document", "Folder", "blue", "red"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (QUERY, QUERY),
        # The index counts minutes.
        tuple(QUERY | {"effectiveRange": DateTime(f"2026/01/01 10:00:{n} UTC")} for n in (10, 50)),
        # Plone's navigation queries types in the order of a set.
        *(({name: {"query": VALUES}}, {name: {"query": VALUES[::-1]}}) for name in ("portal_type", "Subject")),
    ],
    ids=["repeated", "in the same minute", "reordered types", "reordered tags"],
)
def test_equal_search_costs_nothing_also_in_a_new_transaction(filled: Any, first: Any, second: Any) -> None:
    transaction.begin()
    rows, total = shown(filled, **first), len(filled.portal_catalog.unrestrictedSearchResults(**first))
    transaction.begin()
    with traced(filled) as traffic:
        assert shown(filled, **second) == rows
        assert len(filled.portal_catalog.unrestrictedSearchResults(**second)) == total
    assert traffic[0].messages == []


def test_connections_of_a_process_share_answers(filled: Any, db: Any) -> None:
    transaction.begin()
    first = shown(filled)
    with second_connection(db) as (_, portal), traced(portal) as traffic:
        assert shown(portal) == first
    assert not traffic[0].matching("pgcatalog_")


def test_commit_without_changes_of_the_catalog_leaves_cached_answers(filled: Any) -> None:
    """The first search shows the process that it has changed none; the others cost nothing again."""
    transaction.begin()
    other = {"portal_type": "Document", "sort_on": "created"}
    first = shown(filled), shown(filled, **other)
    filled.some_setting = 1
    transaction.commit()
    assert shown(filled) == first[0]
    with traced(filled) as traffic:
        assert shown(filled, **other) == first[1]
    assert not traffic[0].matching("pgcatalog")


def test_the_values_of_an_index_are_read_once(filled: Any) -> None:
    catalog = filled.portal_catalog
    assert catalog.uniqueValuesFor("Subject") == ("a", "b")
    transaction.begin()
    with traced(filled) as traffic:
        assert catalog.uniqueValuesFor("Subject") == ("a", "b")
        assert list(catalog._catalog.getIndex("Subject").uniqueValues(withLengths=True)) == [("a", 30), ("b", 30)]
    assert not traffic[0].matching("pgcatalog")
    filled.page00.setSubject(("c",))
    filled.page00.reindexObject()
    processQueue()
    assert catalog.uniqueValuesFor("Subject") == ("a", "b", "c")
    transaction.abort()
    assert catalog.uniqueValuesFor("Subject") == ("a", "b")


def test_the_page_of_an_id_is_looked_up_once(filled: Any) -> None:
    """Plone looks up some pages by their UID for each page it renders."""
    catalog, uid = filled.portal_catalog, filled.page00.UID()
    assert uuidToPhysicalPath(uid) == "/plone/page00"
    assert uuidToPhysicalPath("nobody's") is None
    transaction.begin()
    with traced(filled) as traffic:
        assert uuidToPhysicalPath(uid) == "/plone/page00"
        assert uuidToPhysicalPath("nobody's") is None
    assert not traffic[0].matching("uid")
    filled.manage_delObjects(["page00"])
    assert uuidToPhysicalPath(uid) is None
    transaction.abort()
    assert uuidToPhysicalPath(uid) == "/plone/page00"
    with pytest.raises(KeyError):
        catalog.Indexes["UID"]._index[["a list"]]


# -- snapshots


def test_a_commit_is_seen_by_new_snapshots_only(filled: Any, db: Any) -> None:
    before = shown(filled)
    with second_connection(db) as (manager, portal):
        assert shown(portal) == before
        filled.page00.title = "Changed"
        filled.page00.reindexObject()
        filled.manage_delObjects(["page29"])
        transaction.commit()
        after = shown(filled)
        assert (after[0][1], len(after)) == ("Changed", 29)
        for _ in range(2):
            # Reads of the older snapshot must not be found by the newer one, nor the other way round.
            assert shown(portal) == before
            assert shown(portal, portal_type="Document", sort_on="created")[0][1] == "Page 0"
            assert shown(filled, portal_type="Document", sort_on="created")[0][1] == "Changed"
            assert shown(filled) == after
        manager.begin()
        assert shown(portal) == after


def test_dropped_table_is_no_error(filled: Any, dsn: str) -> None:
    """A process detects a new table by the failure of a message that reads the old one."""
    with sites.opened(dsn) as elsewhere, second_connection(elsewhere) as (manager, portal):
        assert len(shown(portal)) == 30
        manager.abort()
        [old] = [state.relation for state in Generations.of(elsewhere).newest.values()]
        filled.portal_catalog.manage_catalogClear()
        create(filled, "Document", "only")
        transaction.commit()
        transaction.abort()  # the next snapshot has no locks
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(f'DROP TABLE IF EXISTS "{old}" CASCADE')
        manager.begin()
        assert [path for path, _, _ in shown(portal)] == ["/plone/only"]
        assert portal.only.Title() == ""


def test_results_of_an_ended_transaction_do_not_mix(filled: Any) -> None:
    results = filled.portal_catalog.unrestrictedSearchResults(**QUERY)
    first = results[0]
    filled.page00.title = filled.page01.title = "Changed"
    filled.page00.reindexObject()
    filled.page01.reindexObject()
    transaction.commit()
    assert len(results) == 30
    # A brain has one state of its row, as in ZCatalog: that of its creation.
    assert [brain.Title for brain in results[:2]] == ["Page 0", "Changed"]
    assert results[0] is first
    assert shown(filled)[0][1] == "Changed"


def test_pack_that_shortens_the_log_makes_no_old_answer_valid(dsn: str) -> None:
    """A storage with history removes transactions that changed the catalog only, and so returns to an older one."""
    with sites.opened(dsn, history_preserving=True) as db, sites.inside(db) as site:
        page = site.page00
        query = {"getId": "page00", "allowedRolesAndUsers": ["user:mara"]}
        with second_connection(db) as (manager, portal):
            assert shown(portal, **query) == []
            page.manage_setLocalRoles("mara", ["Owner"])
            transaction.commit()
            manager.begin()
            assert shown(portal, **query) == []
            # Only the catalog: no object is stored.
            site.portal_catalog.reindexObject(page, idxs=["allowedRolesAndUsers"])
            transaction.commit()
            db.storage.pack(time.time() + 10, None)
            manager.begin()
            assert len(shown(portal, **query)) == 1


# -- isolation


def test_each_caller_has_results_and_brains_of_its_own(filled: Any) -> None:
    catalog = filled.portal_catalog
    one, two = (catalog.unrestrictedSearchResults(**QUERY) for _ in range(2))
    one[0].Title = "mine"
    one.actual_result_count = 7
    assert two[0].Title == "Page 0"
    assert two.actual_result_count == 30
    again = catalog.unrestrictedSearchResults(**QUERY)
    assert (again[0].Title, again.actual_result_count) == ("Page 0", 30)


def test_values_that_can_change_are_not_shared(filled: Any) -> None:
    catalog = filled.portal_catalog
    catalog.addColumn("notes")
    catalog._core.change().put(Entry("/plone/page00", idx={"notes": encode(["one"])}))
    transaction.commit()
    for _ in range(2):
        notes = catalog.unrestrictedSearchResults(getId="page00")[0].notes
        assert notes == ["one"]
        notes.append("two")


def test_scores_are_those_of_the_first_answer(filled: Any) -> None:
    catalog = filled.portal_catalog

    def scores() -> list[Any]:
        found = catalog.unrestrictedSearchResults(SearchableText="page")
        return [(b.getPath(), b.data_record_score_, b.data_record_normalized_score_) for b in found]

    first = scores()
    assert len(first) == 30
    assert first[0][2] == 100
    assert scores() == first


# -- the cache itself


def put_rows(cache: ResultCache, numbers: Iterable[int], size: int = 100) -> None:
    for number in numbers:
        cache.put((ROWS, "source", number), Row("/plone"), size)


def put_hits(cache: ResultCache, numbers: Iterable[int], size: int = 100) -> None:
    for number in numbers:
        cache.put((HITS, number), str(number), size)


def test_cache_has_a_size_limit_and_drops_the_least_recently_used() -> None:
    cache = ResultCache(1000)
    put_hits(cache, range(10))
    assert (cache.size, len(cache)) == (1000, 10)
    assert cache.get((HITS, 0)) == "0"
    cache.put((FACETS, "more"), "value", 120)
    assert cache.size <= 1000
    assert (HITS, 0) in cache
    assert (HITS, 1) not in cache


def test_one_kind_of_entries_can_be_cleared() -> None:
    cache = ResultCache(1000)
    keys = [(kind, "source", 1) for kind in KINDS]
    for key in keys:
        cache.put(key, Row("/plone"), 10)
    cache.clear(ROWS)
    assert [key[0] for key in keys if key in cache] == [HITS, FACETS, "values"]
    assert (cache.size, dict(cache.rows("source"))) == (30, {})
    cache.clear()
    assert (len(cache), cache.size) == (0, 0)


def test_rows_that_are_used_stay_longest() -> None:
    cache = ResultCache(1000)
    put_rows(cache, range(10))
    cache.rows("source")[0].used = True
    put_rows(cache, range(10, 15))
    assert sorted(cache.rows("source")) == [0, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert cache.size == 1000
    # Used once only.
    put_rows(cache, range(15, 25))
    assert sorted(cache.rows("source")) == list(range(15, 25))


def test_only_cached_rows_with_their_idx_are_counted() -> None:
    cache = ResultCache(5000)
    for rid in range(20):
        cache.put((ROWS, "source", 3 * rid), Row("/p", b"{}" if rid % 4 else None), 500)
    cache.put((ROWS, "source", 3 * 17), Row("/p"), 500)
    with_idx = [rid for rid, row in cache.rows("source").items() if row.idx is not None]
    assert cache.rows_with_idx("source") == len(with_idx)
    assert 0 < len(with_idx) < 10
    cache.clear(ROWS)
    assert cache.rows_with_idx("source") == 0


@pytest.mark.parametrize("first", ["rows", "answers"])
def test_answers_have_a_guaranteed_eighth_and_rows_the_rest(first: str) -> None:
    """Answers that are not repeated displace no row shown by a navigation; a scan of the whole site leaves some answers."""
    cache = ResultCache(1600)
    if first == "rows":
        put_rows(cache, range(14))
    put_hits(cache, range(50), 50)
    if first == "answers":
        put_rows(cache, range(14))
    assert sorted(cache.rows("source")) == [*range(14)]
    assert [number for number in range(50) if (HITS, number) in cache] == [46, 47, 48, 49]
    for number in range(14, 100):
        cache.put((ROWS, "source", number), Row("/plone"), 100, yields=number % 2 == 0)
    assert (cache.counts[HITS].bytes, cache.counts[ROWS].bytes) == (200, 1400)


def test_each_kind_counts_its_hits_and_misses() -> None:
    cache = ResultCache(1000)
    cache.put((HITS, 1), "value", 10)
    for key in ((HITS, 1), (HITS, 1), (HITS, 2), (FACETS, 1)):
        cache.get(key)
    counts = {kind: (count.hits, count.misses) for kind, count in cache.counts.items()}
    assert counts == {HITS: (2, 1), FACETS: (0, 1), "values": (0, 0), ROWS: (0, 0)}
    for undeclared in (lambda: cache.put(("mine", 1), "value", 10), lambda: cache.get(("mine", 1))):
        with pytest.raises(KeyError):
            undeclared()


def test_each_search_is_counted_by_kind(filled: Any) -> None:
    """A page of cached rows counts as many hits as it has rows."""
    cache = result_cache()

    def counted(query: dict[str, Any]) -> dict[str, tuple[int, int]]:
        before = {kind: (count.hits, count.misses) for kind, count in cache.counts.items()}
        shown(filled, **query)
        found = {kind: (n.hits - before[kind][0], n.misses - before[kind][1]) for kind, n in cache.counts.items()}
        return {kind: numbers for kind, numbers in found.items() if any(numbers)}

    cache.clear()
    assert counted(QUERY) == {HITS: (0, 1), ROWS: (0, 30)}
    assert counted(QUERY) == {HITS: (1, 0), ROWS: (30, 0)}
    assert counted({**QUERY, "sort_order": "reverse"}) == {HITS: (0, 1), ROWS: (30, 0)}


def test_cache_refuses_entries_larger_than_its_limit() -> None:
    cache = ResultCache(1000)
    small, large = (HITS, "small"), (HITS, "large")
    cache.put(small, 1, 100)
    cache.put(large, 1, 300)
    assert (small in cache, large in cache, cache.size) == (True, False, 100)
    cache.put(small, 2, 300)
    assert (small in cache, cache.size) == (False, 0)
    # A cache of size zero stores nothing.
    empty = ResultCache(0)
    empty.put(small, "value", 1)
    assert empty.get(small) is None


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), (1, 1.0), ("1", 1), ([1], (1,)), (["a", ["b"]], ["a", "b"]), (b"a", "a")]
)
def test_keys_distinguish_types(one: Any, other: Any) -> None:
    for key in (frozen, key_digest):
        assert key(one) != key(other)
        assert key(one) == key(copy.deepcopy(one))
        with pytest.raises(TypeError):  # a value of unknown type has no key
            key([object()])


def test_keys_of_texts_and_times_are_exact() -> None:
    berlin, moment = ZoneInfo("Europe/Berlin"), datetime(2026, 10, 25, 2, 30)
    different = [
        moment,
        moment.replace(tzinfo=berlin),
        moment.replace(tzinfo=berlin, fold=1),
        moment.replace(tzinfo=UTC),
        moment.date(),
        DateTime("2026/10/25 02:30 UTC"),
        moment.isoformat(),
        "\ud800",
        "'a', 'b'",
        ("a", "b"),
        ["a", "b"],
        {"a": "b"},
    ]
    assert len({key_digest(each) for each in different}) == len(different)
    assert key_digest("a", "b") != key_digest(("a", "b"))
