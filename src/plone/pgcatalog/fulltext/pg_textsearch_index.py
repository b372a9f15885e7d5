"""Finds the index by which pg_textsearch ranks a catalog's relation, and remembers where there is none."""

from collections.abc import Callable
from collections.abc import Sequence
from plone.pgcatalog.sql.names import RANKING_INDEX
from time import monotonic
from typing import Any

import logging
import psycopg
import threading


logger = logging.getLogger(__name__)

#: Seconds until an index is looked for again that was not there, or failed.
PAUSE = 60.0
#: What PostgreSQL says when the index or the extension cannot be used; a lost connection or a timeout is none of it.
REFUSED = (
    psycopg.ProgrammingError,
    psycopg.InternalError,
    psycopg.NotSupportedError,
    psycopg.DataError,
    psycopg.errors.ObjectNotInPrerequisiteState,
)
#: An index of that name on that column of the relation that can be used: on another column there would be no error, but
#: a score of 0 for each row; pg_search has an access method of the same name.
LOOKUP = (
    "SELECT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam"
    " JOIN pg_attribute t ON t.attrelid = i.indrelid AND t.attnum = i.indkey[0]"
    " WHERE i.indexrelid = to_regclass(quote_ident(%s)) AND i.indrelid = to_regclass(quote_ident(%s))"
    " AND t.attname = %s AND a.amname = 'bm25' AND i.indisvalid AND i.indisready)"
    " AND to_regprocedure('to_bm25query(text,text)') IS NOT NULL"
)

Execute = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


def index_name(relation: str) -> str:
    """Return the name of the index of the extension on *relation*."""
    return f"{relation}_{RANKING_INDEX}"


_lock = threading.Lock()
#: (database, relation) -> when its index was missing or failed
_refused: dict[tuple[Any, str], float] = {}


def usable_index(execute: Execute, database: Any, relation: str, column: str) -> str | None:
    """Return the name of the index on *column* that can rank *relation* of *database*; None when there is none.

    *execute* runs a query.  Each search looks for itself, so an index that was dropped or is invalid is none
    at once.  Where there was none, nobody looks for a minute.
    """
    key = database, relation
    refused = _refused.get(key)
    if refused is not None and monotonic() - refused < PAUSE:
        return None
    [(is_usable,)] = execute(LOOKUP, (index_name(relation), relation, column))
    if is_usable:
        return index_name(relation)
    logger.warning(
        "%s cannot be used: there is no such index, or no extension pg_textsearch; results are ranked without it"
        " (see pgcatalog bm25)",
        index_name(relation),
    )
    _refuse(key)
    return None


def refuse(database: Any, relation: str, error: psycopg.Error) -> None:
    """Note that the index of *relation* of *database* has failed with *error*."""
    reason = error.diag.message_primary or str(error)
    logger.warning("%s has failed: %s; results are ranked without it", index_name(relation), reason)
    _refuse((database, relation))


def forget() -> None:
    """Look for all indexes again."""
    with _lock:
        _refused.clear()


def _refuse(key: tuple[Any, str]) -> None:
    with _lock:
        _refused[key] = monotonic()
