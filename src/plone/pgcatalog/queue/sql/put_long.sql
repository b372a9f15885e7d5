-- Puts a long job, or puts it again, and notifies workers; returns no row if a session does it now.
-- Values: kind, catalog, subject, priority, arguments (JSON), and the channel of the workers.
WITH put AS (
    INSERT INTO pgcatalog_queue (kind, catalog, subject, priority, arguments)
    VALUES (%(kind)s, %(catalog)s, %(subject)s, %(priority)s, %(arguments)s)
    ON CONFLICT (kind, catalog, subject) DO UPDATE
    SET put_by = DEFAULT, put_at = DEFAULT, due = DEFAULT, attempts = DEFAULT, reason = DEFAULT, priority = EXCLUDED.priority,
        arguments = EXCLUDED.arguments, done = NULL, total = NULL, message = NULL, stop = NULL, finished = NULL
    WHERE pgcatalog_session_of_job(pgcatalog_queue.kind, pgcatalog_queue.catalog, pgcatalog_queue.subject) IS NULL
    RETURNING 1
)
SELECT pg_notify(%(channel)s, '') FROM put
