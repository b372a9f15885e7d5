"""What each SQL index of a site's catalog is for, and what it costs: ``python -m benchmarks.index_costs``.

Runs the scenarios of ``level2`` (``len`` and a page, several values each), and Plone's own queries on the way, and asks
PostgreSQL which indexes they used.  The cost of an index is the write-ahead log of new rows, and of rows whose modification
date changes, with it and without it: counted, not timed.
"""

from benchmarks import level2
from benchmarks.backends import BACKENDS
from benchmarks.backends import OURS
from benchmarks.backends import vacuum
from benchmarks.machine import header
from benchmarks.marks import put_between
from benchmarks.running import SETTINGS
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios import TOUCHES
from benchmarks.zope_site import make_application
from benchmarks.zope_site import make_site
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import start_zope
from DateTime import DateTime
from pathlib import Path
from plone.pgcatalog.database.embedded import EmbeddedPostgres
from psycopg import sql
from typing import Any

import click
import json
import psycopg
import tempfile


VARIANTS = 8
#: Rows that are written to see what that costs.
WRITTEN = 500
#: What a running site asks besides the scenarios.
MORE: dict[str, dict[str, Any]] = {
    "upcoming events": {
        "portal_type": "Event",
        "end": {"query": DateTime("2019/06/01"), "range": "min"},
        "sort_on": "start",
    },
    "one creator's": {"Creator": "author3", "sort_on": "modified", "sort_order": "reverse"},
    "by interface": {"object_provides": "plone.app.contenttypes.interfaces.IDocument", "sort_on": "created"},
    "expired": {"expires": {"query": DateTime("2019/06/01"), "range": "max"}},
    "by id": {"getId": "doc17"},
    "back references": {"getRawRelatedItems": "nothing"},
    "title words": {"Title": "word30"},
    "latest effective, page": {"sort_on": "effective", "sort_order": "reverse", "b_size": 25},
}
WAYS = {
    "a new row": (
        "INSERT INTO {table} SELECT (r).* FROM (SELECT jsonb_populate_record(t, jsonb_build_object("
        "'rid', t.rid + 1000000000, 'path', t.path || '/new', 'zoid', NULL, 'uid', md5(t.path),"
        " 'get_id', t.get_id || 'new', 'id', t.get_id || 'new', 'path_value', t.path || '/new')) AS r"
        " FROM {table} t ORDER BY t.rid LIMIT %s) AS made"
    ),
    "another date": (
        "UPDATE {table} SET modified = modified + 5000 WHERE rid IN (SELECT rid FROM {table} ORDER BY rid LIMIT %s)"
    ),
}


def used(connection: Any, relation: str) -> dict[str, int]:
    """Return by index how often it has been scanned."""
    connection.execute("SELECT pg_stat_clear_snapshot()")
    rows = connection.execute(
        "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE relname = %s ORDER BY 1", [relation]
    )
    return dict(rows.fetchall())


def queries(place: PloneSite, connection: Any, relation: str) -> dict[str, list[str]]:
    """Return by index the names of the queries that use it."""
    found: dict[str, list[str]] = {name: [] for name in used(connection, relation)}
    asked = [(s.name, [s.query(place.place, n) for n in range(VARIANTS)], s.anonymous) for s in SCENARIOS]
    asked += [(name, [query], False) for name, query in MORE.items()]
    for name, variants, anonymous in asked:
        before = used(connection, relation)
        for query in variants:
            for touch in TOUCHES.values():
                catalog = place.request(anonymous)
                place.forget_results()
                touch(catalog(**query))
        place.leave()
        # A backend reports what it has done when it is idle, once a second at the most.
        place.close()
        place.open()
        after = used(connection, relation)
        for index, scans in after.items():
            if scans > before[index] and not index.endswith("_pkey"):
                found[index].append(name)
    return found


def written(connection: Any, relation: str, statement: str, without: str | None = None) -> float:
    """Return the bytes of write-ahead log for each row that *statement* writes, *without* one of the indexes."""
    with connection.transaction(force_rollback=True):
        if without is not None:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(without)))
        [(before,)] = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchall()
        rows = connection.execute(sql.SQL(statement).format(table=sql.Identifier(relation)), [WRITTEN]).rowcount
        [(size,)] = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)", (before,)).fetchall()
        return float(size) / rows


def costs(connection: Any, relation: str) -> dict[str, dict[str, float]]:
    """Return by index its size in bytes, and what it adds to each way of writing."""
    connection.execute("CHECKPOINT")
    for statement in WAYS.values():
        # Full pages are logged once after a checkpoint: here.
        written(connection, relation, statement)
    found = {}
    for name in used(connection, relation):
        if name.endswith(("_pkey", "_path", "_zoid")):
            continue
        [(size,)] = connection.execute("SELECT pg_relation_size(%s::regclass)", [f'"{name}"']).fetchall()
        saved = {
            way: written(connection, relation, statement) - written(connection, relation, statement, name)
            for way, statement in WAYS.items()
        }
        found[name] = {"size": float(size), **saved}
    return found


def table(result: dict[str, Any]) -> str:
    """Return the Markdown table of *result*."""
    lines = [
        f"{result['rows']:,} rows; `python -m benchmarks.index_costs --docs {result['docs']}`,"
        f" PostgreSQL {result['postgresql']}.",
        "",
        "| SQL index | size, kB | WAL of a new row, B | of another date, B | used by |",
        "|---|--:|--:|--:|---|",
    ]
    for name, cost in sorted(result["indexes"].items()):
        cells = [f"{cost['size'] / 1024:,.0f}", *(f"{max(cost[way], 0):,.0f}" for way in WAYS)]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {', '.join(cost['used']) or '–'} |")
    return "\n".join(lines)


def measure(docs: int) -> dict[str, Any]:
    """Make a site of *docs* documents and return what its catalog's indexes do and cost."""
    with EmbeddedPostgres(settings=SETTINGS) as server, tempfile.TemporaryDirectory() as folder:
        dsn = server.createdb("index_costs")
        start_zope(Path(folder))
        place = PloneSite(BACKENDS[OURS], dsn, Path(folder), 400)
        make_application(place.db)
        make_site(place)
        level2.content(place, docs, lambda text: None)
        vacuum(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
            [(rows,)] = connection.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(relation))
            ).fetchall()
            users = queries(place, connection, relation)
            place.close()
            indexes = {
                name.removeprefix(f"{relation}_"): {**cost, "used": users[name]}
                for name, cost in costs(connection, relation).items()
            }
        return {
            "docs": docs,
            "rows": rows,
            "postgresql": str(server.version),
            "indexes": indexes,
            **header(str(server.version)),
        }


@click.command()
@click.option("--docs", default=5000, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Keep the figures in this JSON file.")
@click.option("--page", type=click.Path(path_type=Path), help="Put the table between the marks of this page.")
def main(docs: int, output: Path | None, page: Path | None) -> None:
    """Print what each SQL index is for, and what it costs."""
    result = measure(docs)
    click.echo(table(result))
    if output is not None:
        output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    if page is not None:
        put_between(page, "index costs", table(result))


if __name__ == "__main__":
    main()
