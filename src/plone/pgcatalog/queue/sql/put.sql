-- Puts jobs for objects of a catalog, the newest objects first, and notifies workers.
-- Values: kind, catalog, zoids (in ascending order), and the channel of the workers.
WITH put AS (
    INSERT INTO pgcatalog_queue (kind, catalog, zoid, due)
    SELECT %(kind)s, %(catalog)s, zoid, now() - number * interval '1 microsecond'
    FROM unnest(%(zoids)s::bigint[]) WITH ORDINALITY AS objects (zoid, number)
    ON CONFLICT (kind, catalog, zoid) DO UPDATE
    SET put_by = EXCLUDED.put_by, put_at = EXCLUDED.put_at, due = EXCLUDED.due, attempts = 0, reason = ''
)
SELECT pg_notify(%(channel)s, '')
