"""The check: runs every query of the tour on our catalog and on a ZCatalog, and compares the results."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from datetime import datetime
from demo.site import acting_as
from demo.tour import PAGE
from demo.tour import Step
from plone.pgcatalog.indexing.objects import content_of
from plone.pgcatalog.migration.compare import LIMITS
from plone.pgcatalog.migration.tools import new_successor
from rich.table import Table
from typing import Any


EVERYTHING = Step("Everything", {"path": "/"}, user="admin")
SHOWN = 5


def make_oracle(site: Any, advance: Callable[[], None]) -> Any:
    """Return a ZCatalog with the site's content, configured like its catalog and not stored."""
    oracle = new_successor(site.portal_catalog)
    for path, obj in content_of(site.portal_catalog):
        oracle.catalog_object(obj, path)
        site._p_jar.cacheGC()
        advance()
    return oracle


@dataclass(frozen=True)
class Difference:
    """A different answer of our catalog."""

    step: str
    aspect: str
    ours: str
    zcatalog: str


def compare(site: Any, oracle: Any, steps: list[Step], advance: Callable[[], None]) -> list[Difference]:
    """Return every difference between the site's catalog and the oracle."""
    found: list[Difference] = []
    for step in (EVERYTHING, *steps):
        with acting_as(site, step.user):
            if step.values_of:
                found += compare_values(site, oracle, step)
            else:
                found += compare_searches(site, oracle, step)
                # A limit hides further rows, so repeat the query without it.
                rest = {k: v for k, v in step.query.items() if k not in LIMITS}
                if rest != step.query:
                    whole = replace(step, title=f"{step.title} (all)", query=rest)
                    found += compare_searches(site, oracle, whole)
        advance()
    return found


def unproven(site: Any, oracle: Any, steps: list[Step]) -> list[str]:
    """Return the queries that find nothing, because the content is missing."""
    empty = []
    for step in steps:
        with acting_as(site, step.user):
            if not len(step.run(oracle)):
                empty.append(step.title)
    return empty


def compare_values(site: Any, oracle: Any, step: Step) -> Iterator[Difference]:
    values, expected = step.run(site.portal_catalog), step.run(oracle)
    if list(values) != list(expected):
        yield Difference(step.title, f"{step.values_of} values", *_sets(values, expected))


def compare_searches(site: Any, oracle: Any, step: Step) -> Iterator[Difference]:
    """Yield the differences in counts, hits, order and the first brains."""
    results, reference = step.run(site.portal_catalog), step.run(oracle)
    for aspect, number, expected_number in (
        ("len", len(results), len(reference)),
        ("actual_result_count", results.actual_result_count, reference.actual_result_count),
    ):
        if number != expected_number:
            yield Difference(step.title, aspect, str(number), str(expected_number))
    paths, expected = _paths(results), _paths(reference)
    if len(set(paths)) != len(paths):
        yield Difference(step.title, "an object twice", str(len(paths)), "-")
    names = step.query.get("sort_on")
    limited = any(limit in step.query for limit in LIMITS)
    if set(paths) != set(expected) and not (names and limited):
        yield Difference(step.title, "hits", *_sets(paths, expected))
    elif names:
        # Any order of equal keys is right; at a limit any of them may be included.
        key = _sort_key(site, oracle, [names] if isinstance(names, str) else names)
        keys, expected_keys = list(map(key, paths)), list(map(key, expected))
        if keys != expected_keys:
            yield Difference(step.title, "order", *_first(keys, expected_keys))
        edge = {*expected_keys[:1], *expected_keys[-1:]}
        pairs = zip(expected, expected_keys, strict=True)
        inner = {path for path, its_key in pairs if its_key not in edge}
        if missing := inner - set(paths):
            yield Difference(step.title, "hits", "missing", str(sorted(missing)[:SHOWN]))
    yield from compare_brains(oracle, step, results[:PAGE])


def compare_brains(oracle: Any, step: Step, brains: Any) -> Iterator[Difference]:
    """Yield the differences in each metadata value and its type, and in the methods of a brain."""
    for brain in brains:
        path = brain.getPath()
        rid = oracle.getrid(path)
        if rid is None:
            continue  # reported with the hits
        other = oracle._catalog[rid]
        for name in oracle.schema():
            value, expected = getattr(brain, name), getattr(other, name)
            if describe(value) != describe(expected):
                title = f"{name} of {path}"
                shown = (_short(describe(value)), _short(describe(expected)))
                yield Difference(step.title, title, *shown)
        for name in ("getURL", "getObject"):
            value, expected = getattr(brain, name)(), getattr(other, name)()
            if value != expected:
                yield Difference(step.title, f"{name}() of {path}", repr(value), repr(expected))


def describe(value: Any) -> Any:
    """Return the value with the types of all its parts, for a comparison."""
    if isinstance(value, Mapping):
        parts: Any = {k: describe(v) for k, v in value.items()}
    elif isinstance(value, (list, tuple)):
        parts = [describe(v) for v in value]
    elif isinstance(value, datetime):
        # Equal moments in different zones are displayed differently.
        parts = (value.replace(tzinfo=None), value.utcoffset())
    else:
        parts = value
    return type(value).__name__, parts


def _sort_key(site: Any, oracle: Any, names: list[str]) -> Callable[[str], Any]:
    """Return a function: path -> its sort key in the oracle's indexes."""
    maps = {
        name: oracle._catalog.getIndex(name).documentToKeyMap() for name in names if name != "getObjPositionInParent"
    }

    def key(path: str) -> tuple[Any, ...]:
        rid = oracle.getrid(path)
        parent, _, child = path.rpartition("/")
        return tuple(
            maps[name].get(rid) if name in maps else site.unrestrictedTraverse(parent).getObjectPosition(child)
            for name in names
        )

    return key


def _paths(results: Any) -> list[str]:
    return [brain.getPath() for brain in results]


def _sets(values: Any, expected: Any) -> tuple[str, str]:
    """Return the elements that only one of the two has."""
    more, fewer = sorted(set(values) - set(expected)), sorted(set(expected) - set(values))
    if not more and not fewer:
        return _first(list(values), list(expected))
    return f"{len(more)} more {more[:SHOWN]}", f"{len(fewer)} more {fewer[:SHOWN]}"


def _first(values: list[Any], expected: list[Any]) -> tuple[str, str]:
    """Return the first different elements of two sequences."""
    for number, (value, other) in enumerate(zip(values, expected, strict=False)):
        if value != other:
            return f"[{number}] {_short(value)}", f"[{number}] {_short(other)}"
    return f"{len(values)} in all", f"{len(expected)} in all"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 200 else f"{text[:197]}..."


def table(differences: list[Difference]) -> Table:
    """Return the differences as a table for the screen."""
    result = Table(title=f"{len(differences)} differences", title_style="bold red")
    for name in ("Query", "Aspect", "Ours", "ZCatalog"):
        result.add_column(name, overflow="fold")
    for difference in differences:
        result.add_row(difference.step, difference.aspect, difference.ours, difference.zcatalog)
    return result
