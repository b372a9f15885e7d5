"""Query objects: conditions on any indexes, joined by And, Or and Not.

A query dict of ZCatalog joins its indexes by AND; query objects allow other combinations::

    catalog(where=Or(Eq("Creator", "mara"), And(In("Subject", ["a", "b"]), Not(Path("/plone/archive")))))

Query objects are values: comparable, without a connection, and usable for any catalog.  A leaf compiles to the same
condition as its index in a query dict, except a Range.  ``Not`` is the complement: it finds every row that its part does
not find, including rows without a value in the index.
"""

from abc import abstractmethod
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.date import PARSE_ERRORS
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.query.criteria import as_list
from plone.pgcatalog.query.expression import check_name
from plone.pgcatalog.query.expression import check_size
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import find
from plone.pgcatalog.query.expression import QueryError
from typing import Any


#: Errors that an index raises for an invalid value.
VALUE_ERRORS = (*PARSE_ERRORS, AttributeError)


class Combinable(Expression):
    """Base class of all query objects; they combine with ``&``, ``|`` and ``~`` as well."""

    def __and__(self, other: Any) -> "And":
        return And(self, other)

    def __or__(self, other: Any) -> "Or":
        return Or(self, other)

    def __invert__(self) -> "Not":
        return Not(self)


class Leaf(Combinable):
    """A condition on one index."""

    index: str

    def names(self) -> frozenset[str]:
        return frozenset((self.index,))

    def condition(self, context: SearchContext) -> Condition:
        translator = find(context, self.index)
        try:
            return self._condition_by(translator, context)
        except QueryError:
            raise
        except VALUE_ERRORS as error:
            raise QueryError(f"{self!r}: {error}") from error

    def query(self) -> dict[str, Any]:
        """Return the equivalent query dict."""
        return {self.index: self._options()}

    def _condition_by(self, translator: IndexTranslator, context: SearchContext) -> Condition:
        condition = translator.where(self.query(), context)
        if condition is None:
            raise QueryError(f"index {self.index!r} of type {translator.meta_type} cannot be searched")
        return condition

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """Return the options of the index in the query dict."""


@dataclass(frozen=True)
class Eq(Leaf):
    """Rows with *value* in the index *index*; in a KeywordIndex, among other values."""

    index: str
    value: Any

    def __post_init__(self) -> None:
        check_name(self.index)

    def _options(self) -> dict[str, Any]:
        return {"query": [self.value]}


@dataclass(frozen=True)
class In(Leaf):
    """Rows with at least one of *values* in the index *index*; no rows for an empty sequence."""

    index: str
    values: tuple[Any, ...]

    def __init__(self, index: str, values: Iterable[Any]) -> None:
        check_name(index)
        values = as_list(values)
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise TypeError(f"In needs a sequence of values, not {values!r}")
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "values", tuple(values))

    def _options(self) -> dict[str, Any]:
        return {"query": list(self.values)}


@dataclass(frozen=True)
class Range(Leaf):
    """Rows with a value from *min* to *max*, both included, in *index*; None is an open end."""

    index: str
    min: Any = None
    max: Any = None

    def __post_init__(self) -> None:
        check_name(self.index)
        if self.min is None and self.max is None:
            raise TypeError("Range needs min or max")

    def _options(self) -> dict[str, Any]:
        ends = {word: value for word, value in (("min", self.min), ("max", self.max)) if value is not None}
        return {"query": list(ends.values()), "range": ":".join(ends)}

    def _condition_by(self, translator: IndexTranslator, context: SearchContext) -> Condition:
        if isinstance(translator, UnIndexTranslator):
            # Not by a query dict, in which 0 or "" is no upper end, and ends in the wrong order are swapped.
            ends = (None if end is None else translator.convert_key(end) for end in (self.min, self.max))
            return translator.match_range(*ends)
        if "range" not in getattr(translator.index, "query_options", ()):
            raise QueryError(f"index {self.index!r} of type {translator.meta_type} has no ranges")
        return super()._condition_by(translator, context)


@dataclass(frozen=True)
class Text(Leaf):
    """Rows whose text matches *text*, in the language of the text index: AND, OR, NOT, ``"a phrase"``, ``begin*``."""

    text: str
    index: str = "SearchableText"

    def __post_init__(self) -> None:
        check_name(self.index)
        if not isinstance(self.text, str):
            raise TypeError(f"Text needs a string, not {self.text!r}")

    def _options(self) -> dict[str, Any]:
        return {"query": self.text}

    def _condition_by(self, translator: IndexTranslator, context: SearchContext) -> Condition:
        if not translator.has_ranking:
            raise QueryError(f"index {self.index!r} of type {translator.meta_type} has no text")
        return super()._condition_by(translator, context)

    def score(self, context: SearchContext) -> Fragment | None:
        return find(context, self.index).score(self.query(), context)

    def texts(self) -> list[tuple[str, str]]:
        return [(self.index, self.text)]


@dataclass(frozen=True)
class Path(Leaf):
    """Rows at *path*, a path or a sequence of them, and below; with *depth* at most *depth* levels below."""

    path: Any
    depth: int | None = None
    index: str = "path"

    def __init__(self, path: Any, depth: int | None = None, index: str = "path") -> None:
        check_name(index)
        paths = (path,) if isinstance(path, str) else tuple(path) if isinstance(path, Iterable) else (path,)
        if not all(isinstance(p, str) for p in paths):
            raise TypeError(f"Path needs a path or a sequence of paths, not {path!r}")
        if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 0):
            raise TypeError(f"the depth of a Path must be a number of at least 0, not {depth!r}")
        object.__setattr__(self, "path", paths)
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "index", index)

    def _options(self) -> dict[str, Any]:
        depth = {} if self.depth is None else {"depth": self.depth}
        return {"query": list(self.path)} | depth

    def _condition_by(self, translator: IndexTranslator, context: SearchContext) -> Condition:
        options = getattr(translator.index, "query_options", ())
        if "level" not in options or (self.depth is not None and "depth" not in options):
            raise QueryError(f"index {self.index!r} of type {translator.meta_type} does not support {self!r}")
        return super()._condition_by(translator, context)


@dataclass(frozen=True)
class DictQuery(Combinable):
    """A query dict of ZCatalog as a part of And, Or or Not; its indexes are joined by AND."""

    query: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name in self.query:
            check_name(name)
        object.__setattr__(self, "leaves", len(self.query))

    def names(self) -> frozenset[str]:
        return frozenset(self.query)

    def condition(self, context: SearchContext) -> Condition:
        return all_of(self._condition_by(find(context, name), context) for name in self.query)

    def _condition_by(self, translator: IndexTranslator, context: SearchContext) -> Condition:
        try:
            return translator.where(self.query, context) or NOTHING
        except QueryError:
            raise
        except VALUE_ERRORS as error:
            raise QueryError(f"{translator.id!r}: {error}") from error

    def score(self, context: SearchContext) -> Fragment | None:
        scores = (find(context, name).score(self.query, context) for name in self.query)
        return next((s for s in scores if s is not None), None)

    def texts(self) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.query.items() if isinstance(value, str)]


class Compound(Combinable):
    """Base class of And and Or."""

    parts: tuple[Expression, ...]

    def __init__(self, *parts: Any) -> None:
        self.parts = tuple(_part(self, part) for part in parts)
        self.levels = 1 + max((p.levels for p in self.parts), default=0)
        self.leaves = sum(p.leaves for p in self.parts)
        check_size(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((type(self), self.parts))

    def names(self) -> frozenset[str]:
        return frozenset().union(*(part.names() for part in self.parts))

    def score(self, context: SearchContext) -> Fragment | None:
        return next((s for part in self.parts if (s := part.score(context)) is not None), None)

    def texts(self) -> list[tuple[str, str]]:
        return [text for part in self.parts for text in part.texts()]


class And(Compound):
    """Rows that all *parts* find; without any part, all rows."""

    def condition(self, context: SearchContext) -> Condition:
        return all_of(part.condition(context) for part in self.parts)


class Or(Compound):
    """Rows that at least one of *parts* finds; without any part, no row."""

    def condition(self, context: SearchContext) -> Condition:
        return any_of(part.condition(context) for part in self.parts)


@dataclass(frozen=True, init=False)
class Not(Combinable):
    """Rows that *part* does not find, including rows without a value in its index."""

    part: Expression

    def __init__(self, part: Any) -> None:
        part = _part(self, part)
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "levels", 1 + part.levels)
        object.__setattr__(self, "leaves", part.leaves)
        check_size(self)

    def names(self) -> frozenset[str]:
        return self.part.names()

    def condition(self, context: SearchContext) -> Condition:
        return ~self.part.condition(context.exact())


def _part(whole: Expression, part: Any) -> Expression:
    if isinstance(part, Expression):
        return part
    if isinstance(part, Mapping):
        return DictQuery(dict(part))
    raise TypeError(f"{type(whole).__name__} needs query objects or query dicts, not {part!r}")
