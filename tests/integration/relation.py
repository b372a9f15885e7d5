"""Direct changes of the catalog's relation, and many rows without objects, for the costs of searches."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.direct import connect_directly
from tests.integration import site as sites
from typing import Any

import psycopg


#: For rows that tests create in SQL: the number of a list in an interned column, for the lifetime of the connection.
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
    """Run *statement* directly, outside of any site's connection; {} stands for the catalog's relation."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        connection.execute(statement.format(f'"{relation}"'))


def filled(catalog: Any, *statements: str) -> str:
    """Run *statements* on the relation of *catalog* outside of the site, and advance the generation.

    Return the name of the relation.
    """
    relation: str = catalog._core.view().read_state().relation
    # Temporary objects must last for several transactions here.
    with connect_directly(catalog._p_jar._normal_storage.pg_connection.info.dsn, "test") as other:
        other.execute(NUMBER_OF)
        for statement in statements:
            other.execute(statement.format(relation))
        other.execute(f'VACUUM ANALYZE "{relation}"')
        other.execute("UPDATE pgcatalog_state SET generation = generation + 1, complete = '{}'")
    return relation


ROWS = """
INSERT INTO "{relation}" (rid, path, idx, path_value, parent_path, depth, portal_type, review_state, creator,
        get_id, uid, created, modified, effective, subject, allowed_roles, object_provides, sortable_title, title,
        searchable_text, searchable_text_words, is_folderish, effective_range_since, effective_range_until)
    SELECT i + 1000000, p,
        jsonb_build_object('Title', 'Title ' || i, 'Description', 'About word' || i % 1000, 'getId', 'd' || i,
            'portal_type', t, 'UID', md5(i::text)),
        p, '/plone/f' || i % 200, 3, t, (ARRAY['published', 'private'])[1 + i % 2], 'user' || i % 50,
        'd' || i, md5(i::text), at, at, at, ARRAY['tag' || i % 100, 'tag' || 100 + i % 7],
        pg_temp.number_of('allowed_roles', CASE WHEN i % 10 = 0 THEN ARRAY['Manager'] ELSE ARRAY['Anonymous'] END),
        pg_temp.number_of('object_provides', ARRAY['x.IContent']), 'title ' || i / 3,
        'title', ('''word' || i % 1000 || ''':1 ''common'':2')::tsvector, 2, false, -1440, 2147483647
    FROM generate_series(1, %s) i, LATERAL (
        SELECT '/plone/f' || i % 200 || '/d' || i, (ARRAY['Document', 'News Item', 'Event', 'File'])[1 + i % 4],
            timestamptz '2020-01-01' + i * interval '1 hour') AS v(p, t, at)
"""


def fill_relation(connection: Any, count: int) -> str:
    """Insert *count* rows into the only catalog of the database of *connection*; return the name of its relation.

    Every tenth row is visible to managers only, the others to all users.
    """
    [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
    connection.execute(NUMBER_OF)
    # With a parameter, a literal % would have to be doubled.
    connection.execute(ROWS.replace("% ", "%% ").replace("{relation}", relation), (count,))
    connection.execute(f'ANALYZE "{relation}"')
    return str(relation)


@contextmanager
def catalog_with_rows(dsn: str, count: int) -> Iterator[Any]:
    """Insert *count* rows into the empty site in the database *dsn*; yield its catalog, as admin."""
    with connect_directly(dsn, "test", 0) as connection:
        fill_relation(connection, count)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        yield portal.portal_catalog
