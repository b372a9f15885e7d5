"""Lists as PostgreSQL's array literals."""

from collections.abc import Sequence
from typing import Any


#: The types of arrays, as in pg_type.
INT8_ARRAY, TEXT_ARRAY = 1016, 1009
LARGEST = 2**63


def array_of(values: Sequence[Any]) -> tuple[bytes, int] | None:
    """Return the literal of an array of *values*, all of them texts or all integers, and the oid of its type.

    None for others, larger integers, no values, and a text that PostgreSQL cannot hold.  See "Array Input and Output Syntax" in
    PostgreSQL's manual: each text in quotes, with a backslash before a quote and a backslash.
    """
    kinds = set(map(type, values))
    if kinds == {int} and min(values) >= -LARGEST and max(values) < LARGEST:
        return f"{{{','.join(map(str, values))}}}".encode(), INT8_ARRAY
    if kinds != {str}:
        return None
    joined = "\0".join(values)
    if joined.count("\0") != len(values) - 1:
        return None
    escaped = joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","')
    try:
        return f'{{"{escaped}"}}'.encode(), TEXT_ARRAY
    except UnicodeEncodeError:
        return None
