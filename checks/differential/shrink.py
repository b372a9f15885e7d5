"""Reduces a failing example as long as it still fails.

Hypothesis is not used for these:
- it ends with the first failure, while ``make differential`` continues and counts explained differences;
- its values for a seed change with each of its releases, while a query or sequence here is reproducible by seed and number;
- its shrinking would repeat a sequence, which takes seconds and commits, hundreds of times; here some twenty runs are
  enough.
"""

from checks.differential.queries import Case
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any


def shrink_case(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Remove keys, options and list items from *case* greedily, then the user and the method."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in smaller_cases(case):
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def smaller_cases(case: Case) -> Iterator[Case]:
    if case.method != "unrestrictedSearchResults":
        yield Case(case.query)
    for key, value in case.query.items():
        yield case.without(key)
        for smaller in smaller_values(value):
            yield case.with_value(key, smaller)


def smaller_values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {k: v for k, v in value.items() if k != key}
            for smaller in smaller_values(inner):
                yield value | {key: smaller}
        if set(value) == {"query"}:
            yield value["query"]
    elif isinstance(value, list | tuple) and not isinstance(value, str):
        for at in range(len(value)):
            yield type(value)([*value[:at], *value[at + 1 :]])
        if len(value) == 1:
            yield value[0]
    elif isinstance(value, str) and " " in value:
        words = value.split(" ")
        for at in range(len(words)):
            yield " ".join(words[:at] + words[at + 1 :])


def shrink_steps(steps: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Remove halves, then single *steps*, greedily."""
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            candidate = steps[:at] + steps[at + size :]
            if candidate and fails(candidate):
                steps = candidate
            else:
                at += size
        size //= 2
    return steps
