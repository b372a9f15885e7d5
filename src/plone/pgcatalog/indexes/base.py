"""What an index type has to say about itself so that PostgreSQL can answer for it.

One subclass of :class:`IndexTranslator` per ZCatalog index type.  A translator is bound to one
*index*: the real ZCatalog index object (``Products.PluginIndexes.FieldIndex.FieldIndex`` ...), of which
only the settings count (id, indexed attributes, precision ...), never its BTrees.  It says which typed
columns the index has, what an object puts into them, and how a query dict becomes SQL.

Translators hold no connection and execute nothing.
"""

from abc import ABC
from abc import abstractmethod
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.config import strip_data
from plone.pgcatalog.sql.frozen import frozen
from typing import Any
from typing import ClassVar


#: Column values of one object, in the order of ``IndexTranslator.columns()``; psycopg can adapt each.
Values = tuple[Any, ...]

#: Takes one sentence saying what had to be trimmed or left out.
Report = Callable[[str], None]


def quote(name: str) -> str:
    """Return *name* as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Column:
    """A typed column of the catalog table.

    ``name`` is a plain identifier (unquoted); ``type`` an SQL type that is also valid in a cast
    (``text``, ``text[]``, ``timestamptz``, ``integer[]``, ``tsvector`` ...).  ``text`` and ``text[]``
    columns are created with COLLATE "C", so that SQL compares as Python does: by code point.
    """

    name: str
    type: str

    @property
    def quoted(self) -> str:
        return quote(self.name)

    @property
    def ddl(self) -> str:
        collation = ' COLLATE "C"' if self.type in ("text", "text[]") else ""
        return f"{self.quoted} {self.type}{collation}"

    @property
    def stays_in_row(self) -> bool:
        """True for values to keep out of TOAST as long as possible; a tsvector goes there gladly."""
        return self.type == "text" or self.type.endswith("[]")


@dataclass(frozen=True, slots=True)
class SQLIndex:
    """An SQL index on the catalog table.

    ``name`` is unique within the catalog (it gets the table's name as prefix), ``definition`` what comes
    behind ``ON table``, e.g. ``USING gin ("subject")`` or ``("modified") WHERE "modified" IS NOT NULL``.
    ``finds_few`` ones, of conditions that find single rows, also serve what a transaction has pending.
    """

    name: str
    definition: str
    finds_few: bool = False


#: No ranking gives a row more; a page that is pinned to the top has more than that.
HIGHEST_SCORE = 1e12


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL boolean expression over the catalog's columns, and the values of its ``%s`` placeholders.

    What may be true of every row can be told from the rest: ``filled`` is the column of which the condition says no more
    than that it has a value, and ``parts`` are the conditions that ``join``, one of the functions below, has joined.
    ``is_hidden``: no index can answer it.
    """

    sql: str
    params: tuple[Any, ...] = ()
    filled: str | None = field(default=None, kw_only=True, compare=False, repr=False)
    is_hidden: bool = field(default=False, kw_only=True, compare=False, repr=False)
    parts: tuple["Condition", ...] = field(default=(), kw_only=True, compare=False, repr=False)
    join: Callable[[Iterable["Condition"]], "Condition"] | None = field(
        default=None, kw_only=True, compare=False, repr=False
    )

    def __and__(self, other: "Condition") -> "Condition":
        return all_of((self, other))

    def __or__(self, other: "Condition") -> "Condition":
        return any_of((self, other))

    def __invert__(self) -> "Condition":
        if self is NOTHING:
            return EVERYTHING
        if self is EVERYTHING:
            return NOTHING
        return Condition(f"({self.sql}) IS NOT TRUE", self.params)

    def with_filled(self, replace: Callable[["Condition"], "Condition"]) -> "Condition":
        """Return it with *replace* of each part that says no more than that a column has a value."""
        if self.filled is not None:
            return replace(self)
        if self.join is None:
            return self
        parts = tuple(part.with_filled(replace) for part in self.parts)
        is_same = all(new is old for new, old in zip(parts, self.parts, strict=True))
        return self if is_same else self.join(parts)

    def hidden(self) -> "Condition":
        """Return it so that PostgreSQL compares it with each row, and does not look for an index that answers it.

        How many rows it finds is estimated as before.
        """
        if self.is_hidden:
            return self
        return Condition(f"({self.sql}) IS TRUE", self.params, filled=self.filled, is_hidden=True)


#: Matches no row; a query that contains it needs no round trip.
NOTHING = Condition("FALSE")
#: Matches every row; left out of the SQL.
EVERYTHING = Condition("TRUE")


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Conjunction, with NOTHING and EVERYTHING folded away."""
    parts = [c for c in conditions if c is not EVERYTHING]
    if any(c is NOTHING for c in parts):
        return NOTHING
    if len(parts) < 2:
        return parts[0] if parts else EVERYTHING
    sql = " AND ".join(f"({c.sql})" for c in parts)
    return Condition(sql, tuple(p for c in parts for p in c.params), parts=tuple(parts), join=all_of)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Disjunction, with NOTHING and EVERYTHING folded away."""
    parts = [c for c in conditions if c is not NOTHING]
    if any(c is EVERYTHING for c in parts):
        return EVERYTHING
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    sql = " OR ".join(f"({c.sql})" for c in parts)
    return Condition(sql, tuple(p for c in parts for p in c.params), parts=tuple(parts), join=any_of)


def has_value(column: Column) -> Condition:
    """The row has a value in *column*."""
    return Condition(f"{column.quoted} IS NOT NULL", filled=column.name)


class IndexTranslator(ABC):
    """Binds an index's settings (*index*) to the columns of the catalog table named after *base*."""

    #: ``meta_type`` of the ZCatalog index class this translator stands for.
    meta_type: ClassVar[str]
    #: False: the value is not repeated in the readable ``idx`` JSON (it has a typed column of its own).
    in_idx: ClassVar[bool] = True
    #: True: comparing takes long; rows that another condition leaves out had better not be compared.
    is_costly: ClassVar[bool] = False
    #: True: the order is known to Python only; ``order_by`` returns no expressions.
    sorts_in_python: ClassVar[bool] = False
    #: The keys that the index always has, whether a row has them or not; empty for those of the rows.
    constant_keys: ClassVar[tuple[Any, ...]] = ()
    #: What the site's editors want of searches (a ``SiteTuning``), None for nothing; only text indexes heed it.
    tuning: Any = None
    #: Word of the running search -> words that contain it and are to be found, too; None where no site wants that.
    word_parts: Mapping[str, tuple[str, ...]] | None = None

    @classmethod
    def meaning(cls, index: Any, value: Any) -> Hashable:
        """Return the same for all *value*-s of a query that mean the same to the ZCatalog *index*.

        Raises TypeError if that cannot be told.
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
    def column(self) -> Column:
        """The main column."""
        return self.columns()[0]

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
    def where(self, query: Mapping[str, Any]) -> Condition | None:
        """Return the condition for *query* (a whole ZCatalog query), None if it does not name this index.

        Raises what ``Products.ZCatalog.query.IndexQuery`` and the real index raise for wrong options.
        """

    def exact(self) -> "IndexTranslator":
        """Return the translator for what a search excludes: it finds what ZCatalog does, and no more."""
        return self

    def with_word_parts(self, parts: Mapping[str, tuple[str, ...]]) -> "IndexTranslator":
        """Return the translator for a search whose words are found in others, too: *parts* names them for each word."""
        return self

    def ranked(self) -> "IndexTranslator":
        """Return the translator for a search in order of relevance, which may have pages on top that do not match."""
        return self

    def order_by(self) -> tuple[str, ...] | None:
        """Return SQL expressions to sort by, None if ZCatalog refuses to sort by this index type.

        Rows where the first expression is NULL have no value in the index and drop out of a sorted result.
        """
        return None

    def score(self, query: Mapping[str, Any]) -> Condition | None:
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
