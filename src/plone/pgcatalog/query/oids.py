"""``zoid`` and ``oid`` in a query dict: search for rows by the oids of their objects.

The record id of an object's first path is its oid, so the brains of referenced objects are found without loading an
object.  If the catalog has an index of one of these names, the search uses that index instead.
"""

from collections.abc import Collection
from collections.abc import Mapping
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.sql.column import RID
from typing import Any
from ZODB.utils import u64


#: The keys for oids of the ZODB: as 8 bytes (``_p_oid``), and as numbers.
OID, ZOID = "oid", "zoid"
#: Upper limit of oids in one query; the numbers alone are 80 kB of the message.
MAX_OIDS = 10_000
#: The first number that PostgreSQL's bigint cannot hold.
BEYOND = 2**63


class NoOid(QueryError):
    """A value is no oid.  A visitor may have sent it, so over the web it results in status 400."""


def oid_conditions(query: Mapping[str, Any], names: Collection[str]) -> list[Condition]:
    """Return the conditions of ``oid`` and ``zoid`` in *query*, for a catalog with the indexes *names*.

    Raises NoOid for a value that is no oid, LimitExceeded for more than ``MAX_OIDS``.
    """
    kinds = ((OID, _from_bytes), (ZOID, _from_number))
    return [_condition(query, name, number) for name, number in kinds if name not in names and name in query]


def _condition(query: Mapping[str, Any], name: str, number: Any) -> Condition:
    values = query[name] if isinstance(query[name], list | tuple) else [query[name]]
    if len(values) > MAX_OIDS:
        raise LimitExceeded(f"a search is limited to {MAX_OIDS} values for {name}")
    rids = [n for n in {number(value) for value in values} if 0 <= n < BEYOND]
    return Condition(f"{RID.quoted} = ANY(%s::bigint[])", (sorted(rids),), (RID,)) if rids else NOTHING


def _from_bytes(value: Any) -> int:
    if not isinstance(value, bytes) or len(value) != 8:
        raise NoOid(f"an oid must be 8 bytes, as in _p_oid, not {value!r:.50}")
    return int(u64(value))


def _from_number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    # A parameter of a request is a text.
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        return int(value)
    raise NoOid(f"a zoid must be an integer, not {value!r:.50}")
