"""The check of the demo must see every kind of difference: here it is shown some."""

from collections.abc import Callable
from DateTime import DateTime
from demo import check
from demo.tour import Step
from types import SimpleNamespace
from typing import Any

import pytest


SORTED = Step("sorted", {"sort_on": "title"})
LIMITED = Step("limited", {"sort_on": "title", "sort_limit": 2})
PLAIN = Step("plain", {"SearchableText": "x"})


class Results(list[Any]):
    actual_result_count = 0


def catalog(paths: str, count: int | None = None, **metadata: Any) -> Any:
    """Return a catalog that answers every search with these one-letter paths.

    The sort key of a path is its letter in lower case.
    """
    values = {"Title": "t", **metadata}
    brains = {
        path: SimpleNamespace(
            getPath=lambda path=path: path,
            getURL=lambda path=path: f"http://{path}",
            getObject=lambda path=path: path,
            **values,
        )
        for path in paths
    }
    index = SimpleNamespace(documentToKeyMap=lambda: {p: p.lower() for p in "aAbBcCdD"})

    class Inner(dict[str, Any]):
        def getIndex(self, name: str) -> Any:
            return index

    def search(**query: Any) -> Results:
        results = Results(brains[path] for path in paths)
        results.actual_result_count = len(paths) if count is None else count
        return results

    search.uniqueValuesFor = lambda name: list(paths)  # type: ignore[attr-defined]
    search.getrid = lambda path: path if path in brains else None  # type: ignore[attr-defined]
    search._catalog = Inner(brains)  # type: ignore[attr-defined]
    search.schema = lambda: ["Title"]  # type: ignore[attr-defined]
    return search


def whats(ours: Any, theirs: Any, step: Step = PLAIN) -> list[str]:
    compare: Callable[..., Any] = check.compare_values if step.values_of else check.compare_searches
    site = SimpleNamespace(portal_catalog=ours)
    return [difference.what for difference in compare(site, theirs, step)]


@pytest.mark.parametrize(
    ("ours", "theirs", "step"),
    [
        pytest.param("abc", "abc", PLAIN, id="same"),
        pytest.param("cab", "abc", PLAIN, id="ranking is not order"),
        pytest.param("aAb", "Aab", SORTED, id="equal keys in any order"),
        pytest.param("aB", "ab", LIMITED, id="another one of equal keys at the limit"),
    ],
)
def test_no_difference(ours: str, theirs: str, step: Step) -> None:
    oracle = catalog(theirs)
    # The oracle knows all objects, not only those it answers with.
    oracle.getrid = lambda path: path
    oracle._catalog.update(catalog("aAbBcC")._catalog)
    assert whats(catalog(ours), oracle, step) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "step", "what"),
    [
        ("ab", "abc", PLAIN, ["len", "actual_result_count", "hits"]),
        ("abcd", "abc", PLAIN, ["len", "actual_result_count", "hits"]),
        ("abd", "abc", PLAIN, ["hits"]),
        ("aab", "abc", PLAIN, ["an object twice", "hits"]),
        ("acb", "abc", SORTED, ["order"]),
        ("abd", "abc", SORTED, ["hits"]),
        ("aAc", "abc", LIMITED, ["order", "hits"]),
        ("abc", "bac", Step("values", values_of="Subject"), ["Subject values"]),
    ],
)
def test_difference(ours: str, theirs: str, step: Step, what: list[str]) -> None:
    assert whats(catalog(ours), catalog(theirs), step) == what


def test_nothing_found_is_no_proof() -> None:
    site = SimpleNamespace()
    assert check.unproven(site, catalog("a"), [PLAIN, SORTED]) == []
    assert check.unproven(site, catalog(""), [PLAIN, SORTED]) == ["plain", "sorted"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(["a"], ("a",)), (1, True), (1, "1"), (DateTime("2026-01-01"), "2026-01-01"), ({"a": (1,)}, {"a": [1]})],
)
def test_metadata_of_another_type(ours: Any, theirs: Any) -> None:
    found = whats(catalog("a", Title=ours), catalog("a", Title=theirs))
    assert found == ["Title of a"]
