"""What an index type has to say about itself so that PostgreSQL can answer for it.

One subclass of :class:`IndexTranslator` per ZCatalog index type.  A translator is bound to one
*index*: the real ZCatalog index object (``Products.PluginIndexes.FieldIndex.FieldIndex`` ...), of which
only the settings count (id, indexed attributes, precision ...), never its BTrees.  It says which typed
columns the index has, what an object puts into them, and how a query dict becomes SQL.

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


#: Where the classes live whose instances are data of an index: trees, inner indexes, the catalog it belongs to.
DATA_MODULES = ("BTrees.", "Products.ZCTextIndex.", "Products.ZCatalog.")


def strip_data(index: Any) -> Any:
    """Return a copy of the ZCatalog *index* with its settings only: no BTrees, no counters.

    ``index.clear()`` makes it a working index again.
    """
    index._p_activate()
    kind: Any = type(index)
    copy = kind.__new__(kind)
    for name, value in index.__dict__.items():
        is_data = type(value).__module__.startswith(DATA_MODULES) or isinstance(value, Length)
        if not name.startswith("_v_") and not is_data:
            copy.__dict__[name] = value
    return copy


#: What add-ons import from here; SQL itself is a room of its own.
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

#: Takes one sentence saying what had to be trimmed or left out.
Report = Callable[[str], None]


#: No ranking gives a row more; a page that is pinned to the top has more than that.
HIGHEST_SCORE = 1e12


class QueryError(ValueError):
    """A query object cannot be answered; the message says which and why."""


class LimitExceeded(QueryError):
    """A query asks for more than is answered; the message names the limit.  Over the web it is a 400."""


def with_context(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return *method* of a translator, which takes a query alone, as one that takes the context of a search as well.

    The translator that runs it has the context as its attribute, for the methods of its base class that *method* calls.
    """

    @wraps(method)
    def called(self: Any, query: Mapping[str, Any], context: SearchContext | None = None) -> Any:
        if context is not None:
            self = copy(self)
            self.context = context
        return method(self, query)

    return called


class IndexTranslator(ABC):
    """Binds an index's settings (*index*) to the columns of the catalog table named after *base*."""

    #: ``meta_type`` of the ZCatalog index class this translator stands for.
    meta_type: ClassVar[str]
    #: False: the value is not repeated in the readable ``idx`` JSON (it has a typed column of its own).
    in_idx: ClassVar[bool] = True
    #: The keys that the index always has, whether a row has them or not; empty for those of the rows.
    constant_keys: ClassVar[tuple[Any, ...]] = ()
    #: Where the index is; None if its object knows that by acquisition.
    physical_path: tuple[str, ...] | None = None
    #: The context of the running search for an add-on's ``where`` or ``score`` without that argument; None for others.
    context: SearchContext | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Let methods of add-ons that take a query alone be called with the context of a search as well."""
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
        """Return a copy of the ZCatalog *index* with its settings only, which is what the catalog tool keeps.

        For an index type that keeps settings in a BTree, too, which ``strip_data`` takes for data.
        """
        return strip_data(index)

    def __init__(self, index: Any, base: str) -> None:
        self.index = index
        self.base = base
        self.id: str = index.id

    def relate(self, translator: Callable[[str], "IndexTranslator"]) -> None:
        """Take *translator*, which finds the translators of the same catalog's other indexes by name.

        For an index type that answers from other indexes.
        """
        self.other = translator

    @property
    def is_stable(self) -> bool:
        """False when what a query means depends on more than the settings of index and catalog."""
        return True

    @property
    def has_ranking(self) -> bool:
        """True for an index that ranks what a query finds."""
        return type(self).score is not IndexTranslator.score

    @property
    def column(self) -> Column:
        """The main column."""
        return self.columns()[0]

    @property
    def source(self) -> Column | None:
        """The column that keeps the text of an object, to take snippets from; None for none."""
        return None

    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Return the typed columns; may be empty for an index that stores nothing (GopipIndex)."""

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        """Return the SQL indexes that pay for this index type."""
        return ()

    @abstractmethod
    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return what *obj* (an indexable object wrapper) puts into the columns, None for no value.

        An AttributeError of an indexer means no value; every other exception propagates, as in
        ZCatalog.  A value the columns cannot hold is trimmed or left out and *report*-ed, never raised.
        """

    @abstractmethod
    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for *query* (a whole ZCatalog query), None if it does not name this index.

        *context* is that of the search, None outside of one; an index type that needs none may leave the argument out.
        Raises what ``Products.ZCatalog.query.IndexQuery`` and the real index raise for wrong options.
        """

    def not_excluded(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition:
        """Return the condition for rows without what *query* excludes, whatever finds them."""
        return EVERYTHING

    def has_meaning(self, query: Mapping[str, Any], context: SearchContext | None = None) -> bool:
        """Return whether *query* has other words than stop words, if these are not searched for alone."""
        return True

    def order_by(self) -> tuple[str, ...] | None:
        """Return SQL expressions to sort by, none for an order that only Python has, None if ZCatalog refuses to sort by it.

        Rows where the first expression is NULL have no value in the index and drop out of a sorted result.
        """
        return None

    def score(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Fragment | None:
        """Return an SQL number that ranks the rows found by *query*, None for an index without ranking."""
        return None

    def entry(self, values: Values) -> Any:
        """Return for stored column *values* what the real index's ``getEntryForObject`` answers.

        *values* are never all NULL.
        """
        return values[0]

    def key_expression(self) -> str | None:
        """Return an SQL expression giving the index's keys one per row (it may be set-returning).

        None for an index without unique values.
        """
        return self.column.quoted

    def match_key(self, key: Any) -> Condition:
        """Return the condition for rows that have *key*, one of the index's keys."""
        return self.where({self.id: {"query": [key]}}) or NOTHING

    def key(self, value: Any) -> Any:
        """Return the Python value of a key that ``key_expression`` delivered."""
        return value


class StoresNothing(IndexTranslator):
    """An index type without columns: what it finds or sorts by is read elsewhere."""

    in_idx = False

    def columns(self) -> tuple[Column, ...]:
        return ()

    def extract(self, obj: Any, report: Report) -> Values | None:
        return None

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        return None

    def key_expression(self) -> str | None:
        return None
