"""Finds objects stored without plone.pgcatalog whose blocks zodb-json-codec mistakes for classes and calls."""

from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.database.statistics import has_catalogs
from plone.pgcatalog.database.statistics import overview
from psycopg import Connection
from psycopg import sql
from typing import Any
from typing import NamedTuple


class Hostile(NamedTuple):
    """An object with such blocks: *path* is its id if no catalog has it, *names* are classes and functions in the blocks."""

    oid: int
    class_name: str
    path: str
    names: list[str]

    def __str__(self) -> str:
        return f"0x{self.oid:x} {self.path} ({self.class_name}): {', '.join(self.names)}"


def hostile_blocks(connection: Connection[Any]) -> list[Hostile]:
    """Return the objects in the database of *connection*, whose rows are dicts, that have such blocks."""
    rows = connection.execute(load_sql("findings_blocks")).fetchall()
    paths: dict[int, str] = {}
    if rows and has_catalogs(connection):
        for catalog in overview(executing(connection))["catalogs"]:
            statement = sql.SQL("SELECT zoid, path FROM {} WHERE zoid = ANY(%s)").format(
                sql.Identifier(catalog["relation"])
            )
            found = connection.execute(statement, [[row["zoid"] for row in rows]]).fetchall()
            paths |= {row["zoid"]: row["path"] for row in found}
    return [
        Hostile(row["zoid"], row["class_name"], paths.get(row["zoid"], row["id"] or "(no path)"), row["names"])
        for row in rows
    ]
