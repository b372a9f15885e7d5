"""What rooms below the catalog and its tool ask of them, and what statements are run with: types, structural only.

The names of rooms above are for type checkers: nothing is imported when this runs.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from typing import Protocol
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.core.configuration import Configuration
    from plone.pgcatalog.database.layout import Layout
    from plone.pgcatalog.database.session import Session
    from plone.pgcatalog.indexes.base import IndexTranslator
    from plone.pgcatalog.indexing.pending import CatalogPending
    from plone.pgcatalog.indexing.pending import Entry
    from plone.pgcatalog.results.results import CatalogSearchResults
    from plone.pgcatalog.results.view import CatalogView
    from psycopg import ConnectionInfo
    from psycopg.sql import Composed
    from typing import Self


class Cursor(Protocol):
    """Runs statements and gives their rows: psycopg's cursor, whatever makes its rows."""

    @property
    def connection(self) -> Any: ...

    @property
    def rowcount(self) -> int: ...

    def execute(self, query: str | Composed, params: Sequence[Any] | Mapping[str, Any] | None = None, /) -> Self: ...

    def executemany(self, query: str | Composed, params_seq: Iterable[Sequence[Any]], /) -> None: ...

    def copy(self, statement: str | Composed, /) -> AbstractContextManager[Any]: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...


class Connection(Protocol):
    """A connection to PostgreSQL: psycopg's, whatever makes its rows."""

    @property
    def closed(self) -> bool: ...

    @property
    def info(self) -> ConnectionInfo: ...

    def execute(self, query: str | Composed, params: Sequence[Any] | Mapping[str, Any] | None = None, /) -> Cursor: ...

    def cursor(self) -> Cursor: ...

    def transaction(self) -> AbstractContextManager[Any]: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class Catalog(Protocol):
    """The catalog itself: ``tool._core``, or the ``catalog`` of a result, which is pinned to its search."""

    @property
    def tool(self) -> CatalogTool: ...

    @property
    def configuration(self) -> Configuration: ...

    @property
    def indexes(self) -> Mapping[str, IndexTranslator]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def excluded_keys(self) -> tuple[str, ...]: ...

    @property
    def jar(self) -> Any: ...

    @property
    def session(self) -> Session: ...

    @property
    def zoid(self) -> int: ...

    def translator(self, name: str, /) -> IndexTranslator: ...

    def layout(self) -> Layout: ...

    def view(self) -> CatalogView: ...

    def search_view(self) -> CatalogView: ...

    def change(self) -> CatalogPending: ...

    def entry(self, obj: Any, uid: str, /, lacking: Any = None) -> Entry: ...

    def make_query(self, query: Mapping[str, Any], /) -> dict[str, Any]: ...

    def brain_maker(self) -> Callable[..., Any]: ...

    def pinned(self, configuration: Configuration, translators: Mapping[str, IndexTranslator], /) -> Catalog: ...


class CatalogTool(Protocol):
    """The catalog tool, acquisition-wrapped where it is asked for its place or for objects."""

    #: index name -> index object, settings only; index name -> base name of its SQL columns
    _indexes: dict[str, Any]
    _index_columns: dict[str, str]
    #: names of the metadata columns; SQL columns of removed indexes -> type
    _columns: tuple[str, ...]
    _old_columns: dict[str, str]
    #: persistence
    _p_changed: Any

    @property
    def _core(self) -> Catalog: ...

    def getId(self) -> str: ...

    def getPhysicalPath(self) -> tuple[str, ...]: ...

    def getPhysicalRoot(self) -> Any: ...

    def unrestrictedTraverse(self, path: str, default: Any = ..., /) -> Any: ...

    def searchResults(self, query: Any = None, /, **keywords: Any) -> CatalogSearchResults: ...

    def catalog_object(self, obj: Any, uid: str, /) -> None: ...

    def uncatalog_object(self, uid: str, /) -> None: ...

    def __len__(self) -> int: ...
