"""A journal goes back to any living mark, and remembers no more than that needs."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.indexing.pending import Journal
from plone.pgcatalog.indexing.pending import JournaledDict


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
def test_going_back_gives_what_a_copy_would(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    journal = Journal()
    target = JournaledDict(journal)
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
            journal.go_back(mark)
            assert dict(target) == expected


def test_without_marks_nothing_is_remembered() -> None:
    journal = Journal()
    target = JournaledDict(journal)
    for number in range(100):
        target[number] = number
    assert len(journal) == 0


def test_what_only_forgotten_marks_need_is_forgotten() -> None:
    """As Plone does: a savepoint for each object, of which only the latest is kept."""
    journal = Journal()
    target = JournaledDict(journal)
    longest = 0
    for number in range(1000):
        mark = journal.mark(None)
        target[number] = target[number // 2 - 1] = number
        longest = max(longest, len(journal))
    assert longest <= 4
    journal.go_back(mark)
    assert 999 not in target


def test_a_mark_can_be_gone_back_to_again() -> None:
    journal = Journal()
    target = JournaledDict(journal)
    target["kept"] = 1
    mark = journal.mark("state")
    for _ in range(2):
        target["kept"] = 2
        target["new"] = 3
        journal.go_back(mark)
        assert target == {"kept": 1}
    assert mark.state == "state"
