"""The path translators find what the real path indexes of a real catalog find."""

from collections.abc import Iterator
from OFS.Folder import Folder
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.path import ExtendedPathIndexTranslator
from plone.pgcatalog.indexes.path import PathIndexTranslator
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from Products.ZCatalog.ZCatalog import ZCatalog
from typing import Any

import psycopg
import pytest
import random


NAMES = [
    "a", "ab", "a-b", "a_b", "aXb", "a%", "a b", "a\\b", "a'b", 'a"b', "ä", "äb", "~a", "a.b", "a0", "A",
    "a%b", "日本", "news", "news-2", "b", "c",
]  # fmt: skip
QUERIES = 1600


class Content:
    """Something with a physical path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def getPhysicalPath(self) -> tuple[str, ...]:
        return ("", *self.path.split("/")[1:])


class Pair:
    """A real index in a real catalog, and its translator over a table with the same objects."""

    def __init__(self, connection: psycopg.Connection[Any], index: Any, translator: type[IndexTranslator]) -> None:
        site = Folder("plone")
        site._setObject("catalog", ZCatalog("catalog"))
        self.catalog = site.catalog._catalog.__of__(site.catalog)
        self.catalog.addIndex("docpath", index)
        self.index = self.catalog.getIndex("docpath")
        self.connection = connection
        self.translator = translator(self.index, "path")
        columns = self.translator.columns()
        self._execute(f"CREATE TABLE t (rid int PRIMARY KEY, {', '.join(c.ddl for c in columns)})")
        for sql_index in self.translator.sql_indexes():
            self._execute(f"CREATE INDEX ON t {sql_index.definition}")
        self.paths: list[str] = []

    def _execute(self, sql: str, params: tuple[Any, ...] = ()) -> psycopg.Cursor[Any]:
        return self.connection.execute(sql, params, prepare=False)

    def add(self, path: str) -> None:
        rid = len(self.paths) + 1
        self.paths.append(path)
        reports: list[str] = []
        values = self.translator.extract(Content(path), reports.append)
        assert values is not None
        assert reports == []
        self.index.index_object(rid, Content(path))
        casts = ", ".join(f"%s::{c.type}" for c in self.translator.columns())
        self._execute(f"INSERT INTO t VALUES (%s, {casts})", (rid, *values))
        assert self.translator.entry(values) == self.index.getEntryForObject(rid)

    def expected(self, query: dict[str, Any]) -> set[str]:
        rids, _ = self.index._apply_index(query)
        return {self.paths[rid - 1] for rid in rids}

    def found(self, query: dict[str, Any]) -> set[str]:
        condition = self.translator.where(query)
        assert condition is not None
        rows = self._execute(f"SELECT rid FROM t WHERE {condition.sql}", condition.params)
        return {self.paths[rid - 1] for (rid,) in rows}

    def check(self, path: Any, **options: Any) -> set[str]:
        """Return what both find; fail unless it is the same."""
        query = {"docpath": {"query": path, **options}}
        found = self.found(query)
        assert found == self.expected(query), query
        return found


def tree(rand: random.Random, base: str) -> list[str]:
    """Return about 150 paths below and including *base*, every level filled, the same names at many levels."""
    paths = [base]
    for level, count in enumerate((8, 30, 55, 40, 15)):
        depth = base.count("/") + level
        parents = [p for p in paths if p.count("/") == depth]
        paths += {f"{rand.choice(parents)}/{rand.choice(NAMES)}" for _ in range(count)}
    return paths


def with_tree(pair: Pair, seed: int, base: str = "/plone") -> Pair:
    for path in tree(random.Random(seed), base):
        pair.add(path)
    return pair


@pytest.fixture
def pair(connection: psycopg.Connection[Any]) -> Pair:
    return with_tree(Pair(connection, ExtendedPathIndex("docpath"), ExtendedPathIndexTranslator), 1)


def some_path(rand: random.Random, paths: list[str]) -> str:
    """Return an existing path, part of one, or none at all, in all ways it can be written."""
    comps = rand.choice(paths).split("/")[1:]
    kind = rand.random()
    if kind < 0.3:
        comps = comps[: rand.randint(0, len(comps))]
    elif kind < 0.5:
        first = rand.randint(0, len(comps))
        comps = comps[first : first + rand.randint(1, 3)]
    elif kind < 0.6:
        comps = [*comps, rand.choice(NAMES)]
    elif kind < 0.63:
        comps = ["nowhere", *comps]
    path = "/".join(comps)
    return rand.choice(["/", "/", "/", "/", "/", "", "//"]) + path + rand.choice(["", "", "", "", "/"])


def some_key(rand: random.Random, paths: list[str]) -> Any:
    path = some_path(rand, paths)
    return (path, rand.choice([-1, 0, 1, 2, "1"])) if rand.random() < 0.15 else path


def queries(
    seed: int, paths: list[str], deepest: int, options: tuple[str, ...]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Generate search paths and options; what is left out are the documented deviations."""
    rand = random.Random(seed)
    choices: dict[str, list[Any]] = {
        "level": [-1, -1, 0, 0, 0, 1, 2, 3, 7],
        "depth": [-1, 0, 0, 1, 1, 2, 3, 9],
        "navtree": [0, 1, 1, True],
        "navtree_start": list(range(deepest + 1)),
        "operator": ["or", "and", "AND"],
    }
    while True:
        keys: Any = [some_key(rand, paths) for _ in range(rand.choice([0, 1, 1, 1, 1, 1, 2, 3, 6]))]
        if len(keys) == 1 and isinstance(keys[0], str) and rand.random() < 0.7:
            keys = keys[0]
        yield keys, {name: rand.choice(choices[name]) for name in options if rand.random() < 0.5}


def is_deviation(index: Any, key: str | tuple[str, int], options: dict[str, Any]) -> bool:
    """No path at all, with a level: here the real index depends on the deepest level it has ever seen.

    It leaves out that level for depth 0 at any level (ExtendedPathIndex), and finds nothing for a level two
    below it (PathIndex).
    """
    path, level = key if isinstance(key, tuple) else (key, options.get("level", 0))
    if path.strip("/"):
        return False
    if index.meta_type == "PathIndex":
        return int(level) > int(index._depth) + 1
    return int(level) < 0 and options.get("depth") == 0


def check_random(pair: Pair, seed: int, options: tuple[str, ...]) -> None:
    checked = hits = 0
    for keys, chosen in queries(seed, pair.paths, pair.index._depth, options):
        if any(is_deviation(pair.index, k, chosen) for k in ([keys] if isinstance(keys, str) else keys)):
            continue
        hits += bool(pair.check(keys, **chosen))
        checked += 1
        if checked == QUERIES:
            break
    assert hits > QUERIES / 3


ALL_OPTIONS = ("level", "depth", "navtree", "navtree_start", "operator")


def test_random_queries(pair: Pair) -> None:
    check_random(pair, 11, ALL_OPTIONS)


def test_random_queries_without_navtree(pair: Pair) -> None:
    check_random(pair, 12, ("level", "depth", "operator"))


def test_random_queries_of_a_multi_valued_index(connection: psycopg.Connection[Any]) -> None:
    index = ExtendedPathIndex("docpath", extra={"multi_valued": True})
    pair = with_tree(Pair(connection, index, ExtendedPathIndexTranslator), 2)
    check_random(pair, 13, ALL_OPTIONS)


def test_random_queries_of_a_catalog_further_down(connection: psycopg.Connection[Any]) -> None:
    pair = with_tree(Pair(connection, ExtendedPathIndex("docpath"), ExtendedPathIndexTranslator), 3, "/plone/catalog/a")
    pair.add("/plone/catalog")
    pair.add("/plone")
    check_random(pair, 14, ALL_OPTIONS)


def test_random_queries_of_a_catalog_elsewhere(connection: psycopg.Connection[Any]) -> None:
    pair = with_tree(Pair(connection, ExtendedPathIndex("docpath"), ExtendedPathIndexTranslator), 4, "/other")
    for path in tree(random.Random(5), "/b"):
        pair.add(path)
    pair.add("/")
    check_random(pair, 15, ALL_OPTIONS)


def test_random_queries_of_a_path_index(connection: psycopg.Connection[Any]) -> None:
    pair = with_tree(Pair(connection, PathIndex("docpath"), PathIndexTranslator), 6)
    check_random(pair, 16, ("level", "operator"))


# -- by hand


@pytest.fixture
def site(connection: psycopg.Connection[Any]) -> Pair:
    pair = Pair(connection, ExtendedPathIndex("docpath"), ExtendedPathIndexTranslator)
    for path in SITE:
        pair.add(path)
    return pair


SITE = (
    "/plone",
    "/plone/news",
    "/plone/news/a",
    "/plone/news/a/b",
    "/plone/news/a/b/c",
    "/plone/news/z",
    "/plone/news-2",
    "/plone/news-2/a",
    "/plone/news_2",
    "/plone/newsX2",
    "/plone/newsX2/a",
    "/plone/100%",
    "/plone/100%/a",
    "/plone/1000",
    "/plone/1000/a",
    "/plone/back\\slash",
    "/plone/back\\slash/a",
    "/plone/über uns",
    "/plone/über uns/a",
    "/plone/events",
    "/plone/events/news",
    "/plone/events/news/a",
)


def below(path: str) -> set[str]:
    return {p for p in SITE if p == path or p.startswith(path + "/")}


@pytest.mark.parametrize("path", ["/plone", "/plone/", "plone", "/plone/catalog", "/", ""])
def test_containers_of_the_catalog_find_everything(site: Pair, path: str) -> None:
    assert site.check(path) == set(SITE)


def test_depth_without_query(site: Pair) -> None:
    query = {"docpath": {"depth": 1}}
    assert site.found(query) == site.expected(query) == set()
    assert site.check([]) == set()


@pytest.mark.parametrize("options", [{}, {"depth": 0}, {"depth": 1}, {"depth": 2}, {"navtree": 1}])
def test_very_many_paths(site: Pair, options: dict[str, Any]) -> None:
    many = [f"/plone/nothing-{i}" for i in range(700)]
    assert site.check([*many, "/plone/news", *SITE[6:8]], **options)


def test_old_style_options(site: Pair) -> None:
    query = {"docpath": "/plone/news", "docpath_depth": 1}
    assert site.found(query) == site.expected(query) == {"/plone/news/a", "/plone/news/z"}


@pytest.mark.parametrize("path", [None, 3, ("/plone/news",), ("/plone/news", "x"), b"/plone/news", {}])
def test_malformed_paths_find_nothing(site: Pair, path: Any) -> None:
    assert site.found({"docpath": {"query": [path]}}) == set()
    assert site.found({"docpath": {"query": [path, "/plone/news-2"]}}) == below("/plone/news-2")
    with pytest.raises((TypeError, ValueError, AttributeError, LookupError)):
        site.expected({"docpath": {"query": [path]}})


@pytest.mark.parametrize("options", [{"limit": 1}, {"operator": "xor"}, {"not": "/plone"}])
def test_wrong_options(site: Pair, options: dict[str, Any]) -> None:
    query = {"docpath": {"query": "/plone", **options}}
    with pytest.raises(ValueError):
        site.expected(query)
    with pytest.raises(ValueError):
        site.found(query)


def test_wrong_type_of_option(site: Pair) -> None:
    for options in ({"depth": "1"}, {"level": "1"}, {"navtree": 1, "navtree_start": "1"}):
        query = {"docpath": {"query": "/plone/news", **options}}
        with pytest.raises(TypeError):
            site.expected(query)
        with pytest.raises(TypeError):
            site.found(query)


def test_sorts_by_path(site: Pair) -> None:
    (expression,) = site.translator.order_by() or ()
    rows = site._execute(f"SELECT rid FROM t ORDER BY {expression}")
    assert [site.paths[rid - 1] for (rid,) in rows] == sorted(SITE)


def test_unique_values(site: Pair) -> None:
    rows = site._execute(
        f"SELECT k, count(*) FROM (SELECT {site.translator.key_expression()} AS k FROM t) s GROUP BY k"
    )
    keys = {key for key in site.index.uniqueValues() if key is not None}
    assert dict(rows.fetchall()) == {key: len(site.index._search(key, -1)) for key in keys}


# -- values that are no ordinary path


def test_strange_values_find_each_other(connection: psycopg.Connection[Any]) -> None:
    index = ExtendedPathIndex("docpath")
    pair = Pair(connection, index, ExtendedPathIndexTranslator)
    strange = {1: "/plone/nul\0", 2: "/plone/\ud800", 3: "/plone/" + "ä" * 3000, 4: "/plone" + "/abc" * 5000}
    for rid, path in strange.items():
        reports: list[str] = []
        values = pair.translator.extract(Content(path), reports.append)
        assert values is not None
        assert len(reports) == 1
        pair._execute("INSERT INTO t VALUES (%s, %s, %s, %s)", (rid, *values))
        pair.paths.append(path)
    assert pair.found({"docpath": "/plone"}) == set(strange.values())
    assert pair.found({"docpath": {"query": "/plone", "depth": 2}}) == set(list(strange.values())[:3])
    for path in strange.values():
        assert pair.found({"docpath": path}) == {path}
        assert pair.found({"docpath": {"query": path, "depth": 0}}) == {path}
        assert pair.found({"docpath": {"query": path, "depth": 3}}) == {path}
    assert pair.found({"docpath": {"query": "abc", "level": 40000}}) == set()


def test_subtree_uses_the_index(connection: psycopg.Connection[Any]) -> None:
    pair = Pair(connection, ExtendedPathIndex("docpath"), ExtendedPathIndexTranslator)
    pair._execute(
        "INSERT INTO t SELECT i, '/plone/f' || mod(i, 500) || '/d' || i, '/plone/f' || mod(i, 500), 3"
        " FROM generate_series(1, 20000) i"
    )
    pair._execute("ANALYZE t")
    for options in ({}, {"depth": 0}, {"depth": 1}, {"depth": 2}, {"navtree": 1}):
        condition = pair.translator.where({"docpath": {"query": "/plone/f7", **options}})
        assert condition is not None
        plan = pair._execute(f"EXPLAIN SELECT rid FROM t WHERE {condition.sql}", condition.params).fetchall()
        assert "Seq Scan" not in str(plan), (options, plan)
