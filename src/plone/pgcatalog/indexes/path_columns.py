"""The three columns of a path index, and the conditions over them.

A path is a list of components; the index knows, as the real ones do, which component stands at which level
(from 0) and at which level the path ends.  ``depth`` is the number of components, so a path ends at level
``depth - 1``.  Paths are kept in one normal form: ``/``, or ``/a/b`` without double or trailing slashes.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.sql.predicate import below
from plone.pgcatalog.sql.predicate import between
from plone.pgcatalog.sql.predicate import compared
from plone.pgcatalog.sql.predicate import equal_to_any
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.predicate import Predicate

import re


#: A B-tree refuses rows over 2,704 bytes.  Longer paths are cut, in the rows as in the queries, so they are
#: found below all their containers, and only paths that agree so far are taken for each other.
MAX_BYTES = 2600
#: So many subtrees are looked up one by one (measured: 6 ms for 100); more are compared with each row's containers
#: (20 ms for 20,000 rows, however many there are).
MANY_SUBTREES = 200

#: What PostgreSQL cannot hold.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def components(path: str) -> list[str]:
    """Split *path* as PathIndex does: empty components do not count."""
    return [c for c in path.split("/") if c]


def joined(comps: Iterable[str]) -> str:
    """Return the path of *comps*."""
    return storable_path("/" + "/".join(comps))


def storable_path(path: str) -> str:
    """Return *path* as PostgreSQL can hold and index it.

    NUL and lone surrogates become U+FFFD, in values and in queries alike, so that they still find each other.
    """
    path = UNSTORABLE.sub("\ufffd", path)
    if len(path) * 4 <= MAX_BYTES:
        return path
    return path.encode()[:MAX_BYTES].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class Found:
    """What one or more search paths find: equal paths, children, whole subtrees, and other conditions.

    Kept apart so that many search paths become one array instead of many conditions.
    """

    paths: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    subtrees: tuple[str, ...] = ()
    others: tuple[Condition, ...] = ()

    @staticmethod
    def union(parts: Iterable["Found"]) -> "Found":
        """Return what any of *parts* finds."""
        every = list(parts)
        return Found(
            tuple(path for found in every for path in found.paths),
            tuple(path for found in every for path in found.parents),
            tuple(path for found in every for path in found.subtrees),
            tuple(condition for found in every for condition in found.others),
        )


class PathColumns:
    """The columns named after *base*, and the conditions over them."""

    def __init__(self, base: str) -> None:
        own = base == "path"
        self.path = Column("path_value" if own else f"{base}_path", "text")
        self.parent = Column("parent_path" if own else f"{base}_parent", "text")
        self.depth = Column("depth" if own else f"{base}_depth", "integer")

    def condition(self, found: Found) -> Condition:
        """Return the condition for what is *found*."""
        subtrees = outermost(found.subtrees)
        if len(subtrees) > MANY_SUBTREES:
            inside = [self._below_any(subtrees)]
        else:
            inside = [self.below(p) for p in subtrees]
        equal = [equal_to_any(self.path, found.paths), equal_to_any(self.parent, found.parents)]
        return any_of([*equal, *inside, *found.others])

    def everything(self) -> Condition:
        """Every object with a path.

        That is nearly every row, so its index would be of no use; but PostgreSQL may take it for cheaper than the one of a
        text index to which much has been added since it was vacuumed, and then reads all texts.
        """
        return has_value(self.path).hidden()

    def below(self, path: str) -> Predicate:
        """*path* and everything in it."""
        return below(self.path, path)

    def _below_any(self, paths: Sequence[str]) -> Condition:
        """The object or one of its containers is one of *paths*."""
        first = min(path.count("/") for path in paths)
        return Condition(
            f"EXISTS (SELECT FROM generate_series(%s, {self.depth.quoted}) AS level"
            f" WHERE array_to_string((string_to_array({self.path.quoted}, '/'))[:level + 1], '/') = ANY(%s))",
            (first, list(paths)),
            (self.path, self.depth),
        )

    def at_level(self, comps: Sequence[str], level: int) -> Condition:
        """*comps* stand at *level*; ``string_to_array('/a/b', '/')`` is ``{'', a, b}``."""
        if level + len(comps) > MAX_BYTES:
            return NOTHING
        first = level + 2
        return Condition(
            f"(string_to_array({self.path.quoted}, '/'))[%s:%s] = %s",
            (first, first + len(comps) - 1, [storable_path(c) for c in comps]),
            (self.path,),
        )

    def contains(self, comps: Sequence[str]) -> Condition:
        """*comps* stand at any level."""
        return Condition(f"strpos({self.path.quoted} || '/', %s) > 0", (joined(comps) + "/",), (self.path,))

    def contains_near_end(self, comps: Sequence[str], depth: int) -> Condition:
        """*comps* stand at any level but 0, and the path ends up to *depth* levels below them."""
        # Only from these levels *depth* reaches the end of the path.
        levels = f"generate_series(greatest(1, {self.depth.quoted} - %s), {self.depth.quoted} - %s) AS level"
        count = len(comps)
        return Condition(
            f"EXISTS (SELECT FROM {levels}"
            f" WHERE (string_to_array({self.path.quoted}, '/'))[level + 2:level + %s] = %s)",
            (count + depth, count, count + 1, [storable_path(c) for c in comps]),
            (self.path, self.depth),
        )

    def ends_with(self, comps: Sequence[str]) -> Condition:
        """*comps* are the last components."""
        path = joined(comps)
        return Condition(f"right({self.path.quoted}, %s) = %s", (len(path), path), (self.path,))

    def ends(self, first: int, last: int) -> Condition:
        """The path ends at a level from *first* to *last*."""
        return between(self.depth, first + 1, last + 1)

    def deeper(self, depth: int) -> Condition:
        """The path has more than *depth* components."""
        return compared(self.depth, ">", depth)


def outermost(paths: Iterable[str]) -> list[str]:
    """Return *paths* without those below another one."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda p: p + "/"):
        if not kept or not (path + "/").startswith(kept[-1] + "/"):
            kept.append(path)
    return kept
