"""What each SQL index of a site's catalog is for, and what it costs: ``python -m benchmarks.index_costs``.

Runs the scenarios of ``level2`` (``len`` and a page, several values each), and Plone's own queries on the way, and asks
PostgreSQL which indexes they used.  The cost of an index is the write-ahead log of new rows, and of rows whose modification
date changes, in a copy of the table with the index and without it: counted, not timed.
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
from DateTime import DateTime
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from psycopg import sql
from tests.integration.site import load_zope
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
#: What is written to a copy of the table: new rows; and rows whose modification date changes, which has an index as well.
WAYS = {
    "a new row": "INSERT INTO copied SELECT * FROM {table} ORDER BY rid OFFSET %s",
    "another date": "UPDATE copied SET modified = modified + interval '1 day' WHERE rid IN"
    " (SELECT rid FROM copied ORDER BY rid LIMIT %s)",
}
COPY = "CREATE TABLE copied (LIKE {table} INCLUDING STORAGE); INSERT INTO copied SELECT * FROM {table} ORDER BY rid LIMIT {rows}"


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


def written(connection: Any, relation: str, rows: int, definition: str | None) -> dict[str, float]:
    """Return by way the bytes of write-ahead log for each written row in a copy of *relation* with *rows* rows.

    The copy has no index but that of the modification date, and the one that *definition* makes.
    """
    names = {"table": sql.Identifier(relation), "rows": sql.Literal(rows - WRITTEN)}
    found = {}
    with connection.transaction(force_rollback=True):
        connection.execute(sql.SQL(COPY).format(**names))
        connection.execute("CREATE INDEX ON copied (modified)")
        if definition is not None:
            connection.execute(definition)
        for way, statement in WAYS.items():
            [(before,)] = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchall()
            limit = rows - WRITTEN if way == "a new row" else WRITTEN
            connection.execute(sql.SQL(statement).format(**names), [limit])
            if definition is not None and "USING gin" in definition:
                connection.execute("SELECT gin_clean_pending_list('copied_measured')")
            [(size,)] = connection.execute(
                "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)", (before,)
            ).fetchall()
            found[way] = float(size) / WRITTEN
    return found


def costs(connection: Any, relation: str, rows: int) -> dict[str, dict[str, float]]:
    """Return by index its size in bytes, and what it adds to each way of writing."""
    # Full pages are logged once after a checkpoint, whatever is written: not counted.
    connection.execute("ALTER SYSTEM SET full_page_writes = off")
    connection.execute("ALTER SYSTEM SET autovacuum = off")
    connection.execute("SELECT pg_reload_conf()")
    plain = written(connection, relation, rows, None)
    found = {}
    indexes = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [relation]
    ).fetchall()
    for name, definition in indexes:
        if name.endswith(("_pkey", "_path", "_zoid")):
            continue
        [(size,)] = connection.execute("SELECT pg_relation_size(%s::regclass)", [f'"{name}"']).fetchall()
        made = "CREATE INDEX copied_measured ON copied" + definition[definition.index(" USING ") :]
        with_it = written(connection, relation, rows, made)
        found[name] = {"size": float(size), **{way: with_it[way] - plain[way] for way in WAYS}}
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
        lines.append(f"| `{name}` | {' | '.join(cells)} | {'; '.join(cost['used']) or '–'} |")
    return "\n".join(lines)


def rebuild(place: PloneSite) -> None:
    """Let the indexes fit what is in the site."""
    from plone.pgcatalog.indexing.rebuild import Rebuild

    rebuilding = Rebuild(place.enter().portal_catalog)
    for _ in rebuilding.steps():
        pass
    rebuilding.close()
    place.leave()


def measure(docs: int) -> dict[str, Any]:
    """Make a site of *docs* documents and return what its catalog's indexes do and cost."""
    with EmbeddedPostgres(settings=SETTINGS) as server, tempfile.TemporaryDirectory() as folder:
        dsn = server.createdb("index_costs")
        load_zope(Path(folder))
        place = PloneSite(BACKENDS[OURS], dsn, Path(folder), 400)
        make_application(place.db)
        make_site(place)
        level2.content(place, docs, lambda text: None)
        rebuild(place)
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
                for name, cost in costs(connection, relation, rows).items()
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
