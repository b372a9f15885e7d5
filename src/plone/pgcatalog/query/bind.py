"""Binds a compiled query to the stored form of a catalog: statements, pure, without a connection.

``Stored`` is what of a catalog's state a statement takes for granted.  ``CatalogView.stored`` makes it, and looks up before
what a condition needs of the database; nothing here asks anybody.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.fusion import FusedRows
from plone.pgcatalog.query.fusion import Fusion
from plone.pgcatalog.query.fusion import SCORE
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.query.ranked import Stages
from plone.pgcatalog.query.ranked import total_column
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import BELOW
from plone.pgcatalog.sql.predicate import BETWEEN
from plone.pgcatalog.sql.predicate import NOT_NULL
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.values import as_interned
from plone.pgcatalog.sql.values import as_list_sql
from plone.pgcatalog.sql.values import InternedSets
from typing import Any


#: Column -> share of the rows, 0 to 1, with a value; and with each of its frequent values.
Shares = tuple[Mapping[str, float], Mapping[str, Mapping[str, float]]]

#: What no more than this share of the rows has finds them best by its index.
SELECTIVE_SHARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """How the rows are stored that a transaction sees of a catalog.

    *source* is what to select from; *complete* are columns with a value in every row; *interned_columns* those that hold
    numbers, by name, *known_sets* the sets there are, and *pending_sets* a table with those that nobody has saved, "" for none.
    Of *rows*, an estimate, the hits of a ranked search are all ranked up to *full* of them, 0 for any number.
    *shares* are None where no statement is worth a thought about plans.  *moved* is the SQL condition for rows that the
    transaction has moved, "" if there are none.
    """

    source: Source
    complete: Collection[str] = ()
    interned_columns: Mapping[str, Column] | None = None
    known_sets: Sequence[InternedSets] = ()
    pending_sets: str = ""
    rows: int | None = None
    full: int = 0
    shares: Shares | None = None
    moved: str = ""


# -- conditions


def condition(where: Condition, stored: Stored) -> Condition:
    """Return *where* for the rows of *stored*: drop what holds for every row, and replace lists by their numbers."""
    interned_columns = stored.interned_columns or {}

    def bound(part: Condition) -> Condition:
        if isinstance(part, Near):
            return part.bound(stored.source, condition(part.among, stored))
        if not isinstance(part, Predicate):
            return part
        if part.operator == NOT_NULL and part.column.name in stored.complete:
            return EVERYTHING
        return as_interned(part, interned_columns, stored.known_sets) if part.column.name in interned_columns else part

    return where.changed(bound)


def selective_condition(where: Condition, stored: Stored) -> Condition:
    """Return ``condition`` for a statement that needs each row that matches, and not the first ones of an order only."""
    return hide_unselective_indexes(condition(where, stored), partial(share, stored.shares))


def hide_unselective_indexes(
    where: Condition, share: Callable[[Column, Sequence[Any] | None], float | None]
) -> Condition:
    """Hide unselective columns of *where* from the planner, if it compares long values.

    *share* returns which share of the rows, 0 to 1, has one of some values in a column, None for any value; None if nobody
    knows.  What most rows have is compared row by row: PostgreSQL found the index of such a column as good as the GIN of the
    long values, read the rows by it, and decompressed each.
    """
    if not where.is_costly:
        return where

    def hidden(part: Condition) -> Condition:
        if not isinstance(part, Predicate):
            return part
        if part.operator == NOT_NULL:
            filled = share(part.column, None)
            return part if filled is not None and filled <= SELECTIVE_SHARE else part.hidden()
        if not part.can_be_hidden and not part.column.is_interned:
            return part
        [value] = part.values
        matched = share(part.column, value if isinstance(value, list | tuple) else [value])
        return part if matched is None or matched <= SELECTIVE_SHARE else part.hidden()

    return where.changed(hidden)


def asks_share(part: Predicate, complete: Collection[str], interned_columns: Collection[str]) -> bool:
    """True if ``selective_condition`` asks how many rows *part* is true of, where these columns are complete or numbers."""
    if part.operator == NOT_NULL:
        return part.column.name not in complete
    return part.can_be_hidden or part.column.name in interned_columns


def share(shares: Shares | None, column: Column, values: Iterable[Any] | None) -> float | None:
    """Return which share of the rows, 0 to 1, has one of *values* in *column*, None for any value; None if nobody knows."""
    if shares is None:
        return None
    filled, by_value = shares
    if values is None:
        return filled.get(column.name)
    of_values = by_value.get(column.name)
    return sum(of_values.get(str(value), 0.0) for value in values) if of_values else None


def plans_once(where: Condition) -> bool:
    """True if the same plan is good for any values in *where*, a condition on long values.

    PostgreSQL expects 0.5 % of all rows from a text it does not know, and as many from values between two others: of these
    an index could look cheaper than that of the texts.  Planning a ranked page takes 1 ms, ranking 50 hits half of that.
    """
    return all(
        isinstance(part, Predicate) and (part.is_hidden or part.operator not in (BELOW, BETWEEN))
        for part in where.conjuncts()
    )


# -- columns and order


def lists_sql(stored: Stored) -> dict[str, str]:
    """Return the SQL of the lists themselves for each column of *stored* that holds numbers, by name."""
    return {name: as_list_sql(column, stored.pending_sets) for name, column in (stored.interned_columns or {}).items()}


def columns_sql(columns: Iterable[Column], stored: Stored) -> str:
    """Return the SQL of *columns* under their names, with the lists where those are numbers."""
    values = lists_sql(stored)
    return ", ".join(f"{values[c.name]} AS {c.quoted}" if c.name in values else c.quoted for c in columns)


def order(query: CompiledQuery, stored: Stored) -> tuple[Order, ...]:
    """Return the terms that *query* is sorted by."""
    values = lists_sql(stored)

    def bound(term: Order) -> Order:
        value = values.get(term.column.name) if term.column is not None else None
        return term if value is None else replace(term, expression=value)

    return tuple(map(bound, query.order))


def order_by(query: CompiledQuery, stored: Stored) -> str:
    """Return the ORDER BY of *query*; without an order of its own what the transaction has moved comes last.

    ZCatalog gives a moved object a new rid.  Who searches while he moves objects, as plone.app.multilingual does, takes the
    first of two for the one that was there before.
    """
    terms = ", ".join([term.sql for term in order(query, stored)])
    return f"{stored.moved}, {terms}" if stored.moved and query.order == (OLDEST_FIRST,) else terms


# -- statements


def select(
    expressions: str,
    where: Condition,
    stored: Stored,
    tail: str = "",
    params: Sequence[Any] = (),
    window: tuple[int, int | None] | None = None,
) -> Statement:
    """Return ``SELECT expressions FROM catalog WHERE where tail``; *params* belong to *expressions*.

    *where* is bound already; *window* is that of ``Statement``.
    """
    relation, source_params = stored.source
    condition = "" if where is EVERYTHING else f" WHERE {where.sql}"
    sql = f"SELECT {expressions} FROM {relation}{condition} {tail}"
    return Statement(sql, (*params, *source_params, *where.params), where.is_costly, window)


def count(query: CompiledQuery, stored: Stored) -> Statement:
    """Return the statement for the number of rows that match; one more than a ``count_limit`` for any number beyond."""
    where, limit = selective_condition(query.where, stored), query.count_limit
    if limit is None:
        return select("count(*)", where, stored)
    up_to_limit = select("", where, stored, f"LIMIT {limit + 1:d}")
    return replace(up_to_limit, sql=f"SELECT count(*) FROM ({up_to_limit.sql}) AS found")


def ids(query: CompiledQuery, stored: Stored) -> Statement:
    """Return the statement for the rids of the whole sorted result, one binary value of 8 bytes each, not ranked."""
    expression = f"string_agg(int8send(rid), ''::bytea ORDER BY {order_by(query, stored)})"
    where = selective_condition(query.where, stored)
    if not where.is_costly:
        return select(expression, where, stored)
    # Behind OFFSET, PostgreSQL sorts what it has found, and does not compare all rows in the order of an index.
    rows = select("*", where, stored, "OFFSET 0")
    return replace(rows, sql=f"SELECT {expression} FROM ({rows.sql}) AS catalog")


def first_ids(query: CompiledQuery, stored: Stored, size: int) -> Statement:
    """Return the statement for the rids of the first *size* rows, as ``ids`` has those of all."""
    where = selective_condition(query.where, stored)
    rows = select("rid", where, stored, f"ORDER BY {order_by(query, stored)} LIMIT {size:d}")
    first = f"unnest(ARRAY({rows.sql})) WITH ORDINALITY AS first (rid, place)"
    return replace(rows, sql=f"SELECT string_agg(int8send(rid), ''::bytea ORDER BY place) FROM {first}")


def page(
    query: CompiledQuery,
    stored: Stored,
    start: int,
    size: int | None,
    more: str = "",
    with_total: bool | None = None,
) -> Statement:
    """Return the statement for (rid, path, score) of the rows ``[start:start + size]``, *more* expressions behind.

    Then comes the number of all rows that match, NULL without *with_total* if it costs something; None is no such column.
    """
    if isinstance(query.score, Fusion):
        return fused_page(query, query.score, stored, start, size, more, with_total)
    score, first, once = query.score, None, False
    where = selective_condition(query.where, stored) if score else condition(query.where, stored)
    stages = Stages.of(stored.source, where, score, stored.rows, stored.full)
    if stages is not None:
        first, once = stages.first, stages.plans_once and plans_once(where)
        if size is not None and start + size <= stages.newest:
            where = stages.only_ranked
        else:
            score = stages.scored
    params = score.params if score else ()
    if with_total is not None:
        counted = with_total and (stages is None or not stages.counts_all)
        total = total_column(query.score, first is not None, count(query, stored) if counted else None)
        more += f", {total.sql} AS total"
        params = (*params, *total.params)
    expressions = f"rid, path, {score.sql if score else 'NULL'} AS score{more}"
    tail = f"ORDER BY {'score DESC NULLS LAST, rid DESC' if score else order_by(query, stored)}"
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
    """Return the rows that *fusion* ranks, as they are stored."""
    found = selective_condition(fusion.found, stored)
    stages = Stages.of(stored.source, found, fusion.words, stored.rows, stored.full)
    return FusedRows(fusion, stored.source, found, condition(fusion.near.among, stored), stages)


def fused_page(
    query: CompiledQuery,
    fusion: Fusion,
    stored: Stored,
    start: int,
    size: int | None,
    more: str = "",
    with_total: bool | None = None,
) -> Statement:
    """Return ``page`` of *query*, a hybrid search ranked by *fusion*."""
    rows = fused_rows(fusion, stored)
    stages = rows.stages
    params: tuple[Any, ...] = rows.first.params
    # The nearest rows have been found already.
    near = fusion.near.chosen("nearest")
    where = query.where.changed(lambda part: near if isinstance(part, Near) else part)
    if with_total is not None:
        counted = with_total and stages is not None and not stages.counts_all
        total = rows.total(count(replace(query, where=where), stored) if counted else None)
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
    query: CompiledQuery,
    stored: Stored,
    start: int,
    size: int | None,
    excluded_keys: Sequence[str],
    known: bytes | None = b"",
    with_total: bool | None = None,
) -> Statement:
    """Return ``page`` of committed rows, with the text of ``versioned_idx_sql`` in the fourth place."""
    # The idx is fetched for the rows of the page only: behind LIMIT.
    # Of several relations, PostgreSQL takes a system column by its whole name only.
    xmin = f"{stored.source[0]}.xmin" if isinstance(query.score, Fusion) else "xmin"
    inner = page(query, stored, start, size, f", zoid, idx, {xmin}", with_total)
    text, params = versioned_idx_sql("page", excluded_keys, known)
    total = "" if with_total is None else ", total"
    sql = f"SELECT rid, path, score, {text}{total} FROM ({inner.sql}) AS page"
    return replace(inner, sql=sql, params=(*params, *inner.params))


def key_counts(columns: Sequence[Column], key: str, where: Condition, stored: Stored) -> Statement:
    """Return the statement for (key, number of rows) of the rows that match *where*, in the order of the keys.

    *key* is an index's expression of a key, made of its *columns*.  An interned list is taken apart once; others
    in each row, which is faster than comparing them with each other.
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


# -- versions: what tells a process whether it knows a row already


def changed_rows(
    relation: str, rids: Sequence[int], excluded_keys: Sequence[str], versions: Mapping[int, str]
) -> Statement | None:
    """Return the statement for (rid, path, text) of the rows *rids*, and of those of *versions*, by rid, that have another one.

    The text is that of ``versioned_idx_sql``; None for no rids and no versions.
    """
    selects: list[str] = []
    params: list[Any] = []
    text, values = versioned_idx_sql("c", excluded_keys)
    if rids:
        selects.append(f"SELECT c.rid, c.path, {text} FROM {quote(relation)} c WHERE c.rid = ANY(%s::bigint[])")
        params += [*values, list(rids)]
    if versions:
        # What has not changed does not come back.
        version, _ = versioned_idx_sql("c", (), None)
        selects.append(
            f"SELECT k.rid, c.path, {text} FROM unnest(%s::bigint[], %s::text[]) AS k (rid, version)"
            f" LEFT JOIN {quote(relation)} c ON c.rid = k.rid WHERE rtrim({version}) IS DISTINCT FROM k.version"
        )
        params += [*values, list(versions), list(versions.values())]
    return Statement(" UNION ALL ".join(selects), tuple(params)) if selects else None


def versioned_idx_sql(row: str, excluded_keys: Sequence[str], known: bytes | None = b"") -> tuple[str, tuple[Any, ...]]:
    """Return the SQL of a text with the version of *row*, an alias, and its idx, and the parameters of that.

    There is no idx if the row is in *known*, a bitmap of 2**n bytes by rid (``results.cache``); None for any row.
    A transaction gives all rows it writes its own id: those of the catalog's row and of the object's tell every change.
    """
    idx = outer = ""
    params: tuple[Any, ...] = ()
    if known is not None:
        idx, outer = (f"({value} - %s::text[])::text" for value in (f"coalesce({row}.idx, o.idx)", f"{row}.idx"))
        params = (list(excluded_keys),)
        if known:
            unknown = f"CASE WHEN get_bit(%s, {row}.rid & %s::bigint) = 0 THEN"
            idx, outer = f"{unknown} {idx} END", f"{unknown} {outer} END"
            params = (known, 8 * len(known) - 1, *params)
        idx, outer = f", {idx}", f", {outer}"
    return (
        f"coalesce((SELECT concat({row}.xmin, '.', o.xmin, ' '{idx}) FROM object_state o WHERE o.zoid = {row}.zoid),"
        f" concat({row}.xmin, '. '{outer}))",
        params * 2,
    )


def split_version(text: str) -> tuple[str, str]:
    """Return the version and the idx, as JSON or empty, of a text as ``versioned_idx_sql`` makes it."""
    version, _, idx = text.partition(" ")
    return version, idx
