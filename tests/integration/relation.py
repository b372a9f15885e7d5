"""Changes of the catalog's relation that nobody made through the catalog."""

from plone.pgcatalog.database.direct import connect_directly
from typing import Any

import psycopg


#: For rows that tests make in SQL: the number of a list in a column that is interned, as long as the connection lives.
NUMBER_OF = """
CREATE OR REPLACE FUNCTION pg_temp.number_of(of text, list text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE found bigint := (SELECT number FROM pgcatalog_sets s WHERE s.name = of AND s.vals = list LIMIT 1);
BEGIN
    IF found IS NULL THEN
        found := hashtextextended(of || list::text, 0);
        INSERT INTO pgcatalog_sets (number, name, vals) VALUES (found, of, list);
    END IF;
    RETURN found;
END $$
"""


def damage(dsn: str, statement: str) -> None:
    """Change the catalog behind everybody's back; {} stands for its relation."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        connection.execute(statement.format(f'"{relation}"'))


def filled(catalog: Any, *statements: str) -> str:
    """Run *statements* on the relation of *catalog*, beside the site, and return its name; what was known is known no more."""
    relation: str = catalog._core.view().read_state().relation
    # What is temporary lasts for several transactions here.
    with connect_directly(catalog._p_jar._normal_storage.pg_connection.info.dsn, "test") as other:
        other.execute(NUMBER_OF)
        for statement in statements:
            other.execute(statement.format(relation))
        other.execute(f'VACUUM ANALYZE "{relation}"')
        other.execute("UPDATE pgcatalog_state SET generation = generation + 1")
    return relation
