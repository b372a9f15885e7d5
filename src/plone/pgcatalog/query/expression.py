"""The base class of query objects, their errors, and their key in a query dict."""

from abc import ABC
from abc import abstractmethod
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import LimitExceeded as LimitExceeded
from plone.pgcatalog.indexes.base import QueryError as QueryError
from plone.pgcatalog.indexes.context import SearchContext
from typing import Any


#: The key of a query dict, or keyword, whose value is a query object.
WHERE = "where"
#: Upper limits, since PostgreSQL's parser and Python's stack are limited, and a statement has at most 65,535 parameters.
MAX_LEVELS = 50
MAX_LEAVES = 1000


class Expression(ABC):
    """A condition on any indexes, as a value."""

    #: Numbers of levels of nesting, and of conditions.
    levels: int = 1
    leaves: int = 1

    @abstractmethod
    def names(self) -> frozenset[str]:
        """Return the names of all indexes that it searches."""

    @abstractmethod
    def condition(self, context: SearchContext) -> Condition:
        """Return the SQL condition in the *context* of a search; raises QueryError."""

    def score(self, context: SearchContext) -> Fragment | None:
        """Return an SQL number that ranks the rows by the first text it searches for; None if there is no text."""
        return None

    def texts(self) -> list[tuple[str, str]]:
        """Return (index name, text) for each text that it searches for."""
        return []


def check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of an index must be a string, not {name!r}")


def check_size(expression: Expression) -> None:
    if expression.levels > MAX_LEVELS:
        raise LimitExceeded(f"query objects are nested more than {MAX_LEVELS} levels deep")
    if expression.leaves > MAX_LEAVES:
        raise LimitExceeded(f"a query object has more than {MAX_LEAVES} conditions; use In for many values")


def find(context: SearchContext, name: str) -> IndexTranslator:
    """Return the translator of the index *name*; raises QueryError for an unknown one."""
    try:
        return context.indexes[name]
    except KeyError:
        raise QueryError(f"there is no index {name!r}") from None
