-- Puts jobs for objects of a catalog, the newest objects first, and notifies workers.  A waiting job that is put again is
-- due at the same time as before: otherwise the job of an object that is saved again and again would always be the last.
-- Values: kind, catalog, priority, zoids (in ascending order), and the channel of the workers.
WITH put AS (
    INSERT INTO pgcatalog_queue (kind, catalog, zoid, priority, due)
    SELECT %(kind)s, %(catalog)s, zoid, %(priority)s, now() - number * interval '1 microsecond'
    FROM unnest(%(zoids)s::bigint[]) WITH ORDINALITY AS objects (zoid, number)
    ON CONFLICT (kind, catalog, zoid) DO UPDATE
    SET put_by = EXCLUDED.put_by, put_at = EXCLUDED.put_at, attempts = 0, reason = '',
        priority = least(pgcatalog_queue.priority, EXCLUDED.priority), due = least(pgcatalog_queue.due, EXCLUDED.due)
)
SELECT pg_notify(%(channel)s, '')
