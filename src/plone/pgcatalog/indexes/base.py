"""The base class of translators, which express ZCatalog's index types in SQL.

There is one subclass of :class:`IndexTranslator` per ZCatalog index type.  A translator is bound to one *index*: the
real ZCatalog index object (``Products.PluginIndexes.FieldIndex.FieldIndex`` ...), of which it uses only the settings
(id, indexed attributes, precision ...), never the BTrees.  It defines the typed columns of the index, the values of an
object in them, and the SQL condition for a query dict.

Translators hold no connection and execute nothing.
"""

from abc import ABC
from abc import abstractmethod
from BTrees.Length import Length
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from copy import copy
from functools import wraps
from inspect import signature
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.column import SQLIndex
from plone.pgcatalog.sql.expression import all_of
from plone.pgcatalog.sql.expression import any_of
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.values import frozen
from typing import Any
from typing import ClassVar


#: Modules of classes whose instances are data of an index: trees, inner indexes, the catalog that the index belongs to.
DATA_MODULES = ("BTrees.", "Products.ZCTextIndex.", "Products.ZCatalog.")


def strip_data(index: Any) -> Any:
    """Return a copy of the ZCatalog *index* with its settings only: no BTrees, no counters.

    ``clear()`` makes the copy a working index.
    """
    index._p_activate()
    kind: Any = type(index)
    copy = kind.__new__(kind)
    for name, value in index.__dict__.items():
        is_data = type(value).__module__.startswith(DATA_MODULES) or isinstance(value, Length)
        if not name.startswith("_v_") and not is_data:
            copy.__dict__[name] = value
    return copy


#: The interface for add-ons; the SQL classes are defined in ``plone.pgcatalog.sql``.
__all__ = [
    "EVERYTHING",
    "HIGHEST_SCORE",
    "NOTHING",
    "Column",
    "Condition",
    "Fragment",
    "IndexTranslator",
    "Report",
    "SQLIndex",
    "SearchContext",
    "Values",
    "all_of",
    "any_of",
    "quote",
]

#: Column values of one object, in the order of ``IndexTranslator.columns()``; psycopg can adapt each.
Values = tuple[Any, ...]

#: Called with one sentence about a value that was trimmed or left out.
Report = Callable[[str], None]


#: Highest score of any ranking; pages that are pinned to the top have higher ones.
HIGHEST_SCORE = 1e12


class QueryError(ValueError):
    """A query object cannot be answered; the message says which and why."""


class LimitExceeded(QueryError):
    """A query exceeds a limit, which the message names. Over the web, the status is 400."""


def with_context(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return *method* of a translator, which takes a query only, as a method that accepts a search context as well.

    It runs on a copy of the translator with the context as attribute, for methods of the base class that *method*
    calls.
    """

    @wraps(method)
    def called(self: Any, query: Mapping[str, Any], context: SearchContext | None = None) -> Any:
        if context is not None:
            self = copy(self)
            self.context = context
        return method(self, query)

    return called


class IndexTranslator(ABC):
    """Binds the settings of an *index* to columns of the catalog table, whose names begin with *base*."""

    #: ``meta_type`` of the ZCatalog index class this translator stands for.
    meta_type: ClassVar[str]
    #: False: the value is not repeated in the readable ``idx`` JSON, because it has a typed column of its own.
    in_idx: ClassVar[bool] = True
    #: The keys that the index always has, whatever the rows contain; empty for an index with the keys of its rows.
    constant_keys: ClassVar[tuple[Any, ...]] = ()
    #: Physical path of the index; None if the index object returns it by acquisition.
    physical_path: tuple[str, ...] | None = None
    #: The context of the running search, for an add-on's ``where`` or ``score`` without that argument; otherwise None.
    context: SearchContext | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Wrap the methods of add-ons that take a query only, so that they accept a search context as well."""
        super().__init_subclass__(**options)
        for name in ("where", "not_excluded", "has_meaning", "score"):
            method = getattr(cls, name)
            if "context" not in signature(method).parameters:
                setattr(cls, name, with_context(method))

    @property
    def has_cache_key(self) -> bool:
        """True if the index treats different values as equal."""
        return getattr(self.cache_key, "__func__", None) is not IndexTranslator.cache_key.__func__  # type: ignore[attr-defined]

    @classmethod
    def cache_key(cls, index: Any, value: Any) -> Hashable:
        """Return the key of a query's *value* in the cache of compiled queries.

        Values that the ZCatalog *index* treats as equal share a key.  Raises TypeError for a value without a stable one.
        """
        return frozen(value)

    @classmethod
    def settings(cls, index: Any) -> Any:
        """Return a copy of the ZCatalog *index* with its settings only, which the catalog tool stores.

        To be overridden for an index type with settings in a BTree, which ``strip_data`` removes as data.
        """
        return strip_data(index)

    def __init__(self, index: Any, base: str) -> None:
        self.index = index
        self.base = base
        self.id: str = index.id

    def relate(self, translator: Callable[[str], "IndexTranslator"]) -> None:
        """Store *translator*, which returns the translator of another index of the same catalog by name.

        For index types that answer from other indexes.
        """
        self.other = translator

    @property
    def is_stable(self) -> bool:
        """False if the meaning of a query depends on more than the settings of index and catalog."""
        return True

    @property
    def has_ranking(self) -> bool:
        """True for an index that ranks the rows that a query finds."""
        return type(self).score is not IndexTranslator.score

    @property
    def column(self) -> Column:
        """The main column."""
        return self.columns()[0]

    @property
    def source(self) -> Column | None:
        """The column with the text of an object, for snippets; None if there is no such column."""
        return None

    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Return the typed columns; may be empty for an index that stores nothing (GopipIndex)."""

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        """Return the SQL indexes that are worth their cost for this index type."""
        return ()

    @abstractmethod
    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return the column values of *obj* (an indexable object wrapper), None if it has no value.

        An AttributeError of an indexer means no value; every other exception propagates, as in ZCatalog.  A value that
        the columns cannot hold is trimmed or left out, and reported with *report*, but never raised.
        """

    @abstractmethod
    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for *query* (a whole ZCatalog query), None if it does not name this index.

        *context* is the context of the search, None outside of a search; an index type that does not need it may omit
        the argument.  Raises the exceptions of ``Products.ZCatalog.query.IndexQuery`` and of the real index for wrong
        options.
        """

    def not_excluded(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition:
        """Return the condition for rows that *query* does not exclude, to be applied to rows found in other ways, too."""
        return EVERYTHING

    def has_meaning(self, query: Mapping[str, Any], context: SearchContext | None = None) -> bool:
        """Return whether *query* has words other than stop words, if stop words are not searched for alone."""
        return True

    def order_by(self) -> tuple[str, ...] | None:
        """Return SQL expressions to sort by, () for an order computed in Python, None if ZCatalog refuses to sort.

        Rows where the first expression is NULL have no value in the index and are left out of a sorted result.
        """
        return None

    def score(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Fragment | None:
        """Return an SQL number that ranks the rows found by *query*, None for an index without ranking."""
        return None

    def entry(self, values: Values) -> Any:
        """Return the result of the real index's ``getEntryForObject`` for column *values*, which are never all NULL."""
        return values[0]

    def key_expression(self) -> str | None:
        """Return an SQL expression, possibly set-returning, with one row for each key of the index in a catalog row.

        None for an index without unique values.
        """
        return self.column.quoted

    def match_key(self, key: Any) -> Condition:
        """Return the condition for rows that have *key*, one of the index's keys."""
        return self.where({self.id: {"query": [key]}}) or NOTHING

    def key(self, value: Any) -> Any:
        """Return the Python value of a key that ``key_expression`` has returned."""
        return value


class StoresNothing(IndexTranslator):
    """An index type without columns, which finds and sorts by data that is stored elsewhere."""

    in_idx = False

    def columns(self) -> tuple[Column, ...]:
        return ()

    def extract(self, obj: Any, report: Report) -> Values | None:
        return None

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        return None

    def key_expression(self) -> str | None:
        return None
