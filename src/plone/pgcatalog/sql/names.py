"""Names of SQL columns for the names of indexes."""

from collections.abc import Iterable

import re


#: Columns of every catalog relation; no index may use their names.
RESERVED = frozenset(
    {"rid", "path", "zoid", "idx", "pkey", "zoid_fk", "score", "catalog", "ctid", "oid", "tableoid", "xmin", "xmax"}
)
WELL_KNOWN = {"allowedRolesAndUsers": "allowed_roles", "SearchableText": "searchable_text"}


def columns_of(name: str, taken: Iterable[str]) -> str:
    """Return the base name of the SQL columns of index *name*: readable, a valid identifier, not *taken*."""
    taken = set(taken) | (RESERVED if name != "path" else frozenset())
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    base = WELL_KNOWN.get(name) or re.sub(r"[^a-z0-9_]+", "_", words)[:40].strip("_") or "index"
    candidate, number = base, 1
    while candidate in taken:
        number += 1
        candidate = f"{base}_{number}"
    return candidate
