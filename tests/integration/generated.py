"""Many rows without objects, made by PostgreSQL: for the costs of searches, where objects do not matter."""

from tests.integration.relation import NUMBER_OF
from typing import Any


ROWS = """
INSERT INTO "{relation}" (rid, path, idx, path_value, parent_path, depth, portal_type, review_state, creator,
        get_id, uid, created, modified, effective, subject, allowed_roles, object_provides, sortable_title, title,
        searchable_text, is_folderish, effective_range_since, effective_range_until)
    SELECT i + 1000000, p,
        jsonb_build_object('Title', 'Title ' || i, 'Description', 'About word' || i % 1000, 'getId', 'd' || i,
            'portal_type', t, 'UID', md5(i::text)),
        p, '/plone/f' || i % 200, 3, t, (ARRAY['published', 'private'])[1 + i % 2], 'user' || i % 50,
        'd' || i, md5(i::text), at, at, at, ARRAY['tag' || i % 100, 'tag' || 100 + i % 7],
        pg_temp.number_of('allowed_roles', CASE WHEN i % 10 = 0 THEN ARRAY['Manager'] ELSE ARRAY['Anonymous'] END),
        pg_temp.number_of('object_provides', ARRAY['x.IContent']), 'title ' || i / 3,
        'title', ('''word' || i % 1000 || ''':1 ''common'':2')::tsvector, false, -1440, 2147483647
    FROM generate_series(1, %s) i, LATERAL (
        SELECT '/plone/f' || i % 200 || '/d' || i, (ARRAY['Document', 'News Item', 'Event', 'File'])[1 + i % 4],
            timestamptz '2020-01-01' + i * interval '1 hour') AS v(p, t, at)
"""


def fill_relation(connection: Any, count: int) -> str:
    """Put *count* rows into the only catalog of the database of *connection*; return the name of its relation.

    Every tenth row is for managers, the others for everybody.
    """
    [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
    connection.execute(NUMBER_OF)
    # A parameter, so a literal % would have to be doubled.
    connection.execute(ROWS.replace("% ", "%% ").replace("{relation}", relation), (count,))
    connection.execute(f'ANALYZE "{relation}"')
    return str(relation)
