"""Values and SQL of the path translators; their hits are compared with the real indexes elsewhere."""

from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.path import ExtendedPathIndexTranslator
from plone.pgcatalog.indexes.path import MAX_BYTES
from plone.pgcatalog.indexes.path import PathIndexTranslator
from plone.pgcatalog.indexes.path import storable_path
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from types import SimpleNamespace
from typing import Any

import pytest


def extended(name: str = "path", **extra: Any) -> ExtendedPathIndexTranslator:
    return ExtendedPathIndexTranslator(ExtendedPathIndex(name, extra=extra), name)


def plain(name: str = "path") -> PathIndexTranslator:
    return PathIndexTranslator(PathIndex(name), name)


def silent(message: str) -> None:
    raise AssertionError(message)


def test_columns() -> None:
    assert [c.name for c in extended().columns()] == ["path_value", "parent_path", "depth"]
    assert [c.name for c in extended("where").columns()] == ["where_path", "where_parent", "where_depth"]


CONTENT = SimpleNamespace(getPhysicalPath=lambda: ("", "plone", "a", "b"))


@pytest.mark.parametrize("translator", [extended(), plain()])
def test_physical_path(translator: PathIndexTranslator) -> None:
    assert translator.extract(CONTENT, silent) == ("/plone/a/b", "/plone/a", 3)
    root = SimpleNamespace(getPhysicalPath=lambda: ("",))
    assert translator.extract(root, silent) == ("/", "/", 0)
    assert translator.extract(object(), silent) is None


@pytest.mark.parametrize("translator", [extended("where"), plain("where")])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/x/y", ("/x/y", "/x", 2)),
        (("", "x", "y"), ("/x/y", "/x", 2)),
        (lambda: "/x/y", ("/x/y", "/x", 2)),
        ("x", ("/x", "/", 1)),
        ("x//y/", ("/x/y", "/x", 2)),
        (None, ("/plone/a/b", "/plone/a", 3)),
    ],
)
def test_attribute_named_like_the_index(translator: PathIndexTranslator, value: Any, expected: Any) -> None:
    content = SimpleNamespace(where=value, getPhysicalPath=CONTENT.getPhysicalPath)
    assert translator.extract(content, silent) == expected


@pytest.mark.parametrize("translator", [extended("where"), plain("where")])
@pytest.mark.parametrize("value", [3, b"/x", ["", "x"], lambda: None])
def test_wrong_type(translator: PathIndexTranslator, value: Any) -> None:
    with pytest.raises(TypeError, match="path value must be string or tuple"):
        translator.extract(SimpleNamespace(where=value), silent)


def test_indexed_attribute_comes_first() -> None:
    translator = extended(indexed_attrs="target, other")
    assert translator.extract(SimpleNamespace(target="/x", path="/y"), silent) == ("/x", "/", 1)


def broken() -> str:
    raise AttributeError("title")


def test_broken_method() -> None:
    """The two index types differ here, and so do their translators."""
    content = SimpleNamespace(where=broken)
    assert plain("where").extract(content, silent) is None
    with pytest.raises(AttributeError):
        extended("where").extract(content, silent)


@pytest.mark.parametrize(
    ("path", "message", "value"),
    [
        ("/a/\0b", "does not support", "/a/\ufffdb"),
        ("/a/\udc80", "does not support", "/a/\ufffd"),
        ("/" + "ä" * MAX_BYTES, "too long", "/" + "ä" * (MAX_BYTES // 2 - 1)),
    ],
)
def test_unstorable_paths_are_changed_and_reported(path: str, message: str, value: str) -> None:
    reports: list[str] = []
    values = extended().extract(SimpleNamespace(path=path), reports.append)
    assert values is not None
    assert values[0] == value
    assert len(reports) == 1
    assert message in reports[0]


def test_storable_is_idempotent() -> None:
    for path in ("/a", "/a\0\ud800", "/" + "aä日😀" * 1000):
        once = storable_path(path)
        assert storable_path(once) == once
        assert len(once.encode()) <= MAX_BYTES


BELOW = '"path_value" = %s OR ("path_value" >= %s AND "path_value" < %s)'


@pytest.mark.parametrize(
    ("query", "sql", "params"),
    [
        ("/a", BELOW, ("/a", "/a/", "/a0")),
        ({"query": "/a", "depth": 0}, '"path_value" = %s', ("/a",)),
        ({"query": "/a/", "depth": 0}, '"path_value" = %s', ("/a/",)),
        ({"query": "a", "depth": 1}, '"parent_path" = %s', ("/a",)),
        ({"query": ["/a", "/b", "/a"], "depth": 1}, '"parent_path" = ANY(%s::text[])', (["/a", "/b"],)),
        ({"query": "/a", "depth": 2}, f'({BELOW}) AND ("depth" BETWEEN %s AND %s)', ("/a", "/a/", "/a0", 1, 3)),
        ({"query": "/a/b", "navtree": 1}, '"parent_path" = ANY(%s::text[])', (["/a/b", "/a", "/"],)),
        ({"query": "/a/b", "navtree": 1, "depth": 0}, '"path_value" = ANY(%s::text[])', (["/a/b", "/a", "/"],)),
        ({"query": "/", "navtree": 0}, '("path_value" IS NOT NULL) IS TRUE', ()),
        (["/a/b", "/a", "/a/c/d"], BELOW, ("/a", "/a/", "/a0")),
        (["/a", "/a-b"], f"({BELOW}) OR ({BELOW})", ("/a-b", "/a-b/", "/a-b0", "/a", "/a/", "/a0")),
    ],
)
def test_sql(query: Any, sql: str, params: Any) -> None:
    assert extended().where({"path": query}) == Condition(sql, params)


@pytest.mark.parametrize("query", [[], (), {"depth": 1}, {"query": []}, None, 7, [None], {"query": [("/a", "x")]}])
def test_impossible_query_finds_nothing(query: Any) -> None:
    assert extended().where({"path": query}) is NOTHING
    if not isinstance(query, dict):
        assert plain().where({"path": query}) is NOTHING


def test_query_of_another_index_has_no_condition_and_a_wrong_option_is_refused() -> None:
    assert extended().where({"portal_type": "Document"}) is None
    with pytest.raises(ValueError, match="option 'depth' is not valid"):
        plain().where({"path": {"query": "/a", "depth": 1}})


def test_many_subtrees_are_one_condition() -> None:
    condition = extended().where({"path": [f"/a/{i}" for i in range(1000)]})
    assert condition is not None
    assert condition.sql.count("%s") == 2


def test_container_of_the_whole_catalog_needs_no_index() -> None:
    """Nearly every row is in it; any other path has the range of an index."""

    class Placed(PathIndex):  # type: ignore[misc]
        def getPhysicalPath(self) -> tuple[str, ...]:
            return ("", "plone", "portal_catalog", "path")

    translator = PathIndexTranslator(Placed("path"), "path")
    for path in ("/plone", "/plone/portal_catalog/"):
        condition = translator.where({"path": path})
        assert condition is not None
        assert condition.sql == f"({BELOW}) IS TRUE"
    assert translator.where({"path": "/plone/a"}) == Condition(BELOW, ("/plone/a", "/plone/a/", "/plone/a0"))


def test_start_of_a_navigation_tree_below_the_root_is_the_root() -> None:
    for depth in (0, 1):
        query = {"query": "/plone/a", "navtree": 1, "depth": depth}
        trees = [extended().where({"path": query | {"navtree_start": start}}) for start in (0, -1, -(10**20))]
        assert trees[0] == trees[1] == trees[2]
