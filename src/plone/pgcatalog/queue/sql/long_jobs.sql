-- The long jobs of some kinds of one catalog, and whether a session does them.  Values: catalog, kinds.
SELECT kind, coalesce(done, 0), coalesce(total, 0), coalesce(message, ''), reason, coalesce(stop, false), attempts, put_at,
    finished, due = 'infinity' AS has_ended, pgcatalog_session_of_job(kind, catalog, subject) IS NOT NULL AS is_running
FROM pgcatalog_queue
WHERE catalog = %(catalog)s AND subject = catalog AND kind = ANY(%(kinds)s)
ORDER BY kind
