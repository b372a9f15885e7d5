"""Is a number for each distinct set of roles faster than the sets themselves?

``python benchmarks/roles_filter.py [ROWS]`` makes a table with both forms of the filter on an embedded server, and
prints the median time of the same searches with either, measured in turns.
"""

from plone.pgcatalog.database.embedded import EmbeddedPostgres
from plone.pgcatalog.database.embedded import TEST_SETTINGS
from statistics import median
from time import perf_counter
from typing import Any

import psycopg
import sys


TURNS = 200
TABLE = """
CREATE TABLE rows (rid bigint PRIMARY KEY, path text COLLATE "C", portal_type text COLLATE "C", modified timestamptz,
    allowed_roles text[] COLLATE "C", acl integer) WITH (toast_tuple_target = 256);
INSERT INTO rows SELECT i, '/plone/f' || i % 200 || '/d' || i, (ARRAY['Document', 'News Item', 'Event', 'File'])[1 + i % 4],
    timestamptz '2020-01-01' + i * interval '1 hour', roles, acl
FROM generate_series(1, {rows}) i, LATERAL (SELECT CASE WHEN i % 10 < 7 THEN 1 WHEN i % 10 < 9 THEN 2 ELSE 3 + i % 200 END)
    AS a (acl), LATERAL (SELECT CASE acl WHEN 1 THEN ARRAY['Anonymous'] WHEN 2 THEN
    ARRAY['Contributor', 'Editor', 'Manager', 'Owner', 'Reader', 'Reviewer', 'Site Administrator'] ELSE
    ARRAY['Manager', 'Owner', 'Site Administrator', 'user:member' || acl] END) AS r (roles);
CREATE INDEX ON rows (portal_type);
CREATE INDEX ON rows (modified);
CREATE INDEX ON rows USING gin (allowed_roles);
CREATE INDEX ON rows (acl);
CREATE INDEX ON rows (acl, modified);
VACUUM ANALYZE rows;
"""
USERS = {
    "anonymous": ["Anonymous"],
    "member": ["user:member7", "Member", "Authenticated", "user:AuthenticatedUsers", "Anonymous"],
    "manager": ["user:admin", "Manager", "Authenticated", "user:AuthenticatedUsers", "Anonymous"],
}
SEARCHES = {
    "count of all": "SELECT count(*) FROM rows WHERE {}",
    "count of a type": "SELECT count(*) FROM rows WHERE portal_type = 'Event' AND {}",
    "newest 20": "SELECT rid, path FROM rows WHERE {} ORDER BY modified DESC, rid LIMIT 20",
    "newest 20 of a type": "SELECT rid, path FROM rows WHERE portal_type = 'Event' AND {} ORDER BY modified DESC, rid LIMIT 20",
}


def measure(connection: Any, searches: list[tuple[str, Any]]) -> list[float]:
    """Return the median milliseconds of each of *searches*, (statement, parameter) pairs, run in turns."""
    times: list[list[float]] = [[] for _ in searches]
    for _ in range(TURNS):
        for taken, (statement, parameter) in zip(times, searches, strict=True):
            started = perf_counter()
            connection.execute(statement, (parameter,), prepare=False).fetchall()
            taken.append(perf_counter() - started)
    return [median(taken) * 1000 for taken in times]


def main(rows: int) -> None:
    with (
        EmbeddedPostgres(settings=TEST_SETTINGS) as server,
        psycopg.connect(server.createdb("roles"), autocommit=True) as connection,
    ):
        for statement in TABLE.format(rows=rows).split(";\n"):
            if statement.strip():
                connection.execute(statement)
        print(f"{rows} rows, milliseconds\n")
        print("| user | search | sets | numbers | ratio |\n|---|---|---|---|---|")
        for user, roles in USERS.items():
            report(connection, user, roles)


def report(connection: Any, user: str, roles: list[str]) -> None:
    """Print a line for each search of *user*, who has *roles*."""
    [(numbers,)] = connection.execute(
        "SELECT array_agg(DISTINCT acl) FROM rows WHERE allowed_roles && %s::text[]", (roles,)
    ).fetchall()
    for name, search in SEARCHES.items():
        sets = search.format("allowed_roles && %s::text[]"), roles
        interned = search.format("acl = ANY(%s::integer[])"), numbers
        one, other = measure(connection, [sets, interned])
        print(f"| {user} | {name} | {one:.2f} | {other:.2f} | {other / one:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
