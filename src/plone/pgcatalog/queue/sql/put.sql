-- Puts jobs about some subjects of a catalog, the highest numbers, such as the newest objects, first, and notifies workers.  A
-- waiting job that is put again is due at the same time as before: otherwise the job of an object that is saved again and
-- again would always be the last.
-- Values: kind, catalog, priority, subjects (in ascending order), delay (seconds), and the channel of the workers.
WITH put AS (
    INSERT INTO pgcatalog_queue (kind, catalog, subject, priority, due)
    SELECT %(kind)s, %(catalog)s, subject, %(priority)s,
        now() + make_interval(secs => %(delay)s) - number * interval '1 microsecond'
    FROM unnest(%(subjects)s::bigint[]) WITH ORDINALITY AS subjects (subject, number)
    ON CONFLICT (kind, catalog, subject) DO UPDATE
    SET put_by = EXCLUDED.put_by, put_at = EXCLUDED.put_at, attempts = 0, reason = '',
        priority = least(pgcatalog_queue.priority, EXCLUDED.priority), due = least(pgcatalog_queue.due, EXCLUDED.due)
)
SELECT pg_notify(%(channel)s, '')
