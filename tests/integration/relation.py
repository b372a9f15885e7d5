"""Changes of the catalog's relation that nobody made through the catalog."""

from typing import Any

import psycopg


def damage(dsn: str, statement: str) -> None:
    """Change the catalog behind everybody's back; {} stands for its relation."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        connection.execute(statement.format(f'"{relation}"'))


def filled(catalog: Any, *statements: str) -> str:
    """Run *statements* on the relation of *catalog*, beside the site, and return its name; what was known is known no more."""
    relation: str = catalog._catalog.view().read_state().relation
    with psycopg.connect(catalog._p_jar._normal_storage.pg_connection.info.dsn, autocommit=True) as other:
        for statement in statements:
            other.execute(statement.format(relation))
        other.execute(f'VACUUM ANALYZE "{relation}"')
        other.execute("UPDATE pgcatalog_state SET generation = generation + 1")
    return relation
