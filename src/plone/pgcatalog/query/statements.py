"""Builds the statements of a compiled query, bound to the stored form of a catalog: pages, counts, rids and keys."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog.query.bind import columns_sql
from plone.pgcatalog.query.bind import condition
from plone.pgcatalog.query.bind import first_condition
from plone.pgcatalog.query.bind import order_by
from plone.pgcatalog.query.bind import select
from plone.pgcatalog.query.bind import selective_condition
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.query.nearest import FusedRows
from plone.pgcatalog.query.nearest import Fusion
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.nearest import SCORE
from plone.pgcatalog.query.ranked import Stages
from plone.pgcatalog.query.ranked import total_column
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Statement
from typing import Any


def count(compiled: CompiledQuery, stored: Stored) -> Statement:
    """Return the statement for the number of rows that match, at most one more than the ``count_limit``."""
    where, limit = selective_condition(compiled.where, stored), compiled.count_limit
    if limit is None:
        return select("count(*)", where, stored)
    up_to_limit = select("", where, stored, f"LIMIT {limit + 1:d}")
    return replace(up_to_limit, sql=f"SELECT count(*) FROM ({up_to_limit.sql}) AS found")


def ids(compiled: CompiledQuery, stored: Stored) -> Statement:
    """Return the statement for the rids of the whole sorted, unranked result, in one binary value with 8 bytes for each."""
    expression = f"string_agg(int8send(rid), ''::bytea ORDER BY {order_by(compiled, stored)})"
    where = selective_condition(compiled.where, stored)
    if not where.is_costly:
        return select(expression, where, stored)
    # With OFFSET 0, PostgreSQL sorts the rows it has found, instead of comparing all rows in the order of an index.
    rows = select("*", where, stored, "OFFSET 0")
    return replace(rows, sql=f"SELECT {expression} FROM ({rows.sql}) AS catalog")


def first_ids(compiled: CompiledQuery, stored: Stored, size: int) -> Statement:
    """Return the statement for the rids of the first *size* rows, in the form of ``ids``."""
    where = first_condition(compiled.where, stored)
    rows = select("rid", where, stored, f"ORDER BY {order_by(compiled, stored)} LIMIT {size:d}")
    first = f"unnest(ARRAY({rows.sql})) WITH ORDINALITY AS first (rid, place)"
    return replace(rows, sql=f"SELECT string_agg(int8send(rid), ''::bytea ORDER BY place) FROM {first}")


def page(
    compiled: CompiledQuery,
    stored: Stored,
    start: int,
    size: int | None,
    more: str = "",
    with_total: bool | None = None,
) -> Statement:
    """Return the statement for (rid, path, score) and the SQL expressions *more* of the rows ``[start:start + size]``.

    The last column is the number of all rows that match: NULL with *with_total* False, unless it costs nothing; with None
    there is no such column.
    """
    if isinstance(compiled.score, Fusion):
        return fused_page(compiled, compiled.score, stored, start, size, more, with_total)
    score, first, once = compiled.score, None, False
    # Only the first rows of an order can be read by its index; a rank has none.
    is_first = score is None and size is not None
    where = first_condition(compiled.where, stored) if is_first else selective_condition(compiled.where, stored)
    stages = Stages.of(stored.source, where, score, stored.rows, stored.full)
    if stages is not None:
        first, once = stages.first, stages.plans_once
        if size is not None and start + size <= stages.newest:
            where = stages.only_ranked
        else:
            score = stages.scored
    params = score.params if score else ()
    if with_total is not None:
        counted = with_total and (stages is None or not stages.counts_all)
        total = total_column(compiled.score, first is not None, count(compiled, stored) if counted else None)
        more += f", {total.sql} AS total"
        params = (*params, *total.params)
    expressions = f"rid, path, {score.sql if score else 'NULL'} AS score{more}"
    tail = f"ORDER BY {'score DESC NULLS LAST, rid DESC' if score else order_by(compiled, stored)}"
    if size is not None:
        tail += f" LIMIT {size:d}"
    if start:
        tail += f" OFFSET {start:d}"
    statement = select(expressions, where, stored, tail, params, (start, size))
    if first is None:
        return statement
    params = (*first.params, *statement.params)
    return replace(statement, sql=first.sql + statement.sql, params=params, is_costly=True, plans_once=once)


def fused_rows(fusion: Fusion, stored: Stored) -> FusedRows:
    """Return the rows that *fusion* ranks, bound to *stored*."""
    found = selective_condition(fusion.found, stored)
    stages = Stages.of(stored.source, found, fusion.words, stored.rows, stored.full)
    return FusedRows(fusion, stored.source, found, condition(fusion.near.among, stored), stages, stored.is_committed)


def fused_page(
    compiled: CompiledQuery,
    fusion: Fusion,
    stored: Stored,
    start: int,
    size: int | None,
    more: str = "",
    with_total: bool | None = None,
) -> Statement:
    """Return ``page`` for *compiled*, a hybrid search ranked by *fusion*."""
    rows = fused_rows(fusion, stored)
    stages = rows.stages
    params: tuple[Any, ...] = rows.first.params
    # The WITH clause has found the nearest rows.
    near = fusion.near.chosen("nearest")
    where = compiled.where.changed(lambda part: near if isinstance(part, Near) else part)
    if with_total is not None:
        counted = with_total and stages is not None and not stages.counts_all
        total = rows.total(count(replace(compiled, where=where), stored) if counted else None)
        more, params = f"{more}, {total.sql} AS total", (*params, *total.params)
    tail = f"ORDER BY {SCORE} DESC NULLS LAST, rid DESC"
    if stages is None or (size is not None and start + size <= stages.newest):
        limit = LARGEST_WINDOW if size is None else size
        source, where = (rows.page(start, limit), stored.source[1]), EVERYTHING
    else:
        source, where = (rows.all_rows, stored.source[1]), selective_condition(where, stored)
        tail += f" LIMIT {size:d} OFFSET {start:d}" if size is not None else f" OFFSET {start:d}"
    statement = select(
        f"rid, path, {SCORE} AS score{more}", where, replace(stored, source=source), tail, params, (start, size)
    )
    return replace(statement, sql=rows.first.sql + statement.sql, is_costly=True)


def page_with_metadata(
    compiled: CompiledQuery,
    stored: Stored,
    start: int,
    size: int | None,
    excluded_keys: Sequence[str],
    with_idx: bool = True,
    with_total: bool | None = None,
    value: Column | None = None,
    most: int | None = None,
) -> Statement:
    """Return ``page`` for committed rows, with the text of ``versioned_idx_sql`` in the fourth place.

    With *value* the last place is the value of this column.  The texts of a page with more than *most* rows are NULL.
    """
    # The idx is read behind LIMIT, for the rows of the page only.
    # If there are several relations, PostgreSQL requires the qualified name of a system column.
    xmin = f"{stored.source[0]}.xmin" if isinstance(compiled.score, Fusion) else "xmin"
    more = f", zoid, idx, {xmin}{value_column(value)}{'' if most is None else ', count(*) OVER () AS page_rows'}"
    inner = page(compiled, stored, start, size, more, with_total)
    text, params = versioned_idx_sql("page", excluded_keys, with_idx)
    if most is not None:
        text = f"CASE WHEN page_rows <= {most:d} THEN {text} END"
    last = ("" if with_total is None else ", total") + ("" if value is None else ", value")
    sql = f"SELECT rid, path, score, {text}{last} FROM ({inner.sql}) AS page"
    return replace(inner, sql=sql, params=(*params, *inner.params))


def value_column(column: Column | None) -> str:
    """Return the SQL that selects *column* as ``value`` behind other expressions, empty for None."""
    return "" if column is None else f", {column.quoted} AS value"


def key_counts(columns: Sequence[Column], key: str, where: Condition, stored: Stored) -> Statement:
    """Return the statement for (key, number of rows) of the rows that match *where*, in the order of the keys.

    *key* is the SQL of a key of an index with these *columns*.  Each interned list is unnested once, other lists once per
    row, which is faster than grouping by them.
    """
    where = condition(where, stored)
    if (stored.interned_columns or {}).keys().isdisjoint(c.name for c in columns):
        return select(f"{key} AS key, count(*)", where, stored, "GROUP BY 1 ORDER BY 1")
    names = ", ".join(c.quoted for c in columns)
    groups = select(f"{names}, count(*) AS n", where, stored, f"GROUP BY {names}")
    values = f"SELECT {columns_sql(columns, stored)}, n FROM ({groups.sql}) AS grouped"
    keys = f"SELECT {key} AS key, n FROM ({values}) AS listed"
    return replace(groups, sql=f"SELECT key, sum(n)::bigint FROM ({keys}) AS keys GROUP BY key ORDER BY key")


def key_rids(columns: Sequence[Column], key: str, where: Condition, stored: Stored) -> Statement:
    """Return the statement for (key, rid) of the rows that match *where*, in this order; see ``key_counts``."""
    rows = select(f"{columns_sql(columns, stored)}, rid", condition(where, stored), stored)
    return replace(rows, sql=f"SELECT {key} AS key, rid FROM ({rows.sql}) AS found ORDER BY 1, 2")


# -- versions of rows, which show whether a cached row is current


def changed_rows(
    relation: str, rids: Sequence[int], excluded_keys: Sequence[str], versions: Mapping[int, str]
) -> Statement | None:
    """Return the statement for (rid, path, text) of the rows *rids*, and of rows with another version than in *versions*.

    *versions* maps rids to versions, the text is from ``versioned_idx_sql``.  None if both are empty.
    """
    selects: list[str] = []
    params: list[Any] = []
    text, values = versioned_idx_sql("c", excluded_keys)
    if rids:
        selects.append(f"SELECT c.rid, c.path, {text} FROM {quote(relation)} c WHERE c.rid = ANY(%s::bigint[])")
        params += [*values, list(rids)]
    if versions:
        # Unchanged rows are not returned.
        version, _ = versioned_idx_sql("c", (), False)
        selects.append(
            f"SELECT k.rid, c.path, {text} FROM unnest(%s::bigint[], %s::text[]) AS k (rid, version)"
            f" LEFT JOIN {quote(relation)} c ON c.rid = k.rid WHERE rtrim({version}) IS DISTINCT FROM k.version"
        )
        params += [*values, list(versions), list(versions.values())]
    return Statement(" UNION ALL ".join(selects), tuple(params)) if selects else None


def versioned_idx_sql(row: str, excluded_keys: Sequence[str], with_idx: bool = True) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL of a text with the version of *row*, an alias, and *with_idx* its idx; and the parameters of the SQL.

    The version is the ``xmin`` of the catalog's row and of the object's row: each transaction writes its own id there.
    """
    idx = outer = ""
    params: tuple[Any, ...] = ()
    if with_idx:
        idx, outer = (f", ({value} - %s::text[])::text" for value in (f"coalesce({row}.idx, o.idx)", f"{row}.idx"))
        params = (list(excluded_keys), list(excluded_keys))
    return (
        f"coalesce((SELECT concat({row}.xmin, '.', o.xmin, ' '{idx}) FROM object_state o WHERE o.zoid = {row}.zoid),"
        f" concat({row}.xmin, '. '{outer}))",
        params,
    )


def split_version(text: str) -> tuple[str, str]:
    """Return the version and the idx, JSON or empty, of a text from ``versioned_idx_sql``."""
    version, _, idx = text.partition(" ")
    return version, idx
