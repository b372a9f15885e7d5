"""The parts of a facet query: its arguments, the facets that a user may see, and the groups that rows are counted in.

Groups are the keys of an index, the children of a path, or the steps between dates.  One pass counts all groups of a
statement (GROUPING SETS).
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.date import from_minutes
from plone.pgcatalog.indexes.path import ExtendedPathIndexTranslator
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.settings import RESTRICTIONS
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.values import whole
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import getMultiAdapter
from zope.component import getUtility


#: Most ranges of all facets: each is a column of a subquery, and PostgreSQL allows about 1,600 columns.
MAX_BUCKETS = 500
#: Ranges of an index: label -> (start, end), the end exclusive; None is an open end.
Buckets = Mapping[str, tuple[Any, Any]]

#: Kinds of facets on a search page: by value; by year and month; by the folders below the searched folder.
VALUES, DATES, PLACES = "values", "dates", "places"

FACET_KINDS = {
    "FieldIndex": VALUES,
    "KeywordIndex": VALUES,
    "BooleanIndex": VALUES,
    "DateIndex": DATES,
    "ExtendedPathIndex": PLACES,
}

#: The index of the names that users log in with.
AUTHORS = "Creator"


def kind_of(index: Any) -> str | None:
    """Return the kind of facet of *index*, an index object; None if it is no facet of a search page."""
    name = index.getId()
    kind = FACET_KINDS.get(index.meta_type)
    # The values of other path indexes are no places in the site.
    if name in RESTRICTIONS or (kind == PLACES and name != "path"):
        return None
    return kind


def may_see_authors(context: Any, request: Any) -> bool:
    """Return whether the user may see authors and dates: if logged in, or if the site shows them to anonymous users.

    This is Plone's rule for by-lines, applied to counts of authors as well.
    """
    state = getMultiAdapter((context, request), name="plone_portal_state")
    return not state.anonymous() or bool(getUtility(IRegistry).get("plone.allow_anon_views_about"))


def visible_facets(names: Iterable[str], context: Any, request: Any) -> list[str]:
    """Return *names*, of indexes, without those whose values the user may not see."""
    names = list(names)
    if AUTHORS in names and not may_see_authors(context, request):
        return [name for name in names if name != AUTHORS]
    return names


def may_sort_by(name: str, context: Any, request: Any) -> bool:
    """Return whether the user may sort by the index *name*; an order reveals values."""
    return name not in RESTRICTIONS and bool(visible_facets([name], context, request))


class Facet(dict[Any, int]):
    """Value -> number of rows, the most frequent first; ``truncated`` is True if there are more values than the limit."""

    # Untrusted code, such as a Script (Python), may use plain dicts without this, but not subclasses.
    __allow_access_to_unprotected_subobjects__ = True

    truncated: bool = False


class Facets(dict[str, Facet]):
    """Index name -> Facet; ``total`` is the number of rows that match all criteria, None if it was not counted."""

    __allow_access_to_unprotected_subobjects__ = True

    total: int | None = None


@dataclass(frozen=True)
class FacetQuery:
    """The facets to be counted.

    - ``criteria``: a whole query dict, restrictions included; ``sort``: its (index name, reverse) pairs.
    - ``names``: the indexes whose values are counted.
    - ``ranges``: index name -> ranges that are counted.
    - ``children``: path index -> a path or several, whose children are counted; only folders with ``only_folders``.
    - ``exclude_own``: each facet ignores the criterion for its own index.
    - ``chosen``: further criteria, index name -> query object; each facet ignores the one under its own name.
    - ``limit``: most values of a facet; None: unlimited.
    """

    criteria: Mapping[str, Any]
    sort: Sequence[tuple[str, bool]]
    names: Sequence[str]
    ranges: Mapping[str, Buckets] = field(default_factory=dict)
    exclude_own: bool = False
    limit: int | None = None
    children: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    chosen: Mapping[str, Expression] = field(default_factory=dict)
    only_folders: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise TypeError("facets must be a sequence of index names")
        object.__setattr__(self, "names", tuple(dict.fromkeys(self.names)))
        if self.limit is not None:
            object.__setattr__(self, "limit", max(0, whole("limit", self.limit, LARGEST_WINDOW)))
        if sum(map(len, self.ranges.values())) > MAX_BUCKETS:
            raise LimitExceeded(f"a search has more than {MAX_BUCKETS} ranges in its facets")
        for name in self.facets:
            if name in RESTRICTIONS:
                raise QueryError(f"{name!r} is not a facet")
        if both := set(self.names).intersection(self.ranges):
            raise QueryError(f"{sorted(both)[0]!r} is requested with values and with ranges")
        if both := {*self.names, *self.ranges}.intersection(self.children):
            raise QueryError(f"{sorted(both)[0]!r} is requested with children and with other buckets")
        if hidden := {n for e in self.chosen.values() for n in e.names()}.intersection(RESTRICTIONS):
            raise QueryError(f"{sorted(hidden)[0]!r} is not a facet")

    @property
    def facets(self) -> tuple[str, ...]:
        """The index names of all facets."""
        return (*self.names, *self.ranges, *self.children)

    @property
    def places(self) -> list[tuple[str, str]]:
        """The (index name, path) pairs whose children are counted."""
        given = ((name, [paths] if isinstance(paths, str) else paths) for name, paths in self.children.items())
        return [(name, path) for name, paths in given for path in paths]


@dataclass(frozen=True)
class FacetGroup:
    """The grouping of rows for a facet of the index *name*.

    - ``columns``: (SQL expression, name) pairs that are read from a row.
    - ``key``: an SQL expression over these names that returns one key or a set of keys.
    - ``value``: a function from a key to its Python value.
    """

    name: str
    columns: tuple[tuple[Fragment, str], ...]
    key: Fragment
    value: Callable[[Any], Any]


def values_of(translator: IndexTranslator) -> FacetGroup:
    """Return the group of the keys of an index.  Raises QueryError for an index without keys."""
    key = translator.key_expression()
    if key is None:
        raise QueryError(f"index {translator.id!r} of type {translator.meta_type} has no facets")
    columns = tuple((Fragment(column.quoted), column.quoted) for column in translator.columns())
    return FacetGroup(translator.id, columns, Fragment(key), translator.key)


def children_of(translator: IndexTranslator, path: str, number: int) -> FacetGroup:
    """Return the group of the paths one level below *path*; a row counts for the child that it is or is in.

    Raises QueryError if the index is no path index.
    """
    column, start = _paths(translator)[0].quoted, _inside(path)
    name = f"child{number}"
    child = f"CASE WHEN starts_with({column}, %s) THEN {_CHILD.format(path=column)} END"
    columns = ((Fragment(child, (start, len(start) + 1)), name),)
    return FacetGroup(translator.id, columns, Fragment(name), lambda key: start + key)


def folders_of(translator: IndexTranslator, path: str, folders: Column) -> FacetGroup:
    """Return the group of ``children_of``, limited to folders; *folders* is the boolean column of folders.

    Rows are first grouped by the folder that they are or are in, once for all paths: there are fewer folders than rows.
    """
    own_path, parent, _ = _paths(translator)
    holder = Fragment(f"CASE WHEN {folders.quoted} THEN {own_path.quoted} ELSE {parent.quoted} END")
    name, start = f"{translator.column.name}_holder", _inside(path)
    child = f"CASE WHEN starts_with({quote(name)}, %s) THEN {_CHILD.format(path=quote(name))} END"
    key = Fragment(child, (start, len(start) + 1))
    return FacetGroup(translator.id, ((holder, quote(name)),), key, lambda key: start + key)


_CHILD = "split_part(substr({path}, %s), '/', 1)"


def _inside(path: str) -> str:
    """Return the prefix of all paths inside *path*."""
    return path.rstrip("/") + "/"


def _paths(translator: IndexTranslator) -> tuple[Column, ...]:
    if not isinstance(translator, ExtendedPathIndexTranslator):
        raise QueryError(f"index {translator.id!r} of type {translator.meta_type} has no children")
    return translator.columns()


@dataclass(frozen=True)
class Steps:
    """The ranges of a date index, counted by the steps between all of their ends: one group for any number of ranges."""

    name: str
    ends: tuple[datetime, ...]
    buckets: Mapping[str, tuple[int, int]]
    number: int
    column: str

    @property
    def group(self) -> FacetGroup:
        """The group whose key is the number of ends up to the date of a row; -1 without a date."""
        name = f"step{self.number}"
        ends = Fragment(f"coalesce(width_bucket({self.column}, %s::timestamptz[]), -1)", (list(self.ends),))
        return FacetGroup(self.name, ((ends, name),), Fragment(name), int)

    def counts(self, steps: Mapping[int, int]) -> dict[str, int]:
        """Return label -> number of rows; *steps* is key -> number of rows."""
        return {
            label: sum(count for step, count in steps.items() if low <= step < high)
            for label, (low, high) in self.buckets.items()
        }


def steps_of(translator: IndexTranslator, buckets: Buckets, number: int) -> Steps | None:
    """Return the steps for *buckets*; None if the index is no plain date index, an end is no date, or there are no ends."""
    if type(translator) is not DateIndexTranslator:
        return None
    instants: dict[str, tuple[datetime | None, ...]] = {}
    for label, ends in buckets.items():
        keys = [None if end is None else translator.convert_key(end) for end in ends]
        if any(key is None and end is not None for key, end in zip(keys, ends, strict=True)):
            return None
        instants[label] = tuple(None if key is None else from_minutes(key) for key in keys)
    steps = sorted({end for pair in instants.values() for end in pair if end is not None})
    place = {end: number for number, end in enumerate(steps, 1)}
    # A range without ends includes rows without a date.
    limits = {
        label: (
            place[low] if low is not None else (0 if high is not None else -1),
            place[high] if high is not None else len(steps) + 1,
        )
        for label, (low, high) in instants.items()
    }
    return Steps(translator.id, tuple(steps), limits, number, translator.column.quoted) if steps else None
