"""The path translators have the hits of the real path indexes of a real catalog."""

from collections.abc import Callable
from collections.abc import Iterable
from OFS.Folder import Folder
from plone.pgcatalog.indexes.registry import BUILT_IN
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from Products.ZCatalog.ZCatalog import ZCatalog
from tests.integration.translated import Pair
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import random


NAMES = [
    "a", "ab", "a-b", "a_b", "aXb", "a%", "a b", "a\\b", "a'b", 'a"b', "ä", "äb", "~a", "a.b", "a0", "A",
    "a%b", "日本", "news", "news-2", "b", "c",
]  # fmt: skip
QUERIES = 1600


def content(path: str) -> Any:
    """Return an object with a physical path."""
    return SimpleNamespace(getPhysicalPath=lambda: ("", *path.split("/")[1:]))


def pair_of(connection: psycopg.Connection[Any], index: Any = None) -> Pair:
    """Return *index* in a real catalog, and its translator over a table."""
    site = Folder("plone")
    site._setObject("catalog", ZCatalog("catalog"))
    catalog = site.catalog._catalog.__of__(site.catalog)
    catalog.addIndex("docpath", index or ExtendedPathIndex("docpath"))
    real = catalog.getIndex("docpath")
    return Pair(connection, "docpath", real, BUILT_IN[real.meta_type](real, "path"), content)


def tree(rand: random.Random, base: str) -> list[str]:
    """Return about 150 paths below and including *base*, every level filled, the same names at many levels."""
    paths = [base]
    for level, count in enumerate((8, 30, 55, 40, 15)):
        depth = base.count("/") + level
        parents = [p for p in paths if p.count("/") == depth]
        paths += {f"{rand.choice(parents)}/{rand.choice(NAMES)}" for _ in range(count)}
    return paths


def with_tree(pair: Pair, seed: int, base: str = "/plone", *more: str) -> Pair:
    """Add a tree below *base*, and the paths *more*, to *pair*; check the entries."""
    pair.add_both(*tree(random.Random(seed), base), *more)
    for rid, *values in pair.execute("SELECT * FROM things"):
        assert pair.translator.entry(tuple(values)) == pair.index.getEntryForObject(rid)
    return pair


def some_path(rand: random.Random, paths: list[str]) -> str:
    """Return an existing path, part of one, or a missing path, in any spelling."""
    comps = rand.choice(paths).split("/")[1:]
    first = rand.randint(0, len(comps))
    parts = (comps, comps[:first], comps[first : first + rand.randint(1, 3)], [*comps, rand.choice(NAMES)])
    path = "/".join(rand.choice((comps, comps, *parts)))
    return rand.choice(["/", "/", "/", "/", "/", "", "//"]) + path + rand.choice(["", "", "", "", "/"])


def some_key(rand: random.Random, paths: list[str]) -> Any:
    path = some_path(rand, paths)
    return (path, rand.choice([-1, 0, 1, 2, "1"])) if rand.random() < 0.15 else path


def is_deviation(index: Any, key: str | tuple[str, int], options: dict[str, Any]) -> bool:
    """Return whether *key* is no path but has a level: here the real index depends on the deepest level it has ever seen.

    ExtendedPathIndex leaves out that level for depth 0 at any level, and PathIndex finds nothing for a level two below it.
    """
    path, level = key if isinstance(key, tuple) else (key, options.get("level", 0))
    if path.strip("/"):
        return False
    if index.meta_type == "PathIndex":
        return int(level) > int(index._depth) + 1
    return int(level) < 0 and options.get("depth") == 0


CHOICES: dict[str, list[Any]] = {
    "level": [-1, -1, 0, 0, 0, 1, 2, 3, 7],
    "depth": [-1, 0, 0, 1, 1, 2, 3, 9],
    "navtree": [0, 1, 1, True],
    "navtree_start": [],
    "operator": ["or", "and", "AND"],
}


MULTI_VALUED = {"multi_valued": True}
#: Name -> (pair on a connection, options of the queries).
TREES: dict[str, tuple[Callable[[Any], Pair], Iterable[str]]] = {
    "any options": (lambda c: with_tree(pair_of(c), 1), CHOICES),
    "without navtree": (lambda c: with_tree(pair_of(c), 1), ("level", "depth", "operator")),
    "multi-valued index": (
        lambda c: with_tree(pair_of(c, ExtendedPathIndex("docpath", extra=MULTI_VALUED)), 2),
        CHOICES,
    ),
    "catalog below": (lambda c: with_tree(pair_of(c), 3, "/plone/catalog/a", "/plone/catalog", "/plone"), CHOICES),
    "catalog elsewhere": (lambda c: with_tree(pair_of(c), 4, "/other", *tree(random.Random(5), "/b"), "/"), CHOICES),
    "PathIndex": (lambda c: with_tree(pair_of(c, PathIndex("docpath")), 6), ("level", "operator")),
}


@pytest.mark.parametrize("queries", [QUERIES // 4, pytest.param(QUERIES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TREES)
def test_random_queries(connection: psycopg.Connection[Any], name: str, queries: int) -> None:
    """Compare random search paths with random options, except the documented deviations."""
    make, names = TREES[name]
    pair, rand = make(connection), random.Random(name)
    choices = CHOICES | {"navtree_start": list(range(pair.index._depth + 1))}
    checked = hits = 0
    while checked < queries:
        keys: Any = [some_key(rand, pair.texts) for _ in range(rand.choice([0, 1, 1, 1, 1, 1, 2, 3, 6]))]
        if len(keys) == 1 and isinstance(keys[0], str) and rand.random() < 0.7:
            keys = keys[0]
        options = {name: rand.choice(choices[name]) for name in names if rand.random() < 0.5}
        if any(is_deviation(pair.index, key, options) for key in ([keys] if isinstance(keys, str) else keys)):
            continue
        hits += bool(pair.check({"query": keys, **options}))
        checked += 1
    assert hits > queries / 3


@pytest.fixture
def site(connection: psycopg.Connection[Any]) -> Pair:
    pair = pair_of(connection)
    pair.add_both(*SITE)
    return pair


SITE = tuple(
    f"/plone{path}"
    for path in (
        *("", "/news", "/news/a", "/news/a/b", "/news/a/b/c", "/news/z", "/news-2", "/news-2/a", "/news_2", "/newsX2"),
        *("/newsX2/a", "/100%", "/100%/a", "/1000", "/1000/a", "/back\\slash", "/back\\slash/a", "/über uns"),
        *("/über uns/a", "/events", "/events/news", "/events/news/a"),
    )
)


def test_containers_find_everything_and_no_path_nothing(site: Pair) -> None:
    for path in ("/plone", "/plone/", "plone", "/plone/catalog", "/", ""):
        assert site.check(path) == set(SITE), path
    assert site.check({"depth": 1}) == site.check([]) == set()


def test_very_many_paths(site: Pair) -> None:
    many = [f"/plone/nothing-{i}" for i in range(700)]
    for options in ({}, {"depth": 0}, {"depth": 1}, {"depth": 2}, {"navtree": 1}):
        assert site.check({"query": [*many, "/plone/news", *SITE[6:8]], **options}), options


def test_old_style_options(site: Pair) -> None:
    condition = site.translator.where({"docpath": "/plone/news", "docpath_depth": 1})
    assert condition is not None
    assert {site.texts[rid - 1] for rid in site.rids(condition)} == {"/plone/news/a", "/plone/news/z"}


def test_unique_values(site: Pair) -> None:
    key = site.translator.key_expression()
    rows = site.execute(f"SELECT k, count(*) FROM (SELECT {key} AS k FROM things) s GROUP BY k")
    keys = {key for key in site.index.uniqueValues() if key is not None}
    assert dict(rows) == {key: len(site.index._search(key, -1)) for key in keys}


def test_strange_values_find_each_other(connection: psycopg.Connection[Any]) -> None:
    pair = pair_of(connection)
    strange = ("/plone/nul\0", "/plone/\ud800", "/plone/" + "ä" * 3000, "/plone" + "/abc" * 5000)
    for path in strange:
        assert len(pair.add_text(path)) == 1
    assert pair.found("/plone") == set(strange)
    assert pair.found({"query": "/plone", "depth": 2}) == set(strange[:3])
    for path in strange:
        for options in ({}, {"depth": 0}, {"depth": 3}):
            assert pair.found({"query": path, **options}) == {path}
    assert pair.found({"query": "abc", "level": 40000}) == set()
