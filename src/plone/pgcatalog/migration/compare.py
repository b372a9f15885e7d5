"""Asks catalogs the same queries, and tells in what their answers differ."""

from AccessControl.SecurityManagement import getSecurityManager
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import setSecurityManager
from AccessControl.SpecialUsers import nobody
from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from plone.pgcatalog.migration.queries import SiteQuery
from plone.pgcatalog.results.cache import result_cache
from Products.ZCatalog.ZCatalog import ZCatalog
from statistics import median
from time import perf_counter
from typing import Any


#: What limits an answer: left out where answers are compared.
LIMITS = ("sort_limit", "b_start", "b_size")
#: How often each query is asked for a time, after a first time that is not counted.
REPEATS = 3


@dataclass(frozen=True)
class Answer:
    """What a catalog has found: for everybody's eyes and for visitors, in its order, and the times of a visitor's search.

    ``keys`` are the values that the answer is sorted by, as far as the sort index knows them.  ``ms`` is without, and
    ``cached_ms`` with the answers that our catalog keeps in the process.
    """

    everything: list[str]
    visible: list[str]
    keys: dict[str, Any]
    ms: float
    cached_ms: float


@dataclass(frozen=True)
class Comparison:
    """Two answers to a query: ``same``, ``ties`` (equal values in another order), ``order`` or ``different``."""

    query: SiteQuery
    verdict: str
    missing: list[str]
    additional: list[str]
    before_ms: float
    after_ms: float
    cached_ms: float

    @property
    def is_fine(self) -> bool:
        """True when both answers are right."""
        return self.verdict in ("same", "ties")


def ask(catalog: Any, query: SiteQuery, repeats: int = REPEATS) -> Answer:
    """Return what *catalog*, ZCatalog or ours, answers to *query*; times are the median of *repeats*.

    Raises what the catalog raises.
    """
    whole = {name: value for name, value in query.query.items() if name not in LIMITS}
    everything = catalog.unrestrictedSearchResults(**whole)
    keys = sort_keys(catalog, query.query.get("sort_on"), everything)
    with visitor():
        visible = [brain.getPath() for brain in catalog.searchResults(**whole)]

        def search() -> list[str]:
            return [brain.getPath() for brain in catalog.searchResults(**query.query)]

        ms, cached_ms = timed(search, repeats), timed(search, repeats, is_cached=True)
    return Answer([brain.getPath() for brain in everything], visible, keys, ms, cached_ms)


def timed(search: Callable[[], Any], repeats: int, is_cached: bool = False) -> float:
    """Return the median time of *search* in milliseconds, our cache of answers emptied before each unless *is_cached*."""
    search()
    times = []
    for _ in range(repeats):
        if not is_cached:
            result_cache().clear()
        started = perf_counter()
        search()
        times.append(1000 * (perf_counter() - started))
    return median(times)


@contextmanager
def visitor() -> Iterator[None]:
    """Act as somebody who has not logged in."""
    manager = getSecurityManager()
    newSecurityManager(None, nobody)
    try:
        yield
    finally:
        setSecurityManager(manager)


def sort_keys(catalog: Any, sort_on: Any, brains: Any) -> dict[str, Any]:
    """Return path -> what ZCatalog sorts it by; empty without a single sort index that tells it."""
    if not isinstance(aq_base(catalog), ZCatalog) or not isinstance(sort_on, str):
        return {}
    index = catalog._catalog.indexes.get(sort_on)
    rs = [brain.getRID() for brain in brains]  # GopipIndex takes the variable of this name from its caller
    keys = index.documentToKeyMap() if hasattr(index, "documentToKeyMap") else {}
    return {brain.getPath(): keys[rid] for rid, brain in zip(rs, brains, strict=True) if rid in keys}


def compare(query: SiteQuery, before: Answer, after: Answer) -> Comparison:
    """Return in what the answers to *query* differ."""
    missing = sorted({*before.everything} - {*after.everything} | {*before.visible} - {*after.visible})
    additional = sorted({*after.everything} - {*before.everything} | {*after.visible} - {*before.visible})
    if missing or additional:
        verdict = "different"
    elif not query.query.get("sort_on") or (before.everything, before.visible) == (after.everything, after.visible):
        verdict = "same"
    else:
        pairs = ((before.everything, after.everything), (before.visible, after.visible))
        verdict = "ties" if all(only_ties(*pair, before.keys) for pair in pairs) else "order"
    return Comparison(query, verdict, missing, additional, before.ms, after.ms, after.cached_ms)


def only_ties(before: list[str], after: list[str], keys: dict[str, Any]) -> bool:
    """True when *after* has the sort keys of *before* in the same order: only rows with equal keys have moved."""
    return all(one in keys and other in keys for one, other in zip(before, after, strict=True) if one != other) and [
        keys.get(path) for path in before
    ] == [keys.get(path) for path in after]
