"""PathIndex and ExtendedPathIndex, with three columns (path, parent path, depth) in place of BTrees.

A path is a list of components.  As in the real indexes, each component has a level (from 0), and the path ends at the
level of its last component.  ``depth`` is the number of components, so a path ends at level ``depth - 1``.  Paths are
stored in one normal form: ``/``, or ``/a/b`` without double or trailing slashes.

The real indexes are bounded by the deepest level they have ever seen (``_depth``: the union over all levels for ``level
< 0``, a ``navtree_start`` or ``level`` below it finds nothing); these have no bound.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import chain
from itertools import takewhile
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import LimitExceeded
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.sql.predicate import below
from plone.pgcatalog.sql.predicate import between
from plone.pgcatalog.sql.predicate import compared
from plone.pgcatalog.sql.predicate import equal_to_any
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.values import is_storable
from plone.pgcatalog.sql.values import storable
from plone.pgcatalog.sql.values import whole
from Products.PluginIndexes.util import safe_callable
from typing import Any
from typing import NamedTuple


# -- columns


#: A B-tree refuses rows over 2,704 bytes.  Longer paths are cut, in rows and in queries: they are still found below all
#: their containers, and only paths with the same beginning are mistaken for each other.
MAX_BYTES = 2600
#: Up to this number, subtrees are looked up one by one; more are compared with each row's containers, which takes as long
#: for any number of subtrees.
MANY_SUBTREES = 200


def components(path: str) -> list[str]:
    """Split *path* as PathIndex does: empty components do not count."""
    return [c for c in path.split("/") if c]


def joined(comps: Iterable[str]) -> str:
    """Return the path with the components *comps*."""
    return storable_path("/" + "/".join(comps))


def storable_path(path: str) -> str:
    """Return *path* as PostgreSQL can store and index it.

    NUL and lone surrogates become U+FFFD, in values and in queries alike, so that they still match.
    """
    path = storable(path)
    if len(path) * 4 <= MAX_BYTES:
        return path
    return path.encode()[:MAX_BYTES].decode(errors="ignore")


class Found(NamedTuple):
    """The rows that one or more search paths find: equal paths, children, whole subtrees, and other conditions.

    They are separate so that many search paths become one array instead of many conditions.
    """

    paths: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    subtrees: tuple[str, ...] = ()
    others: tuple[Condition, ...] = ()

    @staticmethod
    def union(parts: Iterable["Found"]) -> "Found":
        """Return the union of *parts*."""
        return Found(*(tuple(chain.from_iterable(kind)) for kind in zip(*parts, strict=True)))


class PathColumns:
    """The columns named after *base*, and the conditions over them."""

    def __init__(self, base: str) -> None:
        is_path = base == "path"
        self.path = Column("path_value" if is_path else f"{base}_path", "text")
        self.parent = Column("parent_path" if is_path else f"{base}_parent", "text")
        self.depth = Column("depth" if is_path else f"{base}_depth", "integer")

    def condition(self, found: Found) -> Condition:
        """Return the condition for the rows of *found*."""
        subtrees = outermost(found.subtrees)
        if len(subtrees) > MANY_SUBTREES:
            inside = [self._below_any(subtrees)]
        else:
            inside = [self.below(p) for p in subtrees]
        equal = [equal_to_any(self.path, found.paths), equal_to_any(self.parent, found.parents)]
        return any_of([*equal, *inside, *found.others])

    def everything(self) -> Condition:
        """Return the condition for objects with a path.

        Nearly every row has one, so the index is of no use; but if much was added to a text index since the last
        VACUUM, the planner may estimate the path index as cheaper, and then all texts are read.  So the index is not
        used.
        """
        return has_value(self.path).hidden()

    def below(self, path: str) -> Predicate:
        """Return the condition for *path* and everything in it."""
        return below(self.path, path)

    def _below_any(self, paths: Sequence[str]) -> Condition:
        """Return the condition that the object or one of its containers is in *paths*."""
        first = min(path.count("/") for path in paths)
        return Condition(
            f"EXISTS (SELECT FROM generate_series(%s, {self.depth.quoted}) AS level"
            f" WHERE array_to_string((string_to_array({self.path.quoted}, '/'))[:level + 1], '/') = ANY(%s))",
            (first, list(paths)),
            (self.path, self.depth),
        )

    def at_level(self, comps: Sequence[str], level: int) -> Condition:
        """Return the condition that *comps* are at *level*; ``string_to_array('/a/b', '/')`` is ``{'', a, b}``."""
        if level + len(comps) > MAX_BYTES:
            return NOTHING
        first = level + 2
        return Condition(
            f"(string_to_array({self.path.quoted}, '/'))[%s:%s] = %s",
            (first, first + len(comps) - 1, [storable_path(c) for c in comps]),
            (self.path,),
        )

    def contains(self, comps: Sequence[str]) -> Condition:
        """Return the condition that *comps* are at any level."""
        return Condition(f"strpos({self.path.quoted} || '/', %s) > 0", (joined(comps) + "/",), (self.path,))

    def contains_near_end(self, comps: Sequence[str], depth: int) -> Condition:
        """Return the condition that *comps* are at any level but 0, and the path ends up to *depth* levels below them."""
        # The end of the path is within *depth* of these levels only.
        levels = f"generate_series(greatest(1, {self.depth.quoted} - %s), {self.depth.quoted} - %s) AS level"
        count = len(comps)
        return Condition(
            f"EXISTS (SELECT FROM {levels}"
            f" WHERE (string_to_array({self.path.quoted}, '/'))[level + 2:level + %s] = %s)",
            (count + depth, count, count + 1, [storable_path(c) for c in comps]),
            (self.path, self.depth),
        )

    def ends_with(self, comps: Sequence[str]) -> Condition:
        """Return the condition that *comps* are the last components."""
        path = joined(comps)
        return Condition(f"right({self.path.quoted}, %s) = %s", (len(path), path), (self.path,))

    def ends(self, first: int, last: int) -> Condition:
        """Return the condition that the path ends at a level from *first* to *last*."""
        return between(self.depth, first + 1, last + 1)

    def deeper(self, depth: int) -> Condition:
        """Return the condition that the path has more than *depth* components."""
        return compared(self.depth, ">", depth)


def outermost(paths: Iterable[str]) -> list[str]:
    """Return *paths* without paths below another one."""
    found: list[str] = []
    for path in sorted(set(paths), key=lambda p: p + "/"):
        if not found or not (path + "/").startswith(found[-1] + "/"):
            found.append(path)
    return found


# -- translators


#: Maximum number of components in a path of a navigation tree: n components add n paths of up to n components to the
#: condition.  The squares of several paths are added up.
MOST_CONTAINERS = 1_000
#: Higher levels, depths and starts of navigation trees are replaced by this number, which no path reaches.
DEEPEST = 1 << 20


class PathIndexTranslator(IndexTranslator):
    """``Products.PluginIndexes.PathIndex``: paths that have given components at a given level."""

    meta_type = "PathIndex"

    def __init__(self, index: Any, base: str) -> None:
        super().__init__(index, base)
        self._cols = PathColumns(base)

    def columns(self) -> tuple[Column, ...]:
        """Return the columns for path, parent path and number of components."""
        return (self._cols.path, self._cols.parent, self._cols.depth)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        """Return B-trees for subtrees and single paths, and for children."""
        return tuple(SQLIndex(c.name, f"({c.quoted})", finds_few=True) for c in (self._cols.path, self._cols.parent))

    def order_by(self) -> tuple[str, ...]:
        """Return the path column: ``documentToKeyMap`` of both index types sorts by path."""
        return (self.column.quoted,)

    def key_expression(self) -> str:
        """Return an SQL expression for the distinct components of each path, which are the keys of ``uniqueValues``."""
        parts = f"string_to_array(ltrim({self.column.quoted}, '/'), '/')"
        return f"unnest(ARRAY(SELECT DISTINCT c FROM unnest({parts}) AS c))"

    # -- values

    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return path, parent path and depth, as ``index_object`` of the real index.

        The path is the value of the attribute named like the index, or else of getPhysicalPath.  Raises TypeError for a
        value that is neither a string nor a tuple of strings.
        """
        path = self._path_of(obj)
        if path is None:
            return None
        if isinstance(path, (list, tuple)):
            path = "/" + "/".join(path[1:])
        comps = components(path)
        value = joined(comps)
        if len(value) != 1 + len("/".join(comps)):
            report(f"index {self.id!r}: a path of {len(path)} characters is too long and was cut")
        elif not is_storable(path):
            report(
                f"index {self.id!r}: a path with characters that PostgreSQL does not support was changed to {value!r}"
            )
        return value, joined(comps[:-1]), len(comps)

    def _path_of(self, obj: Any) -> Any:
        value = getattr(obj, self.id, None)
        if value is None:
            return physical_path(obj)
        if safe_callable(value):
            try:
                value = value()
            except AttributeError:
                return None
        if not isinstance(value, (str, tuple)):
            raise TypeError("path value must be string or tuple of strings")
        return value

    # -- queries

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for *query*; an invalid search path finds no rows (the real index raises)."""
        record = parse(self.index, query)
        if record.keys is None:
            return None
        finds = self._search_all(record)
        if record.operator == "and":
            return all_of(map(self._cols.condition, finds)) if finds else NOTHING
        return self._cols.condition(Found.union(finds))

    def _search_all(self, record: Any) -> list[Found]:
        """Return the rows of each search path; raises LimitExceeded."""
        paths = [path_and_level(key, whole("level", record.get("level", 0), DEEPEST)) for key in record.keys]
        finds = [Found() if path is None else self._search(*path, record) for path in paths]
        return [found for found in finds if found is not None]

    def _search(self, path: str, level: int, record: Any) -> Found | None:
        """Return the rows of one search path; None leaves it out of the set operation, as in the BTrees."""
        comps = components(path)
        if not comps:
            return self._everything()
        if level == 0 and self._path_of_index()[: len(comps)] == comps:
            # A container of the catalog contains nearly every row, so the index is not used; see
            # PathColumns.everything.
            return Found(others=(self._cols.below(joined(comps)).hidden(),))
        if level == 0:
            return Found(subtrees=(joined(comps),))
        if level < 0:
            return Found(others=(self._cols.contains(comps),))
        return Found(others=(self._cols.at_level(comps, level),))

    def _everything(self) -> Found:
        return Found(others=(self._cols.everything(),))

    def _path_of_index(self) -> list[str]:
        if self.physical_path is not None:
            return [c for c in self.physical_path if c]
        try:
            return [c for c in self.index.getPhysicalPath() if c]
        except AttributeError:
            return []


class ExtendedPathIndexTranslator(PathIndexTranslator):
    """``Products.ExtendedPathIndex``: also limits the depth and finds navigation trees.

    ``_search`` and the methods that it calls follow ``ExtendedPathIndex.search`` case by case; the docstring there
    explains the options.
    """

    meta_type = "ExtendedPathIndex"

    def _search_all(self, record: Any) -> list[Found]:
        paths = [found[0] for key in record.keys if (found := path_and_level(key, 0))] if record.get("navtree") else []
        # A path of n parts has n containers, with paths of up to n parts.
        if sum(path.count("/") ** 2 for path in paths) > MOST_CONTAINERS**2:
            raise LimitExceeded(
                f"a path of a navigation tree is limited to {MOST_CONTAINERS:,} parts, several paths to fewer"
            )
        return super()._search_all(record)

    def _path_of(self, obj: Any) -> Any:
        attrs = self.index.indexed_attrs
        name = self.id if attrs is None else attrs[0]
        value = getattr(obj, name, None)
        if value is None:
            return physical_path(obj)
        if safe_callable(value):
            value = value()
        if not isinstance(value, (str, tuple)):
            raise TypeError(f"path value must be string or tuple of strings: ({name!r}, {value!r})")
        return value

    def _search(self, path: str, level: int, record: Any) -> Found | None:
        depth = whole("depth", getattr(record, "depth", -1), DEEPEST)
        navtree = bool(record.get("navtree", 0))
        start = whole("navtree_start", record.get("navtree_start", 0), DEEPEST) if navtree else 0
        if navtree and depth == -1:  # navigation trees are not recursive
            depth = 1
        comps = components(path)
        if level < 0:
            below = self._any_tree(comps, depth, start) if navtree else self._anywhere(comps, depth)
            return Found.union((self._search(path, 0, record) or Found(), below))
        if navtree and start > level + len(comps) - 1 + depth:
            return Found()
        if level == 0 and depth in (0, 1):
            return self._containers(comps, depth, start) if navtree else self._single(path, depth)
        base: list[str] | None = None
        if level == 0:
            # The real index assumes that all values share the beginning of its own path.  It does not compare that part
            # of a search path, so a container of the catalog finds all.
            in_common = takewhile(lambda pair: pair[0] == pair[1], zip(self._path_of_index(), comps, strict=False))
            base = [component for component, _ in in_common]
            level, comps = len(base), comps[len(base) :]
        if not comps and depth == -1:
            return self._everything()
        if navtree:
            return self._tree(base, comps, level, depth, start)
        return self._subtree(base, comps, level, depth)

    def _single(self, path: str, depth: int) -> Found:
        """Return the object at *path*, read literally, or its children; with ``multi_valued`` always the children."""
        path = storable_path(path if path.startswith("/") else "/" + path)
        if depth == 0 and not self.index.multi_valued:
            return Found(paths=(path,))
        return Found(parents=(path,))

    def _containers(self, comps: list[str], depth: int, start: int) -> Found:
        """Return *comps* and its containers from level *start* on; for depth 1 their children, unless ``multi_valued``."""
        way = tuple(joined(comps[:i]) for i in range(len(comps), max(start, 0) - 1, -1))
        if depth == 1 and not self.index.multi_valued:
            return Found(parents=way)
        return Found(paths=way)

    def _subtree(self, base: list[str] | None, comps: list[str], level: int, depth: int) -> Found | None:
        """Return *comps* at *level* with the rows up to *depth* levels below; all rows below for a negative *depth*."""
        if depth >= 0:
            last = level + len(comps) - 1
            return Found(others=(self._matching(base, comps, level, last, last + depth),))
        if not comps:
            return None
        if base is None:
            return Found(others=(self._cols.at_level(comps, level),))
        return Found(subtrees=(joined(base + comps),))

    def _tree(self, base: list[str] | None, comps: list[str], level: int, depth: int, start: int) -> Found | None:
        """Return the rows of ``_subtree``, all rows at the starting level, and the containers on the way to *comps*."""
        parts = []
        if depth > 0:
            parts.append(self._cols.ends(min(start, level), max(start, level)))
        way = range(max(0, start - level), len(comps))
        parts += [self._matching(base, comps[: i + 1], level, level + i, level + i) for i in way]
        if depth >= 0:
            first = level + max(len(comps) - 1, start - level)
            parts.append(self._matching(base, comps, level, first, first + depth))
        return Found(others=tuple(parts)) if parts else None

    def _matching(self, base: list[str] | None, comps: list[str], level: int, first: int, last: int) -> Condition:
        """Return the condition for *comps* at *level* (below *base*, unless None) in paths that end at *first* to *last*."""
        ends = self._cols.ends(first, last)
        if not comps:
            return ends
        if base is None:
            return self._cols.at_level(comps, level) & ends
        return self._cols.below(joined(base + comps)) & ends

    # The next two methods return the union of _subtree and _tree over the levels 1, 2, 3 ...

    def _anywhere(self, comps: list[str], depth: int) -> Found:
        if depth < 0:
            if comps:
                return Found(others=(self._cols.contains(comps),))
            return self._everything() if depth == -1 else Found()
        if not comps:
            return Found(others=(self._cols.deeper(0),))
        return Found(others=(self._cols.contains_near_end(comps, depth),))

    def _any_tree(self, comps: list[str], depth: int, start: int) -> Found:
        # The first level that *start* does not exclude.
        level = max(1, start - len(comps) + 1 - depth)
        if depth > 0:
            # All paths that end at the starting level, for every level: no level is left out from here on.
            return Found(others=(self._cols.deeper(min(start, level)),))
        if depth == 0 and not comps:
            return Found(others=(self._cols.deeper(level - 1),))
        ways = [(i, comps[: i + 1]) for i in range(len(comps))]
        return Found(
            others=tuple(self._cols.ends_with(way) & self._cols.deeper(max(start, level + i)) for i, way in ways)
        )


def physical_path(obj: Any) -> Any:
    """Return the physical path of *obj*, None for an object without ``getPhysicalPath``."""
    try:
        return obj.getPhysicalPath()
    except AttributeError:
        return None


def path_and_level(key: Any, level: int) -> tuple[str, int] | None:
    """Return the path and level of a search *key*, a path or (path, level); None if it is malformed."""
    if isinstance(key, str):
        return key, level
    try:
        path, level = key[0], whole("level", int(key[1]), DEEPEST)
    except (TypeError, ValueError, LookupError, OverflowError):
        return None
    return (path, level) if isinstance(path, str) else None
