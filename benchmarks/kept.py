"""Filled sites that are stored: databases of a server in a folder, each run on a copy of one.

The comment of such a database is its Fill, as JSON.  Without a comment, or with another identity, it is created again.
"""

from benchmarks.backends import OURS
from benchmarks.connections import Requests
from benchmarks.machine import hash_of
from benchmarks.machine import source
from benchmarks.machine import versions
from benchmarks.worker import FILLED
from benchmarks.worker import Progress
from collections.abc import Callable
from collections.abc import Mapping
from datetime import datetime
from datetime import UTC
from pathlib import Path
from psycopg import sql
from typing import Any
from typing import TypedDict

import json
import psycopg


PREFIX = "kept_"
#: Command -> the content of its site; commands with the same content share their sites.
CONTENTS = {
    "level1": "rows",
    "level2": "edited",
    "pages": "pages",
    "rebuild": "documents",
    "scale": "large",
    "scripts": "documents",
    "search": "documents",
}
#: Commands that do not measure how their sites are filled.
NOT_MEASURED = ("pages", "scripts", "search")
#: The modules that create the content.
MODULES = ("content", "debian", "documents", "manual_parts", "rows", "scale", "texts", "zope_site")
#: The packages whose versions change the stored data.
PACKAGES = ("Plone", "Products.ZCatalog", "ZODB", "RelStorage", "zodb-pgjsonb", "zodb-json-codec")
FIND = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s"
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
COPY = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
COMMENT = sql.SQL("COMMENT ON DATABASE {} IS {}")
DROP = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")


class Fill(TypedDict):
    """How a site was filled: the *identity* of the code, the day, and the figures of the fill."""

    identity: dict[str, str]
    date: str
    measures: dict[str, Any]


def site_of(command: str, backend: str, options: Mapping[str, Any]) -> str | None:
    """Return the name of the database with the filled site of *backend*; None if the command fills no site for it."""
    if command not in CONTENTS or backend == "bare-sql":
        return None
    content = options.get("texts") or CONTENTS[command]
    size = options.get("docs") or options.get("rows")
    return f"{PREFIX}{content}_{size}_{backend}".replace("-", "_")


def identity(backend: str) -> dict[str, str]:
    """Return the versions that the stored data of *backend* depend on."""
    found = {name: version for name, version in versions("").items() if name in PACKAGES}
    found["content"] = hash_of(Path(__file__).with_name(f"{name}.py") for name in MODULES)
    return found | ({"source": source()} if backend == OURS else {})


def found(dsn: str, site: str, backend: str) -> Fill | None:
    """Return the fill of the stored *site* on the server *dsn*; None if there is none.  One with another identity is dropped."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(FIND, [site]).fetchone()
        fill: Fill | None = json.loads(row[0]) if row and row[0] else None
        if fill is None or fill["identity"] != identity(backend):
            connection.execute(DROP.format(sql.Identifier(site)))
            return None
        return fill


def filled(place: Requests, options: Mapping[str, Any], progress: Progress, fill: Callable[[], Any]) -> Any:
    """Return the measures of *fill*, or the stored ones if *place* has a stored site.

    After *fill* its site is stored, according to the *options* of a worker, and *place* is opened again, with empty caches.
    """
    if not options.get("kept"):
        measures = fill()
        place.close()
        keep(options, measures)
        place.open()
    announce(options, progress)
    return options["kept"]["measures"] if options.get("kept") else measures


def announce(options: Mapping[str, Any], progress: Progress) -> None:
    """Wait until the sites of all backends are filled, if some of them may be stored."""
    if "keep" in options:
        progress(FILLED)


def keep(options: Mapping[str, Any], measures: dict[str, Any]) -> None:
    """Copy the filled database of a worker, if its *options* name the copy.  No connection of the worker may be open."""
    if not (site := options.get("keep")):
        return
    fill: Fill = {
        "identity": identity(options["backend"]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "measures": measures,
    }
    database = psycopg.conninfo.conninfo_to_dict(options["dsn"])["dbname"]
    server = psycopg.conninfo.make_conninfo(options["dsn"], dbname="postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        # Background threads of storages may still be connected for a moment.
        connection.execute(END, [database])
        connection.execute(COPY.format(sql.Identifier(site), sql.Identifier(str(database))))
        connection.execute(COMMENT.format(sql.Identifier(site), sql.Literal(json.dumps(fill))))
