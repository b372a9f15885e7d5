"""Reads rows with their version: what tells a process whether it knows a row already."""

from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.sql.fragment import Statement
from typing import Any


def changed_rows(
    relation: str, rids: Sequence[int], excluded_keys: Sequence[str], known: Mapping[int, str]
) -> Statement | None:
    """Return the statement for (rid, path, text) of the rows *rids*, and of those of another version than the *known* one.

    See ``CatalogView.idx_texts``; None when nothing is asked.
    """
    selects: list[str] = []
    params: list[Any] = []
    text, values = versioned_idx_sql("c", excluded_keys)
    if rids:
        selects.append(f"SELECT c.rid, c.path, {text} FROM {quote(relation)} c WHERE c.rid = ANY(%s::bigint[])")
        params += [*values, list(rids)]
    if known:
        # What has not changed does not come back.
        version, _ = versioned_idx_sql("c", (), with_idx=False)
        selects.append(
            f"SELECT k.rid, c.path, {text} FROM unnest(%s::bigint[], %s::text[]) AS k (rid, version)"
            f" LEFT JOIN {quote(relation)} c ON c.rid = k.rid WHERE rtrim({version}) IS DISTINCT FROM k.version"
        )
        params += [*values, list(known), list(known.values())]
    return Statement(" UNION ALL ".join(selects), tuple(params)) if selects else None


def versioned_idx_sql(row: str, excluded_keys: Sequence[str], with_idx: bool = True) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL of a text with the version of *row*, an alias, and *with_idx* its idx, and the parameters of that.

    A transaction gives all rows it writes its own id: those of the catalog's row and of the object's tell every change.
    """
    idx, outer = "", ""
    params: tuple[Any, ...] = ()
    if with_idx:
        idx = f", (coalesce({row}.idx, o.idx) - %s::text[])::text"
        outer, params = f", ({row}.idx - %s::text[])::text", (list(excluded_keys), list(excluded_keys))
    return (
        f"coalesce((SELECT concat({row}.xmin, '.', o.xmin, ' '{idx}) FROM object_state o WHERE o.zoid = {row}.zoid),"
        f" concat({row}.xmin, '. '{outer}))",
        params,
    )


def split_version(text: str) -> tuple[str, str]:
    """Return the version and the idx, as JSON or empty, of a text as ``versioned_idx_sql`` makes it."""
    version, _, idx = text.partition(" ")
    return version, idx
