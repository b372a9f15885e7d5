"""How PostgreSQL is to plan a catalog's statements, where its own judgement is known to be wrong."""

from collections.abc import Sequence
from typing import Any


#: Planning takes longer than any plan for a catalog with fewer rows than this.
FEW_ROWS = 2000
PLAN_GENERIC = "SET LOCAL plan_cache_mode = force_generic_plan"
#: How many rows a value finds differs too much for a plan without it.
PLAN_CUSTOM = "SET LOCAL plan_cache_mode = force_custom_plan"

NO_SCAN = "SET LOCAL enable_seqscan = off"
ANY_SCAN = "SET LOCAL enable_seqscan TO DEFAULT"


def reads_texts(query: str) -> bool:
    """Return whether *query* compares texts with a value (``tsvector @@ %s``), which it should do by an index.

    PostgreSQL thinks that comparing is as cheap as for numbers.  But a text has to be fetched from where long values are,
    and decompressed, so a scan of the table takes several times as long as the GIN, which knows the answer without them.

    Words of the vocabulary that are looked up until the first row is found are no values, and better off with a scan: frequent
    ones meet that row at once.
    """
    return " @@ %s" in query


def planned(query: str, params: Sequence[Any]) -> tuple[list[tuple[str, Sequence[Any]]], int]:
    """Return the statements that run *query* with the right plan, and which one of them it is itself."""
    if not reads_texts(query):
        return [(query, params)], 0
    return [(NO_SCAN, ()), (query, params), (ANY_SCAN, ())], 1
