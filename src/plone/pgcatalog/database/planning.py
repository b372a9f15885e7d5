"""How PostgreSQL is to plan a catalog's statements, where its own judgement is known to be wrong."""

from collections.abc import Callable
from collections.abc import Sequence
from plone.pgcatalog.database.selectivity import ROLES
from plone.pgcatalog.indexes.base import Condition
from typing import Any

import re


#: Planning takes longer than any plan for a catalog with fewer rows than this.
FEW_ROWS = 2000
PLAN_GENERIC = "SET LOCAL plan_cache_mode = force_generic_plan"
#: How many rows a value finds differs too much for a plan without it.
PLAN_CUSTOM = "SET LOCAL plan_cache_mode = force_custom_plan"

#: A bitmap of the rows of a table with more than these may not fit into the 4 MB that PostgreSQL takes by default.
MANY_ROWS = 50_000
#: What does not fit is kept by pages, and each row of such a page is fetched and compared again.
MORE_MEMORY = "SET LOCAL work_mem = '64MB'"
HAS_MEMORY = "SELECT pg_size_bytes(current_setting('work_mem')) >= pg_size_bytes('64MB')"

#: What no more than this share of the rows has finds them best by its index.
LITTLE = 0.1

NO_SCAN = "SET LOCAL enable_seqscan = off"
ANY_SCAN = "SET LOCAL enable_seqscan TO DEFAULT"

#: Comparisons with a value of what is long, and kept compressed: texts, and the interfaces of an object.
_COSTLY = re.compile(' @@ %s|"object_provides" (?:&&|@>) %s')
#: Conditions that another index answers: of roles, and of a column with few different texts.
_INDEXED = re.compile(r'"(?P<column>\w+)"(?P<compared> && %s| = %s| = ANY\(%s::text\[\]\))')
_PLACEHOLDER = re.compile("%[s%]")


def is_costly(query: str) -> bool:
    """Return whether *query* compares long values (``tsvector @@ %s``), which it should do by an index.

    PostgreSQL thinks that comparing is as cheap as for numbers.  But a long value has to be decompressed, and most texts
    fetched from where long values are, so a scan of the table takes several times as long as the GIN, which knows the
    answer without them.

    Words of the vocabulary that are looked up until the first row is found are no values, and better off with a scan: frequent
    ones meet that row at once.
    """
    return _COSTLY.search(query) is not None


def planned(query: str, params: Sequence[Any]) -> tuple[list[tuple[str, Sequence[Any]]], int]:
    """Return the statements that run *query* with the right plan, and which one of them it is itself."""
    if not is_costly(query):
        return [(query, params)], 0
    return [(NO_SCAN, ()), (query, params), (ANY_SCAN, ())], 1


def of_all_rows(where: Condition, share: Callable[[str, Sequence[Any] | None], float | None]) -> Condition:
    """Return *where* for a statement that needs each row that matches, and not the first ones of an order only.

    If it compares long values, what most rows have is compared row by row: *share* returns of how many of them, 0 to 1, a
    column has one of some values, or (None) any value, None if nobody knows.  PostgreSQL found the index of such a column as
    good as the GIN of the long values, read the rows by it, and decompressed each.
    """
    if not is_costly(where.sql):
        return where

    def with_value(condition: Condition) -> Condition:
        found = share(condition.filled or "", None)
        return condition if found is not None and found <= LITTLE else condition.hidden()

    where = where.with_filled(with_value)

    def compared(match: re.Match[str]) -> str:
        column = match["column"]
        value = where.params[_PLACEHOLDER.findall(where.sql[: match.start()]).count("%s")]
        found = share(column, value if isinstance(value, list | tuple) else [value])
        if found is None:
            found = 1.0 if column == ROLES else 0.0
        nothing = "NULL::text[]" if column == ROLES else "''"
        return match[0] if found <= LITTLE else f'("{column}" || {nothing}){match["compared"]}'

    return Condition(_INDEXED.sub(compared, where.sql), where.params)
