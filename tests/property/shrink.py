"""Makes a failing example smaller while it goes on failing.

hypothesis is not used for these: it ends with the first failure, and what it draws for a seed is another thing with each of
its releases, but a run of ``make differential`` goes on behind a difference, counts those that are explained, and names each
query and sequence by a seed and a number that draw the same in any run.  Its shrinking would also repeat a sequence, which
takes seconds and commits, hundreds of times; halves and single steps need some twenty.
"""

from collections.abc import Callable
from collections.abc import Iterator
from tests.property.queries import Case
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
            yield value[:at] + value[at + 1 :]
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
