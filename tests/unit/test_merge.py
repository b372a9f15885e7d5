"""Of a row that others have changed, only the values that differ from the snapshot are written."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.indexing import pending
from plone.pgcatalog.indexing.merge import Current
from plone.pgcatalog.indexing.merge import Merge
from plone.pgcatalog.indexing.merge import our_changes
from typing import Any
from ZODB.POSException import ConflictError

import pytest


OLD = {"title": "1", "roles": "1"}


@pytest.mark.parametrize(
    ("now", "ours", "expected"),
    [
        ({"title": "1", "roles": "1"}, {"title": "2", "roles": "1"}, {"title"}),
        ({"title": "1", "roles": "2"}, {"title": "2", "roles": "1"}, {"title"}),
        ({"title": "2", "roles": "1"}, {"title": "2", "roles": "1"}, set()),
        ({"title": "1", "roles": "1"}, {"title": "1", "roles": "1"}, set()),
        ({"title": "1", "roles": "2", "new": "1"}, {"new": "1"}, set()),
    ],
)
def test_values_that_differ_from_the_snapshot_are_ours(now: Any, ours: Any, expected: set[str]) -> None:
    assert our_changes("/a", OLD, now, ours) == expected


@pytest.mark.parametrize(
    ("now", "ours"),
    [({"title": "2", "roles": "1"}, {"title": "3"}), ({"title": "1", "roles": "1", "unknown": "1"}, {"unknown": "2"})],
)
def test_value_changed_by_both_is_a_conflict(now: Any, ours: Any) -> None:
    with pytest.raises(ConflictError):
        our_changes("/a", OLD, now, ours)


def test_an_emptied_column_is_written_again() -> None:
    assert our_changes("/a", OLD, OLD, OLD, frozenset({"title"})) == {"title"}
    with pytest.raises(ConflictError):
        our_changes("/a", OLD, {"title": "2"}, {"title": "1"}, frozenset({"title"}))


def row(rid: int, path: str, version: str = "1") -> pending.SeenRow:
    return pending.SeenRow(rid, path, rid, version, None, 1, "{1,1}", '{"title": "a"}', ("roles", "title"), None)


def entry(rid: int, path: str, **values: Any) -> pending.Entry:
    return pending.Entry(path, rid, rid, **({"full": True, "exists": True} | values))


def merge(
    entries: list[pending.Entry],
    seen: list[pending.SeenRow],
    now: list[pending.SeenRow],
    evicted: set[int] | None = None,
) -> Merge:
    return Merge(entries, {r.rid: r for r in seen}, now, evicted or set())


def test_nothing_changed_is_nothing_to_merge() -> None:
    assert not merge([entry(1, "/a")], [row(1, "/a")], [row(1, "/a")]).differs


def test_only_our_values_are_left() -> None:
    ours = entry(1, "/a", columns={"title": "new", "roles": ["old"]}, idx={"title": "b", "roles": 1})
    found = merge([ours], [row(1, "/a")], [row(1, "/b", "2")])
    assert found.changed == {1: ours}
    now = Current("/b", {"title": "1", "roles": "2"}, {"title": "2", "roles": "1"}, {"title": "a", "theirs": 1})
    found.merge_entry(ours, now, frozenset(), stored=False)
    [left] = found.live.values()
    assert (left.path, left.new, left.columns) == ("/b", False, {"title": "new"})
    assert (left.idx, left.vanished) == ({"title": "b", "roles": 1}, frozenset())


def test_moved_row_has_the_changes_of_others() -> None:
    moved = entry(1, "/b", exists=False, columns={"title": "old"})
    found = merge([pending.Entry("/a", 1, 1, deleted=True), moved], [row(1, "/a")], [row(1, "/a", "2")], {1})
    found.merge_entry(moved, Current("/a", {"title": "2", "roles": "1"}, {"title": "1"}, {}), frozenset(), stored=True)
    assert found.moved == {1: "/b"}
    assert found.evicted == set()
    assert found.live[1].columns == {}
    assert found.trees() == ["/a"]


def test_subtree_removed_by_others_stays_removed() -> None:
    entries = [entry(1, "/a"), entry(2, "/a/b"), entry(3, "/c")]
    found = merge(entries, [row(1, "/a"), row(3, "/c")], [row(3, "/c")])
    found.follow()
    assert set(found.live) == {3}
    assert set(found.removed) == {1, 2}


def test_new_row_below_a_changed_row_is_a_conflict_and_a_moved_one_is_not() -> None:
    """The moved row existed before."""
    below = Current("/a", {"title": "1", "roles": "2"}, {}, {})
    above = entry(1, "/a")
    found = merge([above, entry(2, "/a/b")], [row(1, "/a")], [row(1, "/a", "2")])
    found.merge_entry(above, below, frozenset(), stored=True)
    with pytest.raises(ConflictError, match="/a/b: /a was changed"):
        found.follow()
    above, moved = entry(1, "/a", full=False), entry(2, "/a/c", exists=False)
    found = merge([above, moved], [row(1, "/a"), row(2, "/a/b")], [row(1, "/a", "2"), row(2, "/a/b")], {2})
    found.merge_entry(above, below, frozenset(), stored=True)
    found.follow()
    assert set(found.live) == {1, 2}


@pytest.mark.parametrize("taken", [row(9, "/a/b"), row(2, "/elsewhere")])
def test_path_used_by_others_is_a_conflict(taken: pending.SeenRow) -> None:
    with pytest.raises(ConflictError):
        merge([entry(2, "/a/b", exists=False)], [], [taken])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 4), st.integers()),
        st.tuples(st.just("delete"), st.integers(0, 4)),
        st.tuples(st.just("clear")),
        st.tuples(st.just("mark")),
        st.tuples(st.just("forget"), st.integers(0, 9)),
        st.tuples(st.just("back"), st.integers(0, 9)),
    ),
    max_size=60,
)


@settings(derandomize=True, deadline=None)
@given(STEPS)
def test_rollback_restores_the_state_of_a_copy(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    journal = pending.Journal()
    target = pending.JournaledDict(journal)
    marks = []
    for kind, *args in steps:
        if kind == "set":
            target[args[0]] = args[1]
        elif kind == "delete" and args[0] in target:
            del target[args[0]]
        elif kind == "clear":
            target.clear()
        elif kind == "mark":
            marks.append((journal.mark(len(marks)), dict(target)))
        elif kind == "forget" and marks:
            del marks[args[0] % len(marks)]
        elif kind == "back" and marks:
            del marks[args[0] % len(marks) + 1 :]  # a rollback ends the later savepoints
            mark, expected = marks[-1]
            journal.rewind(mark)
            assert dict(target) == expected


def test_journal_has_the_entries_of_marks_in_use_only() -> None:
    """As in Plone: a savepoint for each object, of which only the latest is used."""
    journal = pending.Journal()
    target = pending.JournaledDict(journal)
    for number in range(100):
        target[number] = number
    assert len(journal) == 0
    longest = 0
    for number in range(1000):
        mark = journal.mark(None)
        target[number] = target[number // 2 - 1] = number
        longest = max(longest, len(journal))
    assert longest <= 4
    journal.rewind(mark)
    assert 999 not in target


def test_mark_can_be_rolled_back_to_again() -> None:
    journal = pending.Journal()
    target = pending.JournaledDict(journal)
    target["old"] = 1
    mark = journal.mark("state")
    for _ in range(2):
        target["old"] = 2
        target["new"] = 3
        journal.rewind(mark)
        assert target == {"old": 1}
    assert mark.state == "state"
