"""Objects stored by a process are in its object cache, equal to the database, and its snapshots stay right."""

from BTrees.Length import Length
from persistent.mapping import PersistentMapping
from tests.integration.storage import clear_storage_cache
from tests.integration.storage import jar as jar
from tests.integration.storage import other as other
from tests.integration.storage import save
from tests.integration.stored_values import cases
from tests.integration.stored_values import Holder
from transaction import TransactionManager
from typing import Any
from ZODB.utils import p64

import pytest


def cached(jar: Any) -> dict[bytes, tuple[bytes, bytes]]:
    """Return the records that the process of *jar* has cached: oid -> (record, tid)."""
    return {p64(zoid): entry for zoid, entry in jar.db().storage._shared_cache._cache.items()}


def in_database(jar: Any, oids: list[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    """Return the same, read from the database."""
    clear_storage_cache(jar)
    found: dict[bytes, tuple[bytes, bytes]] = jar._normal_storage.load_multiple(oids)
    return found


def test_stored_objects_are_loaded_without_a_message(jar: Any) -> None:
    with jar.transaction_manager:
        jar.root()["number"] = 1
    jar.transaction_manager.begin()
    jar.cacheMinimize()
    before = jar._normal_storage._pg_load_count
    assert jar.root()["number"] == 1
    assert jar._normal_storage._pg_load_count == before


def test_cached_records_of_stored_objects_are_those_of_the_database(jar: Any) -> None:
    with jar.transaction_manager:
        for name, value in cases():
            jar.root()[name] = holder = Holder()
            holder.odd = value
    jar.transaction_manager.begin()
    oids = [jar.root()._p_oid, *(jar.root()[name]._p_oid for name, _ in cases())]
    stored = cached(jar)
    assert {oid: stored[oid] for oid in oids} == in_database(jar, oids)


def test_cached_record_of_a_resolved_conflict_is_that_of_the_database(jar: Any) -> None:
    with jar.transaction_manager:
        jar.root()["length"] = length = Length(1)
    second = jar.db().open(TransactionManager())
    for each in (jar, second):
        each.transaction_manager.begin()
        each.root()["length"].change(1)
    jar.transaction_manager.commit()
    second.transaction_manager.commit()
    second.close()
    jar.transaction_manager.begin()
    oid = length._p_oid
    assert {oid: cached(jar)[oid]} == in_database(jar, [oid])
    assert jar.root()["length"]() == 3


def test_object_changed_by_another_process_after_a_save_is_read_again(jar: Any, other: Any) -> None:
    with jar.transaction_manager:
        jar.root()["number"] = 1
    save(other, 2)
    second = jar.db().open(TransactionManager())
    for each in (jar, second):
        each.transaction_manager.begin()
        each.cacheMinimize()
        assert each.root()["number"] == 2
    second.transaction_manager.abort()
    second.close()


def test_snapshot_is_not_changed_by_stores_of_its_process(jar: Any) -> None:
    jar.transaction_manager.begin()
    assert jar.root()["number"] == 0
    second = jar.db().open(TransactionManager())
    with second.transaction_manager:
        second.root()["number"] = 1
    second.close()
    jar.cacheMinimize()
    jar._normal_storage._load_cache.clear()
    assert jar.root()["number"] == 0
    jar.transaction_manager.begin()
    assert jar.root()["number"] == 1


def test_snapshot_between_two_commits_shows_the_first(jar: Any, other: Any) -> None:
    """The second commit is this process's own, and ends before the snapshot has dropped the objects changed by the first."""
    with jar.transaction_manager:
        jar.root()["page"] = PersistentMapping()
    second = jar.db().open(TransactionManager(explicit=True))
    second.transaction_manager.begin()
    second.root()["page"]["title"] = "Changed"
    jar.transaction_manager.begin()
    save(other, 1)
    snapshots = jar._normal_storage.snapshots
    messages = snapshots._messages

    def read_changes(*arguments: Any) -> Any:
        snapshots._messages = messages
        second.transaction_manager.commit()
        return messages.read_changes(*arguments)

    snapshots._messages = messages._replace(read_changes=read_changes)
    # Begins the next snapshot.
    jar.transaction_manager.abort()
    assert snapshots._messages is messages
    assert jar.root()["number"] == 1
    assert "title" not in jar.root()["page"]
    second.close()


def test_new_connection_after_a_commit_shows_earlier_changes_of_others(jar: Any, other: Any) -> None:
    """No connection of this process has read the change of the other one."""
    with jar.transaction_manager:
        jar.root()["page"] = PersistentMapping()
    second, third = (jar.db().open(TransactionManager(explicit=True)) for _ in range(2))
    third.close()
    second.transaction_manager.begin()
    assert second.root()["number"] == 0
    second.root()["page"]["title"] = "Changed"
    save(other, 1)
    second.transaction_manager.commit()
    new = jar.db().open(TransactionManager())
    fourth = jar.db().open(TransactionManager())
    for each in (new, fourth, second):
        each.transaction_manager.begin()
        assert each.root()["page"]["title"] == "Changed"
        assert each.root()["number"] == 1
        each.transaction_manager.abort()
        each.close()


def test_aborted_commit_leaves_nothing_in_the_cache(jar: Any) -> None:
    jar.transaction_manager.begin()
    jar.root()["number"] = 1
    jar.transaction_manager.get().join(Refusing())
    with pytest.raises(ArithmeticError):
        jar.transaction_manager.commit()
    jar.transaction_manager.begin()
    assert jar.root()["number"] == 0
    stored = cached(jar)
    assert stored == in_database(jar, [*stored])


class Refusing:
    """A data manager that refuses the commit when all others have voted."""

    def sortKey(self) -> str:
        return "~"

    def tpc_vote(self, transaction: Any) -> None:
        raise ArithmeticError

    def abort(self, transaction: Any) -> None:
        """Do nothing."""

    tpc_begin = commit = tpc_finish = tpc_abort = abort
