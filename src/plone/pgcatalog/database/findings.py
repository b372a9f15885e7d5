"""Problems of a server or database that affect catalogs; each finding includes a remedy.

Reads only; connections are psycopg's, with dicts as rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.direct import DIRECT
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.database.direct import follows_statements
from plone.pgcatalog.database.direct import is_way_named
from plone.pgcatalog.database.direct import shares_sessions
from plone.pgcatalog.database.layout import load_sql
from psycopg import Connection
from psycopg import sql
from typing import Any
from typing import NamedTuple

import psycopg
import shutil


ERROR = "error"
WARNING = "warning"
#: The oldest version of PostgreSQL that the catalog is tested with.
OLDEST = 15
#: PostgreSQL's default of shared_buffers, too little for a larger database.
SMALL_BUFFERS = 128 << 20
#: Seconds after which an open transaction is reported.
LONG_SECONDS = 600.0
#: A table with more dead rows than this, and than live rows, is reported: autovacuum should have removed them.
MANY_DEAD = 10_000
#: Connections of a Zope process besides the storage's pool: the storage's own, for commits, a background thread's, and three
#: of a worker that reads a file.
BESIDES_POOL = 5


@dataclass(frozen=True)
class Finding:
    """A problem (``error``) or a possible problem (``warning``), and its remedy."""

    level: str
    subject: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.subject}: {self.text}. {self.remedy}"


def database_findings(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield findings about the server, the rights of the connection's role, long transactions, tables and disk space."""
    [server] = connection.execute(load_sql("findings_server")).fetchall()
    yield from server_findings(server)
    yield from rights_findings(connection, server)
    yield from transaction_findings(connection)
    has_catalogs = statistics.has_catalogs(connection)
    overview = statistics.overview(statistics.executing(connection)) if has_catalogs else {"catalogs": []}
    for catalog in overview["catalogs"]:
        yield from table_findings(catalog)
        # During a rebuild the old table exists beside the new one.
        if server["is_local"]:
            yield from disk_findings(server["data_directory"], catalog["table_bytes"] + catalog["index_bytes"])


def server_findings(server: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings about *server*, the row of findings_server.sql."""
    if server["version"] < OLDEST * 10000:
        text = f"version {server['version_name']} is older than {OLDEST}"
        yield Finding(ERROR, "PostgreSQL", text, f"Upgrade the server to PostgreSQL {OLDEST} or newer.")
    if server["encoding"] != "UTF8":
        remedy = "Create a database with ENCODING 'UTF8' TEMPLATE template0, and restore a dump of this one into it."
        yield Finding(ERROR, "encoding", f"the database has the encoding {server['encoding']}, not UTF8", remedy)
    for name in ("autovacuum", "track_counts"):
        if server[name] != "on":
            text = f"{name} is off: tables grow, and the planner has no statistics"
            yield Finding(ERROR, "settings", text, f"Set {name} = on in postgresql.conf, and reload.")
    for name in ("fsync", "full_page_writes"):
        if server[name] != "on":
            text = f"{name} is off: a crash of the machine can destroy the database"
            yield Finding(ERROR, "settings", text, f"Set {name} = on in postgresql.conf, and reload.")
    if server["shared_buffers"] <= SMALL_BUFFERS < server["bytes"]:
        text = f"shared_buffers is {megabytes(server['shared_buffers'])}, the database {megabytes(server['bytes'])}"
        remedy = "Set shared_buffers to a quarter of the machine's memory, and restart the server."
        yield Finding(WARNING, "settings", text, remedy)


def rights_findings(connection: Connection[Any], server: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings about missing rights of the role of *connection*; *server* is the row of findings_server.sql."""
    role, schema = server["role"], server["schema"]
    if not server["may_create"]:
        text = f"the role {role} may not create tables in the schema {schema or 'of its search_path, which does not exist'}"
        yield Finding(ERROR, "rights", text, f"GRANT CREATE, USAGE ON SCHEMA {schema or 'public'} TO {role};")
    if not server["may_use_temporary_tables"]:
        text = f"the role {role} may not create temporary tables, which searches after changes need"
        yield Finding(ERROR, "rights", text, f"GRANT TEMPORARY ON DATABASE {server['database']} TO {role};")
    foreign = connection.execute(load_sql("findings_owners")).fetchall()
    tables = [each for each in foreign if each["is_table"]]
    if foreign:
        first, more = foreign[0], f" and {len(tables) - 1} more" if len(tables) > 1 else ""
        kind = "table" if tables else "sequence, view or function"
        text = f"the {kind} {first['name']}{more} belongs to {first['owner']}, and {role} cannot alter it"
        yield Finding(ERROR, "rights", text, " ".join(each["remedy"] for each in foreign))


def transaction_findings(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield transactions that have been open for long: they prevent the removal of retired tables and dead rows."""
    for row in connection.execute(load_sql("findings_transactions"), [LONG_SECONDS]).fetchall():
        text = f"process {row['pid']} ({row['application'] or 'no name'}, {row['state']}) has a transaction open for"
        remedy = f"End the program, or run SELECT pg_terminate_backend({row['pid']});"
        minutes = f"{row['seconds'] / 60:.0f} minutes, which blocks VACUUM"
        yield Finding(WARNING, "transactions", f"{text} {minutes}", remedy)


def table_findings(catalog: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings about the table of *catalog*, an item of ``catalogs`` in ``statistics.overview``."""
    name = catalog["relation"]
    if catalog["dead_rows"] > max(MANY_DEAD, catalog["estimated_rows"]):
        text = f"{name} has {catalog['dead_rows']} dead rows"
        yield Finding(WARNING, "statistics", text, "Run pgcatalog vacuum; look for long transactions.")


def reference_findings(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield a finding if stored objects refer to missing ones, as after a pack during saves without plone.pgcatalog."""
    [found] = connection.execute("SELECT to_regclass('object_state') IS NOT NULL AS is_there").fetchall()
    if not found["is_there"]:
        return
    try:
        [found] = connection.execute(load_sql("findings_references")).fetchall()
    except psycopg.errors.QueryCanceled:
        text = "the search for references to missing objects exceeded the time limit"
        yield Finding(WARNING, "objects", text, "Run pgcatalog verify.")
        return
    if found["number"]:
        text = f"{found['number']} references point to missing objects, such as {', '.join(found['examples'])}"
        remedy = "Run pgcatalog verify to list their paths. Restore the objects from a backup, or delete the objects that refer to them."
        yield Finding(ERROR, "objects", text, remedy)


def disk_findings(folder: str | None, needed: int) -> Iterator[Finding]:
    """Yield a finding if the disk of *folder*, the server's data directory, has less than *needed* bytes free.

    Yields nothing if *folder* is None or is not on this machine.
    """
    if folder is None or not Path(folder).exists():
        return
    free = shutil.disk_usage(folder).free
    if free < needed:
        text = f"{megabytes(free)} are free in the server's data directory, but a rebuild needs {megabytes(needed)}"
        yield Finding(ERROR, "disk", text, "Free disk space before the next rebuild.")


def connection_findings(
    connection: Connection[Any], processes: int, threads: int, pool_size: int, pool_max: int
) -> Iterator[Finding]:
    """Yield findings about the pool sizes for *processes* of Zope with *threads* threads each.

    *pool_size* is the pool-size of the ZODB, *pool_max* the pool-max-size of the storage.
    """
    if pool_size <= threads:
        text = f"pool-size {pool_size} of the ZODB is not larger than the number of threads, {threads}"
        yield Finding(WARNING, "pool", text, f"Set pool-size {threads + 1} or more in zope.conf.")
    if pool_max < pool_size:
        text = f"pool-max-size {pool_max} of the storage is smaller than pool-size {pool_size} of the ZODB"
        remedy = f"Set pool-max-size {pool_size + 1} in zope.conf: each ZODB connection holds one of the pool."
        yield Finding(ERROR, "pool", text, remedy)
    [server] = connection.execute(load_sql("findings_server")).fetchall()
    allowed = server["max_connections"] - server["reserved"]
    if server["database_limit"] >= 0:
        allowed = min(allowed, server["database_limit"])
    wanted = processes * (pool_max + BESIDES_POOL)
    if wanted > allowed:
        text = f"{processes} processes may open {wanted} connections, but the server allows {allowed}"
        remedy = f"Set max_connections to {wanted + server['reserved']} or more, or a smaller pool-max-size."
        yield Finding(ERROR, "connections", text, remedy)


def pooler_findings(connection: Connection[Any], dsn: str) -> Iterator[Finding]:
    """Yield findings about the pooler of *connection*, a connection to the database *dsn*.

    Yields nothing for a pooler that assigns each client a session of the server until it disconnects.
    """
    if not shares_sessions(dsn):
        return
    if not follows_statements(connection):
        text = "the pooler does not support prepared statements, which zodb-pgjsonb uses"
        yield Finding(ERROR, "pooler", text, "Use PgBouncer 1.22 or newer, with max_prepared_statements in its ini.")
    direct = direct_dsn(dsn)
    if direct == dsn or shares_sessions(direct):
        text = "the pooler shares the server's sessions, but rebuilds, vacuum, counts of words and index builds need sessions of their own"
        remedy = f"Set {DIRECT}, such as host=db port=5432, to connect to the server without the pooler."
        if is_way_named():
            text += f", and {DIRECT} connects to {'another database' if direct == dsn else 'a pooler, too'}"
        yield Finding(ERROR, "pooler", text, remedy)


class HostileBlocks(NamedTuple):
    """An object whose blocks zodb-json-codec mistakes for classes and calls; it was stored without plone.pgcatalog.

    *path* is its id if no catalog has it, *names* are the classes and functions in the blocks.
    """

    oid: int
    class_name: str
    path: str
    names: list[str]

    def __str__(self) -> str:
        return f"0x{self.oid:x} {self.path} ({self.class_name}): {', '.join(self.names)}"


def hostile_blocks(connection: Connection[Any]) -> list[HostileBlocks]:
    """Return the objects in the database of *connection*, whose rows are dicts, that have hostile blocks."""
    rows = connection.execute(load_sql("findings_blocks")).fetchall()
    paths: dict[int, str] = {}
    if rows and statistics.has_catalogs(connection):
        for catalog in statistics.overview(statistics.executing(connection))["catalogs"]:
            statement = sql.SQL("SELECT zoid, path FROM {} WHERE zoid = ANY(%s)").format(
                sql.Identifier(catalog["relation"])
            )
            found = connection.execute(statement, [[row["zoid"] for row in rows]]).fetchall()
            paths |= {row["zoid"]: row["path"] for row in found}
    return [
        HostileBlocks(row["zoid"], row["class_name"], paths.get(row["zoid"], row["id"] or "(no path)"), row["names"])
        for row in rows
    ]


def megabytes(count: int) -> str:
    """Return *count* bytes as a text in MB."""
    return f"{count / (1 << 20):,.0f} MB"
