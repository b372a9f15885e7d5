"""What all query objects are: the base class, the error, and their place in a query dict; its values."""

from abc import ABC
from abc import abstractmethod
from BTrees import family32
from BTrees import family64
from collections.abc import Container
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from collections.abc import ValuesView
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import LimitExceeded as LimitExceeded
from plone.pgcatalog.indexes.base import QueryError as QueryError
from plone.pgcatalog.indexes.context import SearchContext
from typing import Any
from ZPublisher.HTTPRequest import record


#: The key of a query dict, or keyword, whose value is a query object.
WHERE = "where"
#: PostgreSQL's parser and Python's stack both have an end; a statement has 65,535 parameters at the most.
MAX_LEVELS = 50
MAX_LEAVES = 1000

_trees = [getattr(family, kind) for family in (family32, family64) for kind in ("OO", "OI", "IO", "II")]
#: Types that hold several values; keys of BTrees and generators count as such, too.
CONTAINERS: tuple[Any, ...] = (
    Sequence,
    Set,
    ValuesView,
    Iterator,
    *{type(tree.BTree().keys()) for tree in _trees},
)
#: Types that are one value, or a list already.
PLAIN = (str, bytes, bytearray, memoryview, list, tuple)
#: The words of a query dict, besides names of indexes, whose value may be a list.
WORDS = frozenset({"oid", "sort-on", "sort-order", "sort_on", "sort_order", "zoid"})


class Expression(ABC):
    """A condition on any indexes, as a value."""

    #: Levels of nesting, and conditions in it.
    levels: int = 1
    leaves: int = 1

    @abstractmethod
    def names(self) -> frozenset[str]:
        """Return the names of all indexes it asks."""

    @abstractmethod
    def condition(self, context: SearchContext) -> Condition:
        """Return it as SQL in the *context* of a search; raises QueryError."""

    def score(self, context: SearchContext) -> Fragment | None:
        """Return an SQL number that ranks the rows it finds, by its first text; None without one."""
        return None

    def texts(self) -> list[tuple[str, str]]:
        """Return (index name, text) of what it searches for in texts."""
        return []


def as_dict(query: Any) -> Any:
    """Return *query* as a query dict if it is a query object, else itself."""
    return {WHERE: query} if isinstance(query, Expression) else query


def as_list(value: Any) -> Any:
    """Return *value*, of a query, as a list if it holds several values, else itself."""
    return list(value) if isinstance(value, CONTAINERS) and not isinstance(value, PLAIN) else value


def as_options(value: Any) -> Any:
    """Return *value*, of an index in a query, as a dict if it holds options, as a list if it holds several values."""
    if isinstance(value, Mapping | record):
        return {option: as_list(each) for option, each in value.items()}
    return as_list(value)


def names_read(query: Mapping[Any, Any], indexes: Container[str]) -> set[Any]:
    """Return the names in the query dict *query* that a catalog with *indexes* reads.

    They are indexes, their old-style options (``Subject_operator``), and WORDS.
    """
    prefixes = tuple([f"{name}_" for name in query if name in indexes])
    return {
        name
        for name in query
        if name in indexes or name in WORDS or (isinstance(name, str) and name.startswith(prefixes))
    }


def with_lists(query: Any, indexes: Container[str]) -> dict[str, Any]:
    """Return the items of *query*, a dict or a request, with dicts and lists in place of other containers.

    Only values that a catalog with *indexes* reads are looked at.
    """
    items = dict(query.items())
    return items | {name: as_options(items[name]) for name in names_read(items, indexes)}


def expression_in(query: Mapping[str, Any]) -> Expression | None:
    """Return the query object in the query dict *query*, None without one.

    Anything else under that name, such as a parameter of a request, is ignored, as unknown names are.
    """
    expression = query.get(WHERE)
    return expression if isinstance(expression, Expression) else None


def check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of an index is a string, not {name!r}")


def check_size(expression: Expression) -> None:
    if expression.levels > MAX_LEVELS:
        raise LimitExceeded(f"query objects are nested more than {MAX_LEVELS} levels deep")
    if expression.leaves > MAX_LEAVES:
        raise LimitExceeded(f"a query object has more than {MAX_LEAVES} conditions; In takes many values at once")


def find(context: SearchContext, name: str) -> IndexTranslator:
    """Return the translator of the index *name*; raises QueryError for an unknown one."""
    try:
        return context.indexes[name]
    except KeyError:
        raise QueryError(f"there is no index {name!r}") from None
