"""The extension pg_trgm, where somebody has created it: parts of words by index, and typos that no other way finds.

Nothing needs it.  It is looked for whenever the states of catalogs are read, so it may come and go while the site runs.
"""

from plone.pgcatalog.database.layout import load_sql
from psycopg import Connection
from psycopg import sql
from psycopg.rows import tuple_row
from typing import Any


def create_trigram_index(connection: Connection[Any]) -> bool:
    """Create the index of all words on *connection* if it is missing and pg_trgm is there; return whether it was created.

    Locks the table of words, which no commit writes, while it builds.
    """
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(load_sql("trigram_schema")).fetchone()
        if row is None or row[1]:
            return False
        cursor.execute(sql.SQL(load_sql("trigram_index")).format(schema=sql.Identifier(row[0])))
        return True
