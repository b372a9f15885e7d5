"""Lists of keywords kept once: a row holds the number of its list.

The interfaces of an object, and who may see it, are the same few lists in all rows of a catalog.  They stand in the table
``pgcatalog_sets``, and a column that is *interned* holds numbers of them.  The number is made of the list itself, so every
process knows it without asking, and it is the same in each catalog, copy and standby.
"""

from collections.abc import Sequence
from plone.pgcatalog.sql.column import Column
from typing import Any

import hashlib
import orjson


#: The list that a column has the number of.
LISTED = "(SELECT vals FROM pgcatalog_sets WHERE number = {column})"


def set_number(name: str, values: Sequence[str]) -> int:
    """Return the number, a signed integer of 64 bits, of the list *values* in the column *name*.

    Among a million different lists two have the same number with a probability of 3e-8 (birthday bound, n²/2⁶⁵).
    """
    digest = hashlib.blake2b(orjson.dumps([name, *values]), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def stored(column: Column, value: Any) -> Any:
    """Return what *column* of a relation holds for *value*, which an index translator has extracted."""
    return set_number(column.name, value) if column.is_interned and value is not None else value


def listed(column: Column, pending: str = "") -> str:
    """Return the SQL of the value that an index translator knows, of *column* of a relation.

    *pending* is a table with lists that nobody has saved yet.
    """
    if not column.is_interned:
        return column.quoted
    saved = LISTED.format(column=column.quoted)
    if not pending:
        return saved
    return f"coalesce({saved}, (SELECT vals FROM {pending} AS pending WHERE pending.number = {column.quoted}))"
